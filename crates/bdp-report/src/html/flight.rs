//! Bytes in flight, receive window, congestion window, and a line at rate x RTT.

use crate::finding::size;
use bdp_model::record::SenderSample;

use super::page::{Figure, Sign};
use super::series::thin;
use super::timeline::{MOST, plain};
use super::transfer::Transfer;
use crate::number::percent;
use crate::svg::{Axis, Drawing, Frame, GUTTER, MARGIN, WIDTH, ticks_of_bytes};

const PLOT: [f64; 2] = [196.0, 10.0];
const HEIGHT: f64 = 222.0;
/// Ratio of the largest to the smallest curve above which a linear axis would flatten the small one.
const LOGARITHMIC_FROM: f64 = 12.0;

/// Curves of the figure: times and bytes.
struct Curves {
    in_flight: Vec<[f64; 2]>,
    receive: Vec<[f64; 2]>,
    congestion: Vec<[f64; 2]>,
    /// Rate x RTT, and the name of the rate.
    product: Option<(&'static str, f64)>,
}

impl Curves {
    /// Returns `None` if the sender reported none of the curves.
    fn of(transfer: &Transfer<'_>, mss: f64) -> Option<Self> {
        let readings = |value: &dyn Fn(&SenderSample) -> Option<f64>| -> Vec<[f64; 2]> {
            transfer.sent.iter().filter_map(|s| Some([s.at_ns as f64 / 1e9, value(s)?])).collect()
        };
        let in_flight = readings(&|s| Some(f64::from(s.unacked?) * mss));
        let receive = readings(&|s| s.snd_wnd_bytes.map(|b| b as f64));
        // A congestion window that was never limited may be 2^31.
        let congestion = readings(&|s| s.cwnd.filter(|&c| c < 1 << 30).map(|c| f64::from(c) * mss));
        // Without a known capacity, the goodput reached.
        let product = match transfer.needed_bytes {
            Some(needed) => Some(("ceiling", needed)),
            None => transfer.carried_bytes.map(|carried| ("goodput", carried)),
        };
        let product = product.filter(|(_, bytes)| *bytes > 0.0);
        (!in_flight.is_empty() || !receive.is_empty()).then_some(Self {
            in_flight,
            receive,
            congestion,
            product,
        })
    }

    fn axis(&self, mss: f64) -> Axis {
        let curves = [&self.in_flight, &self.receive, &self.congestion];
        let mut largest: Vec<f64> = curves.iter().map(|points| largest_of(points)).collect();
        largest.extend(self.product.map(|(_, bytes)| bytes));
        largest.retain(|&l| l > 0.0);
        let (low, high) = largest.iter().fold((f64::INFINITY, 0.0f64), |(l, h), &v| (l.min(v), h.max(v)));
        if high <= LOGARITHMIC_FROM * low {
            return Axis::from_zero(high, PLOT);
        }
        let smallest = self.in_flight.iter().map(|p| p[1]).filter(|&v| v > 0.0).fold(low, f64::min);
        Axis::logarithmic([smallest.max(mss / 2.0).min(low), high], PLOT)
    }

