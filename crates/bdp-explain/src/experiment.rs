//! Which experiment decides between limits that a test leaves open. Its result is evidence, which [`crate::explain`] reads.

use bdp_model::experiment::{Change, Order};
use bdp_model::facts::Facts;
use bdp_model::finding::{Confidence, Finding, Limit};
use bdp_model::measurement::{Direction, DirectionResult, Measurement};
use bdp_model::units::{ByteCount, Nanos};

use crate::rule::part;

/// After a shorter test an experiment would be as short, and nothing settles in that time.
const SHORTEST_TEST: Nanos = Nanos::secs(2);
/// What an experiment takes at most, and at least.
const LONGEST: Nanos = Nanos::secs(3);
const SHORTEST: Nanos = Nanos::secs(1);
/// Round trips that it takes to settle, and how many it needs.
const SETTLES: u64 = 8;
const ROUND_TRIPS: u64 = 24;
/// Losses that an experiment must expect by those of the test; with fewer, none may be chance.
const LOSSES_EXPECTED: f64 = 3.0;
/// The rate of a paced experiment / goodput of the test: below any queue or bucket that the test met.
const PACED: f64 = 0.8;
/// So many times as many connections show whether the limit belongs to each connection; a test with more than so many is hardly limited by their number.
const MORE: u32 = 4;
const STREAMS_FEW: u32 = 4;

/// The next experiment of a direction, `None` if it is clear what limits it, or no experiment would decide it.
pub fn next(measurement: &Measurement, direction: Direction) -> Option<Order> {
    let d = measurement.directions.iter().find(|d| d.direction == direction)?;
    let facts = Facts::measured(measurement, direction)?;
    if allows(measurement, d, &facts) { choose(direction, &facts) } else { None }
}

/// Whether experiments may replace a first finding by another one, rather than confirm it.
pub const fn may_replace(limit: Limit) -> bool {
    matches!(
        limit,
        Limit::Unknown
            | Limit::RandomLoss
            | Limit::CongestionLoss
            | Limit::ShallowQueue
            | Limit::PathChanged
    )
}

/// The experiment that decides most, if the test leaves something open.
pub fn choose(direction: Direction, facts: &Facts) -> Option<Order> {
    let findings = crate::explain(facts);
    let first = findings.first().filter(|first| is_open(facts, first))?;
    if !part::may_be_path(facts) {
        return None;
    }
    let (change, needed) = change(facts)?;
    let least = facts.rtt_least()?;
    let duration = needed.max(Nanos(ROUND_TRIPS * least.0)).max(SHORTEST);
    let test = Nanos(facts.duration_ns.saturating_sub(facts.omit_ns));
    if duration > LONGEST || duration > test {
        return None;
    }
    let omit = match change {
        Change::Paced { .. } => Nanos::ZERO,
        Change::Streams { .. } => Nanos(SETTLES * least.0).max(Nanos(duration.0 / 4)),
    };
    Some(Order {
        direction,
        change,
        duration,
        omit,
        bytes: ByteCount::bytes(facts.bytes),
        between: between(first.limit, change),
    })
}

/// Whether the test was TCP as fast as possible, complete, one direction at a time.
fn allows(measurement: &Measurement, d: &DirectionResult, facts: &Facts) -> bool {
    let request = &measurement.request;
    let is_bulk = d.udp.is_none()
        && facts.asked_bps().is_none()
        && facts.asked.application.is_greedy()
        && !request.responsiveness
        && request.url.is_none();
    let is_whole = d.ended.is_complete() && measurement.error.is_none();
    is_bulk && is_whole && !facts.both_directions && !facts.through_tunnel && d.duration_ns >= SHORTEST_TEST.0
}

/// Whether a finding leaves open what an experiment can decide. With a sender by a model a short queue and a policer cause the same losses.
fn is_open(facts: &Facts, finding: &Finding) -> bool {
    let alike = facts.is_paced() && matches!(finding.limit, Limit::ShallowQueue | Limit::Policer);
    let of_path = matches!(
        finding.limit,
        Limit::Unknown
            | Limit::RandomLoss
            | Limit::CongestionLoss
            | Limit::ShallowQueue
            | Limit::Policer
            | Limit::Reordering
            | Limit::PathRate
            | Limit::CrossTraffic
            | Limit::PathChanged
            | Limit::SackMissing
    );
    of_path && (alike || finding.confidence < Confidence::High)
}

/// What to change next, and how long that takes until enough losses can be expected. More connections decide most.
fn change(facts: &Facts) -> Option<(Change, Nanos)> {
    let was_paced = facts.experiments.iter().any(|e| matches!(e.change, Change::Paced { .. }));
    let had_more = facts.experiments.iter().any(|e| matches!(e.change, Change::Streams { .. }));
    if !had_more {
        // Without the size of its segments a queue is not seen.
        let more = facts.mss_bytes.is_some() && facts.streams() <= STREAMS_FEW;
        return more.then(|| (Change::Streams { streams: MORE * facts.streams() }, Nanos::secs(2)));
    }
    // Losses do not decide the rate of a sender by a model.
    if was_paced || facts.is_paced() {
        return None;
    }
    let settled = facts.loss_picture().map_or(0, |picture| picture.settled);
    let seconds = facts.duration_ns as f64 / 1e9;
    let needed = LOSSES_EXPECTED * seconds / (PACED * settled.max(1) as f64);
    let paced = Change::Paced { rate_bps: PACED * facts.goodput_bps };
    (settled > 0 && needed <= LONGEST.as_secs_f64()).then(|| (paced, Nanos::from_secs_f64(needed)))
}

fn between(said: Limit, change: Change) -> Vec<Limit> {
    let decides: &[Limit] = match change {
        Change::Paced { .. } => &[Limit::RandomLoss, Limit::ShallowQueue],
        Change::Streams { .. } => &[Limit::PathRate, Limit::Policer, Limit::RandomLoss],
    };
    let said = Some(said).filter(|said| *said != Limit::Unknown && !decides.contains(said));
    said.into_iter().chain(decides.iter().copied()).collect()
}
