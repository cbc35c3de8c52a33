//! A sweep as curves: goodput against what was varied, the model beside it, and what the window costs in delay below.

use bdp_model::record::Published;
use bdp_model::units::{Nanos, format_bps};
use bdp_model::{ByteCount, Probability, Rate};
use serde_json::Value;

use super::flight::size_label;
use super::page::{Figure, Sign};
use super::timeline::plain;
use super::transfer::slowest_bps;
use crate::number::{size, three_digits};
use crate::summary::{Ending, Point, ending};
use crate::svg::{Anchor, Axis, Drawing, Frame, MARGIN, WIDTH, ticks_of_bytes};
use crate::varied::name;

/// A curve needs so many points.
const LEAST_POINTS: usize = 3;
/// Values further apart than this are drawn on a logarithmic axis.
const LOGARITHMIC_FROM: f64 = 8.0;
/// Of an equivalent delay below this share of the idle round trip nothing can be said.
const RESOLUTION: f64 = 0.05;
const PLOT: [f64; 2] = [300.0, 12.0];
const HEIGHT: f64 = 324.0;
const DELAY_PLOT: [f64; 2] = [150.0, 12.0];
const DELAY_HEIGHT: f64 = 174.0;

/// Points that differ in one quantity alone, in ascending order of it.
pub(crate) struct Curve<'p, 'a> {
    pub name: String,
    pub axis: Quantity,
    /// Whether `at` is the window on the wire, as far as known, and not what was asked for.
    pub on_the_wire: bool,
    pub members: Vec<Member<'p, 'a>>,
}

/// A point of a curve.
pub(crate) struct Member<'p, 'a> {
    pub at: f64,
    pub point: &'p Point<'a>,
}

/// What was varied.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quantity {
    path: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Window,
    Bytes,
    Bps,
    Time,
    Share,
    Number,
}

impl Quantity {
    /// By the parameter's last word, as scenarios name their keys.
    fn of(path: &str) -> Self {
        let last = path.rsplit('.').next().unwrap_or(path);
        let kind = match last {
            "window" => Kind::Window,
            "length" | "mss" | "bytes" | "mtu" | "drop_above" | "limit" => Kind::Bytes,
            "rate" | "policer" => Kind::Bps,
            "delay" | "duration" | "idle" | "guard" | "turn" | "start" | "omit" | "jitter" => Kind::Time,
            "loss" | "corrupt" | "duplicate" | "reorder" => Kind::Share,
            _ => Kind::Number,
        };
        Self { path: path.to_owned(), kind }
    }

    fn value(&self, value: &Value) -> Option<f64> {
        match value {
            Value::Number(n) => n.as_f64(),
            Value::String(text) => match self.kind {
                Kind::Window | Kind::Bytes => text.parse::<ByteCount>().ok().map(|q| q.as_bytes() as f64),
                Kind::Bps => text.parse::<Rate>().ok().map(|q| q.as_bps() as f64),
                Kind::Time => text.parse::<Nanos>().ok().map(|q| q.as_ns() as f64),
                Kind::Share => text.parse::<Probability>().ok().map(Probability::fraction),
                Kind::Number => text.parse().ok(),
            },
            _ => None,
        }
    }

    fn label(&self, value: f64) -> String {
        match self.kind {
            Kind::Window | Kind::Bytes => size_label(value),
            Kind::Bps => format_bps(value),
            Kind::Time => Nanos(value.max(0.0) as u64).to_string(),
            Kind::Share => format!("{} %", plain(value * 100.0)),
            Kind::Number => plain(value),
        }
    }

    fn words(&self, on_the_wire: bool) -> String {
        match (self.kind, on_the_wire) {
            (Kind::Window, true) => "window on the wire".to_owned(),
            (Kind::Window, false) => "window asked for".to_owned(),
            _ => self.path.rsplit('.').next().unwrap_or(&self.path).replace('_', " "),
        }
    }
}

