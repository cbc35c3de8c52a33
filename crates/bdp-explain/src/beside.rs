//! What may stand beside the limit that binds. Most rules presume that none before them claims the limit: a reader that pauses closes the window, and its
//! bursts fill queues, so that what later rules make of those would be wrong. Some see a thing that is true of the connection or the path whatever else binds.

use bdp_model::finding::{Finding, Limit};

/// Whether a later claim holds beside those before it.
pub fn stands(findings: &[Finding], claim: &Finding) -> bool {
    let binding = findings.first().map(|finding| finding.limit);
    findings.iter().all(|finding| finding.limit != claim.limit)
        && match claim.limit {
            // Of the connection, and of counters.
            Limit::SackMissing | Limit::TimestampsMissing | Limit::EcnMarks | Limit::HostDrops => true,
            // Apart from the change the path was full.
            Limit::PathRate => binding == Some(Limit::PathChanged),
            // What is repaired so slowly was lost by chance.
            Limit::RandomLoss => binding == Some(Limit::SackMissing),
            _ => false,
        }
}
