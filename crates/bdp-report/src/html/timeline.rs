//! Round trips of probes, goodput, and TCP's smoothed round trip, stacked on a common time axis, with lost probes and
//! retransmissions as ticks between them.

use bdp_model::units::format_bps;

use super::probes::{self, STRIP};
use super::series::{largest, thin};
use super::transfer::Transfer;
use crate::chart::{Axis, Chart, Marks, Panel, Series, Unit};
use crate::finding::rate;
use crate::number::{RateUnit, three_digits};

/// Most steps of the goodput and readings of other curves.
pub(crate) const MOST: usize = 360;
/// Returns the chart; `None` if there are no readings over time.
pub(crate) fn chart(transfer: &Transfer<'_>, title: &str) -> Option<Chart> {
    let (intervals, stride) = transfer.intervals(MOST);
    let last = intervals.last()?[1];
    let x = Axis::linear([0.0, last], Unit::SECONDS, 8);
    let mut notes = Vec::new();
    let series = transfer.probes.as_ref().filter(|series| !series.points.is_empty());
    let mut panels = series.map_or_else(Vec::new, |series| probes::panels(series, &x, &mut notes));
    panels.push(goodput(transfer, &intervals));
    if stride > 1 {
        let ms = (intervals[0][1] - intervals[0][0]) * 1e3;
        notes.push(format!(
            "Each step is the mean over {} ms, {stride} readings: shorter ones would show single windows come in, or \
             be too many to draw.",
            three_digits(ms)
        ));
    }
    panels.extend(retransmissions(transfer, &mut notes));
    let below = round_trips(transfer, &mut notes);
    let has_round_trips = below.is_some();
    panels.extend(below);
    let (heading, drawn) = match (series.is_some(), has_round_trips) {
        (true, _) => ("Latency and goodput over time", "round trips of probes and goodput"),
        (false, true) => ("Goodput above round trip", "goodput and round trip"),
        (false, false) => ("Goodput", "goodput"),
    };
    let description = format!(
        "Goodput of {} in {} intervals over {} seconds, {} in all{}{}.",
        transfer.name(),
        intervals.len(),
        three_digits(last),
        format_bps(transfer.goodput_bps),
        if series.is_some() { "; above it the round trips of probes" } else { "" },
        if has_round_trips { "; below it the round trip" } else { "" }
    );
    let title = format!("{title}: {drawn} over time");
    Some(Chart { heading: heading.to_owned(), title, description, x, panels, notes, zoom: None })
}

fn goodput(transfer: &Transfer<'_>, intervals: &[[f64; 3]]) -> Panel {
    let largest = intervals.iter().map(|i| i[2]).fold(transfer.goodput_bps, f64::max);
    let steps = intervals.iter().flat_map(|&[from, to, bps]| [[from, bps], [to, bps]]);
    let mut series = vec![Series::line("here", "goodput", steps)];
    let omitted = format!("first {} s: not in the figures", three_digits(transfer.omit_ns as f64 / 1e9));
    series.extend(transfer.omitted(&omitted));
    // A level far above the curve would flatten it; the bar above shows that distance.
    let near = |level: f64| level > 0.0 && level < largest * 1.6;
    let mut top = largest;
    for (level, name, class) in [
        (transfer.ceiling.as_ref().map(|c| c.goodput_bps), "ceiling", "level"),
        (transfer.window_bound.map(|bound| bound.bps), "window / RTT", "second-level"),
    ] {
        if let Some(bps) = level.filter(|&bps| near(bps)) {
            series.push(Series::new(class, format!("{name} {}", rate(bps)), Marks::Level(bps)));
            top = top.max(bps);
        }
    }
    let unit = RateUnit::fitting([top]);
    Panel::new(Axis::from_zero(top, Unit::Named(unit.name, unit.bps), 4), 142.0, series)
}

/// Returns the intervals with retransmitted segments as ticks.
fn retransmissions(transfer: &Transfer<'_>, notes: &mut Vec<String>) -> Option<Panel> {
    let name = match transfer.retransmits {
        _ if transfer.is_udp => String::new(),
        None => {
            notes.push("Retransmissions unknown: the sender's kernel does not report them.".to_owned());
            String::new()
        }
        Some(0) => {
            notes.push("No segment was retransmitted.".to_owned());
            String::new()
        }
        Some(n) => format!("interval with retransmissions ({n} in all)"),
    };
    let counts: Vec<(u64, u64)> =
        transfer.sent.iter().filter_map(|s| Some((s.at_ns, s.retransmits?))).collect();
    let more = counts.windows(2).filter(|pair| pair[1].1 > pair[0].1);
    let at: Vec<f64> = more.map(|pair| (pair[0].0 + pair[1].0) as f64 / 2e9).collect();
    (!name.is_empty() || !at.is_empty())
        .then(|| Panel::strip(STRIP, vec![Series::new("tick-mark", name, Marks::Upright(at))]))
}

fn round_trips(transfer: &Transfer<'_>, notes: &mut Vec<String>) -> Option<Panel> {
    let smoothed: Vec<[f64; 2]> = transfer
        .sent
        .iter()
        .filter_map(|s| Some([s.at_ns as f64 / 1e9, s.srtt_ns.filter(|&ns| ns > 0)? as f64 / 1e6]))
        .collect();
    if smoothed.is_empty() {
        if !transfer.is_udp {
            notes.push("Round trips unknown: the sender's kernel reports none.".to_owned());
        }
        return None;
    }
    let idle = transfer.rtt_min_ns.map(|ns| ns as f64 / 1e6);
    let mut series = Vec::new();
    if let Some(value) = idle {
        let name = format!("smallest idle round trip {} ms", three_digits(value));
        series.push(Series::new("third-level", name, Marks::Level(value)));
    }
    let thinned = thin(&smoothed, MOST);
    series.push(Series::line("third", "round trip as the sender smooths it (srtt)", thinned.points));
    if thinned.stride > 1 {
        let stride = thinned.stride;
        notes.push(format!("Of each {stride} readings of the round trip, the smallest and the largest."));
    }
    let top = largest(&smoothed).max(idle.unwrap_or(0.0));
    Some(Panel::new(Axis::from_zero(top, Unit::MILLISECONDS, 3), 104.0, series))
}
