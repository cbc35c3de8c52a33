//! Jitter: what a packet's propagation takes more or less than the delay.

use bdp_model::link::{Jitter as JitterConfig, JitterDistribution};

use crate::duplication::Copy;
use crate::end::End;
use crate::normal;
use crate::random::Draws;

/// The jitter of one direction. Two draws a packet: its own and its copy's.
#[derive(Debug, Clone)]
pub(crate) struct Jitter {
    distribution: Distribution,
    draws: Draws,
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
        Self { distribution, draws: Draws::new(seed, from, b"jitt", Copy::COUNT) }
    }

    /// What no packet takes less than more than the delay, nanoseconds.
    pub(crate) fn least_ns(&self) -> i64 {
        self.distribution.offset_ns(0)
    }

    /// What packet `index`, or its copy, takes more than the delay, nanoseconds.
    pub(crate) fn offset_ns(&mut self, index: u64, copy: Copy) -> i64 {
        self.distribution.offset_ns(self.draws.draw(index, copy.number()))
    }
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
            // The middle of each of 2^52 steps, so that neither end is infinite: at most 8.2 deviations.
            Self::Normal { deviation_ns } => {
                let p = ((draw >> 12) as f64 + 0.5) / (1u64 << 52) as f64;
                (normal::quantile(p) * *deviation_ns as f64).round() as i64
            }
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
}
