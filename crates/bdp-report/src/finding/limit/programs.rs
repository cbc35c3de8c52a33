//! Programs and their connections.

use bdp_model::finding::fact::{OfAskedRate, TookRoundTrips, WindowShrunk};
use bdp_model::finding::limit::Programs;
use bdp_model::finding::{Cause, Fact};

use super::super::evidence::text;
use super::super::quantity::{percent, rate, size};
use super::words::{Words, end, first_line, name, plain};

pub const fn words(limit: Programs) -> &'static Words {
    match limit {
        Programs::SlowStart => &SLOW_START,
        Programs::AskedRate => &ASKED_RATE,
        Programs::SlowWriter => &SLOW_WRITER,
        Programs::SlowReader => &SLOW_READER,
        Programs::ClientIdle => &CLIENT_IDLE,
        Programs::RoundTrips => &ROUND_TRIPS,
        Programs::ProgramWindow => &PROGRAM_WINDOW,
        Programs::PeerGone => &PEER_GONE,
        Programs::NotEstablished => &NOT_ESTABLISHED,
        Programs::Nagle => &NAGLE,
    }
}

const SLOW_START: Words = Words {
    subject: |_| "slow start".to_owned(),
    claim: |_| "limited by slow start".to_owned(),
    figures: |finding| {
        let seen = finding.observed(Fact::TookRoundTrips)?;
        let took: TookRoundTrips = seen.figures()?;
        Some(format!("{}, {} on average", text(finding, seen), rate(took.goodput.0)))
    },
    reason: |_, _, _| {
        plain(
            "the transfer was too short to reach full speed",
            "A larger transfer over the same connection is faster.",
        )
    },
};

const ASKED_RATE: Words = Words {
    subject: |finding| match finding.cause {
        Some(Cause::KeptByHost) => format!("a rate that {} keeps", name(finding)),
        _ => "the rate that was asked for".to_owned(),
    },
    claim: |finding| match finding.cause {
        Some(Cause::KeptByHost) => {
            format!("limited by a rate that {} keeps: a shaper, its device, or its program", name(finding))
        }
        _ if finding.observed(Fact::OfAskedRate).is_some() => "asked rate reached".to_owned(),
        _ => "the asked rate came through; the path may carry more".to_owned(),
    },
    figures: |finding| {
        let reached = rate(finding.figures::<OfAskedRate>()?.goodput.0);
        let of = |fact| finding.observed(fact);
        let queued = of(Fact::QueueOneWay).or(of(Fact::QueueRoundTrip)).is_some();
        let beyond = if queued { "the path has a standing queue" } else { "the path may carry more" };
        Some(format!("{reached}; {beyond}"))
    },
    reason: |finding, from, _| match finding.cause {
        Some(Cause::KeptByHost) => Some((
            format!("{from} sends at a rate that it keeps by itself"),
            format!(
                "Look at the queue of its device (tc qdisc show) and at the limits of the program on {from}."
            ),
        )),
        _ => plain(
            "the test asked for this rate and no more",
            "To find the most that the path carries, ask for more.",
        ),
    },
};

const SLOW_WRITER: Words = Words {
    subject: |finding| match finding.cause {
        Some(Cause::ResponseTime) => format!("response time of {}", name(finding)),
        _ => format!("writer on {}", name(finding)),
    },
    claim: |finding| match finding.cause {
        Some(Cause::ResponseTime) => format!("limited by the response time of {}", name(finding)),
        _ => format!("limited by the writer on {}", name(finding)),
    },
    figures: first_line,
    reason: |finding, from, to| {
        Some(match finding.cause {
            Some(Cause::ResponseTime) => {
                let host = end(finding, from, to);
                (
                    format!("{host} takes long to begin its answers"),
                    format!("Look for what keeps the program on {host} busy."),
                )
            }
            _ => (
                format!("the program on {from} hands over data more slowly than the path carries it"),
                format!("Look for what keeps that program on {from} waiting."),
            ),
        })
    },
};

