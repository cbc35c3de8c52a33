//! Chooses the experiment that decides between limits that a test leaves open. Its result is evidence for [`crate::explain`].

use bdp_model::facts::Facts;
use bdp_model::finding::caveat::Caveat;
use bdp_model::finding::limit::Consequence;
use bdp_model::finding::{Confidence, Finding, Limit};
use bdp_model::measurement::experiment::{Change, DATAGRAM_BYTES, Experiment, Order};
use bdp_model::measurement::{Direction, DirectionResult, Measurement};
use bdp_model::units::{ByteCount, Nanos};

use crate::rule::part;

/// After a shorter test an experiment would be as short, too short to settle.
const SHORTEST_TEST: Nanos = Nanos::secs(2);
/// Longest and shortest duration of an experiment.
const LONGEST: Nanos = Nanos::secs(3);
const SHORTEST: Nanos = Nanos::secs(1);
/// Round trips that it takes to settle, and that it needs.
const SETTLES: u64 = 8;
const ROUND_TRIPS: u64 = 24;
/// Losses that an experiment must expect from those of the test; with fewer, seeing none may be chance.
const LOSSES_EXPECTED: f64 = 3.0;
/// Rate of a paced experiment / goodput of the test: below any queue or token bucket that the test met.
const PACED: f64 = 0.8;
/// Payload of a burst / bytes that the path holds at the highest known rate, and the maximum number of datagrams.
const BURST: f64 = 0.75;
const BURST_LEAST: f64 = 20.0;
const BURST_MOST: f64 = 4000.0;
/// Rate of a burst / that rate, and the largest rate: a server may allow no more.
const BURST_RATE: f64 = 8.0;
const BURST_RATE_MOST: f64 = 1e9;
/// Round trip added by more connections / the smallest round trip: from here on the queue is not short.
const SHORT: f64 = 0.18;
/// Smallest share that they retransmit if a policer drops the excess.
const DROPPED: f64 = 0.003;
/// Factor of the number of connections that shows whether the limit applies per connection; a test with more than the second number is hardly limited
/// by it.
const MORE: u32 = 4;
const STREAMS_FEW: u32 = 4;

/// Returns the next experiment of a direction; `None` if its limit is clear, or no experiment would decide it.
pub fn next(measurement: &Measurement, direction: Direction) -> Option<Order> {
    let d = measurement.directions.iter().find(|d| d.direction == direction)?;
    let facts = Facts::measured(measurement, direction)?;
    let is_over_tcp = |caveat: &Caveat| matches!(caveat, Caveat::ProbesOverTcp { .. });
    let datagrams_pass = !measurement.caveats.iter().any(is_over_tcp);
    let findings = allows(measurement, d, &facts).then(|| crate::explain(&facts))?;
    choose(direction, &facts, findings.first()?, datagrams_pass)
}

/// Whether experiments may replace a first finding instead of confirming it.
pub fn may_replace(limit: Limit) -> bool {
    limit.has(Consequence::Replaceable)
}

/// Chooses the most decisive experiment if the first finding leaves something open. `datagrams_pass`: whether UDP crosses the path.
pub fn choose(direction: Direction, facts: &Facts, first: &Finding, datagrams_pass: bool) -> Option<Order> {
    if !is_open(facts, first) || !part::may_be_path(facts) {
        return None;
    }
    let (change, needed) = change(facts, first.limit, datagrams_pass)?;
    let least = facts.rtt_least()?;
    // A burst is over after a round trip.
    let settles = if let Change::Burst { .. } = change { 0 } else { ROUND_TRIPS };
    let duration = needed.max(Nanos(settles * least.0)).max(SHORTEST);
    let test = Nanos(facts.duration_ns.saturating_sub(facts.omit_ns));
    if duration > LONGEST || duration > test {
        return None;
    }
    let omit = match change {
        Change::Paced { .. } | Change::Burst { .. } => Nanos::ZERO,
        Change::Streams { .. } => Nanos(SETTLES * least.0).max(Nanos(duration.0 / 4)),
    };
    let bytes = match change {
        Change::Burst { datagrams, .. } => u64::from(datagrams) * u64::from(DATAGRAM_BYTES),
        Change::Paced { .. } | Change::Streams { .. } => facts.bytes,
    };
    Some(Order {
        direction,
        change,
        duration,
        omit,
        bytes: ByteCount::bytes(bytes.min(facts.bytes)),
        between: between(first.limit, change),
    })
}

