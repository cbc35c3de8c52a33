//! Detects when the goodput of a running flow is steady, so that more of the test would hardly change it.
//!
//! The last blocks of four round trips, or a tenth of a second, are compared with each other. If twice the standard error of their mean, and the step
//! between the older and the newer half, are both within a bound, the rest of the test is assumed to continue at their mean.
//! `benches/until-settled` measures the cost in accuracy.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// Number of blocks compared.
const BLOCKS: usize = 9;
/// Length of a block: this time, or a few round trips if that is longer.
const BLOCK: Nanos = Nanos::millis(100);
const BLOCK_ROUND_TRIPS: u64 = 4;
/// Bound of the mean's error and of the step between the halves, as a share of the mean.
const BOUND: f64 = 0.035;
/// Minimum before goodput counts as steady, in time and in round trips: slow start must be over.
const LEAST: Nanos = Nanos::secs(1);
const LEAST_ROUND_TRIPS: u64 = 20;

/// Steady goodput of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Settled {
    /// Time at which it was steady, from the start of the flow.
    pub after_ns: u64,
    /// Planned duration of the test.
    pub of_ns: u64,
    /// Goodput of the whole planned test if it continues as in the last blocks, bit/s.
    pub goodput_bps: f64,
    /// Twice the standard error of the last blocks' mean / that mean.
    pub error: f64,
}

/// Bytes transferred by a flow over time.
#[derive(Debug, Clone)]
pub struct Settling {
    block_ns: u64,
    least_ns: u64,
    /// Time and bytes of the last blocks.
    points: VecDeque<(u64, u64)>,
}

impl Settling {
    /// Creates it for a path with this smallest round trip.
    pub fn over(rtt: Nanos) -> Self {
        Self {
            block_ns: (BLOCK_ROUND_TRIPS * rtt.0).max(BLOCK.0),
            least_ns: (LEAST_ROUND_TRIPS * rtt.0).max(LEAST.0),
            points: VecDeque::from([(0, 0)]),
        }
    }

    /// Adds the bytes received so far, in order of time.
    pub fn note(&mut self, at_ns: u64, bytes: u64) {
        self.points.push_back((at_ns, bytes));
        let kept_from = at_ns.saturating_sub((BLOCKS as u64 + 1) * self.block_ns);
        // One sample before the blocks is needed for their start.
        while self.points.get(1).is_some_and(|&(at, _)| at <= kept_from) {
            self.points.pop_front();
        }
    }

    /// Returns the goodput of a whole test of this length, if it is steady.
    pub fn settled(&self, whole: Nanos) -> Option<Settled> {
        let &(now, bytes) = self.points.back()?;
        let span = BLOCKS as u64 * self.block_ns;
        if now < self.least_ns || now < span || now >= whole.0 {
            return None;
        }
        let at = |block: usize| self.bytes_at(now - span + block as u64 * self.block_ns);
        let blocks: Vec<f64> = (0..BLOCKS).map(|i| at(i + 1) - at(i)).collect();
        let mean = average(&blocks);
        if mean <= 0.0 {
            return None;
        }
        let variance = blocks.iter().map(|block| (block - mean).powi(2)).sum::<f64>() / (BLOCKS - 1) as f64;
        let error = 2.0 * (variance / BLOCKS as f64).sqrt() / mean;
        let (older, newer) = blocks.split_at(BLOCKS / 2);
        let step = (average(newer) - average(older)).abs() / mean;
        let rest = mean / self.block_ns as f64 * (whole.0 - now) as f64;
        (error <= BOUND && step <= BOUND).then(|| Settled {
            after_ns: now,
            of_ns: whole.0,
            goodput_bps: (bytes as f64 + rest) * 8e9 / whole.0 as f64,
            error,
        })
    }

    /// Returns the bytes at a moment, interpolated between two samples.
    fn bytes_at(&self, at_ns: u64) -> f64 {
        let mut before = (0, 0);
        for &(at, bytes) in &self.points {
            if at >= at_ns {
                let share = (at_ns - before.0) as f64 / (at - before.0).max(1) as f64;
                return before.1 as f64 + (bytes - before.1) as f64 * share;
            }
            before = (at, bytes);
        }
        before.1 as f64
    }
}

fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Nanos = Nanos::secs(10);

    /// Returns when a rate in bytes per second over time is steady, sampled every tenth of a second.
    fn settles(rtt: Nanos, rate: impl Fn(f64) -> f64) -> Option<Settled> {
        let (mut settling, mut bytes) = (Settling::over(rtt), 0.0);
        (1..100).find_map(|tenth| {
            bytes += rate(f64::from(tenth) / 10.0) / 10.0;
            settling.note(u64::from(tenth as u32) * 100_000_000, bytes as u64);
            settling.settled(WHOLE)
        })
    }

    #[test]
    fn a_steady_rate_settles_at_once_and_slow_start_counts_in_the_whole() {
        let steady = settles(Nanos::millis(1), |_| 1e6).unwrap();
        assert_eq!((steady.after_ns, steady.of_ns), (1_000_000_000, WHOLE.0));
        assert!((steady.goodput_bps - 8e6).abs() < 10.0 && steady.error < 1e-6, "{steady:?}");
        // Nothing for half a second: the whole test is 5 % below the steady rate.
        let late = settles(Nanos::millis(1), |at| if at <= 0.55 { 0.0 } else { 1e6 }).unwrap();
        assert!((late.goodput_bps - 7.6e6).abs() < 1e4, "{late:?}");
        assert!(late.after_ns >= 1_300_000_000, "{late:?}");
    }

    #[test]
    fn what_grows_or_swings_does_not_settle() {
        assert_eq!(settles(Nanos::millis(1), |at| 1e6 * (1.0 + at)), None);
        assert_eq!(
            settles(Nanos::millis(1), |at| if ((at * 2.0) as u64).is_multiple_of(2) { 2e6 } else { 1e6 }),
            None
        );
    }

    #[test]
    fn a_long_round_trip_takes_longer() {
        let far = settles(Nanos::millis(200), |_| 1e6).unwrap();
        // Nine blocks of 0.8 s.
        assert_eq!(far.after_ns, 7_200_000_000);
        // Blocks of half a second do not fit.
        assert_eq!(settles(Nanos::millis(300), |_| 1e6), None);
    }
}