const SLOW_READER: Words = Words {
    subject: |finding| format!("reader on {}", name(finding)),
    claim: |finding| format!("limited by the reader on {}", name(finding)),
    figures: |finding| match finding.observed(Fact::Unread) {
        Some(unread) => Some(format!(
            "it leaves {} in its socket (median), so that the receive window closes",
            size(unread.value)
        )),
        None => {
            let seen = finding.observed(Fact::WindowShrunk)?;
            let shrunk: WindowShrunk = seen.figures()?;
            Some(format!(
                "it leaves data in its socket, and its receive window is below half of {} in {} of the samples",
                size(shrunk.largest.0),
                percent(seen.value)
            ))
        }
    },
    reason: |_, _, to| {
        Some((
            format!("{to} reads data more slowly than it arrives"),
            format!("A faster processor, or less other work, on {to} helps."),
        ))
    },
};

const CLIENT_IDLE: Words = Words {
    subject: |finding| format!("client on {}", name(finding)),
    claim: |finding| format!("no limit: the connection waits for the client on {} to ask", name(finding)),
    figures: first_line,
    reason: |_, _, _| {
        plain("nobody had asked for anything", "Neither the network nor the server holds it back.")
    },
};

const ROUND_TRIPS: Words = Words {
    subject: |finding| {
        let words = match finding.cause {
            Some(Cause::TlsSetup) => "the round trips of TLS setup",
            Some(Cause::Handshake) => "making the connection",
            _ => "round trips between questions and answers",
        };
        words.to_owned()
    },
    claim: |finding| format!("limited by {}", (ROUND_TRIPS.subject)(finding)),
    figures: first_line,
    reason: |finding, _, _| match finding.cause {
        Some(Cause::TlsSetup | Cause::Handshake) => plain(
            "making the connection took most of the time",
            "A connection that is kept open, and used again, makes it faster.",
        ),
        _ => plain(
            "each question waits for the answer to the one before",
            "A program that asks for more at a time, or a shorter path, makes it faster.",
        ),
    },
};

const PROGRAM_WINDOW: Words = Words {
    subject: |finding| format!("window of the program on {}", name(finding)),
    claim: |finding| format!("limited by what the program on {} lets be in flight", name(finding)),
    figures: first_line,
    reason: |_, _, _| {
        plain(
            "the programs let only so much be on its way at a time",
            "Look for a setting of the program: buffers, requests at a time, its own window.",
        )
    },
};

const PEER_GONE: Words = Words {
    subject: |finding| format!("an end that answers no more, {}", name(finding)),
    claim: |finding| format!("{} answers no more", name(finding)),
    figures: first_line,
    reason: |_, _, to| {
        Some((format!("{to} answers no more"), format!("Find whether {to} still runs and can be reached.")))
    },
};

const NOT_ESTABLISHED: Words = Words {
    subject: |_| "a connection that was never made".to_owned(),
    claim: |finding| match finding.cause {
        Some(Cause::Refused) => {
            format!("the connection was never made: {} refused it by a reset", name(finding))
        }
        Some(Cause::Unreachable) => {
            "the connection was never made: ICMP said that it can't be reached, or is prohibited".to_owned()
        }
        _ => format!("the connection was never made: {} did not answer", name(finding)),
    },
    figures: first_line,
    reason: |_, _, _| {
        plain(
            "the connection was never made",
            "Look for a firewall on the way, and for a program that listens there.",
        )
    },
};

const NAGLE: Words = Words {
    subject: |finding| format!("Nagle's algorithm on {}", name(finding)),
    claim: |finding| format!("limited by Nagle's algorithm on {}", name(finding)),
    figures: first_line,
    reason: |_, from, _| {
        Some((
            format!("{from} waits for an answer before it sends the next small piece"),
            format!("The program on {from} should send larger pieces, or not wait (TCP_NODELAY)."),
        ))
    },
};
