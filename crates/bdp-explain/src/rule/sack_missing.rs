//! Loss recovery without selective acknowledgements: one segment per round trip (RFC 6582), or after a timeout.

use bdp_model::facts::Facts;
use bdp_model::finding::fact;
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Remedy};

use crate::observed;

/// Share of the time spent in recovery.
const REPAIRS: f64 = 0.1;

/// Claims the limit if recovery takes long and the connection has no SACK.
pub fn judge(facts: &Facts) -> Option<Finding> {
    if facts.connection?.sack? {
        return None;
    }
    let spent = facts.time_counted()?;
    let repairs = spent.repairs();
    if repairs < REPAIRS {
        return None;
    }
    let finding = Finding::new(Limit::SackMissing, Place::path(), Confidence::Medium)
        .evidence([
            Evidence::flag(fact::SackUsed, false),
            Evidence::share(fact::Repairing, repairs).at_least(REPAIRS),
        ])
        .evidence(observed::retransmitted(facts))
        .remedy(Remedy::new(Action::EnableSack));
    Some(finding)
}
