//! A transfer in a measurement or the lab: what took most of its time is the limit. The rules of that part alone give its cause.

use bdp_model::facts::{Facts, Waits};
use bdp_model::finding::threshold::EXCEEDED;
use bdp_model::finding::{Confidence, Finding, Limit};

use crate::next;
use crate::rule::{self, beyond_doubt, black_hole, part, paused, unknown};

/// The limit first, then further findings.
pub fn explain(facts: &Facts) -> Vec<Finding> {
    let (waits, share) = part::largest(facts).unwrap_or((Waits::Unknown, 1.0));
    // If nothing of full size gets through, anything full is full because of that.
    let binding = black_hole::judge(facts).or_else(|| rule::cause(facts, waits));
    let binding = binding.unwrap_or_else(|| uncaused(facts, waits, share));
    let binding = match binding.limit {
        Limit::Unknown => program_that_pauses(facts, waits).unwrap_or(binding),
        _ => binding,
    };
    let limit = binding.limit;
    let beside = rule::BESIDE.iter().filter_map(|rule| rule(facts)).filter(|finding| finding.limit != limit);
    let programs = programs_beside(facts, waits, GOOD_PART).filter(|finding| finding.limit != limit);
    let binding = next::known(facts, beyond_doubt::temper(facts, binding));
    let all = std::iter::once(binding).chain(beside).chain(programs);
    all.map(|finding| paused::temper(facts, finding)).collect()
}

/// Share of a program's pauses that is worth reporting.
const GOOD_PART: f64 = 0.1;

/// If the limit of the rest is unknown, the program that pauses for a good part of the time: after each pause a window starts again.
fn program_that_pauses(facts: &Facts, largest: Waits) -> Option<Finding> {
    let program = programs_beside(facts, largest, part::PAUSES).next()?;
    Some(Finding { confidence: Confidence::Low, ..program })
}

/// Programs that pause for a part of the time, in addition to a larger part.
fn programs_beside(facts: &Facts, largest: Waits, least: f64) -> impl Iterator<Item = Finding> {
    let parts = facts.time_counted().map(|spent| spent.parts()).unwrap_or_default();
    let is_one = move |part: &(Waits, f64)| {
        matches!(part.0, Waits::Writer | Waits::Reader) && part.0 != largest && part.1 >= least
    };
    parts.into_iter().filter(is_one).filter_map(|(waits, _)| rule::cause(facts, waits))
}

/// A part of the time without a rule for its cause. It is the first stream's, whose windows the rules of the part exclude: they hold back less than
/// was measured, and more is no evidence.
fn uncaused(facts: &Facts, waits: Waits, share: f64) -> Finding {
    let carries = match waits {
        Waits::ReceiveWindow => facts.window_bound().map(|bound| bound.bps),
        Waits::SendBuffer => facts.window_use().and_then(|window| facts.rate_bps(window.in_flight_bytes)),
        _ => Some(f64::INFINITY),
    };
    if facts.streams() > 1 || carries.is_none_or(|bps| facts.goodput_bps > EXCEEDED * bps) {
        return unknown::judge(facts);
    }
    let finding = part::plain(facts, waits, share);
    match carries {
        Some(bps) if bps.is_finite() => Finding { confidence: Confidence::Low, ..finding },
        _ => finding,
    }
}
