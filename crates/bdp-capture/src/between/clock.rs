//! Delays between two places with different clocks.
//!
//! The clocks differ by an unknown offset and drift. The offset lengthens all delays of one direction and shortens those of the other by the
//! same amount: the sum of both minimum delays is independent of it, and so is a delay above its own direction's minimum. A drift tilts the lower
//! envelopes of both directions in opposite ways, which a growing queue does not.

use bdp_model::capture::pair::{ClockBetween, DelayAt, QueueingDelay};

/// Number of time slices whose minimum delay is examined.
const PARTS: usize = 200;
/// Slices of each direction that must have packets.
const PARTS_MIN: usize = 10;
/// Shortest time from which a drift is inferred.
const SPAN_NS: u64 = 1_000_000_000;
/// Largest drift of a quartz clock.
const DRIFT_MOST: f64 = 500e-6;
/// Smallest drift that counts, as its effect over the whole time.
const DRIFT_LEAST_NS: f64 = 10_000.0;
/// Deviation to which a direction's envelope is limited from below, so that a perfectly straight one does not get all the weight.
const STRAIGHT_NS: f64 = 1_000.0;
/// Most points of the delay over time.
const POINTS: u64 = 1_000;

/// Delays of one direction: when each packet passed the first capture, since its start, and how much later it passed the far place, by the
/// two clocks.
#[derive(Debug, Clone, Default)]
pub(super) struct Delays {
    pub samples: Vec<(u64, i64)>,
    /// Whether the far place is the second capture, whose clock drift lengthens delays.
    pub to_second: bool,
}

impl Delays {
    fn sign(&self) -> f64 {
        if self.to_second { 1.0 } else { -1.0 }
    }

    fn span(&self) -> Option<[u64; 2]> {
        let times = || self.samples.iter().map(|sample| sample.0);
        Some([times().min()?, times().max()?])
    }

    /// Returns a delay without drift, relative to the first one.
    fn level(&self, (at, delay): (u64, i64), drift: f64) -> f64 {
        delay.saturating_sub(self.samples[0].1) as f64 - self.sign() * drift * at as f64
    }

    /// Returns the minimum without drift; `None` without packets.
    fn least(&self, drift: f64) -> Option<f64> {
        self.samples.iter().map(|&sample| self.level(sample, drift)).min_by(f64::total_cmp)
    }

    /// Returns the minimum of each time slice.
    fn envelope(&self, [from, to]: [u64; 2]) -> Vec<(f64, f64)> {
        let mut least: Vec<Option<(u64, i64)>> = vec![None; PARTS];
        for &(at, delay) in &self.samples {
            let part = ((at - from) as f64 / (to - from) as f64 * PARTS as f64) as usize;
            let place = &mut least[part.min(PARTS - 1)];
            if place.is_none_or(|(_, known)| delay < known) {
                *place = Some((at, delay));
            }
        }
        least
            .into_iter()
            .flatten()
            .map(|(at, delay)| (at as f64, self.sign() * delay.saturating_sub(self.samples[0].1) as f64))
            .collect()
    }
}

/// Returns how much faster the second clock runs, by the delays of both directions; `None` if there are too few.
pub(super) fn drift(ways: [&Delays; 2]) -> Option<f64> {
    let (a, b) = (ways[0].span()?, ways[1].span()?);
    let span = [a[0].min(b[0]), a[1].max(b[1])];
    if span[1] - span[0] < SPAN_NS || ways[0].to_second == ways[1].to_second {
        return None;
    }
    let envelopes = ways.map(|way| (way.envelope(span), way.sign()));
    if envelopes.iter().any(|(points, _)| points.len() < PARTS_MIN) {
        return None;
    }
    // Mean height of the envelope above the line of this slope that touches it from below (Moon, Skelly and Towsley 1999, equation 2).
    let above = |(points, sign): &(Vec<(f64, f64)>, f64), slope: f64| {
        let level = |&(at, delay): &(f64, f64)| sign * (delay - slope * at);
        let least = points.iter().map(level).fold(f64::INFINITY, f64::min);
        points.iter().map(level).sum::<f64>() / points.len() as f64 - least
    };
    // The straighter envelope has more weight: the direction of the acknowledgements usually has no queue.
    let weights = envelopes.each_ref().map(|envelope| {
        let best = lowest(|slope| above(envelope, slope));
        1.0 / (above(envelope, best) + STRAIGHT_NS)
    });
    let found = lowest(|slope| {
        envelopes.iter().zip(weights).map(|(envelope, weight)| weight * above(envelope, slope)).sum()
    });
    Some(if found.abs() * (span[1] - span[0]) as f64 > DRIFT_LEAST_NS { found } else { 0.0 })
}

/// Returns the minimum of a convex function of the drift.
fn lowest(of: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (-DRIFT_MOST, DRIFT_MOST);
    for _ in 0..80 {
        let third = (high - low) / 3.0;
        if of(low + third) <= of(high - third) { high -= third } else { low += third }
    }
    (low + high) / 2.0
}

/// Returns the clock offset from both directions, and the minimum time from one place to the other and back.
pub(super) fn between(ways: [&Delays; 2], drift: Option<f64>) -> Option<(ClockBetween, u64)> {
    let least = |way: &Delays| {
        Some(i128::from(way.samples.first()?.1) + way.least(drift.unwrap_or(0.0))?.round() as i128)
    };
    let (there, back) = (least(ways[0])?, least(ways[1])?);
    let round_trip = u64::try_from(there + back).unwrap_or(0);
    // No direction takes less than zero time.
    let [up, down] = if ways[0].to_second { [there, back] } else { [back, there] };
    let clock = ClockBetween {
        offset_ns: [-down, up].map(|ns| ns.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64),
        drift_ppm: drift.map(|drift| (drift * 1e9).round() / 1e3),
    };
    Some((clock, round_trip))
}

/// Returns the delay above the minimum, and its course; times are relative to `since` if given.
pub(super) fn queueing(way: &Delays, drift: f64, times: &[u64]) -> (Option<QueueingDelay>, Vec<DelayAt>) {
    let Some(least) = way.least(drift) else { return (None, Vec::new()) };
    let above = |&sample: &(u64, i64)| (way.level(sample, drift) - least).round().max(0.0) as u64;
    let mut all: Vec<u64> = way.samples.iter().map(above).collect();
    let span = times.iter().max().copied().unwrap_or(0) / POINTS + 1;
    let mut points: Vec<DelayAt> = Vec::new();
    let mut order: Vec<(u64, u64)> = times.iter().copied().zip(all.iter().copied()).collect();
    order.sort_unstable();
    for (at_ns, queueing_ns) in order {
        match points.last_mut() {
            Some(last) if at_ns / span == last.at_ns / span => {
                last.queueing_ns = last.queueing_ns.max(queueing_ns)
            }
            _ => points.push(DelayAt { at_ns, queueing_ns }),
        }
    }
    all.sort_unstable();
    let rank = |share: f64| all[((all.len() as f64 * share).ceil() as usize).clamp(1, all.len()) - 1];
    let report =
        QueueingDelay { packets: all.len() as u64, p50_ns: rank(0.5), p95_ns: rank(0.95), max_ns: rank(1.0) };
    (Some(report), points)
}
