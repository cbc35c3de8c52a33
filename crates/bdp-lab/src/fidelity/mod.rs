//! Fidelity of the emulation, and whether it suffices. Pure: numbers in, verdict out.
//!
//! Harm is judged: the share of a flow's goodput that the emulation cost it. The bounds are stated in
//! `docs/fidelity.md`, with their error rates; a case beyond any of them is INVALID and excluded from statistics.

mod allowance;
mod cause;
mod harm;
mod loss;
mod observation;

use bdp_model::record::breach::Breach;
use bdp_model::record::{DirectionFidelity, Fidelity, FlowFidelity, Lateness, LoopFidelity};
use bdp_model::units::Nanos;

pub use allowance::Allowance;
use allowance::part;
pub use harm::harm_at;
pub(crate) use loss::{tolerance as loss_tolerance, tolerance_of};
pub use observation::{DatagramsSeen, FlowSeen, Loop, Observation};

/// Segments per round trip from which bunching matters.
const MANY_SEGMENTS: f64 = 100.0;

/// Bounds of a valid case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Share of a flow's goodput that the emulation may have cost, by its own estimate.
    pub harm: f64,
    /// Bound of the harm if a driver slept that must not. It then delivers packets in bunches, which costs a flow of
    /// many segments per round trip about twice what probes show.
    pub harm_bunched: f64,
    /// Median time of idle probes beyond their links and the usual host overhead, as a fraction of the configured RTT.
    pub idle: f64,
    /// Share of the requested datagrams that a sender may have sent too few or too many.
    pub sent: f64,
    /// Relative difference of the achieved rate from the configured one.
    pub rate: f64,
}

/// By a clock that stands still a packet leaves when due, to the grain of the guest's timers: they are at least a
/// microsecond apart, so a second one may be a microsecond late, and one behind it two; ends read at one moment
/// make up to four of them.
const GRAIN_NS: u64 = 5_000;

impl Default for Bounds {
    fn default() -> Self {
        Self { harm: 0.04, harm_bunched: 0.02, idle: 0.045, sent: 0.02, rate: 0.005 }
    }
}

/// Judges a case.
pub fn judge(seen: Observation, bounds: &Bounds) -> Fidelity {
    let mut broken: Vec<Breach> =
        seen.faults.iter().map(|error| Breach::LinkFailed { error: error.clone() }).collect();
    for one in &seen.loops {
        judge_loop(one, seen.loops.len() > 1, bounds, &mut broken);
    }
    let flows: Vec<FlowFidelity> = seen.flows.iter().map(|flow| harm::of(flow, &seen)).collect();
    for (flow, report) in seen.flows.iter().zip(&flows) {
        judge_flow(flow, report, &seen, bounds, &mut broken);
    }
    for direction in &seen.directions {
        judge_direction(direction, bounds, &mut broken);
        let late_ns = direction.release_lateness_ns.max;
        if seen.still && late_ns > GRAIN_NS {
            broken.push(Breach::ReleasedLate { link: direction.name.clone(), late_ns });
        }
    }
    // The same flow may break the same bound twice.
    broken.dedup();
    let (host_cpu_busy, host_cpu_steal) = seen.host_cpu;
    Fidelity {
        valid: broken.is_empty(),
        // Other programs disturb no clock that stands still.
        cause: if broken.is_empty() || seen.still { Vec::new() } else { cause::of(&seen) },
        broken,
        release_lateness_ns: Lateness::of(&seen.lateness),
        rtt_idle_configured_ns: seen.loops.first().map(|l| l.rtt_configured.as_ns()),
        rtt_idle_measured_ns: seen.loops.first().and_then(|l| l.rtt_idle).map(|(min, _)| min.as_ns()),
        loops: seen.loops.iter().map(Loop::report).collect(),
        flows,
        hosts: seen.watched.hosts,
        others: seen.watched.others,
        directions: seen.directions,
        host_cpu_busy,
        host_cpu_steal,
    }
}

impl Loop {
    fn report(&self) -> LoopFidelity {
        LoopFidelity {
            between: self.ends.clone(),
            configured_ns: self.rtt_configured.as_ns(),
            idle: self.idle,
            loaded: self.loaded,
        }
    }

