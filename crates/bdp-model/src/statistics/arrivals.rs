//! Statistics of received datagrams from their numbers and times: loss, duplication, reordering, jitter, and the
//! distribution of their delays. Pure: numbers and times are arguments.

use serde::{Deserialize, Serialize};

use crate::statistics::histogram::Histogram;
use crate::statistics::{nearest_rank, resolves};

/// Default number of remembered datagram numbers, a power of two: a datagram this far behind the highest is [`Arrival::Stale`].
const WINDOW: u64 = 1 << 20;
/// Bits per word of the bitmap.
const WORD: u64 = 64;
/// Delays collected before the histogram's origin is chosen.
const FIRST_DELAYS: usize = 64;

/// Classification of a datagram relative to earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The next number, or one after a gap of missing ones.
    New {
        /// Numbers skipped.
        gap: u64,
    },
    /// One with a higher number had arrived before it (RFC 4737, section 3.3).
    Reordered,
    /// It had arrived before.
    Duplicate,
    /// Too old to know whether it had arrived before.
    Stale,
}

/// Received numbers, as a sliding bitmap.
#[derive(Debug, Clone)]
pub struct Arrivals {
    map: Vec<u64>,
    /// Size of the window in numbers.
    window: u64,
    /// The number after the highest received (`NextExp` of RFC 4737).
    next: u64,
    received: u64,
    duplicated: u64,
    reordered: u64,
    stale: u64,
    displacement_max: u64,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self::remembering(WINDOW)
    }
}

impl Arrivals {
    /// Creates one that remembers this many numbers, a power of two from 64 on: one bit each.
    pub fn remembering(numbers: u64) -> Self {
        let window = numbers.next_power_of_two().max(WORD);
        Self {
            map: vec![0; (window / WORD) as usize],
            window,
            next: 0,
            received: 0,
            duplicated: 0,
            reordered: 0,
            stale: 0,
            displacement_max: 0,
        }
    }

    /// Records a datagram by its number, which counts from 0.
    pub fn note(&mut self, number: u64) -> Arrival {
        // No sender gets this far: a forged number must not end the counting.
        if number >= u64::MAX - self.window {
            self.stale += 1;
            return Arrival::Stale;
        }
        if number >= self.next {
            let gap = number - self.next;
            self.forget(gap);
            self.set(number);
            self.next = number + 1;
            self.received += 1;
            return Arrival::New { gap };
        }
        let behind = self.next - 1 - number;
        if behind >= self.window {
            self.stale += 1;
            return Arrival::Stale;
        }
        if self.has(number) {
            self.duplicated += 1;
            return Arrival::Duplicate;
        }
        self.set(number);
        self.received += 1;
        self.reordered += 1;
        self.displacement_max = self.displacement_max.max(behind);
        Arrival::Reordered
    }

    /// Returns the distinct datagrams received.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Returns the number after the highest received.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> ArrivalCounts {
        ArrivalCounts {
            received: self.received,
            duplicated: self.duplicated,
            reordered: self.reordered,
            stale: self.stale,
            displacement_max: self.displacement_max,
            highest: self.next.checked_sub(1),
        }
    }

    /// Clears the places of the numbers up to and including the one after the gap, which held those of a window before.
    fn forget(&mut self, gap: u64) {
        if gap >= self.window {
            self.map.fill(0);
            return;
        }
        let (mut at, end) = (self.next, self.next + gap);
        while at <= end {
            let (word, bit) = self.place(at);
            if bit == 0 && end - at >= WORD {
                self.map[word] = 0;
                at += WORD;
            } else {
                self.map[word] &= !(1 << bit);
                at += 1;
            }
        }
    }

    fn set(&mut self, number: u64) {
        let (word, bit) = self.place(number);
        self.map[word] |= 1 << bit;
    }

    fn has(&self, number: u64) -> bool {
        let (word, bit) = self.place(number);
        self.map[word] >> bit & 1 == 1
    }

    fn place(&self, number: u64) -> (usize, u64) {
        ((number & (self.window - 1)) as usize / WORD as usize, number % WORD)
    }
}

/// Counts of one stream's numbers, or of several streams together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArrivalCounts {
    /// Distinct datagrams received.
    pub received: u64,
    /// Duplicates received.
    pub duplicated: u64,
    /// Received datagrams that arrived after one with a higher number (RFC 4737, section 3.3).
    pub reordered: u64,
    /// Datagrams received too late to know whether they were duplicates.
    pub stale: u64,
    /// Largest distance of a reordered datagram's number behind the highest received.
    pub displacement_max: u64,
    /// Highest number received.
    pub highest: Option<u64>,
}

