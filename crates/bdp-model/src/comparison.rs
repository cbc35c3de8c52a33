//! Two sets of runs held against each other: by how much their medians differ, and how sure that is.
//!
//! The interval is the percentile bootstrap of the two medians: Efron and Tibshirani, "An Introduction to the
//! Bootstrap" (1993), chapters 8.3 (two samples) and 13.3 (percentile interval). BCa is not used: its acceleration
//! comes from the jackknife, which fails for medians (section 11.6 there).
//!
//! Few runs carry little: of m and n runs that do not differ, one set lies wholly above or below the other with
//! probability 2 / C(m+n, n). No interval can be surer than that, so 2 and 2 runs give 67 %, 3 and 3 give 90 %, and
//! 95 % needs 4 and 4. [`Interval::confidence`] says what was attained; a verdict needs [`LEAST_CONFIDENCE`].

use serde::{Deserialize, Serialize};

use crate::random::SplitMix64;
use crate::stats::percentile;

/// A change up to this share of a is no regression, however sure it is, unless something else is asked for.
pub const THRESHOLD: f64 = 0.05;
/// Confidence of an interval where there are runs enough.
pub const CONFIDENCE: f64 = 0.95;
/// Confidence that a verdict needs at least: that of 3 and 3 runs.
pub const LEAST_CONFIDENCE: f64 = 0.9;
/// With so few values on a side the interval spans all resamples: the percentiles of 4 and 4 would hold the truth in
/// 92 % of all cases, and say 95 %.
const FEW: usize = 4;
/// Fewest values whose median has an interval.
pub const LEAST_VALUES: usize = 3;
/// Resamples of each set.
const RESAMPLES: usize = 10_000;
/// Most values that are resampled of each set; of more than that, as many spread evenly over their order.
const MOST_VALUES: usize = 2_000;

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// As of goodput.
    Higher,
    /// As of round trips.
    Lower,
}

/// Two sets of values of one quantity, the second against the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The first.
    pub a: Values,
    /// The second.
    pub b: Values,
    /// Median of b - median of a, in the unit of the values.
    pub difference: f64,
    /// Median of b / median of a - 1; null where a value is not above 0.
    pub effect: Option<f64>,
    /// Bounds of the difference, in the unit of the values; null where a side has a single value.
    pub difference_interval: Option<Interval>,
    /// Bounds of the effect; null where there is no effect or a side has a single value.
    pub effect_interval: Option<Interval>,
    /// What follows.
    pub verdict: Verdict,
}

/// Order statistics of one side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Values {
    /// How many.
    pub n: usize,
    /// 5th percentile.
    pub p5: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
}

impl Values {
    /// Of the values that are finite; `None` where there is none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        Some(Self {
            n: values.len(),
            p5: percentile(&mut values, 5.0)?,
            p50: percentile(&mut values, 50.0)?,
            p95: percentile(&mut values, 95.0)?,
        })
    }
}

/// An interval of confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// How sure: [`CONFIDENCE`], or less where the runs are too few for it.
    pub confidence: f64,
}

impl Interval {
    /// Bounds of the median of `values` by order statistics, which hold whatever the distribution: from the k-th smallest to
    /// the k-th largest, k the largest with which they are [`CONFIDENCE`] sure, that is 1 - 2 P(Binomial(n, 1/2) < k)
    /// (David and Nagaraja, "Order Statistics" (2003), section 7.1). Fewer than 6 values can't be that sure: of them all
    /// that they span, 75 % of 3 and 93.75 % of 5. What is not finite is left out; `None` of fewer than [`LEAST_VALUES`].
    pub fn of_median(values: &[f64]) -> Option<Self> {
        let mut values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let n = values.len();
        if n < LEAST_VALUES {
            return None;
        }
        // Logarithms, as 1 / 2^n is soon too small for a number.
        let mut ln_share = -(n as f64) * std::f64::consts::LN_2;
        let mut outside = 2.0 * ln_share.exp();
        let mut skipped = 0;
        while skipped + 1 < n / 2 {
            let next = ln_share + ((n - skipped) as f64 / (skipped + 1) as f64).ln();
            let wider = outside + 2.0 * next.exp();
            if 1.0 - wider < CONFIDENCE {
                break;
            }
            (ln_share, outside, skipped) = (next, wider, skipped + 1);
        }
        Some(Self { low: values[skipped], high: values[n - 1 - skipped], confidence: 1.0 - outside })
    }
}

/// What a comparison shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The second is better: its interval leaves no difference out.
    Better,
    /// The second is worse: its interval leaves no difference out.
    Worse,
    /// The interval holds no difference.
    NoDifferenceShown,
    /// Too few values for an interval of [`LEAST_CONFIDENCE`].
    TooFewRuns,
}

