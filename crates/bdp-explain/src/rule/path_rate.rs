//! A hop between the devices gives all that it can: a queue stands before it while the goodput is steady.

use bdp_model::finding::{Confidence, Finding, Limit};

use crate::seen::{Queue, Seen, percent, rate, time};

/// Steady goodput: lower / upper quartile.
const STEADY: f64 = 0.8;
/// The same beside a short queue.
const STEADIER: f64 = 0.9;
/// A short queue / idle round trip.
const SHALLOW: f64 = 0.05;
/// The receive window is full in fewer of the samples: it holds nothing back.
const WINDOW_FREE: f64 = 0.2;

/// Claims the limit where the load added a queue that stands on the data's own way, the goodput is steady and no thread was
/// the reason.
pub fn judge(seen: &Seen<'_>) -> Option<Finding> {
    claim(seen, seen.standing_queue()?, STEADY)
}

/// Claims the same of a queue that is short beside the round trip, where neither window nor send buffer is the limit and the
/// goodput is steadier.
pub fn judge_shallow(seen: &Seen<'_>) -> Option<Finding> {
    let finding = claim(seen, seen.queue_of(SHALLOW)?, STEADIER)?;
    seen.window.as_ref().is_none_or(|w| w.receive_full < WINDOW_FREE).then_some(finding)
}

fn remedy(seen: &Seen<'_>) -> &'static str {
    if seen.both_at_once() {
        // One window is asked for, and the other direction may need a larger one.
        "a smaller window (-w) for this direction alone keeps the goodput and empties the queue; with --bidir it binds both"
    } else {
        "a smaller window (-w) keeps the goodput and empties the queue"
    }
}

fn claim(seen: &Seen<'_>, queue: Queue, steady_from: f64) -> Option<Finding> {
    if seen.busy_thread().is_some() {
        return None;
    }
    let steady = seen.steadiness().filter(|&steady| steady >= steady_from)?;
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
        remedy: Some(remedy(seen).to_owned()),
        missing: match &seen.measurement.ceiling {
            None => vec!["the speed of the NICs, which might be that rate".to_owned()],
            Some(_) => Vec::new(),
        },
    })
}
