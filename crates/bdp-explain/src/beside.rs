//! What may stand beside the limit that binds. Most rules presume that none before them claims the limit: a reader that pauses closes the window, and its
//! bursts fill queues, so that what later rules make of those would be wrong. Some see a thing that is true of the connection or the path whatever else binds.

use bdp_model::finding::{Finding, Limit};

/// Whether a later claim holds beside those before it.
pub fn stands(findings: &[Finding], claim: &Finding) -> bool {
    // Of the connection, of marks and of counters.
    let holds_anyway = matches!(
        claim.limit,
        Limit::SackMissing | Limit::TimestampsMissing | Limit::EcnMarks | Limit::HostDrops
    );
    holds_anyway && findings.iter().all(|finding| finding.limit != claim.limit)
}
