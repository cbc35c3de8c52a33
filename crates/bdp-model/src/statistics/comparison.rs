//! Comparison of two sets of runs: the difference of their medians and its confidence.
//!
//! The interval of each side's median is a pair of order statistics (David and Nagaraja, "Order Statistics" (2003),
//! section 7.1); that of the difference spans the extremes that the two allow: from low B - high A to high B - low A.
//! The sides are independent, so both intervals hold with the product of their confidences, and so does the difference,
//! for any two distributions and any spreads. The product is a lower bound.
//!
//! A side of n runs allows 1 - 2 / 2^n at most. Six on each side give 93.8 %, seven 96.9 %; five would give 87.9 %.
//! Below [`LEAST_RUNS`] on a side there is no interval and no verdict.

use serde::{Deserialize, Serialize};

use crate::statistics::{percentile, resolves};

/// Default threshold: a change of up to this share of a is not a regression, however certain it is.
pub const THRESHOLD: f64 = 0.05;
/// Confidence of an interval if there are enough runs.
pub const CONFIDENCE: f64 = 0.95;
/// Fewest runs on each side for an interval of their difference and a verdict.
pub const LEAST_RUNS: usize = 6;
/// Differences of up to this share count as none, however certain they are.
pub const NEGLIGIBLE: f64 = 0.0005;
/// Fewest values for an interval of their median.
pub const LEAST_VALUES: usize = 3;
/// Whether higher or lower values are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Higher is better, as for goodput.
    Higher,
    /// Lower is better, as for round trips.
    Lower,
}

/// Two sets of values of one quantity; the second is compared with the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Values of the first set.
    pub a: Values,
    /// Values of the second set.
    pub b: Values,
    /// Median of b - median of a, in the unit of the values.
    pub difference: f64,
    /// Median of b / median of a - 1; null if a value is not above 0.
    pub effect: Option<f64>,
    /// Bounds of the difference, in the unit of the values; null if a side has fewer than 6 runs.
    pub difference_interval: Option<Interval>,
    /// Bounds of the effect; null without an effect or without an interval of the difference.
    pub effect_interval: Option<Interval>,
    /// Whether the intervals span the paired differences themselves, smallest to largest, because both sides ran under the virtual clock.
    #[serde(default)]
    pub exact: bool,
    /// The verdict.
    pub verdict: Verdict,
}

/// Result of a check for a regression beyond a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Regression {
    /// A regression: worse, and the median by more than the threshold.
    Regressed,
    /// No regression: the interval excludes one.
    None,
    /// Both are within the interval.
    Inconclusive,
    /// There are too few runs.
    Unknown,
}

/// Order statistics of one side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Values {
    /// Number of values.
    pub n: usize,
    /// Smallest.
    pub min: f64,
    /// 5th percentile; null with fewer than 20 values.
    pub p5: Option<f64>,
    /// Median.
    pub p50: f64,
    /// 95th percentile; null with fewer than 20 values.
    pub p95: Option<f64>,
    /// Largest.
    pub max: f64,
}

impl Values {
    /// Summarises the finite values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut values = sorted(values);
        let n = values.len();
        let mut resolved = |p| percentile(&mut values, p).filter(|_| resolves(n as u64, p));
        let (p5, p50, p95) = (resolved(5.0), resolved(50.0)?, resolved(95.0));
        Some(Self { n, min: *values.first()?, p5, p50, p95, max: *values.last()? })
    }
}

/// A confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Least confidence: 0.95, or what the number of runs allows if they are too few for it.
    pub confidence: f64,
}

impl Interval {
    /// Returns bounds of the median of `values` by order statistics, valid for any distribution: from the k-th smallest to
    /// the k-th largest, k the largest that gives [`CONFIDENCE`], that is 1 - 2 P(Binomial(n, 1/2) < k)
    /// (David and Nagaraja, "Order Statistics" (2003), section 7.1). Fewer than 6 values do not reach it; their bounds are
    /// the full range, 75 % for 3 and 93.75 % for 5. Ignores non-finite values; `None` with fewer than [`LEAST_VALUES`].
    pub fn of_median(values: &[f64]) -> Option<Self> {
        let values = sorted(values);
        (values.len() >= LEAST_VALUES).then(|| Self::of_sorted(&values, CONFIDENCE))
    }

    /// Returns bounds of the median of one or more values in ascending order, with this confidence if they allow it.
    fn of_sorted(values: &[f64], confidence: f64) -> Self {
        let n = values.len();
        // Logarithms, because 1 / 2^n soon underflows.
        let mut ln_share = -(n as f64) * std::f64::consts::LN_2;
        let mut outside = 2.0 * ln_share.exp();
        let mut skipped = 0;
        while skipped + 1 < n / 2 {
            let next = ln_share + ((n - skipped) as f64 / (skipped + 1) as f64).ln();
            let wider = outside + 2.0 * next.exp();
            if 1.0 - wider < confidence {
                break;
            }
            (ln_share, outside, skipped) = (next, wider, skipped + 1);
        }
        Self { low: values[skipped], high: values[n - 1 - skipped], confidence: 1.0 - outside }
    }

    /// Returns bounds of the medians of two sides, which hold together with [`CONFIDENCE`] if the runs allow it. The order
    /// statistics used depend only on the numbers of runs, not on which side is the first.
    fn of_both(a: &[f64], b: &[f64]) -> (Self, Self) {
        // Both sides share the risk equally; if one cannot reach its part, the other makes up for it.
        let most = |n: usize| 1.0 - 2.0 * 0.5f64.powf(n as f64);
        let needed = |other: &[f64]| CONFIDENCE.sqrt().max(CONFIDENCE / most(other.len()));
        (Self::of_sorted(a, needed(b)), Self::of_sorted(b, needed(a)))
    }
}

