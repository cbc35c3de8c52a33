//! Limits in words: for each its subject, claim, figures, and explanation in plain language. The wording of one limit is in one place, in
//! the file of its kind.

mod datagrams;
mod hosts;
mod packets;
mod path;
mod programs;
mod windows;
mod words;

use bdp_model::finding::limit::{Kind, NotKnown};
use bdp_model::finding::{Cause, Confidence, Finding, Limit};

use words::{Words, end, first_line};

fn words(finding: &Finding) -> Words {
    match finding.limit.kind() {
        Kind::Windows(limit) => windows::words(limit, finding),
        Kind::Path(limit) => path::words(limit, finding),
        Kind::Packets(limit) => packets::words(limit, finding),
        Kind::Programs(limit) => programs::words(limit, finding),
        Kind::Hosts(limit) => hosts::words(limit, finding),
        Kind::Datagrams(limit) => datagrams::words(limit, finding),
        Kind::NotKnown(NotKnown::Unknown) => {
            let perhaps = may_be(finding).map_or_else(String::new, |these| format!(", perhaps {these}"));
            Words::new("what limits it", format!("limit unknown{perhaps}")).figures(seen_at_all)
        }
    }
}

fn seen_at_all(finding: &Finding) -> Option<String> {
    if finding.cause != Some(Cause::Tunnel) {
        return first_line(finding);
    }
    let text =
        "data went through ssh's connection, and the TCP connections seen here end at ssh on either machine";
    Some(text.to_owned())
}

/// Returns the subject of a finding: `receive window of ams1`.
pub(crate) fn subject(finding: &Finding) -> String {
    words(finding).subject
}

/// Returns a self-contained sentence: the claim and its figures.
pub(crate) fn summary(finding: &Finding) -> String {
    let separator = if finding.limit == Limit::Unknown { "; " } else { ": " };
    let words = words(finding);
    match (words.figures)(finding) {
        Some(figures) => format!("{}{separator}{figures}", words.claim),
        None => words.claim,
    }
}

/// Returns the claim alone.
pub(crate) fn claim(finding: &Finding) -> String {
    words(finding).claim
}

/// Returns what limits a transfer and what to do about it, for readers who are not network engineers.
pub(crate) fn reason(finding: &Finding, from: &str, to: &str) -> Vec<String> {
    let Some(reason) = words(finding).reason else {
        return vec!["The limit is unknown.".to_owned()];
    };
    let host = end(finding, from, to);
    let name = |word| match word {
        "host" => host,
        "from" => from,
        "to" => to,
        other => other,
    };
    let [cause, advice] = reason.map(|text| text.split(['{', '}']).map(name).collect::<String>());
    let sure = match finding.confidence {
        Confidence::High => "The reason is that",
        Confidence::Medium => "The probable reason is that",
        Confidence::Low => "A possible reason is that",
    };
    vec![format!("{sure} {cause}."), advice]
}

/// Returns possible causes of an unknown limit: `random loss (41 %), the policer (33 %) or other traffic (12 %)`.
pub(crate) fn may_be(finding: &Finding) -> Option<String> {
    let mut all: Vec<String> = finding
        .candidates
        .iter()
        .map(|one| format!("{} ({:.0} %)", one.limit.noun(), one.probability * 100.0))
        .collect();
    let last = all.pop()?;
    Some(if all.is_empty() { last } else { format!("{} or {last}", all.join(", ")) })
}
