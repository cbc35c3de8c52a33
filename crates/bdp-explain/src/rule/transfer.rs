//! A transfer, of a measurement or of the lab: what took most of its time is what limits it. Which cause that has is asked of the rules of that part alone.

use bdp_model::facts::{Facts, Waits};
use bdp_model::finding::{Confidence, Finding, Limit};
use bdp_model::threshold::EXCEEDED;

use crate::next;
use crate::rule::beside::BESIDE;
use crate::rule::{self, beyond_doubt, black_hole, part, paused, unknown};

/// What limits it, first, and what stands beside that.
pub fn explain(facts: &Facts) -> Vec<Finding> {
    let (waits, share) = part::largest(facts).unwrap_or((Waits::Unknown, 1.0));
    // Where nothing of full size comes through, whatever is full is full of that.
    let binding = black_hole::judge(facts).or_else(|| rule::cause(facts, waits));
    let binding = binding.unwrap_or_else(|| uncaused(facts, waits, share));
    let binding = match binding.limit {
        Limit::Unknown => program_that_pauses(facts, waits).unwrap_or(binding),
        _ => binding,
    };
    let limit = binding.limit;
    let beside = BESIDE.iter().filter_map(|rule| rule(facts)).filter(|finding| finding.limit != limit);
    let programs = programs_beside(facts, waits, GOOD_PART).filter(|finding| finding.limit != limit);
    let binding = next::known(facts, beyond_doubt::temper(facts, binding));
    let all = std::iter::once(binding).chain(beside).chain(programs);
    all.map(|finding| paused::temper(facts, finding)).collect()
}

/// Share of the time in which a program pauses, that is worth a word.
const GOOD_PART: f64 = 0.1;

/// Where nobody knows what holds back the rest of the time, the program that pauses for a good part of it: after each pause a window begins anew.
fn program_that_pauses(facts: &Facts, largest: Waits) -> Option<Finding> {
    let program = programs_beside(facts, largest, part::PAUSES).next()?;
    Some(Finding { confidence: Confidence::Low, ..program })
}

/// Programs that pause for a part of the time, beside what takes more of it.
fn programs_beside(facts: &Facts, largest: Waits, least: f64) -> impl Iterator<Item = Finding> {
    let parts = facts.time_counted().map(|spent| spent.parts()).unwrap_or_default();
    let is_one = move |part: &(Waits, f64)| {
        matches!(part.0, Waits::Writer | Waits::Reader) && part.0 != largest && part.1 >= least
    };
    parts.into_iter().filter(is_one).filter_map(|(waits, _)| rule::cause(facts, waits))
}

/// A part of the time whose cause no rule sees. It is that of the first stream, whose windows the rules of the part deny: they hold back less than was measured,
/// and more is no evidence.
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
