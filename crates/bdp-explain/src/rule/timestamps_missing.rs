//! A connection without timestamps (RFC 7323): a sender can't tell by them that a retransmission was not needed (RFC 3522), and measures no round trip of
//! what it retransmits (RFC 6298, section 3). It costs where segments are retransmitted, and is never the only limit.

use bdp_model::facts::Facts;
use bdp_model::finding::fact;
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Remedy};

use crate::observed;

/// Retransmitted segments / delivered ones: of fewer there is little to tell.
const RETRANSMITTED: f64 = 0.01;

/// Says so of a connection that has none, and that retransmits.
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
