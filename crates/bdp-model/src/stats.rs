//! Order statistics of samples.

/// The `p`-th percentile (0..=100) by linear interpolation between closest ranks; `None` of nothing.
/// Sorts `values`.
pub fn percentile(values: &mut [f64], p: f64) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let rank = (p / 100.0).clamp(0.0, 1.0) * (values.len() - 1) as f64;
    let (low, high) = (rank.floor() as usize, rank.ceil() as usize);
    Some(values[low] + (values[high] - values[low]) * (rank - low as f64))
}

/// Whether so many samples resolve a percentile (0..=100): whether at least one of them is expected beyond it, on the side away
/// from the median. The 99.9th takes 1,000 samples, the 99th 100, the 95th and the 5th 20, the 90th 10. The median of any is one.
pub fn resolves(samples: u64, p: f64) -> bool {
    let at = thousandths(p);
    at == 50_000 || u128::from(samples) * u128::from(at.min(100_000 - at)) >= 100_000
}

/// The rank, from 1, of the `p`-th percentile (0..=100) of so many samples: the smallest that p % of them do not exceed. In
/// whole thousandths, as 99.9 / 100 x 1,000 is a little more than 999 in floating point.
pub fn nearest_rank(samples: u64, p: f64) -> u64 {
    let rank = (u128::from(samples) * u128::from(thousandths(p))).div_ceil(100_000);
    (rank as u64).max(1)
}

fn thousandths(p: f64) -> u64 {
    (p.clamp(0.0, 100.0) * 1_000.0).round() as u64
}

/// The median; `None` of nothing. Sorts `values`.
pub fn median(values: &mut [f64]) -> Option<f64> {
    percentile(values, 50.0)
}

/// Round trips a minute, given some in nanoseconds: 60 s over their mean without the largest 5 %, the single-sided trimmed
/// mean of draft-ietf-ippm-responsiveness. `None` of nothing. Sorts `round_trips_ns`.
pub fn responsiveness_rpm(round_trips_ns: &mut [u64]) -> Option<f64> {
    round_trips_ns.sort_unstable();
    let kept = round_trips_ns.len() - round_trips_ns.len() / 20;
    let sum: u64 = round_trips_ns[..kept].iter().sum();
    (sum > 0).then(|| 60e9 * kept as f64 / sum as f64)
}

/// Median, smallest and largest of a number of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The middle one.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of the values that are finite; `None` where there is none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        let median = median(&mut values)?;
        Some(Self { median, min: *values.first()?, max: *values.last()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responsiveness_leaves_the_slowest_twentieth_out() {
        assert_eq!(responsiveness_rpm(&mut []), None);
        assert_eq!(responsiveness_rpm(&mut [20_000_000]), Some(3000.0));
        // Nineteen of 30 ms, and one that is left out.
        let mut round_trips = [30_000_000; 20];
        round_trips[3] = 5_000_000_000;
        assert_eq!(responsiveness_rpm(&mut round_trips), Some(2000.0));
    }

    #[test]
    fn ranks_are_exact_and_a_percentile_needs_a_sample_beyond_it() {
        for (n, p, rank) in [
            (1_000, 99.9, 999),
            (1_001, 99.9, 1_000),
            (2_000, 99.9, 1_998),
            (100, 99.0, 99),
            (20, 95.0, 19),
            (20, 5.0, 1),
            (1, 50.0, 1),
            (4, 50.0, 2),
            (7, 100.0, 7),
            (u64::MAX, 100.0, u64::MAX),
        ] {
            assert_eq!(nearest_rank(n, p), rank, "{p} of {n}");
        }
        for (p, least) in [(99.9, 1_000), (99.0, 100), (95.0, 20), (5.0, 20), (90.0, 10)] {
            assert!(resolves(least, p) && !resolves(least - 1, p), "{p}");
        }
        assert!(resolves(1, 50.0));
    }

    #[test]
    fn percentiles_interpolate() {
        let mut v = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(median(&mut v), Some(2.5));
        assert_eq!(percentile(&mut v, 0.0), Some(1.0));
        assert_eq!(percentile(&mut v, 100.0), Some(4.0));
        assert_eq!(median(&mut []), None);
    }

    #[test]
    fn spread_leaves_out_what_is_not_a_number() {
        let spread = Spread::of([3.0, f64::NAN, 1.0, 2.0, 10.0]).unwrap();
        assert_eq!((spread.median, spread.min, spread.max), (2.5, 1.0, 10.0));
        assert_eq!(Spread::of([f64::INFINITY]), None);
    }
}
