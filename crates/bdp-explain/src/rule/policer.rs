//! Something that drops what exceeds a rate, and has no queue: losses at one window, or at all times of a sender that probes.

use bdp_model::facts::Facts;
use bdp_model::finding::{Action, Confidence, Evidence, Fact, Finding, Limit, Place, Quantity, Remedy};
use bdp_model::units::Nanos;

use crate::observed;

/// Fewer losses have no spread to go by.
const EVENTS_MIN: usize = 4;
/// Losses at windows that vary by less come at a threshold.
const AT_ONE_WINDOW: f64 = 0.2;
/// The same where a queue is to be told apart from none.
const NONE_AT_ALL: (Nanos, f64) = (Nanos::micros(500), 0.02);
/// What BBR retransmits at least where a policer drops what its probing adds.
const PROBING_LOST: f64 = 0.015;
/// Steady goodput: lower / upper quartile.
const STEADY: f64 = 0.8;

/// Claims a policer: losses at one window, or at all times of a sender that probes, and no queue at all.
pub fn judge(facts: &Facts) -> Option<Finding> {
    if !facts.no_queue(NONE_AT_ALL.0, NONE_AT_ALL.1) || facts.busy_thread().is_some() {
        return None;
    }
    let lost = facts.retransmitted_share().filter(|&share| share > 0.0)?;
    let retransmitted = Evidence::share(Fact::RetransmittedShare, lost);
    let (met, retransmitted, confidence) = if !facts.is_paced() {
        let windows =
            facts.loss_windows().filter(|w| w.events >= EVENTS_MIN && w.variation <= AT_ONE_WINDOW)?;
        let met = Evidence::share(Fact::LossesAtOneWindow, windows.variation).at_most(AT_ONE_WINDOW);
        (met.with(Quantity::count(windows.events as u64)), retransmitted, Confidence::Low)
    } else {
        let steady = facts.steadiness().filter(|&steady| steady >= STEADY && lost >= PROBING_LOST)?;
        let met = Evidence::share(Fact::Steady, steady).at_least(STEADY);
        let met = met.with(Quantity::rate(facts.goodput_bps));
        (met, retransmitted.at_least(PROBING_LOST), Confidence::Medium)
    };
    let finding = Finding::new(Limit::Policer, Place::path(), confidence)
        .evidence([met, retransmitted])
        .evidence(observed::no_queue(facts, NONE_AT_ALL))
        .remedy(Remedy::new(Action::ShapeToRate).value(Quantity::rate(facts.goodput_bps)));
    Some(finding)
}
