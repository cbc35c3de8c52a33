//! Segments that overtake others, so that the sender takes late ones for lost (RFC 4737).

use bdp_model::facts::Facts;
use bdp_model::finding::{Confidence, Finding, Limit};
use bdp_model::threshold::WINDOW_FREE;

use crate::text::{load_adds, percent};

/// Claims segments that overtake others, where they make the sender reduce its window.
pub fn judge(facts: &Facts) -> Option<Finding> {
    /// Times that reordering was seen / segments delivered.
    const SEEN: f64 = 0.002;
    let seen = facts.counted(|s| s.reorder_seen)?;
    let share = seen as f64 / facts.delivered()? as f64;
    if share < SEEN || facts.window_use().is_some_and(|w| w.receive_full >= WINDOW_FREE) {
        return None;
    }
    let needless = facts.counted(|s| s.needless_retransmits).unwrap_or(0);
    let again = facts.counted(|s| s.retransmits).unwrap_or(0);
    let mut evidence = vec![format!(
        "the sender's kernel saw segments reordered {seen} times, {} of those delivered",
        percent(share)
    )];
    if again > 0 {
        evidence.push(format!("{again} segments were retransmitted, {needless} of them needlessly (DSACK)"));
    }
    evidence.extend(load_adds(facts));
    Some(Finding {
        limit: Limit::Reordering,
        subject: "the path".to_owned(),
        confidence: Confidence::Medium,
        summary: format!(
            "limited by reordering: segments overtake others {seen} times, and {} takes late ones for lost",
            facts.congestion_control
        ),
        evidence,
        remedy: Some(
            "find what spreads one connection's packets over several links: load balancing by packet, a bonded link, radio retransmission"
                .to_owned(),
        ),
        missing: Vec::new(),
    })
}
