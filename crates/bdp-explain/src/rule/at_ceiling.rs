//! The devices give all that they can.

use bdp_model::facts::Facts;
use bdp_model::finding::{Confidence, Finding, Limit};
use bdp_model::threshold::{ABOVE_CEILING, AT_CEILING};
use bdp_model::units::format_bps;

use crate::text::{load_adds, percent, rate};

/// Claims the limit where the goodput is the ceiling's.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let share = facts.of_ceiling().filter(|&share| share >= AT_CEILING)?;
    let ceiling = facts.ceiling.as_ref()?;
    let mut evidence = vec![format!(
        "{} is {} of {}, what {} leaves to TCP",
        rate(facts.goodput_bps),
        percent(share),
        format_bps(ceiling.goodput_bps),
        ceiling.by
    )];
    let load = load_adds(facts);
    let summary = match &load {
        Some(load) => format!("at the ceiling, stop tuning; but {load}"),
        None => "at the ceiling, stop tuning".to_owned(),
    };
    evidence.extend(load);
    if share > ABOVE_CEILING {
        evidence.push("more than the device can carry: its driver reports a wrong speed".to_owned());
    }
    Some(Finding {
        limit: Limit::Ceiling,
        subject: ceiling.by.clone(),
        confidence: if share > ABOVE_CEILING { Confidence::Low } else { Confidence::High },
        summary,
        evidence,
        remedy: None,
        missing: Vec::new(),
    })
}