    /// Bound of the median time that idle probes may take beyond their links.
    pub fn idle_bound(&self, bounds: &Bounds) -> Nanos {
        self.allowance().idle + part(self.rtt_configured, bounds.idle)
    }

    /// Bound of the shortest time that an idle probe may take beyond its links: models use its round trip.
    fn least_bound(&self) -> Nanos {
        Nanos::micros(200 + 50 * self.links.max(1) as u64) + part(self.rtt_configured, 0.01)
    }
}

fn judge_loop(one: &Loop, several: bool, bounds: &Bounds, broken: &mut Vec<Breach>) {
    let configured = one.rtt_configured;
    let (between, configured_ns) = (several.then(|| one.ends.clone()), configured.as_ns());
    let Some((least, median)) = one.rtt_idle else {
        if one.probed_idle && one.loaded.is_none() {
            broken.push(Breach::NoAnswer { between });
        }
        return;
    };
    if least < one.rtt_least.saturating_sub(Nanos::micros(1)) {
        broken.push(Breach::IdleBelow {
            between: between.clone(),
            idle_ns: least.as_ns(),
            configured_ns: one.rtt_least.as_ns(),
        });
    }
    let most = configured + one.least_bound();
    if !one.jitter && least > most {
        let (excess_ns, bound_ns) = ((least - configured).as_ns(), one.least_bound().as_ns());
        broken.push(Breach::IdleAbove { between, excess_ns, configured_ns, bound_ns });
        return;
    }
    // If the links were not observed, as for connections, the whole round trip counts.
    let excess = match one.idle {
        Some(idle) => Nanos(idle.p50_ns),
        None if one.jitter => return,
        None => median.saturating_sub(configured),
    };
    let bound = one.idle_bound(bounds);
    if excess > bound {
        let (excess_ns, bound_ns) = (excess.as_ns(), bound.as_ns());
        broken.push(Breach::IdleBeyond { between, excess_ns, configured_ns, bound_ns });
    }
}

fn judge_flow(
    flow: &FlowSeen,
    report: &FlowFidelity,
    seen: &Observation,
    bounds: &Bounds,
    broken: &mut Vec<Breach>,
) {
    let name = || flow.name.clone();
    // With few datagrams the last one exceeds the bound: it may fall inside or outside the time.
    if let Some(DatagramsSeen { sent_of_asked, one, .. }) = flow.datagrams
        && (sent_of_asked - 1.0).abs() > bounds.sent.max(1.01 * one)
    {
        broken.push(Breach::SentOfAsked { flow: name(), share: sent_of_asked, bound: bounds.sent });
        return;
    }
    // If a link was busy except for this little, no more can have been lost.
    let busy = flow.busy.is_some_and(|busy| 1.0 - busy <= bounds.harm);
    let bunched = seen.slept && flow.segments >= MANY_SEGMENTS && !busy;
    let bound = if bunched { bounds.harm_bunched } else { bounds.harm };
    if report.harm > bound {
        let (seen_by, beyond_ns, places) = harm::explain(flow, report, seen);
        broken.push(Breach::Harm { flow: name(), harm: report.harm, bound, seen_by, beyond_ns, places });
    }
}

fn judge_direction(direction: &DirectionFidelity, bounds: &Bounds, broken: &mut Vec<Breach>) {
    let link = || direction.name.clone();
    if !direction.conserved {
        broken.push(Breach::NotConserved { link: link() });
    }
    let of_devices: u64 =
        ["device_in", "device_out"].iter().filter_map(|cause| direction.dropped.get(*cause)).sum();
    if of_devices > 0 {
        broken.push(Breach::DeviceDrops { link: link(), packets: of_devices });
    }
    if let (Some(configured), Some(achieved)) = (direction.rate_configured_bps, direction.rate_achieved_bps) {
        let off = achieved / configured as f64 - 1.0;
        if off.abs() > bounds.rate {
            broken.push(Breach::Rate { link: link(), off, bound: bounds.rate });
        }
    }
    let (configured, achieved) = (direction.loss_configured, direction.loss_achieved);
    if (achieved - configured).abs() > direction.loss_tolerance {
        broken.push(Breach::Loss { link: link(), achieved, configured });
    }
}

#[cfg(test)]
mod tests;
