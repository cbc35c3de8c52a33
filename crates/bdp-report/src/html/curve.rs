//! A sweep as curves: goodput against the swept parameter, the model, and the delay cost of the window below.

use bdp_model::case::Published;
use bdp_model::sweep::curve::{self as model, DeliveryDelay, Knee};
use bdp_model::sweep::parameter::Unit;
use bdp_model::units::format_bps;

use super::quantity::{LEAST_POINTS, Quantity, axis};
use super::sentence::sentence;
use crate::chart::{Axis, Chart, Marks, Panel, Series, Unit as Shown};
use crate::number::{percent, size, three_digits};
use crate::summary::{Ending, Point, Spread, ending};
use crate::sweep::place;
use crate::varied::name;
use bdp_model::sweep::record_curves::axis_of;

/// Ratio of values above which the axis is logarithmic.
const LOGARITHMIC_FROM: f64 = 8.0;
/// Least width of a recommended range, so that one with a single value is seen.
const LEAST_BAND: f64 = 10.0;
/// Points that differ in one quantity only, in ascending order.
pub(crate) struct Curve<'p, 'a> {
    pub name: String,
    axis: Quantity,
    /// Whether `at` is the window on the wire, as far as known, rather than the one requested.
    on_the_wire: bool,
    pub members: Vec<Member<'p, 'a>>,
    /// Knee and ranges, if the quantity has them.
    pub known: Option<model::Curve>,
    /// What the short thick lines cover.
    range: &'static str,
}

/// A point of a curve.
pub(crate) struct Member<'p, 'a> {
    at: f64,
    /// Records of the point, if it is from the lab.
    pub point: Option<&'p Point<'a>>,
    goodput: Option<Spread>,
    expected_bps: Option<f64>,
    published: Option<Published>,
    /// Goodput of INVALID attempts.
    invalid_bps: Vec<f64>,
    failed: bool,
}

/// Returns the curves of a scenario: along the window if it is swept, otherwise along the quantity with the most
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
        .map(|(name, members)| of_points(name, &axis, &members))
        .collect()
}

fn of_points<'p, 'a>(name: String, axis: &Quantity, members: &[(f64, &'p Point<'a>)]) -> Curve<'p, 'a> {
    let wire = |p: &Point<'_>| p.on_the_wire_bytes().map(|w| w.median).filter(|&w| w > 0.0);
    let on_the_wire =
        axis.is_window() && members.iter().all(|(_, p)| wire(p).is_some() || p.goodput_bps().is_none());
    let all: Vec<&Point<'_>> = members.iter().map(|(_, p)| *p).collect();
    let known = axis_of(&axis.path)
        .map(|kind| bdp_model::sweep::record_curves::curve(name.clone(), &axis.path, kind, &all));
    let mut members: Vec<Member<'p, 'a>> = members
        .iter()
        .map(|&(at, point)| Member {
            at: wire(point).filter(|_| on_the_wire).unwrap_or(at),
            point: Some(point),
            goodput: point.goodput_bps().filter(|g| g.median > 0.0),
            expected_bps: point.expected_bps().map(|e| e.median).filter(|&e| e > 0.0),
            published: point.published_bps(),
            invalid_bps: point
                .records
                .iter()
                .filter(|r| ending(r) == Ending::Invalid)
                .filter_map(|r| r.goodput_bps.filter(|&g| g > 0.0))
                .collect(),
            failed: point.count(Ending::Failed) > 0,
        })
        .collect();
    members.sort_by(|a, b| a.at.total_cmp(&b.at));
    Curve { name, axis: axis.clone(), on_the_wire, members, known, range: "smallest to largest" }
}

/// Returns a curve computed elsewhere; `None` if its values are unordered or too few.
pub(crate) fn of_known(curve: model::Curve) -> Option<Curve<'static, 'static>> {
    if curve.axis == model::Axis::Congestion {
        return None;
    }
    let members = curve.points.iter().map(|p| Member {
        at: p.x,
        point: None,
        goodput: Some(Spread { median: p.goodput_bps.p50, min: p.goodput_bps.min, max: p.goodput_bps.max }),
        expected_bps: p.expected_bps.filter(|&e| e > 0.0),
        published: None,
        invalid_bps: Vec::new(),
        failed: false,
    });
    let members: Vec<Member<'static, 'static>> = members.collect();
    // Two points are a choice.
    (members.len() >= 2).then(|| Curve {
        name: curve.name.clone(),
        axis: Quantity::of_axis(curve.axis),
        on_the_wire: curve.axis == model::Axis::WindowOnTheWire,
        members,
        known: Some(curve),
        range: "smallest to largest of the runs",
    })
}

