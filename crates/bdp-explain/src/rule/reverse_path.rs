//! Acknowledgements that are lost on their way back.

use bdp_model::facts::Facts;
use bdp_model::finding::{Confidence, Finding, Limit};

use crate::text::percent;

/// Claims that acknowledgements are lost: probes are, with and without load, and segments far less.
pub fn judge(facts: &Facts) -> Option<Finding> {
    /// Probes that are lost without load.
    const LOST: f64 = 0.1;
    /// Segments lost / probes lost: what is lost on the data's own way, both lose.
    const DATA_LOST: f64 = 0.34;
    let (idle, loaded) = facts.probes_lost().filter(|&(idle, loaded)| idle >= LOST && loaded >= LOST)?;
    let lost = facts.retransmitted_share().filter(|&share| share < DATA_LOST * idle.min(loaded))?;
    Some(Finding {
        limit: Limit::ReversePath,
        subject: "the way back".to_owned(),
        confidence: Confidence::Medium,
        summary: format!(
            "limited by the way back: it loses acknowledgements, as {} of the probes",
            percent(loaded)
        ),
        evidence: vec![
            format!(
                "{} of the probes were lost before the load, {} under it",
                percent(idle),
                percent(loaded)
            ),
            format!(
                "only {} of the segments were retransmitted: the way there loses far less",
                percent(lost)
            ),
        ],
        remedy: Some(format!(
            "look for a faulty or congested link from {} to {}",
            facts.receiver.name, facts.sender.name
        )),
        missing: Vec::new(),
    })
}
