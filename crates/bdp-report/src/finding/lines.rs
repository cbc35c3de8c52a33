//! Evidence of a finding, as lines.

use bdp_model::finding::{Evidence, Fact, Finding, Limit, Next};

use super::evidence::{self, streams};
use super::quantity::{rate, size};

/// Returns the evidence of a finding; related facts share a line. The next limit is shown with the current one.
pub(crate) fn lines(finding: &Finding) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut before: Option<Fact> = None;
    let mut next = finding.next.as_ref().map(|next| next_text(finding, next));
    for evidence in &finding.evidence {
        let joined = before.and_then(|before| evidence::joined(finding, before, evidence));
        match (joined, lines.last_mut()) {
            (Some(tail), Some(line)) => line.push_str(&tail),
            _ => {
                let text = evidence::text(finding, evidence);
                lines.push(match next.take_if(|_| evidence.fact == Fact::SettingMaximum) {
                    Some(next) => format!("{next}; {text}"),
                    None => text,
                });
            }
        }
        before = Some(evidence.fact);
    }
    lines.extend(next);
    lines
}

/// Returns the results of experiments after the test, a line each.
pub(crate) fn of_experiments(finding: &Finding) -> Vec<String> {
    let is_one = |evidence: &&Evidence| {
        matches!(evidence.fact, Fact::LossesWhilePaced | Fact::MoreStreams | Fact::BurstDelay)
    };
    let words = |evidence| evidence::text(finding, evidence).trim_start_matches("experiment: ").to_owned();
    finding.evidence.iter().filter(is_one).map(words).collect()
}

/// Returns the limit that binds next, and what reaching it takes.
pub(super) fn next_text(finding: &Finding, next: &Next) -> String {
    let goodput = rate(next.goodput_bps);
    let held = if finding.limit == Limit::SendBuffer { "in flight" } else { "on the wire" };
    let then = next.limit.noun();
    let needs = |needed| match streams(finding) {
        1 => size(needed),
        streams => format!("{streams} x {}", size(needed)),
    };
    match (next.needed_bytes, next.limit) {
        (Some(needed), Limit::Ceiling) => format!("{goodput} needs {} {held}", needs(needed)),
        (Some(needed), _) => format!("{goodput} needs {} {held}; then {then} is the limit", needs(needed)),
        (None, _) => format!("the next limit that is known is {then}, at {goodput}"),
    }
}
