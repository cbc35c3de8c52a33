//! The length of a path, as its probes show it.

use bdp_model::probes::hops::{AnswerKind, HopProbe};

/// The hop at which the destination answers.
pub fn destination(probes: &[HopProbe]) -> Option<u8> {
    let arrived = |p: &&HopProbe| p.answer.is_some_and(|answer| answer.kind == AnswerKind::Arrived);
    probes.iter().filter(arrived).map(|p| p.hop).min()
}

/// The last hop that answers.
pub fn end_of(probes: &[HopProbe]) -> Option<u8> {
    destination(probes).or_else(|| probes.iter().filter(|p| p.is_answered()).map(|p| p.hop).max())
}
