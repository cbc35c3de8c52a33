//! Connections that were held to a rate, and reached it.

use bdp_model::facts::{Facts, Source};
use bdp_model::finding::{Action, Confidence, Finding, Limit, Place, Remedy};
use bdp_model::threshold::{QUEUE_SHARE, RATE_KEPT};

use crate::observed;
use crate::setting::{Setting, name_of};

/// Goodput / rate that was asked for, over all: slow start takes its part.
const KEPT: f64 = 0.95;
/// The same of the median interval.
const KEPT_MOSTLY: f64 = 0.97;
/// What is above by more was not held to that rate.
const ABOVE: f64 = 1.05;
/// The server's option that bounds what it sends.
const SERVER_BOUND: &str = "--max-rate";

/// Claims the limit where the goodput is the rate that was asked for.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let asked = match facts.source {
        // A server's own bound holds a sender as a request does.
        Source::Measured => facts.held_bps(),
        Source::Emulated | Source::Watched | Source::Captured => facts.asked_bps(),
    };
    let asked = asked.filter(|&asked| asked > 0.0)?;
    let usual = facts.spread.map_or(facts.goodput_bps, |spread| spread.p50.max(facts.goodput_bps));
    if usual < KEPT_MOSTLY * asked || !(KEPT..=ABOVE).contains(&(facts.goodput_bps / asked)) {
        return None;
    }
    // A standing queue means that the path is full, or all but.
    let queue = facts.standing_queue();
    if queue.is_some() && facts.steady_bps() < RATE_KEPT * asked {
        return None;
    }
    let setting = if facts.asked_bps().is_some() { name_of(facts, Setting::Rate) } else { SERVER_BOUND };
    let finding = Finding::new(Limit::AskedRate, Place::request(), Confidence::High)
        .evidence([observed::of_asked_rate(facts, asked, setting).at_least(KEPT).at_most(ABOVE)])
        .evidence(observed::retransmitted(facts))
        .evidence(queue.map(|queue| observed::queue(facts, queue, QUEUE_SHARE)))
        .evidence(observed::load_adds(facts))
        .remedy(Remedy::new(Action::LeaveOut).setting(setting));
    Some(finding)
}