/// The curves among the points of a scenario: along the window where it is swept, else along the quantity with the most
/// values.
pub(crate) fn curves<'p, 'a>(points: &'p [Point<'a>]) -> Vec<Curve<'p, 'a>> {
    let Some(axis) = axis(points) else { return Vec::new() };
    let mut groups: Vec<(String, Vec<(f64, &'p Point<'a>)>)> = Vec::new();
    for point in points {
        let Some(at) = point.params.get(&axis.path).and_then(|v| axis.value(v)) else { continue };
        let name = name(point, Some(&axis.path));
        match groups.iter_mut().find(|(n, _)| *n == name) {
            Some((_, members)) => members.push((at, point)),
            None => groups.push((name, vec![(at, point)])),
        }
    }
    let measured = |point: &Point<'_>| point.goodput_bps().is_some_and(|g| g.median > 0.0);
    groups
        .into_iter()
        .filter(|(_, members)| members.iter().filter(|(_, p)| measured(p)).count() >= LEAST_POINTS)
        .map(|(name, members)| {
            let wire = |p: &Point<'_>| p.on_the_wire_bytes().map(|w| w.median).filter(|&w| w > 0.0);
            let on_the_wire =
                axis.kind == Kind::Window && members.iter().all(|(_, p)| wire(p).is_some() || !measured(p));
            let mut members: Vec<Member<'p, 'a>> = members
                .into_iter()
                .map(|(at, point)| Member { at: wire(point).filter(|_| on_the_wire).unwrap_or(at), point })
                .collect();
            members.sort_by(|a, b| a.at.total_cmp(&b.at));
            Curve { name, axis: axis.clone(), on_the_wire, members }
        })
        .collect()
}

