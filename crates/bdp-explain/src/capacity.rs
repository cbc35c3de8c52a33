//! The capacity of the path, as far as a transfer shows it.

use bdp_model::facts::Facts;
use bdp_model::finding::Limit;
use bdp_model::measurement::experiment::Change;

/// Goodput of more connections / (the test's goodput x the factor): below this they share a limit.
const SHARED: f64 = 0.85;

/// The most that the path can carry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity {
    /// The limit that bounds it.
    pub limit: Limit,
    /// TCP goodput, bit/s.
    pub goodput_bps: f64,
}

/// The smallest known bound: the devices, more connections that gained nothing together, or a queue that never drained.
pub fn known(facts: &Facts) -> Option<Capacity> {
    let ceiling = facts.ceiling.as_ref().map(|ceiling| (Limit::Ceiling, ceiling.goodput_bps));
    let path = shared(facts).into_iter().chain(full(facts)).map(|bps| (Limit::PathRate, bps));
    let all = ceiling.into_iter().chain(path).filter(|&(_, bps)| bps > 0.0);
    all.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(limit, goodput_bps)| Capacity { limit, goodput_bps })
}

/// Bytes in flight that each stream needs for it with the idle round trip.
pub fn needed_bytes(facts: &Facts) -> Option<f64> {
    bytes_at(facts, known(facts)?.goodput_bps)
}

/// Bytes in flight that each stream needs for this goodput.
pub fn bytes_at(facts: &Facts, goodput_bps: f64) -> Option<f64> {
    Some(goodput_bps * facts.rtt_idle()?.as_secs_f64() / 8.0 / f64::from(facts.streams()))
}

/// Goodput of more connections, if they gained less than in proportion.
fn shared(facts: &Facts) -> Option<f64> {
    let more = facts.experiments.iter().filter(|e| e.host_paused_ns.is_none()).filter_map(|e| {
        let Change::Streams { streams } = e.change else { return None };
        let each_alone = facts.goodput_bps * f64::from(streams) / f64::from(facts.streams());
        (e.goodput_bps < SHARED * each_alone).then_some(e.goodput_bps)
    });
    more.max_by(f64::total_cmp).map(|bps| bps.max(facts.goodput_bps))
}

/// Goodput through a bottleneck that was never idle: the kernel's highest delivery rate sample if there is one, which excludes the start.
fn full(facts: &Facts) -> Option<f64> {
    let is_own = facts.standing_queue().is_some_and(|queue| queue.own_way) && facts.queue_never_drains();
    let peak = facts.delivery_peak_bps().map_or(0.0, |bps| bps * f64::from(facts.streams()));
    is_own.then_some(peak.max(facts.goodput_bps))
}
