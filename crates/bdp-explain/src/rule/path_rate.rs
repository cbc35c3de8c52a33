//! A hop between the devices gives all that it can: a queue stands before it while the goodput is steady.

use bdp_model::finding::{Confidence, Finding, Limit};

use crate::seen::{Queue, Seen, percent, rate, time};

/// Steady goodput: lower / upper quartile.
const STEADY: f64 = 0.8;

/// Claims the limit where the load added a queue that stands on the data's own way, the goodput is steady and no thread was
/// the reason.
pub fn judge(seen: &Seen<'_>) -> Option<Finding> {
    let queue = seen.standing_queue()?;
    if seen.busy_thread().is_some() {
        return None;
    }
    let steady = seen.steadiness().filter(|&steady| steady >= STEADY)?;
    let goodput = rate(seen.direction.goodput_bps);
    let Queue { added, own_way } = queue;
    let of = if own_way { "one-way delay towards the receiver" } else { "round trip" };
    let mut evidence = vec![format!(
        "load adds {} to the median {of}: a queue stands before a hop that is busy all the time",
        time(added)
    )];
    evidence.push(format!("goodput is steady: its lower quartile is {} of the upper one", percent(steady)));
    if let Some(window) = seen.window.as_ref().filter(|w| w.receive_full >= 0.5) {
        evidence.push(format!(
            "the receive window is full {} of the time: a larger one would lengthen the queue and nothing else",
            percent(window.receive_full)
        ));
    }
    evidence.extend(seen.load_adds());
    Some(Finding {
        limit: Limit::Ceiling,
        subject: "the path's bottleneck".to_owned(),
        confidence: Confidence::Medium,
        summary: format!(
            "the path's bottleneck is full: {goodput}, with a standing queue of {}",
            time(added)
        ),
        evidence,
        remedy: Some("a smaller window (-w) keeps the goodput and empties the queue".to_owned()),
        missing: match &seen.measurement.ceiling {
            None => vec!["the speed of the NICs, which might be that rate".to_owned()],
            Some(_) => Vec::new(),
        },
    })
}
