//! A hop between the devices gives all that it can: a queue stands before it while the goodput is steady.

use bdp_model::facts::{Facts, Queue, Source};
use bdp_model::finding::{Confidence, Finding, Limit};
use bdp_model::threshold::{WINDOW_FREE, WINDOW_FULL};

use crate::text::{Setting, load_adds, name_of, percent, rate, time};

/// Steady goodput: lower / upper quartile.
const STEADY: f64 = 0.8;
/// The same beside a short queue.
const STEADIER: f64 = 0.9;
/// A short queue / idle round trip.
const SHALLOW: f64 = 0.05;

/// Claims the limit where the load added a queue that stands on the data's own way, the goodput is steady and no thread was
/// the reason.
pub fn judge(facts: &Facts) -> Option<Finding> {
    claim(facts, facts.standing_queue()?, STEADY)
}

/// Claims the same of a queue that is short beside the round trip, where neither window nor send buffer is the limit and the
/// goodput is steadier.
pub fn judge_shallow(facts: &Facts) -> Option<Finding> {
    let finding = claim(facts, facts.queue_of(SHALLOW)?, STEADIER)?;
    facts.window_use().is_none_or(|w| w.receive_full < WINDOW_FREE).then_some(finding)
}

fn remedy(facts: &Facts) -> String {
    let window = name_of(facts, Setting::Window);
    let (alone, both) = match facts.source {
        // One window is asked for, and the other direction may need a larger one.
        Source::Measured if facts.both_directions => {
            (" for this direction alone", "; with --bidir it binds both")
        }
        _ => ("", ""),
    };
    format!("a smaller window ({window}){alone} keeps the goodput and empties the queue{both}")
}

fn claim(facts: &Facts, queue: Queue, steady_from: f64) -> Option<Finding> {
    if facts.busy_thread().is_some() {
        return None;
    }
    let steady = facts.steadiness().filter(|&steady| steady >= steady_from)?;
    let goodput = rate(facts.goodput_bps);
    let Queue { added, own_way } = queue;
    let of = if own_way { "one-way delay towards the receiver" } else { "round trip" };
    let mut evidence = vec![format!(
        "load adds {} to the median {of}: a standing queue before a hop that is always busy",
        time(added)
    )];
    evidence.push(format!("goodput is steady: its lower quartile is {} of the upper one", percent(steady)));
    if let Some(window) = facts.window_use().filter(|w| w.receive_full >= WINDOW_FULL) {
        evidence.push(format!(
            "the receive window is full {} of the time: a larger one would lengthen the queue and nothing else",
            percent(window.receive_full)
        ));
    }
    evidence.extend(load_adds(facts));
    Some(Finding {
        limit: Limit::PathRate,
        subject: "the path's bottleneck".to_owned(),
        confidence: Confidence::Medium,
        summary: format!(
            "the path's bottleneck is full: {goodput}, with a standing queue of {}",
            time(added)
        ),
        evidence,
        remedy: Some(remedy(facts)),
        missing: match (&facts.ceiling, facts.source) {
            (None, Source::Measured) => vec!["the speed of the NICs, which might be that rate".to_owned()],
            _ => Vec::new(),
        },
    })
}
