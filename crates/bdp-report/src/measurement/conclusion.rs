//! What is said of a direction: its limit with the evidence, or that there is none left to mend.

use bdp_model::facts::Facts;
use bdp_model::finding::{Finding, Limit};
use bdp_model::measurement::{Direction, Measurement};

use super::arrow;
use crate::finding::{confidence, missing, remedy, subject, summary};
use crate::grid::{tame, width, wrap};
use crate::style::{Style, Tint};
use crate::time_spent;

/// The findings of a direction of one measurement, and where its time went. `agreement` adds how many of several runs say the same.
pub(super) fn conclusions(
    m: &Measurement,
    way: Direction,
    agreement: Option<(usize, usize)>,
    style: &Style,
) -> String {
    let Some(direction) = m.directions.iter().find(|d| d.direction == way) else { return String::new() };
    let agreement = match agreement {
        Some((same, of)) if of > 1 => format!(", in {same} of {of} runs"),
        _ => String::new(),
    };
    let of = |finding| finding_lines(arrow(way, style), finding, &agreement, style);
    let time = time_spent::line(arrow(way, style), Facts::measured(m, way).as_ref(), style);
    direction.findings.iter().map(of).chain([time]).collect()
}

/// A finding with its evidence, after what it is of.
pub(crate) fn finding_lines(of: &str, finding: &Finding, agreement: &str, style: &Style) -> String {
    let (word, tint) = word(finding);
    let lead = format!("{of} {word:<7}  ");
    let first = match word {
        "LIMIT" => format!("{} ({} confidence{agreement})", subject(finding), confidence(finding.confidence)),
        "OK" => format!("{}{agreement}", summary(finding)),
        _ => format!("no rule explains the goodput{agreement}"),
    };
    let mut text = wrap(&lead, tint, &tame(&first), style);
    let indent = " ".repeat(width(&lead));
    for line in lines(finding).iter().filter(|line| !first.contains(line.as_str())) {
        text.push_str(&wrap(&indent, Tint::None, &tame(line), style));
    }
    text
}

/// A finding in a word: `OK` where nothing is left to change.
pub(crate) fn word(finding: &Finding) -> (&'static str, Tint) {
    match (finding.limit, &finding.remedy) {
        (Limit::Unknown, _) => ("UNKNOWN", Tint::Doubtful),
        (Limit::Ceiling, None) | (Limit::AskedRate, _) => ("OK", Tint::Good),
        _ => ("LIMIT", Tint::Bad),
    }
}

fn lines(finding: &Finding) -> Vec<String> {
    let mut lines = crate::finding::lines(finding);
    lines.extend(remedy(finding).map(|remedy| format!("remedy: {remedy}")));
    if !finding.missing.is_empty() {
        lines.push(format!("missing: {}", missing(finding).join(", ")));
    }
    lines
}
