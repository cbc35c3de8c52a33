//! Jitter: deviation of a packet's propagation from the delay.

use bdp_model::link::{Jitter as JitterConfig, JitterDistribution};
use bdp_model::units::Nanos;

use crate::duplication::Copy;
use crate::end::End;
use crate::normal;
use crate::random::Draws;

/// The jitter of one direction. Two draws per packet: its own and its copy's.
#[derive(Debug, Clone)]
pub(crate) struct Jitter {
    distribution: Distribution,
    draws: Draws,
    /// Set if all packets share one value that changes over time.
    process: Option<Process>,
}

#[derive(Debug, Clone)]
enum Distribution {
    Uniform {
        spread_ns: u64,
    },
    Normal {
        deviation_ns: u64,
    },
    /// Ascending.
    Table(Vec<i64>),
}

impl Jitter {
    pub(crate) fn new(config: &JitterConfig, seed: u64, from: End) -> Self {
        let distribution = match &config.distribution {
            JitterDistribution::Uniform { spread } => {
                Distribution::Uniform { spread_ns: spread.as_ns().min(i64::MAX.unsigned_abs()) }
            }
            JitterDistribution::Normal { deviation } => {
                Distribution::Normal { deviation_ns: deviation.as_ns() }
            }
            JitterDistribution::Table(offsets) => {
                let mut offsets: Vec<i64> = offsets.iter().map(|offset| offset.as_ns()).collect();
                offsets.sort_unstable();
                Distribution::Table(offsets)
            }
        };
        let process = config.correlation_time.and_then(|time| match distribution {
            Distribution::Normal { deviation_ns } => Some(Process::new(deviation_ns, time, seed, from)),
            _ => None,
        });
        Self { distribution, draws: Draws::new(seed, from, b"jitt", Copy::COUNT), process }
    }

    /// Lower bound of all deviations from the delay, nanoseconds.
    pub(crate) fn least_ns(&self) -> i64 {
        self.distribution.offset_ns(0)
    }

    /// Deviation from the delay of packet `index`, or its copy, which leaves the wire this long after time zero, nanoseconds.
    pub(crate) fn offset_ns(&mut self, index: u64, copy: Copy, since: Nanos) -> i64 {
        if let Some(process) = &mut self.process {
            return process.at(since);
        }
        self.distribution.offset_ns(self.draws.draw(index, copy.number()))
    }
}

/// An Ornstein-Uhlenbeck process in steps of a sixteenth of its correlation time: normal, with a correlation that
/// falls to 1/e in that time. Its value at a step depends on the step alone, never on earlier queries: each block
/// of steps starts so far ahead that its initial value has decayed (e^-16).
#[derive(Debug, Clone)]
struct Process {
    deviation_ns: f64,
    step_ns: u64,
    /// Share of a value that is kept per step, and share of a new one that is added.
    keeps: f64,
    adds: f64,
    draws: Draws,
    /// The last queried step, and its value in standard deviations.
    last: Option<(u64, f64)>,
}

/// Steps per correlation time.
const STEPS: u64 = 16;
/// Steps that depend on each other.
const BLOCK: u64 = 1024;
/// Steps by which a block starts early.
const AHEAD: u64 = 16 * STEPS;
/// e^(-1/16).
const KEEPS: f64 = 0.939_413_062_813_475_8;
/// Largest drawn deviation to either side, in standard deviations.
const FARTHEST: f64 = 8.2;

impl Process {
    fn new(deviation_ns: u64, correlation_time: Nanos, seed: u64, from: End) -> Self {
        Self {
            deviation_ns: deviation_ns as f64,
            step_ns: (correlation_time.as_ns() / STEPS).max(1),
            keeps: KEEPS,
            adds: (1.0 - KEEPS * KEEPS).sqrt(),
            draws: Draws::new(seed, from, b"ornu", 1),
            last: None,
        }
    }

    fn at(&mut self, since: Nanos) -> i64 {
        let wanted = since.as_ns() / self.step_ns;
        let (mut step, mut value) = match self.last {
            Some((step, value)) if step <= wanted && step / BLOCK == wanted / BLOCK => (step, value),
            _ => {
                // A block has its own numbers for the steps ahead of it, which come before those of the block.
                let begin = wanted / BLOCK * (AHEAD + BLOCK);
                let mut value = self.draw(begin);
                for n in 1..=AHEAD {
                    value = self.keeps * value + self.adds * self.draw(begin + n);
                }
                (wanted / BLOCK * BLOCK, value)
            }
        };
        while step < wanted {
            step += 1;
            let number = step / BLOCK * (AHEAD + BLOCK) + AHEAD + step % BLOCK;
            value = self.keeps * value + self.adds * self.draw(number);
        }
        self.last = Some((step, value));
        (value.clamp(-FARTHEST, FARTHEST) * self.deviation_ns).round() as i64
    }

    fn draw(&mut self, number: u64) -> f64 {
        standard_normal(self.draws.draw(number, 0))
    }
}

