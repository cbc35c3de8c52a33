//! Losses that keep the congestion window small while no queue stands, and that come at any rate.
//!
//! A sender that goes by losses always satisfies its own response function, whatever the losses come of. What differs is the window at
//! which they come: a threshold, be it of a policer or of a queue, is met at about the same window each time, losses that have nothing to
//! do with the load at any (`benches/explain` has the figures behind the bounds).

use bdp_model::facts::Facts;
use bdp_model::finding::{Action, Confidence, Evidence, Fact, Finding, Limit, Place, Quantity, Remedy};
use bdp_model::path::mathis;
use bdp_model::units::Nanos;

use crate::observed;

/// Fewer losses have no spread to go by.
const EVENTS_MIN: usize = 5;
/// Losses at windows that vary by more than this have nothing to do with the load.
const AT_ANY_WINDOW: f64 = 0.26;
/// A queue that adds no more than this, or this share, is none that a loss comes of.
const NO_QUEUE: (Nanos, f64) = (Nanos::millis(2), 0.1);

/// Claims losses that come at any window.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let windows = facts.loss_windows().filter(|_| !facts.is_paced())?;
    if windows.events < EVENTS_MIN
        || windows.variation < AT_ANY_WINDOW
        || !facts.no_queue(NO_QUEUE.0, NO_QUEUE.1)
    {
        return None;
    }
    let lost = facts.retransmitted_share().filter(|&share| share > 0.0)?;
    let model = facts.mss_bytes.zip(facts.rtt_loaded()).filter(|_| facts.congestion_control == "reno");
    let finding = Finding::new(Limit::RandomLoss, Place::path(), Confidence::Medium)
        .evidence([Evidence::share(Fact::RetransmittedShare, lost)])
        .evidence(observed::no_queue(facts, NO_QUEUE))
        .evidence([Evidence::share(Fact::LossesAtAnyWindow, windows.variation)
            .at_least(AT_ANY_WINDOW)
            .with(Quantity::count(windows.events as u64))
            .named(&facts.congestion_control)])
        .evidence(model.map(|(mss, rtt)| {
            let bps = mathis::rate_bps(mss, rtt, lost, mathis::C_INDEPENDENT_DELAYED);
            Evidence::rate(Fact::MathisRate, bps)
        }))
        .remedy(Remedy::new(Action::FindErrors));
    Some(finding)
}
