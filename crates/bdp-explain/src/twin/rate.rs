//! The rate of the bottleneck, and its changes over time.

use bdp_model::facts::{Facts, Step};
use bdp_model::finding::Limit;
use bdp_model::finding::limit::Consequence;
use bdp_model::statistics::median;
use bdp_model::twin::Source;

use super::delivery::{Delivery, Stretch};
use super::loss::Kind;
use super::view::Path;

/// Number of stretches with a queue, and their share of all, from which they show the rate.
const QUEUED: (usize, f64) = (4, 0.08);
/// Largest ratio of the highest rates to the rate with a queue.
const MOST: f64 = 1.25;
/// Share of the time with a queue that is required if losses occur at any load.
const MOSTLY: f64 = 0.4;
/// Ratio of two rates, and their distance / deviation of the values, from which they count as two.
const STEP: (f64, f64) = (0.85, 8.0);
/// A path with more changes changes all the time.
const STEPS_MOST: usize = 6;

/// A known rate.
pub struct Known {
    /// On the wire, bit/s; the first, if it changes.
    pub bps: f64,
    /// Later rates with their times.
    pub steps: Vec<(u64, f64)>,
    /// The source of the rate.
    pub how: Source,
}

impl Known {
    /// A constant rate.
    pub const fn flat(bps: f64, how: Source) -> Self {
        Self { bps, steps: Vec::new(), how }
    }

    /// From what arrived while a queue stood, or at the bottleneck's losses.
    pub fn of(path: &Path<'_>, delivery: &Delivery, limit: Limit, losses: &Kind) -> Option<Self> {
        let queued: Vec<Stretch> = delivery.queued().copied().collect();
        let share = queued.len() as f64 / delivery.stretches.len().max(1) as f64;
        if queued.len() >= QUEUED.0 && share >= QUEUED.1 {
            let steps = changes(&queued);
            if !steps.is_empty() && steps.len() <= STEPS_MOST {
                return Some(Self::stepped(path, delivery, &queued, &steps));
            }
            let bps = median(&mut queued.iter().map(|s| s.bps).collect::<Vec<_>>())?;
            // If more arrived at other times, the queue was not the bottleneck's.
            let is_most = delivery.percentile_bps(95.0).is_some_and(|most| most <= MOST * bps);
            if is_most && (share >= MOSTLY || *losses != Kind::Random) {
                return Some(Self::flat(bps, Source::DeliveryBehindQueue));
            }
        }
        let is_paths = limit.has(Consequence::AtBottleneck) || losses.are_the_bottlenecks();
        is_paths
            .then(|| delivery.percentile_bps(90.0))
            .flatten()
            .map(|bps| Self::flat(bps, Source::DeliveryAtLosses))
    }

    /// From another run on the same path that carried more.
    pub fn of_another(path: &Path<'_>, also: &Facts) -> Option<Self> {
        let other = Path { facts: also, ..*path };
        let delivery = Delivery::of(&other);
        let limit = crate::explain(also).first()?.limit;
        let known = Self::of(&other, &delivery, limit, &Kind::None);
        // The rate of several streams together is steady; values above its median were held back in queues before.
        let carried = || delivery.percentile_bps(50.0).map(|bps| Self::flat(bps, Source::AlsoRun));
        let known = known.map(|known| Self { how: Source::AlsoRun, ..known }).or_else(carried)?;
        (known.bps > 1.05 * Delivery::of(path).most_bps()).then_some(known)
    }

    /// From the speed of a NIC on the path.
    pub fn of_nic(path: &Path<'_>) -> Option<Self> {
        let ceiling = path.facts.ceiling.as_ref()?;
        let mss = path.facts.mss_bytes? as f64;
        Some(Self::flat(ceiling.goodput_bps * path.wire_bytes() / mss, Source::Nic))
    }

    /// The rate at a time.
    pub fn at(&self, at_ns: u64) -> f64 {
        self.steps.iter().take_while(|step| step.0 <= at_ns).last().map_or(self.bps, |step| step.1)
    }

    fn stepped(path: &Path<'_>, delivery: &Delivery, queued: &[Stretch], bounds: &[u64]) -> Self {
        let level = |from: u64, until: u64| {
            let within = queued.iter().filter(|s| s.until_ns > from && s.until_ns <= until);
            median(&mut within.map(|s| s.bps).collect::<Vec<_>>()).unwrap_or(0.0)
        };
        let edges: Vec<u64> =
            std::iter::once(0).chain(bounds.iter().copied()).chain(std::iter::once(u64::MAX)).collect();
        let levels: Vec<f64> = edges.windows(2).map(|w| level(w[0], w[1])).collect();
        let steps = bounds.iter().enumerate().map(|(i, &bound)| {
            let at = moment(delivery, bound, levels[i], levels[i + 1]);
            // The sender learns of an arrival half a round trip later; the flow starts a round trip after its connection.
            (at + path.base_ns / 2, levels[i + 1])
        });
        Self { bps: levels[0], steps: steps.collect(), how: Source::DeliveryBehindQueue }
    }
}