/// Draws from the middle of each of 2^52 steps, so that neither end is infinite: at most 8.2 deviations.
fn standard_normal(draw: u64) -> f64 {
    normal::quantile(((draw >> 12) as f64 + 0.5) / (1u64 << 52) as f64)
}

impl Distribution {
    /// The quantile at `draw` / 2^64.
    fn offset_ns(&self, draw: u64) -> i64 {
        match self {
            // Every whole nanosecond from -spread to +spread is as likely as any other.
            Self::Uniform { spread_ns } => {
                let values = 2 * u128::from(*spread_ns) + 1;
                let above = (u128::from(draw) * values) >> 64;
                saturated(above as i128 - i128::from(*spread_ns))
            }
            Self::Normal { deviation_ns } => (standard_normal(draw) * *deviation_ns as f64).round() as i64,
            Self::Table(offsets) => {
                let Some(gaps) = offsets.len().checked_sub(1) else { return 0 };
                let place = u128::from(draw) * gaps as u128;
                let (at, part) = ((place >> 64) as usize, place as u64);
                let Some(&low) = offsets.get(at) else { return 0 };
                let Some(&high) = offsets.get(at + 1) else { return low };
                let above = (u128::from(high.abs_diff(low)) * u128::from(part)) >> 64;
                saturated(i128::from(low) + above as i128)
            }
        }
    }
}

fn saturated(ns: i128) -> i64 {
    ns.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOP: u64 = u64::MAX;
    const MIDDLE: u64 = 1 << 63;

    #[test]
    fn uniform_reaches_both_ends_and_no_further() {
        let uniform = Distribution::Uniform { spread_ns: 1_000 };
        assert_eq!([0, MIDDLE, TOP].map(|d| uniform.offset_ns(d)), [-1_000, 0, 1_000]);
        assert_eq!([0, TOP].map(|d| Distribution::Uniform { spread_ns: 0 }.offset_ns(d)), [0, 0]);
        let widest = Distribution::Uniform { spread_ns: i64::MAX.unsigned_abs() };
        assert_eq!([0, TOP].map(|d| widest.offset_ns(d)), [-i64::MAX, i64::MAX]);
    }

    #[test]
    fn normal_ends_at_eight_deviations() {
        let normal = Distribution::Normal { deviation_ns: 1_000_000 };
        assert_eq!([0, TOP].map(|d| normal.offset_ns(d)), [-8_209_536, 8_209_536]);
        assert_eq!(normal.offset_ns(MIDDLE), 0);
        let widest = Distribution::Normal { deviation_ns: u64::MAX };
        assert_eq!([0, TOP].map(|d| widest.offset_ns(d)), [i64::MIN, i64::MAX]);
    }

    #[test]
    fn a_table_is_interpolated_between_its_values() {
        let table = Distribution::Table(vec![-100, 0, 400]);
        let quarters: Vec<i64> = (0..4).map(|n| table.offset_ns(n << 62)).collect();
        assert_eq!(quarters, [-100, -50, 0, 200]);
        assert_eq!(table.offset_ns(TOP), 399);
        assert_eq!([0, TOP].map(|d| Distribution::Table(vec![7]).offset_ns(d)), [7, 7]);
        assert_eq!(Distribution::Table(Vec::new()).offset_ns(TOP), 0);
        let widest = Distribution::Table(vec![i64::MIN, i64::MAX]);
        assert_eq!([0, MIDDLE, TOP].map(|d| widest.offset_ns(d)), [i64::MIN, -1, i64::MAX - 1]);
    }

    #[test]
    fn a_process_is_normal_and_forgets_in_its_correlation_time() {
        let process = || Process::new(1_000_000, Nanos::millis(16), 7, End::A);
        let mut asked = process();
        let values: Vec<f64> = (0..200_000).map(|ms| asked.at(Nanos::millis(ms)) as f64 / 1e6).collect();
        let mean = |of: &dyn Fn(usize) -> f64, n: usize| (0..n).map(of).sum::<f64>() / n as f64;
        let n = values.len() - 64;
        let variance = mean(&|i| values[i] * values[i], n);
        assert!(mean(&|i| values[i], n).abs() < 0.05 && (variance - 1.0).abs() < 0.05, "{variance}");
        // 16 ms apart 1/e, 64 ms apart e^-4.
        for (apart, expected) in [(16, 0.368), (64, 0.018), (1, 0.939)] {
            let correlation = mean(&|i| values[i] * values[i + apart], n) / variance;
            assert!((correlation - expected).abs() < 0.04, "{apart}: {correlation}");
        }
        // Queries in another order and at other times change nothing.
        let mut seldom = process();
        for ms in [5, 700, 701, 1_023, 1_024, 1_500, 90_000, 199_999] {
            assert_eq!(seldom.at(Nanos::millis(ms)) as f64 / 1e6, values[ms as usize], "{ms}");
        }
        assert_eq!(asked.at(Nanos::millis(700)), seldom.at(Nanos::millis(700)));
    }
}
