//! The path, and the queues on it.

use bdp_model::finding::fact::{Received, Steady};
use bdp_model::finding::limit::Path;
use bdp_model::finding::{Fact, Finding};

use super::super::evidence::{nanos, text};
use super::super::quantity::{part, rate, time};
use super::words::{Words, first_line, plain};

pub const fn words(limit: Path) -> &'static Words {
    match limit {
        Path::Ceiling => &CEILING,
        Path::PathRate => &PATH_RATE,
        Path::ShallowQueue => &SHALLOW_QUEUE,
        Path::HalfDuplex => &HALF_DUPLEX,
        Path::CrossTraffic => &CROSS_TRAFFIC,
        Path::EcnMarks => &ECN_MARKS,
    }
}

const CEILING: Words = Words {
    subject: |finding| finding.place.name.as_deref().unwrap_or("the ceiling").to_owned(),
    claim: |finding| {
        let of = |fact| finding.observed(fact);
        match (of(Fact::AllArrived), of(Fact::LostAsAllowed), of(Fact::LoadAdds)) {
            (Some(_), _, _) => "at the ceiling, and nothing was lost".to_owned(),
            (_, Some(lost), _) => format!("at the ceiling, and {}", text(finding, lost)),
            (_, _, Some(load)) => format!("at the ceiling, stop tuning; but {}", text(finding, load)),
            _ => "at the ceiling, stop tuning".to_owned(),
        }
    },
    figures: |_| None,
    reason: |_, _, _| {
        plain("the connection is full", "No setting makes it faster, only a faster connection does.")
    },
};

const PATH_RATE: Words = Words {
    subject: |_| "the path's bottleneck".to_owned(),
    claim: |_| "the path's bottleneck is full".to_owned(),
    figures: |finding| match finding.observed(Fact::Received) {
        Some(received) => {
            let of: Received = received.figures()?;
            Some(format!("{} of {} arrive, and its queue grows", rate(received.value), rate(of.sent.0)))
        }
        None => full_path(finding),
    },
    reason: |_, _, _| {
        plain("the slowest part of the path is full", "No setting makes it faster, only a faster path does.")
    },
};

/// Returns the goodput of a full path, and its queue.
fn full_path(finding: &Finding) -> Option<String> {
    let of = |fact| finding.observed(fact);
    let queue = of(Fact::QueueOneWay).or(of(Fact::QueueRoundTrip)).or(of(Fact::RoundTripAboveLeast));
    let goodput = rate(finding.figures::<Steady>()?.goodput.0);
    Some(match (queue, of(Fact::OfPeakRate)) {
        (Some(queue), _) => format!("{goodput}, with a standing queue of {}", time(nanos(queue.value))),
        (None, Some(peak)) => format!(
            "{goodput}, {} of the highest rate of delivery, without a standing queue",
            part(peak.value)
        ),
        (None, None) => goodput,
    })
}

const SHALLOW_QUEUE: Words = Words {
    subject: |_| "a short queue on the path".to_owned(),
    claim: |_| "limited by a short queue on the path".to_owned(),
    figures: first_line,
    reason: |_, _, _| {
        plain(
            "a queue on the path is too short for the bursts that come",
            "A longer queue there, or a sender that spaces its packets, makes it faster.",
        )
    },
};

const HALF_DUPLEX: Words = Words {
    subject: |_| "a half-duplex medium on the path".to_owned(),
    claim: |_| "limited by a half-duplex medium on the path".to_owned(),
    figures: first_line,
    reason: |_, _, _| {
        plain(
            "the connection carries one direction at a time",
            "A connection that carries both at once (full duplex) is faster.",
        )
    },
};

const CROSS_TRAFFIC: Words = Words {
    subject: |_| "other traffic on the path".to_owned(),
    claim: |_| "limited by other traffic on the path".to_owned(),
    figures: first_line,
    reason: |_, _, _| {
        plain("others use the same connection", "It is faster when they do not, or on a faster connection.")
    },
};

const ECN_MARKS: Words = Words {
    subject: |_| "congestion marks (ECN) on the path".to_owned(),
    claim: |_| "limited by congestion marks (ECN) on the path".to_owned(),
    figures: first_line,
    reason: |_, _, _| {
        plain(
            "a device on the path asks senders to slow down before its queue grows long",
            "That keeps delays short; only a faster path carries more.",
        )
    },
};
