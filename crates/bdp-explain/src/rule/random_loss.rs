//! Losses that keep the congestion window small while no queue stands, and that come at any rate.
//!
//! A sender that goes by losses always satisfies its own response function, whatever the losses come of. What differs is the window at
//! which they come: a threshold, be it of a policer or of a queue, is met at about the same window each time, losses that have nothing to
//! do with the load at any (`benches/explain` has the figures behind the bounds).

use bdp_model::facts::Facts;
use bdp_model::finding::{Confidence, Finding, Limit};
use bdp_model::path::mathis;
use bdp_model::units::Nanos;

use crate::text::{percent, rate};

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
    let mut evidence = vec![
        format!(
            "{} of the segments were retransmitted, and load adds no delay: no queue was full",
            percent(lost)
        ),
        format!(
            "losses came at {} windows that vary by {} of their mean: a full queue or a policer drops at about the same window",
            windows.events,
            percent(windows.variation)
        ),
    ];
    let model = facts.mss_bytes.zip(facts.rtt_loaded()).filter(|_| facts.congestion_control == "reno");
    evidence.extend(model.map(|(mss, rtt)| {
        format!(
            "Reno carries about {} with such losses (Mathis et al.)",
            rate(mathis::rate_bps(mss, rtt, lost, mathis::C_INDEPENDENT_DELAYED))
        )
    }));
    Some(Finding {
        limit: Limit::RandomLoss,
        subject: "the path".to_owned(),
        confidence: Confidence::Medium,
        summary: format!(
            "limited by losses that the load does not cause: {} of the segments, which keep {}'s window small",
            percent(lost),
            facts.congestion_control
        ),
        evidence,
        remedy: Some(
            "look for errors on the way (a cable, an optic, a duplex mismatch, radio); until then bbr at the sender goes less by losses"
                .to_owned(),
        ),
        missing: Vec::new(),
    })
}
