//! The path: its rate, its queues, and what else it does.

use bdp_model::finding::fact::{FullSegmentsLost, Received, Steady};
use bdp_model::finding::{Fact, Finding};

use super::super::evidence::{nanos, text};
use super::super::quantity::{part, percent, rate, time};
use super::{Words, first_line, plain};

pub(super) const CEILING: Words = Words {
    noun: "the ceiling",
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

pub(super) const PATH_RATE: Words = Words {
    noun: "the path's bottleneck",
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

/// The goodput of a full path, and its queue.
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

pub(super) const SHALLOW_QUEUE: Words = Words {
    noun: "the short queue",
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

pub(super) const HALF_DUPLEX: Words = Words {
    noun: "the half-duplex medium",
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

pub(super) const CROSS_TRAFFIC: Words = Words {
    noun: "other traffic",
    subject: |_| "other traffic on the path".to_owned(),
    claim: |_| "limited by other traffic on the path".to_owned(),
    figures: first_line,
    reason: |_, _, _| {
        plain("others use the same connection", "It is faster when they do not, or on a faster connection.")
    },
};

pub(super) const ECN_MARKS: Words = Words {
    noun: "congestion marks (ECN)",
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

pub(super) const POLICER: Words = Words {
    noun: "the policer",
    subject: |_| "a policer on the path".to_owned(),
    claim: |finding| match finding.remedy.as_ref().and_then(|remedy| remedy.value) {
        Some(bps) => format!("limited by a policer on the path, at {} of goodput", rate(bps)),
        None => "limited by a policer on the path".to_owned(),
    },
    figures: |_| Some("it drops what exceeds its rate, and has no queue".to_owned()),
    reason: |_, _, _| {
        plain(
            "something on the path discards whatever exceeds a certain rate",
            "Ask the provider which rate was agreed, or send no faster than that.",
        )
    },
};

pub(super) const REVERSE_PATH: Words = Words {
    noun: "the way back",
    subject: |_| "the way back".to_owned(),
    claim: |_| "limited by the way back".to_owned(),
    figures: |finding| match finding.observed(Fact::ProbesLost) {
        Some(lost) => Some(format!("it loses acknowledgements, as {} of the probes", percent(lost.value))),
        None => first_line(finding),
    },
    reason: |_, from, to| {
        Some((
            format!("the answers of {to} get lost on their way back"),
            format!("Look for a congested or faulty link on the way from {to} to {from}."),
        ))
    },
};

pub(super) const MTU_BLACK_HOLE: Words = Words {
    noun: "the MTU black hole",
    subject: |_| "an MTU black hole on the path".to_owned(),
    claim: |_| "nothing came through".to_owned(),
    figures: |finding| {
        let FullSegmentsLost { segment } = finding.figures()?;
        Some(format!("packets of full size ({:.0} B of payload) vanish, and small ones arrive", segment.0))
    },
    reason: |_, from, _| {
        Some((
            "large packets vanish on the way, and small ones come through".to_owned(),
            format!("A smaller MTU on {from}, or a tunnel that reports its own, cures it."),
        ))
    },
};

pub(super) const PATH_CHANGED: Words = Words {
    noun: "the change of the path",
    subject: |_| "a path that changed during the test".to_owned(),
    claim: |_| "the path changed during the test".to_owned(),
    figures: |finding| match finding.observed(Fact::Gap) {
        Some(gap) => {
            let share = finding.observed(Fact::GapShare)?;
            let (gap, share) = (time(nanos(gap.value)), percent(share.value));
            Some(format!("nothing came through for {gap}, {share} of the time"))
        }
        None => first_line(finding),
    },
    reason: |_, _, _| plain("the path changed while it was measured", "Measure again, and for longer."),
};
