//! Bytes in flight, receive window, congestion window, and a line at rate x RTT.

use bdp_model::record::SenderSample;

use super::series::{largest, thin};
use super::timeline::MOST;
use super::transfer::Transfer;
use crate::chart::{Axis, Chart, Marks, Panel, Series, Unit};
use crate::finding::size;
use crate::number::percent;

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
        let curves = [&self.in_flight, &self.receive, &self.congestion].map(|points| largest(points));
        let tops = curves.into_iter().chain(self.product.map(|(_, bytes)| bytes)).filter(|&top| top > 0.0);
        let (low, high) = tops.fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
        if high <= LOGARITHMIC_FROM * low {
            return Axis::from_zero(high, Unit::Bytes, 4);
        }
        let smallest = self.in_flight.iter().map(|p| p[1]).filter(|&v| v > 0.0).fold(low, f64::min);
        Axis::logarithmic([smallest.max(mss / 2.0).min(low), high], Unit::Bytes, 6)
    }
}

/// Returns the chart; `None` if the sender reported none of the curves.
pub(crate) fn chart(transfer: &Transfer<'_>, title: &str) -> Option<Chart> {
    let mss = transfer.mss_bytes.filter(|&m| m > 0)? as f64;
    let curves = Curves::of(transfer, mss)?;
    let last = transfer.sent.last()?.at_ns as f64 / 1e9;
    let y = curves.axis(mss);
    let mut stride = 1;
    let mut series = Vec::new();
    for (points, class, name) in [
        (&curves.in_flight, "here", "in flight"),
        (&curves.receive, "model", "receive window, as the sender sees it"),
        (&curves.congestion, "third", "congestion window"),
    ] {
        let thinned = thin(points, MOST);
        stride = stride.max(thinned.stride);
        if !points.is_empty() {
            series.push(Series::line(class, name, thinned.points));
        }
    }
    if let Some((rate, bytes)) = curves.product {
        let share = if transfer.streams > 1 { " / streams" } else { "" };
        let name = format!("{rate} × idle round trip{share}: {}", size(bytes));
        series.push(Series::new("level", name, Marks::Level(bytes)));
    }
    series.extend(transfer.omitted(""));
    let scale = y.is_logarithmic().then(|| match curves.in_flight.iter().any(|p| p[1] <= 0.0) {
        true => "Logarithmic: equal steps are equal factors; zero is at the bottom.".to_owned(),
        false => "Logarithmic: equal steps are equal factors.".to_owned(),
    });
    Some(Chart {
        heading: "In flight, and what allows it".to_owned(),
        title: format!("{title}: bytes in flight and windows over time"),
        description: format!(
            "Largest in flight {}, largest receive window {}, largest congestion window {}.",
            size(largest(&curves.in_flight)),
            size(largest(&curves.receive)),
            size(largest(&curves.congestion))
        ),
        x: Axis::linear([0.0, last], Unit::SECONDS, 8),
        panels: vec![Panel::new(y, 186.0, series)],
        notes: [
            scale,
            (transfer.streams > 1).then(|| format!("Of the first of {} streams.", transfer.streams)),
            full_words(transfer),
            (stride > 1).then(|| format!("Of each {stride} readings, the smallest and the largest.")),
        ]
        .into_iter()
        .flatten()
        .collect(),
        zoom: None,
    })
}

/// Returns how long the receive window was full, as a sentence.
pub(crate) fn full_words(transfer: &Transfer<'_>) -> Option<String> {
    let share = percent(transfer.window_full?);
    Some(format!("The receive window was full, with no room for another segment, {share} of the time."))
}
