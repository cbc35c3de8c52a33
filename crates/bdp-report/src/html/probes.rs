//! Individual round trips of probes, above the goodput on the same time axis, with unanswered probes as ticks below.

use bdp_model::probes::{ProbeOutcome, ProbePoint, ProbeSeries};

use super::page::Sign;
use super::series::{Thinned, thin};
use crate::number::three_digits;
use crate::svg::{Axis, Drawing, Frame};

/// Most round trips drawn.
const MOST: usize = 600;
const DOT: f64 = 1.7;

/// Vertical positions: round trips from bottom to top, and ticks.
pub(crate) struct Place {
    pub(crate) round_trips: [f64; 2],
    pub(crate) ticks: [f64; 2],
}

/// Draws the probes within the axis.
pub(crate) fn draw(
    drawing: &mut Drawing,
    series: &ProbeSeries,
    x: Axis,
    (place, plain): (&Place, fn(f64) -> String),
    keys: &mut Vec<(Sign, String)>,
    notes: &mut Vec<String>,
) {
    let seconds = |point: &ProbePoint| point.counts_from_ns() as f64 / 1e9;
    let shown: Vec<&ProbePoint> = series.points.iter().filter(|point| x.holds(seconds(point))).collect();
    let answered: Vec<[f64; 2]> =
        shown.iter().filter_map(|point| Some([seconds(point), point.rtt_ns()? as f64 / 1e6])).collect();
    let largest = answered.iter().map(|point| point[1]).fold(0.0, f64::max);
    let frame = Frame { x, y: Axis::from_zero(largest, place.round_trips) };
    if largest > 0.0 {
        frame.rules(drawing, &frame.y.ticks(3), "ms", plain);
    }
    let Thinned { points, stride } = thin(&answered, MOST);
    for [at, ms] in points {
        drawing.dot(frame.at(at, ms), DOT, "third-dot");
    }
    keys.push((
        Sign::Dot("third-dot"),
        format!("round trip of a probe, {} ms at the most", three_digits(largest)),
    ));
    if stride > 1 {
        notes.push(format!("Of each {stride} probes, the quickest and the slowest."));
    }
    let of = |wanted: fn(&ProbeOutcome) -> bool| -> Vec<f64> {
        shown.iter().filter(|point| wanted(&point.outcome)).map(|point| x.at(seconds(point))).collect()
    };
    let lost = of(|outcome| matches!(outcome, ProbeOutcome::Lost { .. } | ProbeOutcome::Unsent));
    let under_way = of(|outcome| matches!(outcome, ProbeOutcome::InFlight { .. }));
    for (ticks, class, what) in [
        (lost, "tick-mark", "probe lost"),
        (under_way, "hollow-line", "probe still under way when the test ended"),
    ] {
        for &at in &ticks {
            drawing.line([at, place.ticks[0]], [at, place.ticks[1]], class);
        }
        if !ticks.is_empty() {
            keys.push((Sign::Tick(class), format!("{what} ({})", ticks.len())));
        }
    }
}