fn axis(points: &[Point<'_>]) -> Option<Quantity> {
    let first = points.first()?;
    let distinct = |path: &String| {
        let quantity = Quantity::of(path);
        let mut values: Vec<f64> = points
            .iter()
            .map(|p| p.params.get(path).and_then(|v| quantity.value(v)))
            .collect::<Option<_>>()?;
        values.sort_by(f64::total_cmp);
        values.dedup();
        (values.len() >= LEAST_POINTS).then_some((quantity, values.len()))
    };
    let candidates: Vec<(Quantity, usize)> = first.params.keys().filter_map(distinct).collect();
    candidates
        .iter()
        .find(|(q, _)| q.kind == Kind::Window)
        .or_else(|| candidates.iter().max_by_key(|(_, n)| *n))
        .map(|(q, _)| q.clone())
}

impl Curve<'_, '_> {
    /// Goodput against what was varied.
    pub fn goodput_figure(&self) -> Figure<'static> {
        let axis = self.axis.words(self.on_the_wire);
        let x = self.x_axis();
        let y = self.y_axis();
        let frame = Frame { x, y };
        let mut drawing = Drawing::default();
        frame.rules(&mut drawing, &y.ticks(6), "", format_bps);
        frame.bottom(&mut drawing, &self.x_ticks(&x), |v| self.axis.label(v));

        let mut keys =
            vec![(Sign::DotOnLine("here", "here-dot"), "here: median, smallest to largest".to_owned())];
        let mut notes = vec![format!("Goodput against {axis}.")];
        if let Some(product) = self.product().filter(|p| x.holds(p.bytes)) {
            let at = x.at(product.bytes);
            drawing.line([at, y.end], [at, y.start], "level");
            let right = at > WIDTH * 0.7;
            let (anchor, at) = if right { (Anchor::End, at - 5.0) } else { (Anchor::Start, at + 5.0) };
            drawing.text([at, y.start - 6.0], anchor, "name", &format!("rate × RTT {}", size(product.bytes)));
            notes.push(format!("rate × RTT = {}.", product.terms));
        }
        let model = self
            .members
            .iter()
            .map(|m| m.point.expected_bps().filter(|e| e.median > 0.0).map(|e| frame.at(m.at, e.median)));
        if self.members.iter().any(|m| m.point.expected_bps().is_some()) {
            drawing.polyline(model, "model");
            keys.push((
                Sign::Line("model"),
                "model, for the window and round trip that were there".to_owned(),
            ));
        }
        let medians = self
            .members
            .iter()
            .map(|m| m.point.goodput_bps().filter(|g| g.median > 0.0).map(|g| frame.at(m.at, g.median)));
        drawing.polyline(medians.filter(Option::is_some), "here");
        let (mut hollow, mut crossed) = (false, false);
        let dot = if self.members.len() > 120 { 1.8 } else { 3.2 };
        for member in &self.members {
            if let Some(spread) = member.point.goodput_bps().filter(|g| g.median > 0.0) {
                if spread.max > spread.min {
                    drawing.line(frame.at(member.at, spread.min), frame.at(member.at, spread.max), "range");
                }
                drawing.dot(frame.at(member.at, spread.median), dot, "here-dot");
            }
            match member.point.published_bps() {
                Some(Published::Number(bps)) => {
                    hollow = true;
                    drawing.dot(frame.at(member.at, bps), 4.2, "hollow");
                }
                Some(Published::Range([low, high])) => {
                    hollow = true;
                    drawing.line(frame.at(member.at, low), frame.at(member.at, high), "hollow-line");
                    drawing.dot(frame.at(member.at, low), 3.2, "hollow");
                    drawing.dot(frame.at(member.at, high), 3.2, "hollow");
                }
                None => {}
            }
            for record in member.point.records.iter().filter(|r| ending(r) == Ending::Invalid) {
                if let Some(goodput) = record.goodput_bps.filter(|&g| g > 0.0) {
                    crossed = true;
                    drawing.cross(frame.at(member.at, goodput), 4.0, "cross");
                }
            }
        }
        if hollow {
            keys.push((Sign::Dot("hollow"), "published".to_owned()));
        }
        if crossed {
            keys.push((Sign::Cross, "INVALID attempt: counts for nothing".to_owned()));
        }
        let failed = self.members.iter().filter(|m| m.point.count(Ending::Failed) > 0).count();
        if failed > 0 {
            notes.push(format!("{failed} points with FAILED attempts: see the table."));
        }
        notes.push(scales(&x, &y));
        let description = format!(
            "{} points, from {} to {}; goodput up to {}.",
            self.members.len(),
            self.axis.label(self.members.first().map_or(0.0, |m| m.at)),
            self.axis.label(self.members.last().map_or(0.0, |m| m.at)),
            format_bps(self.best_bps())
        );
        let chart = drawing.finish(HEIGHT, &format!("{}: goodput against {axis}", self.name), &description);
        Figure { title: "Goodput", keys, notes, chart }
    }

    /// What each window costs in delay beyond the idle round trip: `8 W / goodput - RTT`. `None` where no window was
    /// varied.
    pub fn delay_figure(&self) -> Option<Figure<'static>> {
        if self.axis.kind != Kind::Window || !self.on_the_wire {
            return None;
        }
        let delays: Vec<(f64, f64, bool)> = self
            .members
            .iter()
            .filter_map(|m| {
                let rtt = m.point.rtt_idle_min_ns()? as f64 / 1e6;
                let goodput = m.point.goodput_bps().filter(|g| g.median > 0.0)?.median;
                // Every stream has a window of its own.
                let streams = m.point.valid().next()?.flows.first()?.stream_goodput_bps.len().max(1);
                let delay = m.at * streams as f64 * 8e3 / goodput - rtt;
                let resolution = RESOLUTION * rtt;
                Some(if delay < resolution { (m.at, resolution, false) } else { (m.at, delay, true) })
            })
            .collect();
        if delays.len() < LEAST_POINTS {
            return None;
        }
        let x = self.x_axis();
        let y = Axis::logarithmic(delays.iter().map(|d| d.1), DELAY_PLOT);
        let frame = Frame { x, y };
        let mut drawing = Drawing::default();
        frame.rules(&mut drawing, &y.ticks(5), "ms", plain);
        frame.bottom(&mut drawing, &self.x_ticks(&x), |v| self.axis.label(v));
        drawing.polyline(delays.iter().map(|&(at, ms, known)| known.then(|| frame.at(at, ms))), "third");
        for &(at, ms, known) in &delays {
            drawing.dot(frame.at(at, ms), 3.0, if known { "third-dot" } else { "hollow" });
        }
        let mut keys = vec![(Sign::DotOnLine("third", "third-dot"), "equivalent delay".to_owned())];
        if delays.iter().any(|d| !d.2) {
            keys.push((
                Sign::Dot("hollow"),
                "below what can be told: under 5 % of the idle round trip".to_owned(),
            ));
        }
        let notes = vec![
            "8 × window / goodput − idle round trip: how much longer a window takes to be delivered than an empty path \
             needs. Beyond rate × RTT more window only waits."
                .to_owned(),
        ];
        let description = format!("{} points on logarithmic axes.", delays.len());
        let chart =
            drawing.finish(DELAY_HEIGHT, &format!("{}: equivalent delivery delay", self.name), &description);
        Some(Figure { title: "Equivalent delivery delay", keys, notes, chart })
    }

    fn best_bps(&self) -> f64 {
        self.members.iter().filter_map(|m| m.point.goodput_bps()).map(|g| g.median).fold(0.0, f64::max)
    }

    fn x_axis(&self) -> Axis {
        let ends = [MARGIN + 8.0, WIDTH - MARGIN - 8.0];
        spread_over(self.members.iter().map(|m| m.at), ends, false)
    }

    fn y_axis(&self) -> Axis {
        let rates = self.members.iter().flat_map(|m| {
            let published = match m.point.published_bps() {
                Some(Published::Number(n)) => [Some(n), None],
                Some(Published::Range([low, high])) => [Some(low), Some(high)],
                None => [None, None],
            };
            let goodput = m.point.goodput_bps();
            let own =
                [goodput.map(|g| g.min), goodput.map(|g| g.max), m.point.expected_bps().map(|e| e.median)];
            own.into_iter().chain(published).flatten().filter(|&bps| bps > 0.0)
        });
        spread_over(rates, PLOT, true)
    }

    fn x_ticks(&self, x: &Axis) -> Vec<f64> {
        match self.axis.kind {
            Kind::Window | Kind::Bytes if x.low > 0.0 => ticks_of_bytes(x, 7),
            Kind::Number => {
                let ticks = x.ticks(7);
                let whole: Vec<f64> = ticks.iter().copied().filter(|t| t.fract() == 0.0).collect();
                if whole.len() >= 2 { whole } else { ticks }
            }
            _ => x.ticks(7),
        }
    }

    /// Rate x smallest idle round trip, for a sweep of windows.
    fn product(&self) -> Option<Product> {
        if self.axis.kind != Kind::Window {
            return None;
        }
        let rtt = Nanos(self.members.iter().filter_map(|m| m.point.rtt_idle_min_ns()).min()?);
        let record = self.members.iter().find_map(|m| m.point.valid().next())?;
        let (bps, what) = match slowest_bps(&record.case, record.case.flows.first()?) {
            Some(bps) => (bps, format_bps(bps)),
            None => (self.best_bps(), format!("best goodput {}", format_bps(self.best_bps()))),
        };
        let bytes = bps * rtt.as_secs_f64() / 8.0;
        let ms = three_digits(rtt.as_ns() as f64 / 1e6);
        Some(Product { bytes, terms: format!("{what} × {ms} ms = {}", size(bytes)) })
    }
}

struct Product {
    bytes: f64,
    terms: String,
}

/// A logarithmic axis where the values are far apart and above zero, a linear one where they are not.
fn spread_over(values: impl Iterator<Item = f64>, ends: [f64; 2], upwards: bool) -> Axis {
    let values: Vec<f64> = values.filter(|v| v.is_finite()).collect();
    let (low, high) = values.iter().fold((f64::INFINITY, 0.0f64), |(l, h), &v| (l.min(v), h.max(v)));
    if low > 0.0 && high > LOGARITHMIC_FROM * low {
        Axis::logarithmic(values, ends)
    } else if upwards {
        Axis::from_zero(high, ends)
    } else {
        let room = (high - low) * 0.03;
        Axis::linear([low.min(high) - room, high + room], ends)
    }
}

fn scales(x: &Axis, y: &Axis) -> String {
    match (x.is_logarithmic(), y.is_logarithmic()) {
        (true, true) => "Both axes logarithmic: equal steps are equal factors.".to_owned(),
        (true, false) => "Logarithmic from left to right.".to_owned(),
        (false, true) => "Logarithmic upwards.".to_owned(),
        (false, false) => String::new(),
    }
}
