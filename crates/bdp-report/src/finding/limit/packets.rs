//! Limits from packet loss, reordering and loss recovery.

use bdp_model::finding::Fact;
use bdp_model::finding::fact::{FullSegmentsLost, Reordered};
use bdp_model::finding::limit::Packets;

use super::super::evidence::nanos;
use super::super::quantity::{part, percent, rate, time};
use super::words::{Words, first_line, plain};

pub const fn words(limit: Packets) -> &'static Words {
    match limit {
        Packets::CongestionLoss => &CONGESTION_LOSS,
        Packets::RandomLoss => &RANDOM_LOSS,
        Packets::SackMissing => &SACK_MISSING,
        Packets::TimestampsMissing => &TIMESTAMPS_MISSING,
        Packets::Policer => &POLICER,
        Packets::Reordering => &REORDERING,
        Packets::ReversePath => &REVERSE_PATH,
        Packets::MtuBlackHole => &MTU_BLACK_HOLE,
        Packets::PathChanged => &PATH_CHANGED,
    }
}

const CONGESTION_LOSS: Words = Words {
    subject: |_| "a full queue on the path".to_owned(),
    claim: |_| "limited by losses of a full queue on the path".to_owned(),
    figures: first_line,
    reason: |_, _, _| {
        plain(
            "the slowest part of the path is full and discards what does not fit",
            "Only a faster path carries more.",
        )
    },
};

const RANDOM_LOSS: Words = Words {
    subject: |_| "losses that the load does not cause".to_owned(),
    claim: |_| "limited by losses that the load does not cause".to_owned(),
    figures: |finding| {
        let of = |fact| finding.observed(fact);
        let losses = of(Fact::LossesAtAnyRate).or(of(Fact::LossesWhilePaced))?;
        let congestion = losses.name.as_deref().unwrap_or("TCP");
        let lost = part(of(Fact::RetransmittedShare)?.value);
        Some(format!("{lost} of the segments, which keep {congestion}'s window small"))
    },
    reason: |_, _, _| {
        plain(
            "data is lost on the way although the path is not full",
            "Look for a faulty cable, port or radio link between the two.",
        )
    },
};

const SACK_MISSING: Words = Words {
    subject: |_| "loss recovery without SACK".to_owned(),
    claim: |_| "limited by loss recovery without SACK".to_owned(),
    figures: first_line,
    reason: |_, from, to| {
        Some((
            "lost data is retransmitted one packet at a time".to_owned(),
            format!("Selective acknowledgements (SACK) between {from} and {to} make it faster."),
        ))
    },
};

const TIMESTAMPS_MISSING: Words = Words {
    subject: |_| "no TCP timestamps".to_owned(),
    claim: |_| "segments are retransmitted without TCP timestamps".to_owned(),
    figures: first_line,
    reason: |_, from, to| {
        Some((
            "a sender cannot always tell whether lost data was lost".to_owned(),
            format!("TCP timestamps between {from} and {to} show it."),
        ))
    },
};

const POLICER: Words = Words {
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

const REORDERING: Words = Words {
    subject: |_| "reordering on the path".to_owned(),
    claim: |_| "limited by reordering".to_owned(),
    figures: |finding| {
        let seen = finding.observed(Fact::Reordered)?;
        let Reordered { times } = seen.figures()?;
        let congestion = seen.name.as_deref().unwrap_or("TCP");
        Some(format!("segments overtake others {times} times, and {congestion} takes late ones for lost"))
    },
    reason: |_, _, _| {
        plain(
            "data arrives in another order than it was sent in",
            "Look for a path that spreads the packets of one connection over several links.",
        )
    },
};

const REVERSE_PATH: Words = Words {
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

const MTU_BLACK_HOLE: Words = Words {
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

const PATH_CHANGED: Words = Words {
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
