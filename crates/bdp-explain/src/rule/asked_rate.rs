//! Connections with a requested rate that they reached.

use bdp_model::facts::Facts;
use bdp_model::finding::threshold::{QUEUE_SHARE, RATE_EXCEEDED, RATE_KEPT};
use bdp_model::finding::{Action, Confidence, Finding, Limit, Place, Remedy};

use crate::observed;
use crate::setting::{TestSetting, name_of};

/// The server's option that limits its sending rate.
const SERVER_BOUND: &str = "--max-rate";

/// Claims the limit if the goodput is the requested rate.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let asked = facts.kept_rate_bps()?;
    let queue = facts.standing_queue();
    let setting = if facts.asked_bps().is_some() { name_of(facts, TestSetting::Rate) } else { SERVER_BOUND };
    let finding = Finding::new(Limit::AskedRate, Place::request(), Confidence::High)
        .evidence([observed::of_asked_rate(facts, asked, setting).at_least(RATE_KEPT).at_most(RATE_EXCEEDED)])
        .evidence(observed::retransmitted(facts))
        .evidence(queue.map(|queue| observed::queue(facts, queue, QUEUE_SHARE)))
        .evidence(observed::load_adds(facts))
        .remedy(Remedy::new(Action::LeaveOut).setting(setting));
    Some(finding)
}
