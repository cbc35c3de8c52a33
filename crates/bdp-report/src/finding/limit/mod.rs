//! Limits in words: for each what a finding is about, its claim, its figures, and its reason in plain language. What is said of one limit stands in one place.

mod datagrams;
mod hosts;
mod path;
mod programs;
mod recovery;
mod windows;

use bdp_model::finding::{At, Cause, Confidence, Fact, Finding, Limit};

use super::lines::lines;

pub(super) use windows::streams;

/// What is said of a limit.
struct Words {
    /// As a noun, as where it binds next.
    noun: &'static str,
    /// What a finding is about: `receive window of ams1`.
    subject: fn(&Finding) -> String,
    /// The claim alone.
    claim: fn(&Finding) -> String,
    /// What the claim rests on first, or is of.
    figures: fn(&Finding) -> Option<String>,
    /// Why, and what to do, for readers who are no network engineers; of data that goes from one host to another.
    reason: fn(&Finding, &str, &str) -> Option<(String, String)>,
}

const fn words(limit: Limit) -> &'static Words {
    match limit {
        Limit::ReceiveWindow => &windows::RECEIVE_WINDOW,
        Limit::SendBuffer => &windows::SEND_BUFFER,
        Limit::SlowStart => &windows::SLOW_START,
        Limit::Ceiling => &path::CEILING,
        Limit::PathRate => &path::PATH_RATE,
        Limit::ShallowQueue => &path::SHALLOW_QUEUE,
        Limit::HalfDuplex => &path::HALF_DUPLEX,
        Limit::CrossTraffic => &path::CROSS_TRAFFIC,
        Limit::EcnMarks => &path::ECN_MARKS,
        Limit::Policer => &path::POLICER,
        Limit::ReversePath => &path::REVERSE_PATH,
        Limit::MtuBlackHole => &path::MTU_BLACK_HOLE,
        Limit::PathChanged => &path::PATH_CHANGED,
        Limit::CongestionLoss => &recovery::CONGESTION_LOSS,
        Limit::RandomLoss => &recovery::RANDOM_LOSS,
        Limit::SackMissing => &recovery::SACK_MISSING,
        Limit::TimestampsMissing => &recovery::TIMESTAMPS_MISSING,
        Limit::Reordering => &recovery::REORDERING,
        Limit::AskedRate => &programs::ASKED_RATE,
        Limit::SlowWriter => &programs::SLOW_WRITER,
        Limit::SlowReader => &programs::SLOW_READER,
        Limit::ClientIdle => &programs::CLIENT_IDLE,
        Limit::RoundTrips => &programs::ROUND_TRIPS,
        Limit::ProgramWindow => &programs::PROGRAM_WINDOW,
        Limit::Nagle => &programs::NAGLE,
        Limit::PeerGone => &hosts::PEER_GONE,
        Limit::NotEstablished => &hosts::NOT_ESTABLISHED,
        Limit::Cpu => &hosts::CPU,
        Limit::HostDrops => &hosts::HOST_DROPS,
        Limit::PathLoss => &datagrams::PATH_LOSS,
        Limit::ReceivingHost => &datagrams::RECEIVING_HOST,
        Limit::SendingHost => &datagrams::SENDING_HOST,
        Limit::Unknown => &UNKNOWN,
    }
}

const UNKNOWN: Words = Words {
    noun: "something unknown",
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

/// A limit as a noun, as where it binds next.
pub const fn noun(limit: Limit) -> &'static str {
    words(limit).noun
}

/// What a finding is about: `receive window of ams1`.
pub(crate) fn subject(finding: &Finding) -> String {
    (words(finding.limit).subject)(finding)
}

/// One sentence that can stand alone: the claim and its figures.
pub(crate) fn summary(finding: &Finding) -> String {
    let separator = if finding.limit == Limit::Unknown { "; " } else { ": " };
    match (words(finding.limit).figures)(finding) {
        Some(figures) => format!("{}{separator}{figures}", claim(finding)),
        None => claim(finding),
    }
}

/// The claim alone.
pub(crate) fn claim(finding: &Finding) -> String {
    (words(finding.limit).claim)(finding)
}

/// What limits a transfer, and what to do about it, for readers who are no network engineers.
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

/// What an unknown limit may be, as `random loss (41 %), the policer (33 %) or other traffic (12 %)`.
pub(crate) fn may_be(finding: &Finding) -> Option<String> {
    let mut all: Vec<String> = finding
        .candidates
        .iter()
        .map(|one| format!("{} ({:.0} %)", noun(one.limit), one.probability * 100.0))
        .collect();
    let last = all.pop()?;
    Some(if all.is_empty() { last } else { format!("{} or {last}", all.join(", ")) })
}

fn first_line(finding: &Finding) -> Option<String> {
    lines(finding).into_iter().next()
}

fn name(finding: &Finding) -> &str {
    finding.place.name.as_deref().unwrap_or("the host")
}

fn device(finding: &Finding) -> &str {
    let dropped = finding.observed(Fact::DroppedByDevice);
    dropped.and_then(|dropped| dropped.name.as_deref()).unwrap_or("its device")
}

/// The end that a finding is about.
fn end<'a>(finding: &'a Finding, from: &'a str, to: &'a str) -> &'a str {
    match finding.place.at {
        At::Sender => from,
        At::Receiver => to,
        _ => finding.place.name.as_deref().unwrap_or("one of the two"),
    }
}

/// Cause and advice that name no host.
fn plain(cause: &str, advice: &str) -> Option<(String, String)> {
    Some((cause.to_owned(), advice.to_owned()))
}
