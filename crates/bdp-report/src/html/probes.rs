//! Individual round trips of probes, above the goodput on the same time axis, with unanswered probes as ticks below.

use bdp_model::probes::{ProbeOutcome, ProbePoint, ProbeSeries};

use super::series::{largest, thin};
use crate::chart::{Axis, Marks, Panel, Series, Unit};
use crate::number::three_digits;

/// Most round trips drawn.
const MOST: usize = 600;

/// Height of ticks between panels.
pub(super) const STRIP: f64 = 10.0;

/// Returns the panels of probes within the axis.
pub(super) fn panels(series: &ProbeSeries, x: &Axis, notes: &mut Vec<String>) -> Vec<Panel> {
    let seconds = |point: &ProbePoint| point.counts_from_ns() as f64 / 1e9;
    let shown: Vec<&ProbePoint> = series.points.iter().filter(|point| x.holds(seconds(point))).collect();
    let answered: Vec<[f64; 2]> =
        shown.iter().filter_map(|point| Some([seconds(point), point.rtt_ns()? as f64 / 1e6])).collect();
    let top = largest(&answered);
    let thinned = thin(&answered, MOST);
    if thinned.stride > 1 {
        notes.push(format!("Of each {} probes, the quickest and the slowest.", thinned.stride));
    }
    let y = Axis::from_zero(top, Unit::MILLISECONDS, 3);
    let round_trips = if answered.is_empty() {
        Panel::new(y.with_ticks(Vec::new()), 100.0, Vec::new())
    } else {
        let name = format!("round trip of a probe, {} ms at the most", three_digits(top));
        let dots = Series::new("third-dot", name, Marks::Dots(1.7, thinned.points));
        Panel::new(y, 100.0, vec![dots])
    };
    let of = |wanted: fn(&ProbeOutcome) -> bool, class, what: &str| {
        let at = shown.iter().filter(|point| wanted(&point.outcome)).map(|point| seconds(point));
        let at: Vec<f64> = at.collect();
        (!at.is_empty()).then(|| Series::new(class, format!("{what} ({})", at.len()), Marks::Upright(at)))
    };
    let is_lost =
        |outcome: &ProbeOutcome| matches!(outcome, ProbeOutcome::Lost { .. } | ProbeOutcome::Unsent);
    let is_under_way = |outcome: &ProbeOutcome| matches!(outcome, ProbeOutcome::InFlight { .. });
    let ticks = [
        of(is_lost, "tick-mark", "probe lost"),
        of(is_under_way, "hollow-line", "probe still under way when the test ended"),
    ];
    let mut panels = vec![round_trips];
    let ticks: Vec<Series> = ticks.into_iter().flatten().collect();
    if !ticks.is_empty() {
        panels.push(Panel::strip(STRIP, ticks));
    }
    panels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Vertical;

    #[test]
    fn without_an_answer_there_is_no_scale() {
        let x = Axis::linear([0.0, 2.0], Unit::SECONDS, 3);
        let of = |outcome| {
            let series = ProbeSeries { counted_ns: None, points: vec![ProbePoint::plain(1, 1, outcome)] };
            let panels = panels(&series, &x, &mut Vec::new());
            let Vertical::Values(y) = &panels[0].y else { panic!() };
            (y.ticks.is_empty(), panels[0].series.is_empty(), panels.len())
        };
        assert_eq!(of(ProbeOutcome::Lost { waited_ns: 1 }), (true, true, 2));
        assert_eq!(of(ProbeOutcome::Answered(5_000_000)), (false, false, 1));
    }
}
