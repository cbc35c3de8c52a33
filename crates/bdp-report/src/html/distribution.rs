//! Distribution of idle and loaded round trips: the share of probes up to each time.

use bdp_model::record::{RttReport, RttSummary};
use bdp_model::units::significant;

use crate::chart::{Axis, Chart, Marks, Panel, Series, Unit};

/// Ratio of largest to smallest above which the axis is logarithmic.
const LOGARITHMIC_FROM: f64 = 10.0;

/// Returns the chart; `None` if no probe was answered.
pub(crate) fn chart(rtt: &RttReport, title: &str) -> Option<Chart> {
    let shown: Vec<Shown<'_>> = [
        (rtt.idle.as_ref(), &rtt.percentiles.idle, "idle", "third", "third-dot"),
        (rtt.loaded.as_ref(), &rtt.percentiles.loaded, "loaded", "here", "here-dot"),
    ]
    .into_iter()
    .filter_map(|(summary, percentiles, name, line, dot)| {
        Some(Shown { summary: summary?, percentiles, name, line, dot })
    })
    .collect();
    let low = shown.iter().map(|s| s.summary.min).min()? as f64 / 1e6;
    let high = shown.iter().map(|s| s.summary.max).max()? as f64 / 1e6;
    let x = if low > 0.0 && high > LOGARITHMIC_FROM * low {
        Axis::logarithmic([low, high], Unit::MILLISECONDS, 7)
    } else {
        let room = (high - low).max(low * 0.01).max(1e-3) * 0.04;
        Axis::linear([(low - room).max(0.0), high + room], Unit::MILLISECONDS, 7)
    };
    let series = shown.iter().flat_map(|shown| {
        let dots = shown.quantiles().map(|(ns, share)| [ns as f64 / 1e6, share]).collect();
        [Series::line(shown.line, shown.name, shown.curve()), Series::and(shown.dot, Marks::Dots(2.6, dots))]
    });
    let all = shown.iter().map(|s| words(s.summary, s.name));
    let mut notes: Vec<String> = all.clone().map(|words| format!("{words}.")).collect();
    notes.push("The share of probes that were answered within a time. Dots at 50, 95 and 99 %.".to_owned());
    if shown.iter().any(|shown| shown.percentiles.is_empty()) {
        notes.push(
            "This run kept five points of a distribution; the lines between them are not measured."
                .to_owned(),
        );
    }
    let y = Axis::linear([0.0, 1.0], Unit::Share, 2).with_ticks(vec![0.5, 0.95]);
    Some(Chart {
        heading: "Round trips, idle and loaded".to_owned(),
        title: format!("{title}: distribution of round trips"),
        description: all.collect::<Vec<_>>().join("; "),
        x,
        panels: vec![Panel::new(y, 140.0, series.collect())],
        notes,
        zoom: None,
    })
}

/// Round trips under one condition, and their style.
struct Shown<'a> {
    summary: &'a RttSummary,
    /// Percentiles 0 to 100; empty in older records.
    percentiles: &'a [u64],
    name: &'static str,
    line: &'static str,
    dot: &'static str,
}

impl Shown<'_> {
    /// Returns the corners of the curve, milliseconds and share: steps of the measured values, or straight lines if only five points are
    /// known.
    fn curve(&self) -> Vec<[f64; 2]> {
        let ms = |ns: u64| ns as f64 / 1e6;
        let (min, max) = (ms(self.summary.min), ms(self.summary.max));
        let Some(&first) = self.percentiles.first() else {
            let known = self.quantiles().map(|(ns, share)| [ms(ns), share]);
            return [[min, 0.0]].into_iter().chain(known).chain([[max, 1.0]]).collect();
        };
        let mut corners = vec![[ms(first), 0.0]];
        let most = (self.percentiles.len() - 1).max(1) as f64;
        // One corner at each end of a step, however many percentiles share its value.
        for (index, pair) in self.percentiles.windows(2).enumerate().filter(|(_, pair)| pair[1] > pair[0]) {
            let share = index as f64 / most;
            corners.extend([[ms(pair[0]), share], [ms(pair[1]), share]]);
        }
        corners.push([max, 1.0]);
        corners
    }

    /// Returns the quantiles marked with a dot, nanoseconds and share.
    fn quantiles(&self) -> impl Iterator<Item = (u64, f64)> {
        let on_curve = move |percent: usize, known: Option<u64>| {
            known.map(|ns| (self.percentiles.get(percent).copied().unwrap_or(ns), percent as f64 / 100.0))
        };
        let dots = [(50, Some(self.summary.p50)), (95, self.summary.p95), (99, self.summary.p99)];
        dots.into_iter().filter_map(move |(percent, known)| on_curve(percent, known))
    }
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