/// Verdict of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The second is better: its interval excludes zero.
    Better,
    /// The second is worse: its interval excludes zero.
    Worse,
    /// The interval includes zero, or only differences up to 0.05 %.
    NoDifferenceShown,
    /// Fewer than 6 runs on a side.
    TooFewRuns,
}

impl Verdict {
    /// Returns it in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoDifferenceShown => "no difference shown",
            Self::TooFewRuns => "unknown: too few runs",
        }
    }
}

impl Comparison {
    /// Compares `b` with `a`. Ignores non-finite values; `None` if a side has none left.
    pub fn of(a: &[f64], b: &[f64], better: Better) -> Option<Self> {
        let (summary_a, summary_b) = (Values::of(a)?, Values::of(b)?);
        let (a, b) = (sorted(a), sorted(b));
        let positive = a[0] > 0.0 && b[0] > 0.0;
        let enough = a.len().min(b.len()) >= LEAST_RUNS;
        let both = enough.then(|| Interval::of_both(&a, &b));
        // Difference and ratio use the same bounds of the medians, so they agree on whether they include no change.
        let bounds = |of: fn(f64, f64) -> f64| {
            both.map(|(a, b)| Interval {
                low: of(a.high, b.low),
                high: of(a.low, b.high),
                confidence: a.confidence * b.confidence,
            })
        };
        let difference_interval = bounds(|a, b| b - a);
        let effect_interval = if positive { bounds(|a, b| b / a - 1.0) } else { None };
        let verdict = verdict(difference_interval, effect_interval, better);
        Some(Self {
            a: summary_a,
            b: summary_b,
            difference: summary_b.p50 - summary_a.p50,
            effect: positive.then(|| summary_b.p50 / summary_a.p50 - 1.0),
            difference_interval,
            effect_interval,
            exact: false,
            verdict,
        })
    }

    /// Compares values without noise, as under the virtual clock: with equal numbers of runs, the n-th of one side is compared with the n-th
    /// of the other. If the differences have both signs and there are enough runs, their interval decides as usual.
    pub fn of_exact(a: &[f64], b: &[f64], better: Better) -> Option<Self> {
        let by_runs = Self::of(a, b, better)?;
        let is_paired = a.len() == b.len() && a.iter().chain(b).all(|value| value.is_finite());
        let span = |of: fn(f64, f64) -> f64| {
            let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
            let mut note = |difference: f64| (low, high) = (low.min(difference), high.max(difference));
            if is_paired {
                a.iter().zip(b).for_each(|(&a, &b)| note(of(a, b)));
            } else {
                note(of(by_runs.a.max, by_runs.b.min));
                note(of(by_runs.a.min, by_runs.b.max));
            }
            Interval { low, high, confidence: 1.0 }
        };
        let difference_interval = Some(span(|a, b| b - a));
        let effect_interval = by_runs.effect.map(|_| span(|a, b| b / a - 1.0));
        let verdict = verdict(difference_interval, effect_interval, better);
        if verdict == Verdict::NoDifferenceShown && by_runs.verdict != Verdict::TooFewRuns {
            return Some(by_runs);
        }
        Some(Self { difference_interval, effect_interval, exact: true, verdict, ..by_runs })
    }

    /// Checks for a regression beyond `threshold`, a share of a.
    pub fn regression(&self, better: Better, threshold: f64) -> Regression {
        // Worse is positive.
        let worst = |interval: Interval| match better {
            Better::Higher => -interval.low,
            Better::Lower => interval.high,
        };
        if self.regressed(threshold) {
            return Regression::Regressed;
        }
        match (self.verdict, self.effect_interval, self.difference_interval) {
            (Verdict::TooFewRuns, ..) => Regression::Unknown,
            (_, Some(effect), _) if worst(effect) > threshold => Regression::Inconclusive,
            // Without a ratio there is no share: any change for the worse counts.
            (_, None, Some(difference)) if worst(difference) > 0.0 => Regression::Inconclusive,
            _ => Regression::None,
        }
    }

    /// Whether the interval shows b to be worse than a, and the medians differ by more than `threshold` (a share of a). The latter is
    /// an estimate: the interval may include changes below the threshold.
    pub fn regressed(&self, threshold: f64) -> bool {
        let beyond = self.effect.is_none_or(|effect| effect.abs() > threshold);
        self.verdict == Verdict::Worse && beyond
    }
}

impl Interval {
    /// Whether the interval contains no relevant change.
    pub fn is_negligible(&self) -> bool {
        self.low >= -NEGLIGIBLE && self.high <= NEGLIGIBLE
    }
}

fn verdict(difference: Option<Interval>, effect: Option<Interval>, better: Better) -> Verdict {
    let Some(Interval { low, high, .. }) = difference else { return Verdict::TooFewRuns };
    if effect.is_some_and(|effect| effect.is_negligible()) {
        return Verdict::NoDifferenceShown;
    }
    match (low > 0.0, high < 0.0, better) {
        (true, _, Better::Higher) | (_, true, Better::Lower) => Verdict::Better,
        (true, _, Better::Lower) | (_, true, Better::Higher) => Verdict::Worse,
        _ => Verdict::NoDifferenceShown,
    }
}

/// Returns the finite values in ascending order.
fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values
}
