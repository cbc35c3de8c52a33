//! Statistics of samples: order statistics, moments, and the interval of a mean.

pub mod arrivals;
pub mod comparison;
pub mod histogram;
pub mod random;

use random::SplitMix64;

/// Returns the `p`-th percentile (0..=100) by linear interpolation between closest ranks; `None` if empty.
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

/// Whether this many samples resolve a percentile (0..=100): at least one of them is expected beyond it, on the side away
/// from the median. The 99.9th needs 1,000 samples, the 99th 100, the 95th and the 5th 20, the 90th 10. The median is always resolved.
pub fn resolves(samples: u64, p: f64) -> bool {
    let at = thousandths(p);
    at == 50_000 || u128::from(samples) * u128::from(at.min(100_000 - at)) >= 100_000
}

/// Returns the rank, from 1, of the `p`-th percentile (0..=100) of this many samples: the smallest that p % of them do not exceed. In
/// whole thousandths, because 99.9 / 100 x 1,000 is slightly more than 999 in floating point.
pub fn nearest_rank(samples: u64, p: f64) -> u64 {
    let rank = (u128::from(samples) * u128::from(thousandths(p))).div_ceil(100_000);
    (rank as u64).max(1)
}

fn thousandths(p: f64) -> u64 {
    (p.clamp(0.0, 100.0) * 1_000.0).round() as u64
}

/// Returns the median; `None` if empty. Sorts `values`.
pub fn median(values: &mut [f64]) -> Option<f64> {
    percentile(values, 50.0)
}

/// Returns round trips per minute from round trips in nanoseconds: 60 s over their mean without the largest 5 %, the single-sided trimmed
/// mean of draft-ietf-ippm-responsiveness. `None` if empty. Sorts `round_trips_ns`.
pub fn responsiveness_rpm(round_trips_ns: &mut [u64]) -> Option<f64> {
    crate::measurement::responsiveness::trimmed_mean(round_trips_ns)
        .filter(|&mean| mean > 0.0)
        .map(|mean| 60e9 / mean)
}

/// Median, minimum and maximum of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
}

impl Spread {
    /// Summarises the finite values; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        let median = median(&mut values)?;
        Some(Self { median, min: *values.first()?, max: *values.last()? })
    }
}

/// Statistics of repetitions: number, range, mean and standard deviation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// Number of values.
    pub n: usize,
    /// Minimum.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Maximum.
    pub max: f64,
    /// Sample standard deviation, with n - 1; `None` for a single value.
    pub sd: Option<f64>,
}

impl Moments {
    /// Summarises values, which must be finite; `None` if empty.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        let (&min, &max) =
            (values.iter().min_by(|a, b| a.total_cmp(b))?, values.iter().max_by(|a, b| a.total_cmp(b))?);
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let sd = (n > 1).then(|| (squares / (n - 1) as f64).sqrt());
        Some(Self { n, min, mean, max, sd })
    }
}

/// Mean of repetitions, with its intervals.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// Number of repetitions.
    pub n: usize,
    /// Mean.
    pub mean: f64,
    /// 95 % confidence interval of the mean, by Student's distribution; null for a single repetition.
    pub interval: Option<[f64; 2]>,
    /// 95 % prediction interval for one more repetition; null for a single repetition.
    pub next: Option<[f64; 2]>,
}

impl Estimate {
    /// Summarises repetitions, which must be finite; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let Moments { n, mean, sd, .. } = Moments::of(values)?;
        let spread = t_quantile(n).zip(sd).map(|(t, sd)| t * sd);
        let around = |factor: f64| spread.map(|spread| [mean - spread * factor, mean + spread * factor]);
        let share = 1.0 / n as f64;
        Some(Self { n, mean, interval: around(share.sqrt()), next: around((1.0 + share).sqrt()) })
    }
}

/// Returns the 97.5 % quantile of Student's distribution with `n` - 1 degrees of freedom; `None` with fewer than two values.
fn t_quantile(n: usize) -> Option<f64> {
    const FEW: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    let degrees = n.checked_sub(1).filter(|&d| d > 0)?;
    // Beyond ten degrees, the first terms of its expansion around the normal distribution (Abramowitz and Stegun, 26.7.5).
    Some(FEW.get(degrees - 1).copied().unwrap_or_else(|| {
        let (z, d) = (1.959_964f64, degrees as f64);
        z + (z.powi(3) + z) / (4.0 * d) + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * d * d)
    }))
}

/// Resamples per interval: its ends are then accurate to about a hundredth of its width.
const RESAMPLES: usize = 4_000;
/// Fewest values: fewer have too few distinct resamples.
pub const LEAST_RESAMPLED: usize = 5;

