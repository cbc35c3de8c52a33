//! A log-linear histogram of durations: bounded memory, relative error under 1 in 64.

use crate::statistics::{nearest_rank, resolves};

/// Log2 of the sub-buckets of each power of two.
const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;

/// Histogram of values in nanoseconds (or any other `u64`).
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    sum: u128,
    least: Option<u64>,
    max: u64,
}

/// A bucket: the values between two edges, both inclusive, which a histogram counts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Smallest value.
    pub from: u64,
    /// Largest value.
    pub to: u64,
    /// Number of values.
    pub count: u64,
}

impl Histogram {
    /// Creates an empty histogram.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty histogram that does not need to grow for values up to this one.
    pub fn with_room_to(largest: u64) -> Self {
        Self { counts: vec![0; index(largest) + 1], ..Self::default() }
    }

    /// Counts one value.
    pub fn record(&mut self, value: u64) {
        let index = index(value);
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
        self.total += 1;
        self.sum += u128::from(value);
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        self.max = self.max.max(value);
    }

    /// Counts one value several times.
    pub fn record_many(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        self.record(value);
        self.counts[index(value)] += times - 1;
        self.total += times - 1;
        self.sum += u128::from(value) * u128::from(times - 1);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
        self.sum += other.sum;
        self.least = self.least.into_iter().chain(other.least).min();
        self.max = self.max.max(other.max);
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Returns the mean, exact and rounded down; 0 if empty.
    pub fn mean(&self) -> u64 {
        // The mean of u64 values fits u64.
        self.sum.checked_div(u128::from(self.total)).unwrap_or(0) as u64
    }

    /// Returns the smallest value, exact; 0 if empty.
    pub fn min(&self) -> u64 {
        self.least.unwrap_or(0)
    }

    /// Returns the non-empty buckets, smallest first.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(index, &count)| Bucket {
            from: if index == 0 { 0 } else { upper_edge(index - 1) + 1 },
            to: upper_edge(index),
            count,
        })
    }

    /// Returns the largest value, exact; 0 if empty.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Returns the `p`-th percentile (0..=100), rounded up to its bucket's upper edge but not above the maximum; 0 if empty.
    pub fn percentile(&self, p: f64) -> u64 {
        let rank = nearest_rank(self.total, p);
        let mut seen = 0;
        for (i, &count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper_edge(i).min(self.max);
            }
        }
        self.max
    }

    /// Returns the `p`-th percentile if the number of values [`resolves`] it.
    pub fn resolved(&self, p: f64) -> Option<u64> {
        resolves(self.total, p).then(|| self.percentile(p))
    }
}

fn index(value: u64) -> usize {
    if value < SUB {
        return value as usize;
    }
    let shift = value.ilog2() - SUB_BITS;
    (u64::from(shift + 1) * SUB + (value >> shift) - SUB) as usize
}

fn upper_edge(index: usize) -> u64 {
    let index = index as u64;
    if index < SUB {
        return index;
    }
    let shift = index / SUB - 1;
    let lower = (index % SUB + SUB) << shift;
    lower + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket() {
        for value in (0..2000).chain([4095, 4096, 1 << 33, (1 << 40) + 12_345, u64::MAX]) {
            let edge = upper_edge(index(value));
            assert!(edge >= value && (edge - value) as f64 <= value as f64 / 64.0, "{value} {edge}");
        }
    }

    #[test]
    fn buckets_hold_what_was_counted() {
        let mut h = Histogram::new();
        for value in [7, 7, 1_000_000, 0] {
            h.record(value);
        }
        let buckets: Vec<Bucket> = h.buckets().collect();
        assert_eq!(buckets.iter().map(|b| b.count).collect::<Vec<_>>(), [1, 2, 1]);
        assert_eq!((buckets[1].from, buckets[1].to), (7, 7));
        assert!((buckets[2].from..=buckets[2].to).contains(&1_000_000), "{:?}", buckets[2]);
        assert_eq!((h.min(), Histogram::new().min()), (0, 0));
    }

    #[test]
    fn percentiles_of_a_ramp() {
        let mut h = Histogram::new();
        (1..=1000).for_each(|v| h.record(v * 1000));
        assert_eq!((h.count(), h.max(), h.mean()), (1000, 1_000_000, 500_500));
        let p50 = h.percentile(50.0);
        assert!((500_000..=508_000).contains(&p50), "{p50}");
        assert_eq!(h.percentile(100.0), 1_000_000);
        // Of exactly 1,000 one lies above the 99.9th: it is the 999th, and not the largest.
        let p999 = h.resolved(99.9).unwrap();
        assert!(
            (999_000..1_000_000).contains(&p999) || p999 == upper_edge(index(999_000)).min(1_000_000),
            "{p999}"
        );
        let mut small = Histogram::new();
        (1..=1000).for_each(|v| small.record(if v == 1000 { 50 } else { 10 }));
        assert_eq!((small.resolved(99.9), small.max()), (Some(10), 50));
        let mut other = Histogram::new();
        other.record(5_000_000);
        assert_eq!((other.resolved(90.0), other.resolved(50.0)), (None, Some(5_000_000)));
        h.merge(&other);
        assert_eq!((h.count(), h.max()), (1001, 5_000_000));
        assert_eq!((Histogram::new().percentile(99.0), Histogram::new().mean()), (0, 0));
    }
}
