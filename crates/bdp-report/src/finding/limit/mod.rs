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

use words::{Words, first_line};

const fn words(limit: Limit) -> &'static Words {
    match limit.kind() {
        Kind::Windows(limit) => windows::words(limit),
        Kind::Path(limit) => path::words(limit),
        Kind::Packets(limit) => packets::words(limit),
        Kind::Programs(limit) => programs::words(limit),
        Kind::Hosts(limit) => hosts::words(limit),
        Kind::Datagrams(limit) => datagrams::words(limit),
        Kind::NotKnown(NotKnown::Unknown) => &UNKNOWN,
    }
}

const UNKNOWN: Words = Words {
    subject: |_| "what limits it".to_owned(),
    claim: |finding| match may_be(finding) {
        Some(candidates) => format!("limit unknown, perhaps {candidates}"),
        None => "limit unknown".to_owned(),
    },
    figures: |finding| {
        match finding.cause {
        Some(Cause::Tunnel) => Some(
            "data went through ssh's connection, and the TCP connections seen here end at ssh on either machine"
                .to_owned(),
        ),
        _ => first_line(finding),
    }
    },
    reason: |_, _, _| None,
};

/// Returns the subject of a finding: `receive window of ams1`.
pub(crate) fn subject(finding: &Finding) -> String {
    (words(finding.limit).subject)(finding)
}

/// Returns a self-contained sentence: the claim and its figures.
pub(crate) fn summary(finding: &Finding) -> String {
    let separator = if finding.limit == Limit::Unknown { "; " } else { ": " };
    match (words(finding.limit).figures)(finding) {
        Some(figures) => format!("{}{separator}{figures}", claim(finding)),
        None => claim(finding),
    }
}

/// Returns the claim alone.
pub(crate) fn claim(finding: &Finding) -> String {
    (words(finding.limit).claim)(finding)
}

/// Returns what limits a transfer and what to do about it, for readers who are not network engineers.
pub(crate) fn reason(finding: &Finding, from: &str, to: &str) -> Vec<String> {
    let Some((cause, advice)) = (words(finding.limit).reason)(finding, from, to) else {
        return vec!["The limit is unknown.".to_owned()];
    };
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
