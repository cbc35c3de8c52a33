//! How the round trips of a case are probed: interval, duration, packet size, and the expected round trip of idle
//! links.

use std::ops::Range;

use bdp_model::case::route::Route;
use bdp_model::case::{CaseFlow, CaseSpec, ProbeKind, segment};
use bdp_model::link::Loss;
use bdp_model::probes::PairProbes;
use bdp_model::record::RttReport;
use bdp_model::tuning::setting::Setting;
use bdp_model::units::{Nanos, Rate};
use bdp_wire::control::Probed;

use crate::case::pair::Pair;

/// Probe interval under load: 10 ms on fast lossless links, otherwise 50 ms.
const LOADED_PROBE_INTERVALS: [Nanos; 2] = [Nanos::millis(10), Nanos::millis(50)];
/// Probes while the flows run, at most, by the virtual clock: there they show queues alone, and not how well the emulator keeps up.
const VIRTUAL_PROBES: u64 = 300;
/// Links with this rate or more carry a hundred probes a second, 82 bytes each on Ethernet, in 0.2 % of their time.
const EASY_RATE: Rate = Rate::mbps(33);
/// Interval of probes before the flows start.
pub(crate) const IDLE_PROBE_INTERVAL: Nanos = Nanos::millis(20);
/// UDP header and payload of a probe.
const PROBE_UDP_BYTES: u64 = 8 + bdp_wire::probe::PROBE_BYTES as u64;
/// All probes of a probe flow.
const ALWAYS: Range<u64> = 0..u64::MAX;

/// Probes between two hosts.
pub(crate) struct PairProbed {
    pub(crate) pair: Pair,
    /// Each probe before the flows started.
    pub(crate) idle: Probed,
    /// Each probe while flows ran.
    pub(crate) loaded: Probed,
}

impl PairProbed {
    /// Returns round trips before the flows, and under load: those of probes sent while one of the flows counted.
    pub(crate) fn rtt_ns(&self, case: &CaseSpec, counted: &Range<u64>) -> RttReport {
        let patience = probe_patience(case);
        RttReport::of_probes(self.idle.outcomes(&ALWAYS, patience), self.loaded.outcomes(counted, patience))
    }

    /// Returns each probe with its time since the flows could start, by the monotonic clock.
    pub(crate) fn series(&self, case: &CaseSpec, begun_at_ns: u64) -> PairProbes {
        let patience = probe_patience(case);
        let first = self.idle.probes.first().map_or(0, |probe| probe.due_at_ns);
        PairProbes {
            from: self.pair.from.clone(),
            to: self.pair.to.clone(),
            idle: self.idle.series(first, patience),
            loaded: self.loaded.series(begun_at_ns, patience),
        }
    }
}

/// When the probes between a pair of hosts are due, if this many pairs are probed concurrently: the initial offset,
/// and the times since then. On idle links each pair starts in its own part of the interval, so that no probe queues
/// behind another's; during flows each is due at a random time in its interval, so that no period of the flows stays
/// in step with it.
pub(crate) struct PairTimes {
    pub(crate) offset: Nanos,
    pub(crate) jitter: Nanos,
    pub(crate) seed: u64,
}

impl PairTimes {
    /// Returns the times for idle links.
    pub(crate) fn idle(case: &CaseSpec, pair: usize, pairs: usize) -> Self {
        let turn = IDLE_PROBE_INTERVAL.as_ns() / pairs.max(1) as u64;
        Self { offset: Nanos(turn * pair as u64), jitter: Nanos(turn / 2), seed: seed(case, 2 * pair) }
    }

    /// Returns the times during flows.
    pub(crate) fn loaded(case: &CaseSpec, pair: usize, pairs: usize) -> Self {
        let interval = loaded_probe_interval(case);
        let offset = Nanos(interval.as_ns() * pair as u64 / pairs.max(1) as u64);
        Self { offset, jitter: interval, seed: seed(case, 2 * pair + 1) }
    }
}

fn seed(case: &CaseSpec, stream: usize) -> u64 {
    case.seed ^ (stream as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns how long to wait for a probe's answer; a lost one is awaited that long. A connection is given time for two
/// more SYNs, which Linux sends after one second and after three.
pub(crate) fn probe_patience(case: &CaseSpec) -> Nanos {
    let longest = Pair::all(case).iter().filter_map(|pair| configured_rtt(case, pair)).max();
    let rtt = longest.unwrap_or_default();
    let more = match case.probe {
        ProbeKind::Udp => Nanos::secs(2),
        ProbeKind::TcpConnect => Nanos::secs(5),
    };
    rtt + rtt + more
}

/// Returns the interval of probes while the flows of a case run.
pub(crate) fn loaded_probe_interval(case: &CaseSpec) -> Nanos {
    let mut directions = case.links.iter().flat_map(|link| [&link.config.forward, &link.config.reverse]);
    // Losses that count packets would hit probes in place of segments.
    let easy = directions
        .all(|d| d.rate.is_none_or(|rate| rate >= EASY_RATE) && matches!(d.loss, Loss::None) && !d.changes());
    // A connection costs both hosts more than a datagram.
    let interval = LOADED_PROBE_INTERVALS[usize::from(!easy || case.probe != ProbeKind::Udp)];
    if case.clock.is_real() {
        return interval;
    }
    let last_end = case.flows.iter().map(|f| f.span().end).max().unwrap_or_default();
    interval.max(Nanos(last_end.as_ns() / VIRTUAL_PROBES))
}

/// Returns the round trip of a probe on idle links: both delays and every serialisation.
pub(crate) fn configured_rtt(case: &CaseSpec, pair: &Pair) -> Option<Nanos> {
    let flow = case.flows.iter().find(|flow| pair.joins(flow))?;
    let (there, back) = probe_bytes(case, flow);
    Some(Route::between(case, &pair.from, &pair.to)?.round_trip(there, back))
}

/// Returns the smallest round trip that jitter allows.
pub(crate) fn least_rtt(case: &CaseSpec, pair: &Pair) -> Option<Nanos> {
    let flow = case.flows.iter().find(|flow| pair.joins(flow))?;
    let (there, back) = probe_bytes(case, flow);
    Some(Route::between(case, &pair.from, &pair.to)?.least_round_trip(there, back))
}

/// Returns the bytes of a probe between a flow's hosts and of its answer, as IP packets.
pub(crate) fn probe_bytes(case: &CaseSpec, flow: &CaseFlow) -> (u64, u64) {
    let ip = segment::ip_header_bytes(case.family);
    if case.probe == ProbeKind::Udp {
        return (ip + PROBE_UDP_BYTES, ip + PROBE_UDP_BYTES);
    }
    // A SYN has the options that its sender enables, its answer those that both enable. Linux puts the SACK-permitted
    // option into the padding of timestamps, if there are any; the segment size takes 4 bytes, timestamps 12, the
    // scale and SACK 4 each.
    let options = |on: &dyn Fn(Setting) -> bool| {
        let sack = on(Setting::TcpSack) && !on(Setting::TcpTimestamps);
        4 + if on(Setting::TcpTimestamps) { 12 } else { 0 }
            + if on(Setting::TcpWindowScaling) { 4 } else { 0 }
            + if sack { 4 } else { 0 }
    };
    let both = ip + 20 + options(&|extension| segment::both_use(case, flow, extension));
    (both, both)
}
