//! Round trips of probes, goodput, and TCP's smoothed round trip, stacked on a common time axis, with lost probes and
//! retransmissions as ticks between them.

use crate::finding::rate;
use bdp_model::units::format_bps;

use super::page::{Figure, Sign};
use super::probes::{self, Place};
use super::series::{Thinned, thin};
use super::transfer::Transfer;
use crate::number::{RateUnit, three_digits};
use crate::svg::{Axis, Drawing, Frame, GUTTER, MARGIN, WIDTH};

/// Most steps of the goodput and readings of other curves.
pub(crate) const MOST: usize = 360;

/// Vertical positions of the parts, bottom and top of each; those after the probes move up if there are none.
const PROBES: Place = Place { round_trips: [108.0, 8.0], ticks: [120.0, 130.0] };
const BELOW_PROBES: f64 = 136.0;
const GOODPUT: [f64; 2] = [150.0, 8.0];
const TICKS: [f64; 2] = [164.0, 174.0];
const RTT: [f64; 2] = [290.0, 186.0];
/// Height of the labels below the lower axis.
const LABELS: f64 = 26.0;

/// Returns the figure; `None` if there are no readings over time.
pub(crate) fn figure(transfer: &Transfer<'_>, title: &str) -> Option<Figure<'static>> {
    let (intervals, stride) = transfer.intervals(MOST);
    let last = intervals.last()?[1];
    let x = Axis::linear([0.0, last], [GUTTER, WIDTH - MARGIN]);
    let mut drawing = Drawing::default();
    let mut keys = vec![(Sign::Line("here"), "goodput".to_owned())];
    let mut notes = Vec::new();

    let series = transfer.probes.as_ref().filter(|series| !series.points.is_empty());
    let offset = if series.is_some() { BELOW_PROBES } else { 0.0 };
    let [goodput_place, ticks, rtt_place] = [GOODPUT, TICKS, RTT].map(|place| place.map(|y| y + offset));
    let has_round_trips = transfer.sent.iter().any(|s| s.srtt_ns.is_some_and(|ns| ns > 0));
    let bottom = if has_round_trips { rtt_place[0] } else { goodput_place[0] };
    let top = if series.is_some() { PROBES.round_trips[1] } else { goodput_place[1] };
    let omit = transfer.omit_ns as f64 / 1e9;
    // A reading is never at the first byte itself.
    if omit > 0.0 {
        drawing.rect([x.at(0.0), top], [x.at(omit) - x.at(0.0), bottom - top], "shade");
        keys.push((Sign::Field("shade"), format!("first {} s: not in the figures", three_digits(omit))));
    }
    goodput(&mut drawing, transfer, &intervals, [x, Axis::linear([0.0, 1.0], goodput_place)], &mut keys);
    if let Some(series) = series {
        probes::draw(&mut drawing, series, x, (&PROBES, plain), &mut keys, &mut notes);
    }
    if stride > 1 {
        let ms = (intervals[0][1] - intervals[0][0]) * 1e3;
        notes.push(format!(
            "Each step is the mean over {} ms, {stride} readings: shorter ones would show single windows come in, or \
             be too many to draw.",
            three_digits(ms)
        ));
    }

    let retransmissions = retransmissions(transfer);
    for &(at, _) in &retransmissions {
        let at = x.at(at);
        drawing.line([at, ticks[0]], [at, ticks[1]], "tick-mark");
    }
    match transfer.retransmits {
        _ if transfer.is_udp => {}
        None => notes.push("Retransmissions unknown: the sender's kernel does not report them.".to_owned()),
        Some(0) => notes.push("No segment was retransmitted.".to_owned()),
        Some(n) => {
            keys.push((Sign::Tick("tick-mark"), format!("interval with retransmissions ({n} in all)")))
        }
    }

    let mut title_of_chart = format!("{title}: goodput over time");
    if has_round_trips {
        title_of_chart = format!("{title}: goodput and round trip over time");
        round_trips(&mut drawing, transfer, [x, Axis::linear([0.0, 1.0], rtt_place)], &mut keys, &mut notes);
    } else {
        let frame = Frame { x, y: Axis::linear([0.0, 1.0], goodput_place) };
        frame.bottom(&mut drawing, &x.ticks(8), |s| format!("{} s", plain(s)));
    }
    if !has_round_trips && !transfer.is_udp {
        notes.push("Round trips unknown: the sender's kernel reports none.".to_owned());
    }
    if series.is_some() {
        title_of_chart = format!("{title}: round trips of probes and goodput over time");
    }
    let description = format!(
        "Goodput of {} in {} intervals over {} seconds, {} in all{}{}.",
        transfer.name(),
        intervals.len(),
        three_digits(last),
        format_bps(transfer.goodput_bps),
        if series.is_some() { "; above it the round trips of probes" } else { "" },
        if has_round_trips { "; below it the round trip" } else { "" }
    );
    Some(Figure {
        title: match (series.is_some(), has_round_trips) {
            (true, _) => "Latency and goodput over time",
            (false, true) => "Goodput above round trip",
            (false, false) => "Goodput",
        },
        keys,
        notes,
        chart: drawing.finish(bottom + LABELS, &title_of_chart, &description).into(),
    })
}

fn goodput(
    drawing: &mut Drawing,
    transfer: &Transfer<'_>,
    intervals: &[[f64; 3]],
    [x, place]: [Axis; 2],
    keys: &mut Vec<(Sign, String)>,
) {
    let largest = intervals.iter().map(|i| i[2]).fold(transfer.goodput_bps, f64::max);
    // A level far above the curve would flatten it; the bar above shows that distance.
    let near = |level: f64| level > 0.0 && level < largest * 1.6;
    let levels = [
        transfer.ceiling.as_ref().map(|c| (c.goodput_bps, "ceiling", "level")),
        transfer.window_bound.map(|bound| (bound.bps, "window / RTT", "second-level")),
    ];
    let levels: Vec<_> = levels.into_iter().flatten().filter(|level| near(level.0)).collect();
    let top = levels.iter().map(|level| level.0).fold(largest, f64::max);
    let frame = Frame { x, y: Axis::from_zero(top, [place.start, place.end]) };
    let unit = RateUnit::fitting([top]);
    frame.rules(drawing, &frame.y.ticks_in(unit.bps, 4), unit.name, |v| plain(v / unit.bps));
    for (bps, name, class) in levels {
        frame.level(drawing, bps, class);
        keys.push((Sign::Line(class), format!("{name} {}", rate(bps))));
    }
    let steps = intervals.iter().flat_map(|&[from, to, bps]| [[from, bps], [to, bps]]);
    drawing.polyline(steps.map(|[at, bps]| Some(frame.at(at, bps))), "here");
}

/// Returns the middle of each interval with retransmitted segments, and their number.
fn retransmissions(transfer: &Transfer<'_>) -> Vec<(f64, u64)> {
    let counts: Vec<(u64, u64)> =
        transfer.sent.iter().filter_map(|s| Some((s.at_ns, s.retransmits?))).collect();
    counts
        .windows(2)
        .filter(|pair| pair[1].1 > pair[0].1)
        .map(|pair| ((pair[0].0 + pair[1].0) as f64 / 2e9, pair[1].1 - pair[0].1))
        .collect()
}

fn round_trips(
    drawing: &mut Drawing,
    transfer: &Transfer<'_>,
    [x, place]: [Axis; 2],
    keys: &mut Vec<(Sign, String)>,
    notes: &mut Vec<String>,
) {
    let smoothed: Vec<[f64; 2]> = transfer
        .sent
        .iter()
        .filter_map(|s| Some([s.at_ns as f64 / 1e9, s.srtt_ns.filter(|&ns| ns > 0)? as f64 / 1e6]))
        .collect();
    let idle = transfer.rtt_min_ns.map(|ns| ns as f64 / 1e6);
    let largest = smoothed.iter().map(|p| p[1]).chain(idle).fold(0.0, f64::max);
    let frame = Frame { x, y: Axis::from_zero(largest, [place.start, place.end]) };
    if largest > 0.0 {
        frame.rules(drawing, &frame.y.ticks(3), "ms", plain);
    }
    frame.bottom(drawing, &x.ticks(8), |s| format!("{} s", plain(s)));
    if let Some(value) = idle {
        frame.level(drawing, value, "third-level");
        keys.push((
            Sign::Line("third-level"),
            format!("smallest idle round trip {} ms", three_digits(value)),
        ));
    }
    let Thinned { points, stride } = thin(&smoothed, MOST);
    drawing.polyline(points.into_iter().map(|[at, ms]| Some(frame.at(at, ms))), "third");
    keys.push((Sign::Line("third"), "round trip as the sender smooths it (srtt)".to_owned()));
    if stride > 1 {
        notes.push(format!("Of each {stride} readings of the round trip, the smallest and the largest."));
    }
}

/// Formats a round value plainly: `0.5`, `20`, `1000`.
pub(crate) fn plain(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    format!("{rounded}")
}
