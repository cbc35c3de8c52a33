//! A connection without timestamps (RFC 7323): its sender cannot recognise needless retransmissions (RFC 3522), and measures no round trip of
//! retransmitted segments (RFC 6298, section 3). It matters with retransmissions, and is never the only limit.

use bdp_model::facts::Facts;
use bdp_model::finding::fact;
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Remedy};

use crate::observed;

/// Retransmitted / delivered segments: fewer do not matter.
const RETRANSMITTED: f64 = 0.01;

/// Reports missing timestamps on a connection that retransmits.
pub fn judge(facts: &Facts) -> Option<Finding> {
    if facts.connection?.timestamps? {
        return None;
    }
    facts.retransmitted_share().filter(|&share| share >= RETRANSMITTED)?;
    let finding = Finding::new(Limit::TimestampsMissing, Place::path(), Confidence::High)
        .evidence([Evidence::flag(fact::TimestampsUsed, false)])
        .evidence(observed::retransmitted(facts))
        .remedy(Remedy::new(Action::EnableTimestamps));
    Some(finding)
}
