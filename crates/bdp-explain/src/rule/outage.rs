//! A path that carried nothing for a while.

use bdp_model::facts::Facts;
use bdp_model::finding::{Confidence, Finding, Limit};
use bdp_model::units::Nanos;

use crate::text::{percent, time};

/// Claims an outage: nothing came for much longer than a timeout takes, and before and after it data did.
pub fn judge(facts: &Facts) -> Option<Finding> {
    /// A shorter gap is a retransmission timeout (RFC 6298).
    const LEAST: Nanos = Nanos::millis(600);
    const ROUND_TRIPS: f64 = 5.0;
    /// Share of the time that makes it the reason.
    const SHARE: f64 = 0.05;
    let (gap, share) = facts.longest_gap()?;
    let rtt = facts.rtt_idle()?;
    let is_long = gap >= LEAST && gap.as_secs_f64() >= ROUND_TRIPS * rtt.as_secs_f64() && share >= SHARE;
    // A receiver that took no samples did not run, and a window that closed is a reader's.
    let reads = facts.receiver_paused().is_none()
        && facts.window_use().is_none_or(|w| w.receive_smallest_bytes >= facts.mss_bytes.unwrap_or(1) as f64);
    let timed_out = facts.counted(|s| s.retransmits).is_some_and(|again| again > 0);
    if !is_long || !reads || !timed_out {
        return None;
    }
    Some(Finding {
        limit: Limit::PathChanged,
        subject: "the path".to_owned(),
        confidence: Confidence::Medium,
        summary: format!(
            "the path changed during the test: nothing came through for {}, {} of the time",
            time(gap),
            percent(share)
        ),
        evidence: vec![
            format!(
                "nothing arrived for {}, {:.0} round trips",
                time(gap),
                gap.as_secs_f64() / rtt.as_secs_f64().max(1e-9)
            ),
            "segments were retransmitted meanwhile, and the receiver was reading".to_owned(),
        ],
        remedy: Some("look for a link or a route that failed at that moment, and measure again".to_owned()),
        missing: Vec::new(),
    })
}
