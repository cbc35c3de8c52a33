//! Programs and their connections.

use bdp_model::finding::fact::{OfAskedRate, TookRoundTrips, WindowShrunk};
use bdp_model::finding::limit::Programs;
use bdp_model::finding::{Cause, Fact, Finding};

use super::super::evidence::text;
use super::super::quantity::{percent, rate, size};
use super::words::{Words, name};

pub fn words(limit: Programs, finding: &Finding) -> Words {
    let name = name(finding);
    match limit {
        Programs::SlowStart => Words::limited_by("slow start").figures(round_trips).because(
            "the transfer was too short to reach full speed",
            "A larger transfer over the same connection is faster.",
        ),
        Programs::AskedRate => asked_rate(finding, name).figures(reached),
        Programs::SlowWriter if finding.cause == Some(Cause::ResponseTime) => {
            Words::new(format!("response time of {name}"), format!("limited by the response time of {name}"))
                .because(
                    "{host} takes long to begin its answers",
                    "Look for what keeps the program on {host} busy.",
                )
        }
        Programs::SlowWriter => {
            Words::new(format!("writer on {name}"), format!("limited by the writer on {name}")).because(
                "the program on {from} hands over data more slowly than the path carries it",
                "Look for what keeps that program on {from} waiting.",
            )
        }
        Programs::SlowReader => {
            Words::new(format!("reader on {name}"), format!("limited by the reader on {name}"))
                .figures(unread)
                .because(
                    "{to} reads data more slowly than it arrives",
                    "A faster processor, or less other work, on {to} helps.",
                )
        }
        Programs::ClientIdle => {
            let claim = format!("no limit: the connection waits for the client on {name} to ask");
            Words::new(format!("client on {name}"), claim)
                .because("nobody had asked for anything", "Neither the network nor the server holds it back.")
        }
        Programs::RoundTrips => requests(finding.cause),
        Programs::ProgramWindow => {
            let claim = format!("limited by what the program on {name} lets be in flight");
            Words::new(format!("window of the program on {name}"), claim).because(
                "the programs let only so much be on its way at a time",
                "Look for a setting of the program: buffers, requests at a time, its own window.",
            )
        }
        Programs::PeerGone => {
            Words::new(format!("an end that answers no more, {name}"), format!("{name} answers no more"))
                .because("{to} answers no more", "Find whether {to} still runs and can be reached.")
        }
        Programs::NotEstablished => {
            let why = match finding.cause {
                Some(Cause::Refused) => format!("{name} refused it by a reset"),
                Some(Cause::Unreachable) => "ICMP said that it can't be reached, or is prohibited".to_owned(),
                _ => format!("{name} did not answer"),
            };
            let claim = format!("the connection was never made: {why}");
            Words::new("a connection that was never made", claim).because(
                "the connection was never made",
                "Look for a firewall on the way, and for a program that listens there.",
            )
        }
        Programs::Nagle => Words::limited_by(format!("Nagle's algorithm on {name}")).because(
            "{from} waits for an answer before it sends the next small piece",
            "The program on {from} should send larger pieces, or not wait (TCP_NODELAY).",
        ),
    }
}

fn asked_rate(finding: &Finding, name: &str) -> Words {
    if finding.cause == Some(Cause::KeptByHost) {
        let claim = format!("limited by a rate that {name} keeps: a shaper, its device, or its program");
        return Words::new(format!("a rate that {name} keeps"), claim).because(
            "{from} sends at a rate that it keeps by itself",
            "Look at the queue of its device (tc qdisc show) and at the limits of the program on {from}.",
        );
    }
    let claim = match finding.observed(Fact::OfAskedRate) {
        Some(_) => "asked rate reached",
        None => "the asked rate came through; the path may carry more",
    };
    Words::new("the rate that was asked for", claim).because(
        "the test asked for this rate and no more",
        "To find the most that the path carries, ask for more.",
    )
}

fn requests(cause: Option<Cause>) -> Words {
    const MADE: [&str; 2] = [
        "making the connection took most of the time",
        "A connection that is kept open, and used again, makes it faster.",
    ];
    const ASKED: [&str; 2] = [
        "each question waits for the answer to the one before",
        "A program that asks for more at a time, or a shorter path, makes it faster.",
    ];
    let (subject, [why, advice]) = match cause {
        Some(Cause::TlsSetup) => ("the round trips of TLS setup", MADE),
        Some(Cause::Handshake) => ("making the connection", MADE),
        _ => ("round trips between questions and answers", ASKED),
    };
    Words::limited_by(subject).because(why, advice)
}

fn round_trips(finding: &Finding) -> Option<String> {
    let seen = finding.observed(Fact::TookRoundTrips)?;
    let took: TookRoundTrips = seen.figures()?;
    Some(format!("{}, {} on average", text(finding, seen), rate(took.goodput.0)))
}

fn reached(finding: &Finding) -> Option<String> {
    let reached = rate(finding.figures::<OfAskedRate>()?.goodput.0);
    let of = |fact| finding.observed(fact);
    let queued = of(Fact::QueueOneWay).or(of(Fact::QueueRoundTrip)).is_some();
    let beyond = if queued { "the path has a standing queue" } else { "the path may carry more" };
    Some(format!("{reached}; {beyond}"))
}

fn unread(finding: &Finding) -> Option<String> {
    if let Some(unread) = finding.observed(Fact::Unread) {
        let unread = size(unread.value);
        return Some(format!("it leaves {unread} in its socket (median), so that the receive window closes"));
    }
    let seen = finding.observed(Fact::WindowShrunk)?;
    let shrunk: WindowShrunk = seen.figures()?;
    Some(format!(
        "it leaves data in its socket, and its receive window is below half of {} in {} of the samples",
        size(shrunk.largest.0),
        percent(seen.value)
    ))
}
