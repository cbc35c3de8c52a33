//! The devices give all that they can.

use bdp_model::finding::{Confidence, Finding, Limit};
use bdp_model::units::format_bps;

use crate::seen::{Seen, percent, rate};

/// From this share of the ceiling on nothing is left to tune: what is missing are acknowledgements of the other
/// direction, and slow start.
pub const AT_CEILING: f64 = 0.94;

/// Above this the device tells a speed that is not its own.
const ABOVE: f64 = 1.01;

/// Claims the limit where the goodput is the ceiling's.
pub fn judge(seen: &Seen<'_>) -> Option<Finding> {
    let share = seen.of_ceiling().filter(|&share| share >= AT_CEILING)?;
    let ceiling = seen.measurement.ceiling.as_ref()?;
    let mut evidence = vec![format!(
        "{} is {} of {}, what {} leaves to TCP",
        rate(seen.direction.goodput_bps),
        percent(share),
        format_bps(ceiling.goodput_bps),
        ceiling.by
    )];
    let load = seen.load_adds();
    let summary = match &load {
        Some(load) => format!("at the ceiling, stop tuning; but {load}"),
        None => "at the ceiling, stop tuning".to_owned(),
    };
    evidence.extend(load);
    if share > ABOVE {
        evidence.push(
            "more than the device says it can: its driver tells a speed that is not its own".to_owned(),
        );
    }
    Some(Finding {
        limit: Limit::Ceiling,
        subject: ceiling.by.clone(),
        confidence: if share > ABOVE { Confidence::Low } else { Confidence::High },
        summary,
        evidence,
        remedy: None,
        missing: Vec::new(),
    })
}
