//! Something that drops what exceeds a rate, and has no queue: losses at one window, or at all times of a sender that probes.

use bdp_model::facts::Facts;
use bdp_model::finding::{Confidence, Finding, Limit};
use bdp_model::units::Nanos;

use crate::text::{percent, rate};

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
    let met = if !facts.is_paced() {
        let windows =
            facts.loss_windows().filter(|w| w.events >= EVENTS_MIN && w.variation <= AT_ONE_WINDOW)?;
        format!(
            "{} losses came at windows within {} of their mean",
            windows.events,
            percent(windows.variation)
        )
    } else {
        let steady = facts.steadiness().filter(|&steady| steady >= STEADY && lost >= PROBING_LOST)?;
        format!(
            "goodput is steady, its lower quartile {} of the upper one, while what exceeds it is lost",
            percent(steady)
        )
    };
    let goodput = rate(facts.goodput_bps);
    Some(Finding {
        limit: Limit::Policer,
        subject: "a policer on the path".to_owned(),
        confidence: if !facts.is_paced() { Confidence::Low } else { Confidence::Medium },
        summary: format!(
            "limited by a policer on the path, at {goodput} of goodput: it drops what exceeds its rate, and has no queue"
        ),
        evidence: vec![
            met,
            format!("{} of the segments were retransmitted, and load adds no delay", percent(lost)),
        ],
        remedy: Some(
            "ask which rate is agreed for this path; shape to that rate at the sender (fq, tbf) to lose less"
                .to_owned(),
        ),
        missing: Vec::new(),
    })
}
