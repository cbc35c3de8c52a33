//! Losses, reordering, and how a connection recovers from them.

use bdp_model::finding::Fact;
use bdp_model::finding::fact::Reordered;

use super::super::quantity::part;
use super::{Words, first_line, plain};

pub(super) const CONGESTION_LOSS: Words = Words {
    noun: "losses of a full queue",
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

pub(super) const RANDOM_LOSS: Words = Words {
    noun: "random loss",
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

pub(super) const SACK_MISSING: Words = Words {
    noun: "recovery without SACK",
    subject: |_| "loss recovery without SACK".to_owned(),
    claim: |_| "limited by loss recovery without SACK".to_owned(),
    figures: first_line,
    reason: |_, from, to| {
        Some((
            "lost data is sent again one packet at a time".to_owned(),
            format!("Selective acknowledgements (SACK) between {from} and {to} make it faster."),
        ))
    },
};

pub(super) const TIMESTAMPS_MISSING: Words = Words {
    noun: "retransmission without timestamps",
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

pub(super) const REORDERING: Words = Words {
    noun: "reordering",
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
