//! One-way delays and their variation, from probes before the load.

use bdp_model::facts::Facts;
use bdp_model::measurement::Measurement;
use bdp_model::measurement::ends::Direction;
use bdp_model::probes::ProbePoint;
use bdp_model::statistics::{Moments, percentile};
use bdp_model::twin::{Parameter, Source, TwinJitter, Unseen};

use super::view::Notes;

/// A smaller deviation is the hosts' timers.
const JITTER_LEAST_NS: f64 = 100_000.0;
/// A smaller deviation / minimum round trip is the hosts' timers.
const JITTER_SHARE: f64 = 0.01;
/// Fewer probes give no distribution.
const PROBES_MIN: usize = 10;

/// Delays of both directions.
pub struct Delays {
    base_ns: u64,
    noise_ns: u64,
    to: (u64, Option<TwinJitter>),
    from: (u64, Option<TwinJitter>),
}

impl Delays {
    /// Derives the delays from a measurement; `None` if no round trip is known.
    pub fn of(measurement: &Measurement, facts: &Facts, notes: &mut Notes) -> Option<Self> {
        let base_ns = facts.rtt_least().or_else(|| facts.rtt_idle())?.as_ns();
        notes.learned(None, Parameter::Delay, Source::IdleProbes);
        notes.unseen.push(Unseen::Asymmetry);
        let idle: Vec<ProbePoint> = measurement.idle_probes.iter().flat_map(|s| s.points.clone()).collect();
        let bound = JITTER_LEAST_NS.max(JITTER_SHARE * base_ns as f64);
        let way = |delays: Vec<(i64, f64)>, way| Varies::of(&delays, bound).map(|varies| (varies, way));
        let one_way = |pick: fn(&ProbePoint) -> Option<i64>| -> Vec<(i64, f64)> {
            idle.iter().filter_map(|p| Some((p.sent_ns, pick(p)? as f64))).collect()
        };
        let mut both =
            [way(one_way(|p| p.there_ns), Direction::To), way(one_way(|p| p.back_ns), Direction::From)];
        if both.iter().all(Option::is_none) && one_way(|p| p.there_ns).is_empty() {
            // Without times of the far end the variation is attributed to the data's own direction.
            let trips = idle.iter().filter_map(|p| Some((p.sent_ns, p.rtt_ns()? as f64))).collect();
            both[0] = way(trips, Direction::To);
        }
        let mut of = |index: usize| {
            let varies = both[index].take();
            let half = base_ns / 2;
            match varies {
                None => (half, None, 0),
                Some((varies, way)) => {
                    notes.learned(way, Parameter::Jitter, Source::IdleProbes);
                    (half + varies.middle_above_least_ns, Some(varies.jitter), varies.deviation_ns)
                }
            }
        };
        let (to, from) = (of(0), of(1));
        Some(Self { base_ns, noise_ns: to.2 + from.2, to: (to.0, to.1), from: (from.0, from.1) })
    }

    /// The minimum round trip.
    pub const fn base_ns(&self) -> u64 {
        self.base_ns
    }

    /// Combined standard deviation of both directions.
    pub const fn noise_ns(&self) -> u64 {
        self.noise_ns
    }

    /// Delay and variation of a direction.
    pub const fn of_way(&self, way: Direction) -> (u64, &Option<TwinJitter>) {
        match way {
            Direction::To => (self.to.0, &self.to.1),
            Direction::From => (self.from.0, &self.from.1),
        }
    }
}

/// The variation of a delay.
struct Varies {
    jitter: TwinJitter,
    deviation_ns: u64,
    /// Middle of the distribution above the minimum.
    middle_above_least_ns: u64,
}

impl Varies {
    /// Derives the variation from delays with their times; `None` if it is smaller than that of timers.
    fn of(delays: &[(i64, f64)], bound_ns: f64) -> Option<Self> {
        let values: Vec<f64> = delays.iter().map(|d| d.1).collect();
        let moments = Moments::of(&values).filter(|m| m.n >= PROBES_MIN)?;
        let deviation = moments.sd.filter(|&sd| sd >= bound_ns)?;
        let skew =
            values.iter().map(|v| ((v - moments.mean) / deviation).powi(3)).sum::<f64>() / moments.n as f64;
        let deviation_ns = deviation as u64;
        let above = (moments.mean - moments.min) as u64;
        let correlation_ns = correlation_ns(delays, moments.mean, deviation);
        let jitter = if skew.abs() > SKEWED && correlation_ns.is_none() {
            let mut sorted = values.clone();
            let quantiles_ns = (0..=20)
                .filter_map(|i| percentile(&mut sorted, 5.0 * f64::from(i)))
                .map(|v| (v - moments.mean) as i64);
            TwinJitter::Table { quantiles_ns: quantiles_ns.collect() }
        } else if correlation_ns.is_none() && moments.max - moments.min < NARROW * deviation {
            TwinJitter::Uniform { spread_ns: (deviation * 3f64.sqrt()) as u64 }
        } else {
            TwinJitter::Normal { deviation_ns, correlation_ns }
        };
        Some(Self { jitter, deviation_ns, middle_above_least_ns: above })
    }
}

/// A distribution this skewed is neither uniform nor normal.
const SKEWED: f64 = 0.9;
/// Range of some dozens of values: 3.4 standard deviations for a uniform distribution, 4.4 for a normal one.
const NARROW: f64 = 3.8;

/// Time in which the correlation of neighbours falls to 1/e; `None` if they are uncorrelated.
fn correlation_ns(delays: &[(i64, f64)], mean: f64, deviation: f64) -> Option<u64> {
    /// A smaller correlation may be chance.
    const LEAST: f64 = 0.35;
    let n = delays.len().saturating_sub(1).max(1) as f64;
    let products: f64 = delays.windows(2).map(|w| (w[0].1 - mean) * (w[1].1 - mean)).sum();
    let apart = delays.windows(2).map(|w| (w[1].0 - w[0].0).max(0) as f64).sum::<f64>() / n;
    let alike = products / n / (deviation * deviation);
    (alike >= LEAST).then(|| (-apart / alike.min(0.98).ln()) as u64)
}