impl Curve<'_, '_> {
    /// Returns the chart of goodput against the swept parameter.
    pub fn goodput_chart(&self) -> Chart {
        let axis = self.axis.words(self.on_the_wire);
        let (x, y) = (self.x_axis(), self.y_axis());
        let mut notes = vec![format!("Goodput against {axis}.")];
        let medians: Vec<[f64; 2]> =
            self.members.iter().filter_map(|m| Some([m.at, m.goodput?.median])).collect();
        let radius = if self.members.len() > 120 { 1.8 } else { 3.2 };
        let mut series = vec![
            Series::line("here", "here: median", medians.iter().copied()).labelled("here"),
            Series::and("here-dot", Marks::Dots(radius, medians)),
        ];
        series.extend(self.ranges());
        if let Some(product) = self.product().filter(|p| x.holds(p.bytes)) {
            let name = format!("rate × RTT {}", size(product.bytes));
            series.push(Series::new("level", name, Marks::Upright(vec![product.bytes])).labelled("product"));
            notes.push(format!("rate × RTT = {}.", product.terms));
        }
        if self.members.iter().any(|m| m.expected_bps.is_some()) {
            let model = self.members.iter().map(|m| m.expected_bps.map(|bps| [m.at, bps]));
            let name = "model, for the window and round trip that were there";
            series.push(Series::new("model", name, Marks::Line(model.collect())).labelled("model"));
        }
        series.extend(self.marks());
        notes.extend(self.knee_words());
        notes.extend(self.advice());
        let failed = self.members.iter().filter(|m| m.failed).count();
        if failed > 0 {
            notes.push(format!("{failed} points with FAILED attempts: see the table."));
        }
        notes.push(scales(&x, &y));
        Chart {
            heading: "Goodput".to_owned(),
            title: format!("{}: goodput against {axis}", self.name),
            description: format!(
                "{} points, from {} to {}; goodput up to {}.",
                self.members.len(),
                self.axis.label(self.members.first().map_or(0.0, |m| m.at)),
                self.axis.label(self.members.last().map_or(0.0, |m| m.at)),
                format_bps(self.best_bps())
            ),
            x,
            panels: vec![Panel::new(y, 284.0, series)],
            notes,
            zoom: None,
        }
    }

    /// Returns the recommended ranges as areas, and the knee.
    fn ranges(&self) -> Vec<Series> {
        let Some(known) = &self.known else { return Vec::new() };
        let ranges = [
            (known.for_throughput(), "shade", "to choose for throughput"),
            (known.for_latency(), "hatch", "to choose for latency"),
        ];
        let ends = |range: model::Range| [range.from, range.to].map(|i| known.points[i].x);
        let areas = ranges.into_iter().filter_map(|(range, class, meaning)| {
            Some(Series::new(class, meaning, Marks::Band(LEAST_BAND, ends(range?))))
        });
        let mut series: Vec<Series> = areas.collect();
        if let Some(Knee::At(index)) = known.knee() {
            let point = &known.points[index];
            let at = vec![[point.x, point.goodput_bps.p50]];
            let name = format!("knee: {}", place(known, index));
            series.push(Series::new("ring", name, Marks::Dots(8.0, at)).labelled("knee"));
        }
        series
    }

    /// Returns the ranges of points, published figures, and INVALID attempts.
    fn marks(&self) -> Vec<Series> {
        let upright = |at: f64, [low, high]: [f64; 2]| [[at, low], [at, high]];
        let ranges = self.members.iter().filter_map(|member| {
            let spread = member.goodput.filter(|spread| spread.max > spread.min)?;
            Some(upright(member.at, [spread.min, spread.max]))
        });
        let (mut dots, mut lines) = (Vec::new(), Vec::new());
        for member in &self.members {
            match member.published {
                Some(Published::Number(bps)) => dots.push([member.at, bps]),
                Some(Published::Range(ends)) => {
                    dots.extend(ends.map(|bps| [member.at, bps]));
                    lines.push(upright(member.at, ends));
                }
                None => {}
            }
        }
        let invalid = self.members.iter().flat_map(|m| m.invalid_bps.iter().map(|&bps| [m.at, bps]));
        let all = [
            Series::new("range", self.range, Marks::Spans(ranges.collect())),
            Series::new("hollow", "published", Marks::Dots(4.0, dots)),
            Series::and("hollow-line", Marks::Spans(lines)),
            Series::new("cross", "INVALID attempt: counts for nothing", Marks::Crosses(invalid.collect())),
        ];
        all.into_iter().filter(|series| !series.is_empty()).collect()
    }

