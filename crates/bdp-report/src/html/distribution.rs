//! The round trips' distribution, idle and loaded: which share of the probes took at most so long.

use bdp_model::record::RttSummary;
use bdp_model::units::significant;

use super::page::{Figure, Sign};
use super::timeline::plain;
use crate::svg::{Anchor, Axis, Drawing, Frame, WIDTH};

const PLOT: [f64; 2] = [150.0, 10.0];
const HEIGHT: f64 = 174.0;
/// Room for the labels of the vertical axis.
const LEFT: f64 = 46.0;
/// Largest and smallest further apart than this need a logarithmic axis.
const LOGARITHMIC_FROM: f64 = 10.0;

/// The figure; `None` where no probe was answered.
pub(crate) fn figure(
    idle: Option<&RttSummary>,
    loaded: Option<&RttSummary>,
    title: &str,
) -> Option<Figure<'static>> {
    let summaries: Vec<(&RttSummary, &str, &str, &str)> =
        [(idle, "idle", "third", "third-dot"), (loaded, "loaded", "here", "here-dot")]
            .into_iter()
            .filter_map(|(summary, name, line, dot)| Some((summary?, name, line, dot)))
            .collect();
    let low = summaries.iter().map(|s| s.0.min).min()? as f64 / 1e6;
    let high = summaries.iter().map(|s| s.0.max).max()? as f64 / 1e6;
    let ends = [LEFT, WIDTH - 30.0];
    let x = if low > 0.0 && high > LOGARITHMIC_FROM * low {
        Axis::logarithmic([low, high], ends)
    } else {
        let room = (high - low).max(low * 0.01).max(1e-3) * 0.04;
        Axis::linear([(low - room).max(0.0), high + room], ends)
    };
    let frame = Frame { x, y: Axis::linear([0.0, 100.0], PLOT) };
    let mut drawing = Drawing::default();
    for (share, text) in [(50.0, "50 %"), (95.0, "95 %")] {
        let y = frame.y.at(share);
        drawing.line([LEFT, y], [WIDTH, y], "grid");
        drawing.text([LEFT - 8.0, y + 4.0], Anchor::End, "tick", text);
    }
    frame.bottom(&mut drawing, &x.ticks(7), |ms| format!("{} ms", plain(ms)));
    let mut keys = Vec::new();
    let mut notes = Vec::new();
    for &(summary, name, line, dot) in &summaries {
        let curve = quantiles(summary);
        drawing.polyline(curve.iter().map(|&(ms, share)| Some(frame.at(ms, share))), line);
        for &(ms, share) in &curve {
            drawing.dot(frame.at(ms, share), 2.6, dot);
        }
        keys.push((Sign::DotOnLine(line, dot), name.to_owned()));
        notes.push(format!("{}.", words(summary, name)));
    }
    notes.push(
        "Dots at the smallest, 50, 95 and 99 % and the largest; the lines between them only guide the eye."
            .to_owned(),
    );
    let description = summaries.iter().map(|s| words(s.0, s.1)).collect::<Vec<_>>().join("; ");
    let chart = drawing.finish(HEIGHT, &format!("{title}: distribution of round trips"), &description);
    Some(Figure { title: "Round trips, idle and loaded", keys, notes, chart })
}

fn quantiles(summary: &RttSummary) -> Vec<(f64, f64)> {
    [
        (Some(summary.min), 0.0),
        (Some(summary.p50), 50.0),
        (summary.p95, 95.0),
        (summary.p99, 99.0),
        (Some(summary.max), 100.0),
    ]
    .into_iter()
    .filter_map(|(ns, share)| Some((ns? as f64 / 1e6, share)))
    .collect()
}

fn words(summary: &RttSummary, name: &str) -> String {
    let ms = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), |ns| significant(ns as f64 / 1e6));
    let mut text = format!(
        "{name}: {} / {} / {} ms at p50 / p95 / p99 of {} round trips",
        ms(Some(summary.p50)),
        ms(summary.p95),
        ms(summary.p99),
        summary.received
    );
    if summary.lost() > 0 {
        text.push_str(&format!(", {} unanswered", summary.lost()));
    }
    if summary.in_flight > 0 {
        text.push_str(&format!(", {} still in flight at the end", summary.in_flight));
    }
    text
}