/// Whether the test was unlimited TCP, complete, one direction at a time.
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

/// Whether a finding leaves open what an experiment can decide: a few losses at one rate, or those of a model-based sender (short queue or policer).
fn is_open(facts: &Facts, finding: &Finding) -> bool {
    let was_burst = facts.experiments.iter().any(|e| matches!(e.change, Change::Burst { .. }));
    let alike = match finding.limit {
        Limit::ShallowQueue => !was_burst,
        Limit::Policer => facts.is_paced() && facts.experiments.is_empty(),
        _ => false,
    };
    finding.limit.has(Consequence::Experiment) && (alike || finding.confidence < Confidence::High)
}

/// The next change, and how long it takes until enough losses can be expected. More connections decide most.
fn change(facts: &Facts, first: Limit, datagrams_pass: bool) -> Option<(Change, Nanos)> {
    let had = |is_it: fn(&Change) -> bool| facts.experiments.iter().any(|e| is_it(&e.change));
    if !had(|change| matches!(change, Change::Streams { .. })) {
        // Without the segment size a queue is not seen.
        let more = facts.mss_bytes.is_some() && facts.streams() <= STREAMS_FEW;
        return more.then(|| (Change::Streams { streams: MORE * facts.streams() }, Nanos::secs(2)));
    }
    if datagrams_pass && !had(|change| matches!(change, Change::Burst { .. })) && is_of_bursts(facts, first) {
        return Some((burst(facts)?, SHORTEST));
    }
    // Losses do not decide the rate of a model-based sender.
    if had(|change| matches!(change, Change::Paced { .. })) || facts.is_paced() {
        return None;
    }
    let settled = facts.loss_picture().map_or(0, |picture| picture.settled);
    let seconds = facts.duration_ns as f64 / 1e9;
    let needed = LOSSES_EXPECTED * seconds / (PACED * settled.max(1) as f64);
    let paced = Change::Paced { rate_bps: PACED * facts.goodput_bps };
    (settled > 0 && needed <= LONGEST.as_secs_f64()).then(|| (paced, Nanos::from_secs_f64(needed)))
}

/// Whether queue depth or the narrowest link's rate decides about a limit, and more connections have shown neither because they built no long queue.
fn is_of_bursts(facts: &Facts, first: Limit) -> bool {
    let is_more = |e: &&Experiment| matches!(e.change, Change::Streams { .. });
    let Some((more, least)) = facts.experiments.iter().find(is_more).zip(facts.rtt_least()) else {
        return false;
    };
    let lost = facts.mss_bytes.and_then(|mss| more.retransmitted_share(mss)).unwrap_or(0.0);
    let of_queue = matches!(first, Limit::Unknown | Limit::RandomLoss | Limit::ShallowQueue | Limit::Policer);
    // Other traffic has a queue before the test.
    let others = facts.rtt_ns.idle.filter(|idle| idle.received > 0);
    let others = others.map_or(0, |idle| idle.p50.saturating_sub(least.as_ns()));
    let is_short =
        more.rtt_added_ns.is_none_or(|added| ((added + others) as f64) < SHORT * least.as_ns() as f64);
    is_short && (of_queue || first == Limit::PathRate && lost >= DROPPED)
}

/// A burst that fills three quarters of the path at the highest known rate.
fn burst(facts: &Facts) -> Option<Change> {
    let known = facts.experiments.iter().map(|e| e.goodput_bps).fold(facts.goodput_bps, f64::max);
    let bytes = BURST * known * facts.rtt_least()?.as_secs_f64() / 8.0;
    let datagrams = (bytes / f64::from(DATAGRAM_BYTES)).ceil().clamp(BURST_LEAST, BURST_MOST) as u32;
    Some(Change::Burst { datagrams, rate_bps: (BURST_RATE * known).min(BURST_RATE_MOST) })
}

fn between(said: Limit, change: Change) -> Vec<Limit> {
    let decides: &[Limit] = match change {
        Change::Paced { .. } => &[Limit::RandomLoss, Limit::ShallowQueue],
        Change::Burst { .. } => &[Limit::ShallowQueue, Limit::RandomLoss, Limit::Policer],
        Change::Streams { .. } => &[Limit::PathRate, Limit::Policer, Limit::RandomLoss],
    };
    let said = Some(said).filter(|said| *said != Limit::Unknown && !decides.contains(said));
    said.into_iter().chain(decides.iter().copied()).collect()
}