    /// Draws the curves; returns how many readings each drawn one represents.
    fn draw(&self, drawing: &mut Drawing, frame: &Frame, keys: &mut Vec<(Sign, String)>) -> usize {
        let mut stride = 1;
        for (points, class, meaning) in [
            (&self.congestion, "third", "congestion window"),
            (&self.receive, "model", "receive window, as the sender sees it"),
            (&self.in_flight, "here", "in flight"),
        ] {
            if points.is_empty() {
                continue;
            }
            let thinned = thin(points, MOST);
            stride = stride.max(thinned.stride);
            drawing.polyline(thinned.points.into_iter().map(|[at, bytes]| Some(frame.at(at, bytes))), class);
            keys.insert(0, (Sign::Line(class), meaning.to_owned()));
        }
        stride
    }
}

fn largest_of(points: &[[f64; 2]]) -> f64 {
    points.iter().map(|p| p[1]).fold(0.0, f64::max)
}

/// Returns the figure; `None` if the sender reported none of the curves.
pub(crate) fn figure(transfer: &Transfer<'_>, title: &str) -> Option<Figure<'static>> {
    let mss = transfer.mss_bytes.filter(|&m| m > 0)? as f64;
    let curves = Curves::of(transfer, mss)?;
    let last = transfer.sent.last()?.at_ns as f64 / 1e9;
    let (x, y) = (Axis::linear([0.0, last], [GUTTER, WIDTH - MARGIN]), curves.axis(mss));
    let frame = Frame { x, y };
    let mut drawing = Drawing::default();
    let omit = transfer.omit_ns as f64 / 1e9;
    if omit > 0.0 {
        drawing.rect([x.at(0.0), PLOT[1]], [x.at(omit) - x.at(0.0), PLOT[0] - PLOT[1]], "shade");
    }
    let ticks = if y.is_logarithmic() { ticks_of_bytes(&y, 6) } else { y.ticks_in(binary_unit(y.high), 4) };
    frame.rules(&mut drawing, &ticks, "", size_label);
    frame.bottom(&mut drawing, &x.ticks(8), |s| format!("{} s", plain(s)));
    let mut keys = Vec::new();
    if let Some((_, bytes)) = curves.product {
        frame.level(&mut drawing, bytes, "level");
    }
    let stride = curves.draw(&mut drawing, &frame, &mut keys);
    if let Some((rate, bytes)) = curves.product {
        let share = if transfer.streams > 1 { " / streams" } else { "" };
        let name = format!("{rate} × idle round trip{share}: {}", size(bytes));
        keys.push((Sign::Line("level"), name));
    }
    let description = format!(
        "Largest in flight {}, largest receive window {}, largest congestion window {}.",
        size(largest_of(&curves.in_flight)),
        size(largest_of(&curves.receive)),
        size(largest_of(&curves.congestion))
    );
    let chart =
        drawing.finish(HEIGHT, &format!("{title}: bytes in flight and windows over time"), &description);
    let scale = y.is_logarithmic().then(|| match curves.in_flight.iter().any(|p| p[1] <= 0.0) {
        true => "Logarithmic: equal steps are equal factors; zero is at the bottom.".to_owned(),
        false => "Logarithmic: equal steps are equal factors.".to_owned(),
    });
    let notes = notes(transfer, scale, stride);
    Some(Figure { title: "In flight, and what allows it", keys, notes, chart: chart.into() })
}

fn notes(transfer: &Transfer<'_>, scale: Option<String>, stride: usize) -> Vec<String> {
    let full = transfer.window_full.map(|share| {
        format!(
            "The receive window was full, with no room for another segment, {} of the time.",
            percent(share)
        )
    });
    let all = [
        scale,
        (transfer.streams > 1).then(|| format!("Of the first of {} streams.", transfer.streams)),
        full,
        (stride > 1).then(|| format!("Of each {stride} readings, the smallest and the largest.")),
    ];
    all.into_iter().flatten().collect()
}

/// Returns the largest binary unit below a size.
pub(crate) fn binary_unit(bytes: f64) -> f64 {
    [1024f64.powi(3), 1024f64.powi(2), 1024.0].into_iter().find(|&u| bytes >= u).unwrap_or(1.0)
}

/// Formats a round size without trailing zeros: `64 KiB`, `1.5 MiB`.
pub(crate) fn size_label(bytes: f64) -> String {
    let unit = binary_unit(bytes);
    let name = match unit {
        u if u >= 1024f64.powi(3) => "GiB",
        u if u >= 1024f64.powi(2) => "MiB",
        u if u >= 1024.0 => "KiB",
        _ => "B",
    };
    format!("{} {name}", plain((bytes / unit * 100.0).round() / 100.0))
}