impl ArrivalCounts {
    /// Adds the counts of another stream.
    pub fn merge(&mut self, other: &Self) {
        self.received += other.received;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.stale += other.stale;
        self.displacement_max = self.displacement_max.max(other.displacement_max);
        self.highest = self.highest.max(other.highest);
    }
}

/// Interarrival jitter (RFC 3550, section 6.4.1): `J += (|D| - J) / 16`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Jitter {
    last_transit_ns: Option<i64>,
    ns: f64,
}

impl Jitter {
    /// Records the transit time of a datagram, arrival minus departure, each by its own clock.
    pub fn note(&mut self, transit_ns: i64) {
        if let Some(last) = self.last_transit_ns.replace(transit_ns) {
            self.ns += (transit_ns.abs_diff(last) as f64 - self.ns) / 16.0;
        }
    }

    /// Returns the estimate, nanoseconds.
    pub fn ns(&self) -> f64 {
        self.ns
    }
}

/// Distribution of transit times, with an arbitrary clock offset.
///
/// Counted as distances from an origin near the smallest, so each is accurate to 1 in 64 of its distance.
#[derive(Debug, Clone, Default)]
pub struct Transits {
    origin_ns: Option<i64>,
    first: Vec<i64>,
    above: Histogram,
    below: Histogram,
    min: Option<i64>,
    max: Option<i64>,
}

impl Transits {
    /// Records a transit time.
    pub fn note(&mut self, transit_ns: i64) {
        self.min = Some(self.min.map_or(transit_ns, |min| min.min(transit_ns)));
        self.max = Some(self.max.map_or(transit_ns, |max| max.max(transit_ns)));
        match self.origin_ns {
            Some(origin) => self.count(origin, transit_ns),
            None => {
                self.first.push(transit_ns);
                if self.first.len() >= FIRST_DELAYS {
                    self.settle(None);
                }
            }
        }
    }

    /// Adds another stream's, measured with the same two clocks.
    pub fn merge(&mut self, mut other: Self) {
        self.settle(None);
        other.settle(self.origin_ns);
        match (self.origin_ns, other.origin_ns) {
            (None, _) => *self = other,
            (_, None) => {}
            (Some(origin), Some(theirs)) => {
                for (value, count) in other.values(theirs) {
                    self.count_many(origin, value, count);
                }
                self.min = self.min.min(other.min);
                self.max = self.max.max(other.max);
            }
        }
    }

    /// Returns the distribution; `None` if empty.
    pub fn summary(mut self) -> Option<TransitSummary> {
        self.settle(None);
        let (origin, min, max) = (self.origin_ns?, self.min?, self.max?);
        let mut values: Vec<(i64, u64)> = self.values(origin).collect();
        values.sort_unstable();
        let total: u64 = values.iter().map(|&(_, count)| count).sum();
        let quantile = |p: f64| {
            let rank = nearest_rank(total, p);
            let mut seen = 0;
            let found = values.iter().find(|&&(_, count)| {
                seen += count;
                seen >= rank
            });
            found.map_or(max, |&(value, _)| value).clamp(min, max)
        };
        Some(TransitSummary {
            count: total,
            min,
            p50: quantile(50.0),
            p95: resolves(total, 95.0).then(|| quantile(95.0)),
            p99: resolves(total, 99.0).then(|| quantile(99.0)),
            max,
        })
    }

    /// Chooses the origin, and counts the transit times collected before.
    fn settle(&mut self, origin_ns: Option<i64>) {
        if self.origin_ns.is_none() {
            let Some(smallest) = self.first.iter().copied().min() else { return };
            let origin = *self.origin_ns.insert(origin_ns.unwrap_or(smallest));
            for transit in std::mem::take(&mut self.first) {
                self.count(origin, transit);
            }
        }
    }

    fn count(&mut self, origin: i64, transit: i64) {
        self.count_many(origin, transit, 1);
    }

    fn count_many(&mut self, origin: i64, transit: i64, count: u64) {
        let distance = transit.abs_diff(origin);
        let side = if transit >= origin { &mut self.above } else { &mut self.below };
        side.record_many(distance, count);
    }

    fn values(&self, origin: i64) -> impl Iterator<Item = (i64, u64)> {
        let above = self.above.buckets().map(move |b| (origin.saturating_add_unsigned(b.to), b.count));
        let below = self.below.buckets().map(move |b| (origin.saturating_sub_unsigned(b.from), b.count));
        above.chain(below)
    }
}

/// Summary of transit times: differences of two clocks, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransitSummary {
    /// Number of values.
    pub count: u64,
    /// Smallest.
    pub min: i64,
    /// Median.
    pub p50: i64,
    /// 95th percentile; null with fewer than 20 values.
    pub p95: Option<i64>,
    /// 99th percentile; null with fewer than 100 values.
    pub p99: Option<i64>,
    /// Largest.
    pub max: i64,
}
