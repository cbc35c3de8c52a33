//! A model of a radio scheduler's service to one user: traces of delivery opportunities from a few parameters and a seed.
//!
//! The channel is at one of several levels and moves to a neighbouring one after an exponentially distributed time, in whole
//! milliseconds. In each millisecond the scheduler serves the user or not, by an independent draw; if it does, the user gets the
//! level divided by the share of milliseconds served, so that the mean rate is the level. This is a Markov-modulated Bernoulli
//! process; only its levels represent a particular network.

use serde::{Deserialize, Serialize};

use crate::statistics::random::SplitMix64;
use crate::units::{Nanos, Probability, Rate};

/// Largest delivery of one opportunity: an IP packet of 1500 bytes after the 4-byte header of a TUN device, as in mahimahi.
pub const OPPORTUNITY_BYTES: u64 = 1504;

/// Parameters of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Radio {
    /// Mean rates of the levels, ascending.
    pub levels: Vec<Rate>,
    /// Mean time at a level.
    #[serde(rename = "stay_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub stay: Nanos,
    /// Share of milliseconds that serve the user.
    pub share: Probability,
    /// Length of the trace before it repeats.
    #[serde(rename = "length_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub length: Nanos,
    /// Seed of the draws.
    pub seed: u64,
}

/// Fraction bits of the fixed-point numbers.
const FRACTION: u32 = 32;
const NS_PER_MS: u64 = 1_000_000;

impl Eq for Radio {}

impl Radio {
    /// Returns the milliseconds with opportunities, ascending, and their number; the last is at the trace's length. Integers only, so that a seed
    /// gives the same result on every machine.
    pub fn opportunities(&self) -> Vec<(u64, u64)> {
        let mut random = SplitMix64(self.seed);
        let stay_ms = usize::try_from(self.stay.as_ns() / NS_PER_MS).unwrap_or(usize::MAX).max(1);
        let one = 1u64 << FRACTION;
        let share = ((self.share.fraction() * one as f64) as u64).clamp(1, one);
        let each = u128::from(OPPORTUNITY_BYTES * 8 * 1_000);
        // Opportunities in a served millisecond, in fixed point.
        let served: Vec<u64> = self
            .levels
            .iter()
            .map(|level| ((u128::from(level.as_bps()) << (2 * FRACTION)) / (u128::from(share) * each)) as u64)
            .collect();
        let Some(top) = served.len().checked_sub(1) else { return Vec::new() };
        let mut level = top / 2;
        let length = (self.length.as_ns() / NS_PER_MS).max(1);
        let mut at = Vec::new();
        for ms in 1..=length {
            if random.below(stay_ms) == 0 {
                let up = level == 0 || (level < top && random.next() & 1 == 1);
                level = if up { (level + 1).min(top) } else { level - 1 };
            }
            let mut count = 0;
            if random.next() >> FRACTION < share {
                let fraction = random.next() >> FRACTION;
                count = (served[level] >> FRACTION) + u64::from(fraction < served[level] & (one - 1));
            }
            if ms == length {
                // The trace repeats there.
                count = count.max(1);
            }
            if count > 0 {
                at.push((ms, count));
            }
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn radio(levels: &[u64], share: f64, seed: u64) -> Radio {
        Radio {
            levels: levels.iter().map(|mbps| Rate::mbps(*mbps)).collect(),
            stay: Nanos::millis(200),
            share: Probability::new(share).unwrap(),
            length: Nanos::secs(600),
            seed,
        }
    }

    fn mean_mbps(at: &[(u64, u64)]) -> f64 {
        at.iter().map(|(_, count)| count).sum::<u64>() as f64 * 1504.0 * 8.0 / at[at.len() - 1].0 as f64 / 1e3
    }

    #[test]
    fn a_level_is_its_mean_and_the_share_is_served() {
        for (level, share) in [(5, 0.3), (200, 0.5), (40, 1.0)] {
            let at = radio(&[level], share, 3).opportunities();
            assert!((mean_mbps(&at) / level as f64 - 1.0).abs() < 0.02, "{level}: {}", mean_mbps(&at));
            let served = at.len() as f64 / 600_000.0;
            assert!(served <= share * 1.01, "{served}");
        }
    }

    #[test]
    fn levels_are_visited_evenly_but_the_ends_and_last_as_long_as_they_should() {
        // Inner levels are reached from both sides: 1, 2, 2, 1 of 6.
        let at = radio(&[10, 20, 30, 40], 1.0, 9).opportunities();
        let expected = (10.0 + 2.0 * 20.0 + 2.0 * 30.0 + 40.0) / 6.0;
        assert!((mean_mbps(&at) / expected - 1.0).abs() < 0.05, "{}", mean_mbps(&at));
    }

    #[test]
    fn a_seed_means_the_same_for_ever() {
        let radio = Radio { length: Nanos::millis(30), ..radio(&[10, 20, 30], 0.5, 1) };
        assert_eq!(radio.opportunities(), PINNED);
        assert_ne!(Radio { seed: 2, ..radio }.opportunities(), PINNED);
    }

    /// Expected values, computed independently from the specification.
    const PINNED: &[(u64, u64)] = &[
        (2, 3),
        (4, 3),
        (7, 3),
        (9, 4),
        (10, 4),
        (12, 3),
        (14, 4),
        (18, 3),
        (20, 3),
        (21, 4),
        (23, 3),
        (28, 4),
        (29, 4),
        (30, 1),
    ];
}
