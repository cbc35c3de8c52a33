//! One flow: verdict, observations, time spent, and charts over time.

use bdp_model::capture::ExplainedFlow;
use bdp_model::units::format_bps;
use maud::{Markup, html};

use super::names::{anchor, arrowed};
use super::{curves, sequence};
use crate::capture::{ends, flow};
use crate::html::page::facts;
use crate::html::sentence::sentence;
use crate::html::time_share;
use crate::html::transfer::Transfer;
use crate::html::verdict::{self, Verdict};

/// Returns what limits a flow, with its number if there are others.
pub(super) fn verdict(found: &ExplainedFlow, number: Option<usize>) -> Verdict {
    let main = found.main_direction();
    let goodput = found.flow.directions[main].goodput_bps.filter(|bps| bps.is_finite());
    let rate = goodput.map_or_else(String::new, format_bps);
    let number = number.map_or_else(String::new, |number| format!("Flow {number}, "));
    let here = format!("{number}{}", if rate.is_empty() { arrowed(&ends(found)) } else { rate });
    match found.findings[main].first() {
        Some(finding) => verdict::of_finding(&here, finding),
        None => Verdict::of(format!("{here}: nothing is known of its limit.")),
    }
}

/// Whether a flow has enough data to explain it.
pub(super) fn is_explained(found: &ExplainedFlow) -> bool {
    found.flow.tcp.is_some() && found.facts[found.main_direction()].is_some()
}

/// Returns the section of a flow with facts, or whose datagrams reveal something.
pub(super) fn section(number: usize, found: &ExplainedFlow, prefix: &str) -> Markup {
    let main = found.main_direction();
    let title = sentence(&arrowed(&flow::title(number, found)));
    let transfer = found.facts[main].as_ref().map(|known| Transfer::of_capture(known));
    let Verdict { headline, why } = verdict(found, None);
    html! {
        h2 id=(anchor(prefix, number)) { (title.trim_end_matches('.')) } "\n"
        @if transfer.is_some() {
            p.why { b { (headline) } " " (why) } "\n"
            (verdict::further(&found.findings[main]))
        }
        (facts("As the capture shows it", &rows(found)))
        @if let Some(transfer) = transfer {
            @if let Some(chart) = time_share::chart(&transfer, &transfer.name()) { (chart.figure()) }
            (charts(found, &transfer))
        }
    }
}

fn rows(found: &ExplainedFlow) -> Vec<(String, String)> {
    flow::lines(found).into_iter().map(|(name, words)| (name.to_owned(), words)).collect()
}

/// Returns the charts on a common time axis, which zoom together.
fn charts(found: &ExplainedFlow, transfer: &Transfer<'_>) -> Markup {
    let data = found.flow.directions[found.main_direction()].tcp.as_deref();
    let last_ns = [
        data.and_then(|data| data.trace.last()).map(|point| point.at_ns),
        transfer.sent.last().map(|sample| sample.at_ns),
        transfer.received.last().map(|sample| sample.at_ns),
    ];
    let seconds = last_ns.into_iter().flatten().max().unwrap_or(0) as f64 / 1e9;
    if seconds <= 0.0 {
        return Markup::default();
    }
    let name = transfer.name();
    let charts = [
        data.and_then(|data| sequence::chart(data, seconds, &name)),
        curves::windows(data, transfer, seconds, &name),
        curves::round_trips(transfer, seconds, &name),
        curves::rate(transfer, seconds, &name),
    ];
    html! {
        div.zoomable data-seconds=(seconds) {
            // Shown by the script, because the hint is wrong without it.
            p.note hidden="hidden" { (HINT) } "\n"
            @for chart in charts.into_iter().flatten() { (chart.figure()) }
        }
        "\n"
    }
}

const HINT: &str = "The charts below zoom together: drag over a part, or turn the wheel with Ctrl; with Shift the wheel moves along. A \
                    double click shows all again. Keys: + and -, arrows, 0.";
