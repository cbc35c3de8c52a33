//! A hop between the devices gives all that it can: a queue stands before it while the goodput keeps still.

use bdp_model::finding::{Confidence, Finding, Limit};

use crate::seen::{Seen, percent, rate, time};

/// Goodput that keeps still: p5 of the intervals / their p95, or of few the smallest / the largest.
const STEADY: f64 = 0.8;
/// Intervals that this needs.
const INTERVALS_MIN: u64 = 5;

/// Claims the limit where the load added a queue that stands, the goodput kept still and no process was the reason.
pub fn judge(seen: &Seen<'_>) -> Option<Finding> {
    let added = seen.standing_queue()?;
    if seen.busy_process().is_some() {
        return None;
    }
    let spread = seen.direction.spread.filter(|s| s.intervals >= INTERVALS_MIN)?;
    let (low, high, which) = spread.range().filter(|&(_, high, _)| high > 0.0)?;
    let steady = low / high;
    if steady < STEADY {
        return None;
    }
    let goodput = rate(seen.direction.goodput_bps);
    let mut evidence = vec![format!(
        "load adds {} to the median round trip: a queue stands before a hop that is busy all the time",
        time(added)
    )];
    evidence.push(match which {
        "p5..p95" => format!("goodput keeps still, p5 of the intervals is {} of p95", percent(steady)),
        _ => {
            format!("goodput is steady, the smallest of the intervals is {} of the largest", percent(steady))
        }
    });
    if let Some(window) = seen.window.as_ref().filter(|w| w.receive_full >= 0.5) {
        evidence.push(format!(
            "the receive window is full {} of the time: a larger one would lengthen the queue and nothing else",
            percent(window.receive_full)
        ));
    }
    evidence.extend(seen.load_adds());
    Some(Finding {
        limit: Limit::Ceiling,
        subject: "a rate on the path".to_owned(),
        confidence: Confidence::Medium,
        summary: format!("a rate on the path, {goodput} of goodput, is used up; its queue holds the rest"),
        evidence,
        remedy: Some("a smaller window (-w) keeps the goodput and empties the queue".to_owned()),
        missing: match &seen.measurement.ceiling {
            None => vec!["the speed of the NICs, which might be that rate".to_owned()],
            Some(_) => Vec::new(),
        },
    })
}
