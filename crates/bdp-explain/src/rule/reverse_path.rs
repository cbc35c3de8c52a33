//! Acknowledgements that are lost on their way back.

use bdp_model::facts::Facts;
use bdp_model::finding::{Action, Confidence, Evidence, Fact, Finding, Limit, Place, Quantity, Remedy};

/// Claims that acknowledgements are lost: probes are, with and without load, and segments far less.
pub fn judge(facts: &Facts) -> Option<Finding> {
    /// Probes that are lost without load.
    const LOST: f64 = 0.1;
    /// Segments lost / probes lost: what is lost on the data's own way, both lose.
    const DATA_LOST: f64 = 0.34;
    let (idle, loaded) = facts.probes_lost().filter(|&(idle, loaded)| idle >= LOST && loaded >= LOST)?;
    let lost = facts.retransmitted_share().filter(|&share| share < DATA_LOST * idle.min(loaded))?;
    let finding = Finding::new(Limit::ReversePath, Place::way_back(), Confidence::Medium)
        .evidence([
            Evidence::share(Fact::ProbesLost, loaded).at_least(LOST).with(Quantity::share(idle)),
            Evidence::share(Fact::RetransmittedShare, lost).at_most(DATA_LOST * idle.min(loaded)),
        ])
        .remedy(Remedy::new(Action::FixWayBack).host(&facts.sender.name));
    Some(finding)
}