/// Rate derived from how long the flow's own bursts wait: in a window sent at once, a segment waits for half of it on average. Shorter
/// bursts wait for less, so this is an upper bound.
pub fn by_own_bursts(path: &Path<'_>) -> Option<f64> {
    /// Shorter waits are the timers'.
    const LEAST_NS: f64 = 50_000.0;
    let sent: Vec<_> = path.facts.sent_after_omit().collect();
    let mut trips: Vec<f64> = sent.iter().filter_map(|s| s.srtt_ns).map(|ns| ns as f64).collect();
    let mut windows: Vec<f64> = sent.iter().filter_map(|s| s.unacked).map(f64::from).collect();
    let waited = median(&mut trips)? - path.base_ns as f64 - path.noise_ns as f64;
    let bytes = median(&mut windows)? * path.wire_bytes();
    (waited > LEAST_NS && bytes > 0.0).then(|| bytes / 2.0 * 8e9 / waited)
}

/// Ends of the stretches after which the rate changes.
fn changes(queued: &[Stretch]) -> Vec<u64> {
    let values: Vec<(u64, f64)> = queued.iter().map(|s| (s.until_ns, s.bps)).collect();
    let mut found = Vec::new();
    split(&values, &mut found);
    found.sort_unstable();
    found
}

fn split(values: &[(u64, f64)], found: &mut Vec<u64>) {
    let Some(step) = Step::of(values) else { return };
    if step.ratio() > STEP.0 || step.clearness < STEP.1 || found.len() > STEPS_MOST {
        return;
    }
    let at = values.iter().position(|value| value.0 >= step.at.as_ns()).unwrap_or(0);
    let (before, after) = values.split_at(at);
    // The end of the last stretch before it.
    found.extend(before.last().map(|value| value.0));
    split(before, found);
    split(after, found);
}

/// Time of a rate change: where the line of earlier arrivals meets that of later ones.
fn moment(delivery: &Delivery, near_ns: u64, before_bps: f64, after_bps: f64) -> u64 {
    let split = delivery.arrived.partition_point(|arrived| arrived.0 <= near_ns);
    let earlier = delivery.arrived.get(split.saturating_sub(3));
    let later = delivery.arrived.get(split + 2);
    let (Some(&(t1, b1)), Some(&(t2, b2))) = (earlier, later) else { return near_ns };
    let (r1, r2) = (before_bps / 8e9, after_bps / 8e9);
    let at = (b2 - r2 * t2 as f64 - b1 + r1 * t1 as f64) / (r1 - r2);
    if at.is_finite() && at >= t1 as f64 && at <= t2 as f64 { at as u64 } else { near_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(rate: &dyn Fn(u64) -> f64) -> Delivery {
        let (mut arrived, mut stretches, mut bytes) = (vec![(0, 0.0)], Vec::new(), 0.0);
        for i in 1..=100u64 {
            // A tenth of a second in steps of a millisecond, so that a change may fall between two samples.
            bytes += (0..100).map(|ms| rate((i - 1) * 100 + ms) / 8e3).sum::<f64>();
            let bps = (bytes - arrived.last().map_or(0.0, |a: &(u64, f64)| a.1)) * 80.0;
            arrived.push((i * 100_000_000, bytes));
            stretches.push(Stretch { until_ns: i * 100_000_000, bps, queued: true });
        }
        Delivery { stretches, arrived }
    }

    #[test]
    fn each_step_is_found_at_its_moment() {
        let delivery = delivery(&|ms| match ms {
            0..3_040 => 30e6,
            3_040..7_000 => 10e6,
            _ => 20e6,
        });
        let bounds = changes(&delivery.stretches);
        assert_eq!(bounds.len(), 2, "{bounds:?}");
        let at = moment(&delivery, bounds[0], 30e6, 10e6);
        assert!(at.abs_diff(3_040_000_000) < 2_000_000, "{at}");
        let at = moment(&delivery, bounds[1], 10e6, 20e6);
        assert!(at.abs_diff(7_000_000_000) < 2_000_000, "{at}");
    }

    #[test]
    fn a_rate_that_varies_a_little_has_no_steps() {
        let delivery = delivery(&|ms| 20e6 + f64::from(ms as u32 % 700) * 2e3);
        assert!(changes(&delivery.stretches).is_empty());
    }
}
