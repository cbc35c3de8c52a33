//! Conclusions on a direction: its limit with the evidence, or that nothing needs to change.

use bdp_model::finding::{Finding, Limit};
use bdp_model::measurement::{Direction, Measurement};

use super::arrow;
use crate::finding::{confidence, may_be, missing, remedy, subject, summary};
use crate::grid::{tame, width, wrap};
use crate::style::{Style, Tint};

/// Returns the findings on a direction of one measurement with their evidence. `agreement` adds how many of several runs agree.
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
    findings_lines(arrow(way, style), &direction.findings, &agreement, style)
}

/// Returns the binding finding, and those besides it.
pub(crate) fn findings_lines(of: &str, findings: &[Finding], agreement: &str, style: &Style) -> String {
    let Some((binding, beside)) = findings.split_first() else { return String::new() };
    let mut text = finding_lines(of, binding, agreement, style);
    for finding in beside {
        text.push_str(&entry(of, ("ALSO", Tint::Doubtful), &claimed(finding, ""), finding, style));
    }
    text
}

/// Returns a finding with its evidence, labelled `of`.
pub(crate) fn finding_lines(of: &str, finding: &Finding, agreement: &str, style: &Style) -> String {
    let (word, tint) = word(finding);
    let first = match word {
        "LIMIT" => claimed(finding, agreement),
        "OK" => format!("{}{agreement}", summary(finding)),
        _ => match may_be(finding) {
            Some(candidates) => format!("perhaps {candidates}{agreement}"),
            None => format!("no rule explains the goodput{agreement}"),
        },
    };
    entry(of, (word, tint), &first, finding, style)
}

/// Returns the subject of a finding and its confidence.
fn claimed(finding: &Finding, agreement: &str) -> String {
    format!("{} ({} confidence{agreement})", subject(finding), confidence(finding.confidence))
}

/// Returns a finding after its word and label, with its evidence.
fn entry(of: &str, (word, tint): (&str, Tint), first: &str, finding: &Finding, style: &Style) -> String {
    let lead = format!("{of} {word:<7}  ");
    let mut text = wrap(&lead, tint, &tame(first), style);
    let indent = " ".repeat(width(&lead));
    for line in lines(finding).iter().filter(|line| !first.contains(line.as_str())) {
        text.push_str(&wrap(&indent, Tint::None, &tame(line), style));
    }
    text
}

/// Returns a word for a finding: `OK` if nothing needs to change.
pub(crate) fn word(finding: &Finding) -> (&'static str, Tint) {
    match (finding.limit, &finding.remedy) {
        (Limit::Unknown, _) => ("UNKNOWN", Tint::Doubtful),
        (Limit::Ceiling, None) | (Limit::AskedRate, _) => ("OK", Tint::Good),
        _ => ("LIMIT", Tint::Bad),
    }
}

fn lines(finding: &Finding) -> Vec<String> {
    let mut lines = crate::finding::lines(finding);
    lines.extend(remedy(finding).map(|remedy| format!("cure: {remedy}")));
    if !finding.missing.is_empty() {
        lines.push(format!("missing: {}", missing(finding).join(", ")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use bdp_model::finding::{Confidence, Evidence, Place, fact};

    use super::*;

    #[test]
    fn what_stands_beside_the_limit_follows_it_and_is_no_limit() {
        let of =
            |limit, evidence| Finding::new(limit, Place::path(), Confidence::Medium).evidence([evidence]);
        let both = [
            of(Limit::SackMissing, Evidence::flag(fact::SackUsed, false)),
            of(Limit::TimestampsMissing, Evidence::flag(fact::TimestampsUsed, false)),
        ];
        let text = findings_lines("->", &both, ", in 2 of 3 runs", &Style::plain());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "-> LIMIT    loss recovery without SACK (medium confidence, in 2 of 3 runs)");
        assert!(lines.contains(&"-> ALSO     no TCP timestamps (medium confidence)"), "{text}");
        assert_eq!(findings_lines("->", &[], "", &Style::plain()), "");
    }
}
