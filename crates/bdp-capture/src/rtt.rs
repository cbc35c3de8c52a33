//! Round trips in bounded memory: a histogram whose buckets are 1/256 of their value wide. Unlike the histogram of `bdp-model`, it stores
//! only non-empty buckets, because there may be a million connections.

use bdp_model::capture::CapturedRtt;
use bdp_model::units::Nanos;

/// Buckets per power of two.
const STEPS: u32 = 256;

/// Round trips of one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct RoundTrips {
    /// Non-empty buckets with their counts, in order.
    counts: Vec<(u16, u32)>,
    samples: u64,
    min: u64,
    max: u64,
    sum: f64,
    smoothed: u64,
    latest: u64,
}

impl RoundTrips {
    pub fn add(&mut self, ns: u64) {
        self.min = if self.samples == 0 { ns } else { self.min.min(ns) };
        self.max = self.max.max(ns);
        self.sum += ns as f64;
        // RFC 6298: an eighth of each sample.
        self.smoothed = if self.samples == 0 { ns } else { self.smoothed - self.smoothed / 8 + ns / 8 };
        self.latest = ns;
        self.samples += 1;
        let bucket = bucket(ns);
        match self.counts.binary_search_by_key(&bucket, |&(b, _)| b) {
            Ok(place) => self.counts[place].1 = self.counts[place].1.saturating_add(1),
            Err(place) => self.counts.insert(place, (bucket, 1)),
        }
    }

    /// Heap memory in use, bytes.
    pub fn held_bytes(&self) -> usize {
        self.counts.capacity() * size_of::<(u16, u32)>()
    }

    pub fn latest(&self) -> Option<u64> {
        (self.samples > 0).then_some(self.latest)
    }

    /// Smoothed round trip, as computed by a sender (RFC 6298).
    pub fn smoothed(&self) -> Option<u64> {
        (self.samples > 0).then_some(self.smoothed)
    }

    pub fn min(&self) -> Option<u64> {
        (self.samples > 0).then_some(self.min)
    }

    /// Returns a percentile, with an error of at most 1/256.
    fn percentile(&self, percent: f64) -> u64 {
        let wanted = ((self.samples as f64 * percent / 100.0).ceil() as u64).max(1);
        let mut so_far = 0;
        for &(bucket, count) in &self.counts {
            so_far += u64::from(count);
            if so_far >= wanted {
                return middle(bucket).clamp(self.min, self.max);
            }
        }
        self.max
    }

    pub fn report(&self) -> Option<CapturedRtt> {
        (self.samples > 0).then(|| CapturedRtt {
            samples: self.samples,
            min: Nanos(self.min),
            mean: Nanos((self.sum / self.samples as f64) as u64),
            p50: Nanos(self.percentile(50.0)),
            p95: Nanos(self.percentile(95.0)),
            max: Nanos(self.max),
        })
    }
}

fn bucket(ns: u64) -> u16 {
    let ns = ns.max(u64::from(STEPS));
    let power = ns.ilog2();
    let step = (ns >> (power - STEPS.ilog2())) as u32 - STEPS;
    (power * STEPS + step) as u16
}

fn middle(bucket: u16) -> u64 {
    let (power, step) = (u32::from(bucket) / STEPS, u32::from(bucket) % STEPS);
    let width = 1_u64 << (power - STEPS.ilog2());
    u64::from(STEPS + step) * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_little_off() {
        let mut all = RoundTrips::default();
        (1..=10_000_u64).for_each(|i| all.add(i * 10_007));
        for (percent, exact) in
            [(50.0, 5_000.0 * 10_007.0), (95.0, 9_500.0 * 10_007.0), (1.0, 100.0 * 10_007.0)]
        {
            let found = all.percentile(percent) as f64;
            assert!((found / exact - 1.0).abs() < 1.0 / 256.0, "{percent}: {found} for {exact}");
        }
        let report = all.report().unwrap();
        assert_eq!((report.min, report.max, report.samples), (Nanos(10_007), Nanos(100_070_000), 10_000));
    }

    #[test]
    fn any_value_has_a_bucket_that_holds_it() {
        for ns in [0, 1, 255, 256, 257, 511, 512, 1_000, 999_999_999, u64::MAX] {
            let near = middle(bucket(ns));
            assert!(near.abs_diff(ns) <= (ns / 256).max(257), "{ns}: {near}");
        }
    }
}
