//! What the path carries, as far as a transfer shows it.

use bdp_model::experiment::Change;
use bdp_model::facts::Facts;
use bdp_model::finding::Limit;

/// Goodput of more connections / (that of the test x as many more): less, and they share a limit.
const SHARED: f64 = 0.85;

/// What the path carries at the most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity {
    /// What bounds it.
    pub limit: Limit,
    /// Goodput of TCP, bit/s.
    pub goodput_bps: f64,
}

/// The least of what is known: the devices, more connections that had no more together, and a queue that never drained.
pub fn known(facts: &Facts) -> Option<Capacity> {
    let ceiling = facts.ceiling.as_ref().map(|ceiling| (Limit::Ceiling, ceiling.goodput_bps));
    let path = shared(facts).into_iter().chain(full(facts)).map(|bps| (Limit::PathRate, bps));
    let all = ceiling.into_iter().chain(path).filter(|&(_, bps)| bps > 0.0);
    all.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(limit, goodput_bps)| Capacity { limit, goodput_bps })
}

/// Bytes in flight that this takes of each stream in the idle round trip.
pub fn needed_bytes(facts: &Facts) -> Option<f64> {
    bytes_at(facts, known(facts)?.goodput_bps)
}

/// Bytes in flight that so much goodput takes of each stream.
pub fn bytes_at(facts: &Facts, goodput_bps: f64) -> Option<f64> {
    Some(goodput_bps * facts.rtt_idle()?.as_secs_f64() / 8.0 / f64::from(facts.streams()))
}

/// What more connections had together, where that is less than as many times what one had.
fn shared(facts: &Facts) -> Option<f64> {
    let more = facts.experiments.iter().filter(|e| e.host_paused_ns.is_none()).filter_map(|e| {
        let Change::Streams { streams } = e.change else { return None };
        let each_alone = facts.goodput_bps * f64::from(streams) / f64::from(facts.streams());
        (e.goodput_bps < SHARED * each_alone).then_some(e.goodput_bps)
    });
    more.max_by(f64::total_cmp).map(|bps| bps.max(facts.goodput_bps))
}

/// What came through a bottleneck that was never idle: the kernel's highest rate of delivery where it sampled one, which leaves out what the start took.
fn full(facts: &Facts) -> Option<f64> {
    let is_own = facts.standing_queue().is_some_and(|queue| queue.own_way) && facts.queue_never_drains();
    let peak = facts.delivery_peak_bps().map_or(0.0, |bps| bps * f64::from(facts.streams()));
    is_own.then_some(peak.max(facts.goodput_bps))
}