    /// Returns where the curve stops rising, as a sentence.
    pub fn knee_words(&self) -> Option<String> {
        let known = self.known.as_ref()?;
        let what = crate::sweep::quantity(known.axis);
        let level = known.plateau().bps;
        let goodput = |index: usize| known.points[index].goodput_bps.p50;
        let last = known.points.len().checked_sub(1)?;
        if let Some(fall) = known.fall() {
            return Some(format!("It has no knee: {}.", crate::sweep::fall_words(known, fall)));
        }
        Some(match known.knee()? {
            Knee::At(index) => format!(
                "At {} it reaches {}, {} of the plateau: more {what} gains little{}.",
                place(known, index),
                format_bps(goodput(index)),
                percent(goodput(index) / level),
                crate::sweep::doubt(known, index)
            ),
            Knee::Below => format!(
                "The smallest {what}, {}, already gives {} of the plateau, {}.",
                place(known, 0),
                percent(goodput(0) / level),
                format_bps(level)
            ),
            Knee::Above if known.may_go_on() => format!(
                "It rises up to {}, {}; {}.",
                place(known, last),
                format_bps(goodput(last)),
                crate::sweep::unmeasured_words(known)
            ),
            Knee::Above => format!(
                "It still rises at the largest {what}, {}: {}.",
                place(known, last),
                format_bps(goodput(last))
            ),
        })
    }

    /// Returns where the curve stops rising, for readers who are not network engineers.
    pub fn plain_words(&self) -> Option<String> {
        let known = self.known.as_ref()?;
        let at = |index: usize| match (known.axis, place(known, index)) {
            (model::Axis::Streams, place) => place,
            (model::Axis::Mss, place) => format!("an MSS of {place}"),
            (axis, place) => format!("a {} of {place}", crate::sweep::quantity(axis)),
        };
        let best = (0..known.points.len())
            .max_by(|&a, &b| known.points[a].goodput_bps.p50.total_cmp(&known.points[b].goodput_bps.p50))?;
        let Some(knee) = known.knee() else { return Some(format!("It was fastest with {}.", at(best))) };
        Some(match knee {
            Knee::At(index) => format!("Beyond {} it gets hardly faster.", at(index)),
            Knee::Below => format!("It is as fast with {}, the least that was tried, as with more.", at(0)),
            Knee::Above => {
                format!(
                    "It was fastest with {}, and more may make it faster still.",
                    at(known.points.len() - 1)
                )
            }
        })
    }

    /// Returns the headline of a sweep's verdict: where the curve stops rising.
    pub fn headline(&self) -> Option<String> {
        let known = self.known.as_ref()?;
        let Some(knee) = known.knee() else {
            return crate::sweep_report::advised(known).into_iter().map(|(_, line)| sentence(&line)).next();
        };
        let Knee::At(index) = knee else { return self.knee_words() };
        let kind = if self.on_the_wire { " on the wire" } else { "" };
        Some(format!(
            "{} from {}{kind} on.",
            format_bps(known.points[index].goodput_bps.p50),
            place(known, index)
        ))
    }

    /// Returns the recommendations, as sentences.
    fn advice(&self) -> Vec<String> {
        let advised = self.known.iter().flat_map(crate::sweep_report::advised);
        advised.map(|(what, line)| format!("For {what}: {line}.")).collect()
    }

    /// Returns the chart of each window's delay beyond the idle round trip: `8 W / goodput - RTT`. `None` if no window was
    /// varied, or none has a delay.
    pub fn delay_chart(&self) -> Option<Chart> {
        let known = self.known.as_ref().filter(|_| self.axis.is_window() && self.on_the_wire)?;
        let (mut line, mut below) = (Vec::new(), Vec::new());
        for p in &known.points {
            match (p.rtt_idle_ns, p.delivery_delay()) {
                (Some(_), Some(DeliveryDelay::Ns(ns))) => line.push(Some([p.x, ns as f64 / 1e6])),
                (Some(idle), Some(DeliveryDelay::BelowResolution)) => {
                    below.push([p.x, model::DELAY_RESOLUTION * idle as f64 / 1e6]);
                    line.push(None);
                }
                _ => {}
            }
        }
        let dots: Vec<[f64; 2]> = line.iter().flatten().copied().collect();
        if dots.len() < LEAST_POINTS {
            return None;
        }
        let all = || dots.iter().chain(&below).map(|point| point[1]);
        let (low, high) = all().fold((f64::INFINITY, 0.0f64), |(l, h), ms| (l.min(ms), h.max(ms)));
        let description =
            format!("{} points, {} to {} ms.", line.len(), three_digits(low), three_digits(high));
        let y = Axis::logarithmic(all(), Shown::MILLISECONDS, 5);
        let mut series = vec![
            Series::new("third", "equivalent delay", Marks::Line(line)),
            Series::and("third-dot", Marks::Dots(3.0, dots)),
        ];
        if !below.is_empty() {
            let name = "below resolution: under 5 % of the idle round trip";
            series.push(Series::new("hollow", name, Marks::Dots(3.0, below)));
        }
        Some(Chart {
            heading: "Equivalent delivery delay".to_owned(),
            title: format!("{}: equivalent delivery delay", self.name),
            description,
            x: self.x_axis(),
            panels: vec![Panel::new(y, 138.0, series)],
            notes: vec![
                "8 × window / goodput − idle round trip: how much longer a window takes to be delivered than an empty \
                 path needs. Beyond rate × RTT more window only waits."
                    .to_owned(),
                "Logarithmic upwards.".to_owned(),
            ],
            zoom: None,
        })
    }