impl Verdict {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoDifferenceShown => "no difference shown",
            Self::TooFewRuns => "too few runs",
        }
    }
}

impl Comparison {
    /// Holds `b` against `a`, with resamples drawn from `seed`. What is not finite is left out; `None` where a side
    /// has nothing left.
    pub fn of(a: &[f64], b: &[f64], better: Better, seed: u64) -> Option<Self> {
        let (summary_a, summary_b) = (Values::of(a)?, Values::of(b)?);
        let (a, b) = (sorted(a), sorted(b));
        let positive = a[0] > 0.0 && b[0] > 0.0;
        let confidence = attainable(summary_a.n, summary_b.n).min(CONFIDENCE);
        let several = a.len() > 1 && b.len() > 1;
        let medians = if several { resampled(&a, &b, seed) } else { Vec::new() };
        let bounds = |of: fn(f64, f64) -> f64| {
            let mut all: Vec<f64> = medians.iter().map(|&(a, b)| of(a, b)).collect();
            let tail = if a.len().min(b.len()) <= FEW { 0.0 } else { (1.0 - confidence) / 2.0 };
            several.then(|| percentile_interval(&mut all, tail, confidence))
        };
        let difference_interval = bounds(|a, b| b - a);
        let effect_interval = if positive { bounds(|a, b| b / a - 1.0) } else { None };
        Some(Self {
            a: summary_a,
            b: summary_b,
            difference: summary_b.p50 - summary_a.p50,
            effect: positive.then(|| summary_b.p50 / summary_a.p50 - 1.0),
            difference_interval,
            effect_interval,
            verdict: verdict(difference_interval, better),
        })
    }

    /// Whether b is worse than a by more than `threshold` (a share of a), which the verdict has to confirm.
    pub fn regressed(&self, threshold: f64) -> bool {
        let beyond = self.effect.is_none_or(|effect| effect.abs() > threshold);
        self.verdict == Verdict::Worse && beyond
    }
}

fn verdict(interval: Option<Interval>, better: Better) -> Verdict {
    let Some(Interval { low, high, .. }) = interval.filter(|i| i.confidence >= LEAST_CONFIDENCE - 1e-9)
    else {
        return Verdict::TooFewRuns;
    };
    match (low > 0.0, high < 0.0, better) {
        (true, _, Better::Higher) | (_, true, Better::Lower) => Verdict::Better,
        (true, _, Better::Lower) | (_, true, Better::Higher) => Verdict::Worse,
        _ => Verdict::NoDifferenceShown,
    }
}

/// 1 - 2 / C(m+n, n): the most that m and n values can be sure of.
fn attainable(m: usize, n: usize) -> f64 {
    let (small, total) = (m.min(n), m + n);
    // Beyond a few the second term vanishes.
    let orders: f64 = (0..small.min(40)).map(|i| (total - i) as f64 / (i + 1) as f64).product();
    (1.0 - 2.0 / orders).max(0.0)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    if values.len() <= MOST_VALUES {
        return values;
    }
    (0..MOST_VALUES).map(|i| values[i * (values.len() - 1) / (MOST_VALUES - 1)]).collect()
}

/// Medians of resamples of both sides, each drawn with replacement.
fn resampled(a: &[f64], b: &[f64], seed: u64) -> Vec<(f64, f64)> {
    let mut random = SplitMix64(seed);
    let (mut room_a, mut room_b) = (vec![0; a.len()], vec![0; b.len()]);
    (0..RESAMPLES)
        .map(|_| {
            (resampled_median(a, &mut room_a, &mut random), resampled_median(b, &mut room_b, &mut random))
        })
        .collect()
}

/// The median of a resample of `sorted`: ranks are drawn, and the middle one found.
fn resampled_median(sorted: &[f64], ranks: &mut [usize], random: &mut SplitMix64) -> f64 {
    let n = sorted.len();
    ranks.iter_mut().for_each(|rank| *rank = random.below(n));
    let (below, &mut upper, _) = ranks.select_nth_unstable(n / 2);
    if n % 2 == 1 {
        return sorted[upper];
    }
    let lower = below.iter().copied().max().unwrap_or(upper);
    (sorted[lower] + sorted[upper]) / 2.0
}

/// The bounds that leave a share of `tail` below and above. Ranks go outwards, not between, so that a difference and
/// a ratio of the same resamples always agree on whether they hold none.
fn percentile_interval(values: &mut [f64], tail: f64, confidence: f64) -> Interval {
    values.sort_by(f64::total_cmp);
    let outside = (tail * values.len() as f64).floor() as usize;
    Interval { low: values[outside], high: values[values.len() - 1 - outside], confidence }
}
