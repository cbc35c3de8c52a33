//! Data arriving in stretches of time, and whether a queue stood meanwhile.

use bdp_model::finding::threshold::QUEUE_NOISE;
use bdp_model::statistics::percentile;

use super::view::Path;

/// The data that arrived in a stretch of time.
#[derive(Debug, Clone, Copy)]
pub struct Stretch {
    /// Its end since the flow's start, nanoseconds.
    pub until_ns: u64,
    /// Arrival rate on the wire, bit/s.
    pub bps: f64,
    /// Whether a queue stood at both its beginning and its end.
    pub queued: bool,
}

/// The stretches of a transfer.
#[derive(Debug)]
pub struct Delivery {
    /// The stretches in order of time.
    pub stretches: Vec<Stretch>,
    /// Times with the bytes on the wire that had arrived by then.
    pub arrived: Vec<(u64, f64)>,
}

impl Delivery {
    /// Derives it from what the sender's kernel counts as delivered, which gaps in the data do not hold back, or from what was read.
    pub fn of(path: &Path<'_>) -> Self {
        let facts = path.facts;
        let mss = facts.mss_bytes.unwrap_or(u64::from(path.mtu.saturating_sub(52))).max(1) as f64;
        let wire = path.wire_bytes();
        let counted: Vec<(u64, f64, Option<u64>)> = facts
            .sent
            .iter()
            .filter_map(|s| Some((s.at_ns, s.delivered? as f64 * wire, s.srtt_ns)))
            .collect();
        let readings = match counted.len() >= 4 {
            true => counted,
            false => facts.received.iter().map(|s| (s.at_ns, s.bytes as f64 / mss * wire, None)).collect(),
        };
        let bound = path.base_ns + queue_bound_ns(path);
        let probes = if facts.both_directions { path.waits() } else { Vec::new() };
        // With data in both directions the round trip includes the other direction's queue; probes tell the two apart.
        let is_queued = |at: u64, srtt: Option<u64>| match probes.is_empty() {
            true => srtt.is_some_and(|ns| ns > bound),
            false => {
                let next = probes.partition_point(|probe| probe.0 < at);
                let near = &probes[next.saturating_sub(1)..(next + 1).min(probes.len())];
                !near.is_empty() && near.iter().all(|probe| probe.1 > (bound - path.base_ns) as f64)
            }
        };
        // Within a round trip, data arrives in bursts.
        let least = (facts.rtt_loaded().map_or(0, |rtt| rtt.as_ns())).max(path.base_ns).min(1_000_000_000);
        let (mut stretches, mut first, mut queued) = (Vec::new(), None::<(u64, f64)>, true);
        for &(at, bytes, srtt) in &readings {
            queued &= is_queued(at, srtt);
            let Some((from, before)) = first else {
                (first, queued) = (Some((at, bytes)), is_queued(at, srtt));
                continue;
            };
            let took_ns = at.saturating_sub(from);
            if took_ns >= least.max(1) {
                let bps = (bytes - before).max(0.0) * 8e9 / took_ns as f64;
                stretches.push(Stretch { until_ns: at, bps, queued });
                (first, queued) = (Some((at, bytes)), is_queued(at, srtt));
            }
        }
        Self { stretches, arrived: readings.iter().map(|r| (r.0, r.1)).collect() }
    }

    /// The stretches in which a queue stood.
    pub fn queued(&self) -> impl Iterator<Item = &Stretch> {
        self.stretches.iter().filter(|stretch| stretch.queued)
    }

    /// A percentile of all rates.
    pub fn percentile_bps(&self, percent: f64) -> Option<f64> {
        percentile(&mut self.stretches.iter().map(|s| s.bps).collect::<Vec<_>>(), percent)
    }

    /// The rate that was reached for a good part of the time.
    pub fn most_bps(&self) -> f64 {
        self.percentile_bps(90.0).unwrap_or(0.0)
    }
}

/// Excess of the smoothed round trip over the minimum from which a queue is assumed.
fn queue_bound_ns(path: &Path<'_>) -> u64 {
    /// Segments of the sender that wait behind each other without a standing queue.
    const OWN: f64 = 3.0;
    let peak = path.facts.delivery_peak_bps().unwrap_or(f64::INFINITY).max(1.0);
    let own = OWN * path.wire_bytes() * 8e9 / peak;
    (path.base_ns / 20).max(QUEUE_NOISE.as_ns() / 2).max(own as u64) + 2 * path.noise_ns
}