    fn best_bps(&self) -> f64 {
        self.members.iter().filter_map(|m| m.goodput).map(|g| g.median).fold(0.0, f64::max)
    }

    fn x_axis(&self) -> Axis {
        let axis = spread_over(self.members.iter().map(|m| m.at), self.axis.unit.into(), 7, false);
        match self.axis.unit {
            // With few numbers spaced by factors, each has a tick.
            Unit::Number | Unit::Packets if axis.is_logarithmic() && self.members.len() < 10 => {
                axis.with_ticks(self.members.iter().map(|m| m.at).collect())
            }
            Unit::Number | Unit::Packets => {
                let whole: Vec<f64> = axis.ticks.iter().copied().filter(|t| t.fract() == 0.0).collect();
                if whole.len() >= 2 { axis.with_ticks(whole) } else { axis }
            }
            _ => axis,
        }
    }

    fn y_axis(&self) -> Axis {
        let rates = self.members.iter().flat_map(|m| {
            let published = match m.published {
                Some(Published::Number(n)) => [Some(n), None],
                Some(Published::Range([low, high])) => [Some(low), Some(high)],
                None => [None, None],
            };
            let own = [m.goodput.map(|g| g.min), m.goodput.map(|g| g.max), m.expected_bps];
            let all = own.into_iter().chain(published).flatten().chain(m.invalid_bps.iter().copied());
            all.filter(|&bps| bps > 0.0).collect::<Vec<_>>()
        });
        spread_over(rates, Shown::BitsPerSecond, 6, true)
    }

    /// Returns rate x smallest idle round trip, for a sweep of windows.
    fn product(&self) -> Option<Product> {
        let known = self.known.as_ref().filter(|_| self.axis.is_window())?;
        let product = known.product()?;
        let rate = match known.rate_bps {
            Some(bps) => format_bps(bps as f64),
            None => format!("best goodput {}", format_bps(product.rate_bps)),
        };
        let ms = three_digits(product.rtt.as_ns() as f64 / 1e6);
        Some(Product { bytes: product.bytes, terms: format!("{rate} × {ms} ms = {}", size(product.bytes)) })
    }
}

struct Product {
    bytes: f64,
    terms: String,
}

/// Returns a logarithmic axis if the values are positive and far apart, otherwise a linear one.
fn spread_over(values: impl Iterator<Item = f64>, unit: Shown, most: usize, upwards: bool) -> Axis {
    let values: Vec<f64> = values.filter(|v| v.is_finite()).collect();
    let (low, high) = values.iter().fold((f64::INFINITY, 0.0f64), |(l, h), &v| (l.min(v), h.max(v)));
    if low > 0.0 && (high > LOGARITHMIC_FROM * low || (!upwards && is_geometric(&values))) {
        Axis::logarithmic(values, unit, most)
    } else if upwards {
        Axis::from_zero(high, unit, most)
    } else {
        let room = (high - low) * 0.03;
        Axis::linear([low.min(high) - room, high + room], unit, most)
    }
}

/// Whether values are spaced by factors rather than by steps, as 1, 2, 4.
fn is_geometric(values: &[f64]) -> bool {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    let unevenness = |apart: &dyn Fn(f64, f64) -> f64| {
        let gaps = || sorted.windows(2).map(|pair| apart(pair[0], pair[1]));
        gaps().fold(0.0, f64::max) / gaps().fold(f64::INFINITY, f64::min)
    };
    if sorted.len() == 2 {
        return sorted[1] >= 3.0 * sorted[0];
    }
    unevenness(&|a, b| (b / a).ln()) < unevenness(&|a, b| b - a)
}

fn scales(x: &Axis, y: &Axis) -> String {
    match (x.is_logarithmic(), y.is_logarithmic()) {
        (true, true) => "Both axes logarithmic: equal steps are equal factors.".to_owned(),
        (true, false) => "Logarithmic from left to right.".to_owned(),
        (false, true) => "Logarithmic upwards.".to_owned(),
        (false, false) => String::new(),
    }
}
