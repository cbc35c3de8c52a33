//! Devices used to their full capacity.

use bdp_model::facts::Facts;
use bdp_model::finding::threshold::{ABOVE_CEILING, AT_CEILING};
use bdp_model::finding::{Confidence, Finding, Limit, Place};

use crate::observed;

/// Claims the limit if the goodput reaches the ceiling.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let share = facts.of_ceiling().filter(|&share| share >= AT_CEILING)?;
    let ceiling = facts.ceiling.as_ref()?;
    let confidence = if share > ABOVE_CEILING { Confidence::Low } else { Confidence::High };
    let finding = Finding::new(Limit::Ceiling, Place::hop(&ceiling.by), confidence)
        .evidence(observed::of_ceiling(facts))
        .evidence(observed::load_adds(facts))
        .evidence(observed::above_ceiling(facts));
    Some(finding)
}