/// Returns the interval of the mean with this confidence (0..1), by the percentile bootstrap (Efron 1979): means of samples of the
/// same size, drawn with replacement, without their tails. The same values and seed give the same interval.
/// `None` with fewer than [`LEAST_RESAMPLED`].
pub fn bootstrap_mean(values: &[f64], confidence: f64, seed: u64) -> Option<[f64; 2]> {
    if values.len() < LEAST_RESAMPLED {
        return None;
    }
    let mut random = SplitMix64(seed);
    let mut mean =
        || (0..values.len()).map(|_| values[random.below(values.len())]).sum::<f64>() / values.len() as f64;
    let mut means: Vec<f64> = (0..RESAMPLES).map(|_| mean()).collect();
    let tail = (1.0 - confidence) / 2.0 * 100.0;
    Some([percentile(&mut means, tail)?, percentile(&mut means, 100.0 - tail)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_use_students_quantiles() {
        // Mean 3, standard deviation sqrt(2.5), t of 4 degrees 2.776.
        let of = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let [low, high] = of.interval.unwrap();
        assert!((of.mean - 3.0).abs() < 1e-12 && (high - 3.0 - 2.776 * 0.5f64.sqrt()).abs() < 1e-9, "{of:?}");
        assert!((low + high - 6.0).abs() < 1e-9 && of.next.unwrap()[1] > high);
        assert_eq!(Estimate::of(&[7.0]).unwrap().interval, None);
        assert_eq!(Estimate::of(&[]), None);
        // Published: 2.086 of 20 degrees, 1.984 of 100.
        assert!(
            (t_quantile(21).unwrap() - 2.086).abs() < 1e-3 && (t_quantile(101).unwrap() - 1.984).abs() < 1e-3
        );
    }

    /// Michelson's first twenty measurements of the speed of light in 1879, minus 299,000 km/s (R's `morley`, experiment 1).
    const MICHELSON: [f64; 20] = [
        850.0, 740.0, 900.0, 1070.0, 930.0, 850.0, 950.0, 980.0, 980.0, 880.0, 1000.0, 980.0, 930.0, 650.0,
        760.0, 810.0, 1000.0, 1000.0, 960.0, 960.0,
    ];

    #[test]
    fn moments_are_those_of_the_books() {
        // R: mean(x), sd(x).
        let moments = Moments::of(&MICHELSON).unwrap();
        assert_eq!((moments.n, moments.min, moments.mean, moments.max), (20, 650.0, 909.0, 1070.0));
        assert!((moments.sd.unwrap() - 104.926_039).abs() < 1e-6, "{moments:?}");
        assert_eq!(Moments::of(&[3.0]).unwrap().sd, None);
        assert_eq!(Moments::of(&[]), None);
    }

    #[test]
    fn the_bootstrap_interval_is_that_of_the_plug_in_distribution() {
        // The bootstrap's own standard error is sd sqrt((n - 1) / n) / sqrt(n) = 22.87; 1.96 of it to each side, a little more to
        // the left, because of the tail of the values there.
        let [low, high] = bootstrap_mean(&MICHELSON, 0.95, 1).unwrap();
        assert!((low - 862.0).abs() < 4.0 && (high - 951.5).abs() < 4.0, "{low} {high}");
        assert_eq!(bootstrap_mean(&MICHELSON, 0.95, 1), Some([low, high]), "the seed decides");
        assert_ne!(bootstrap_mean(&MICHELSON, 0.95, 2), Some([low, high]));
        let [lower, higher] = bootstrap_mean(&MICHELSON, 0.99, 1).unwrap();
        assert!(lower < low && higher > high);
        assert_eq!(bootstrap_mean(&MICHELSON[..4], 0.95, 1), None);
        assert_eq!(bootstrap_mean(&[7.0; 5], 0.95, 1), Some([7.0, 7.0]));
    }

    /// About 95 % of the intervals of many uniform samples contain the true mean.
    #[test]
    fn the_bootstrap_interval_holds_the_mean_as_often_as_it_says() {
        let mut random = SplitMix64(7);
        let mut sample =
            || -> Vec<f64> { (0..40).map(|_| (random.next() >> 11) as f64 / (1u64 << 53) as f64).collect() };
        let holds = (0..400)
            .filter(|&i| {
                let [low, high] = bootstrap_mean(&sample(), 0.95, i).unwrap();
                (low..=high).contains(&0.5)
            })
            .count();
        assert!((368..=390).contains(&holds), "{holds} of 400");
    }

    #[test]
    fn responsiveness_leaves_the_slowest_twentieth_out() {
        assert_eq!(responsiveness_rpm(&mut []), None);
        assert_eq!(responsiveness_rpm(&mut [20_000_000]), Some(3000.0));
        // Nineteen of 30 ms, and one that is trimmed.
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
