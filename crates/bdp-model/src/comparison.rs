//! Two sets of runs compared: by how much their medians differ, and how sure that is.
//!
//! The interval of each side's median is a pair of order statistics (David and Nagaraja, "Order Statistics" (2003),
//! section 7.1), and that of the difference the most and the least that the two allow: from low B - high A to high B - low A.
//! The sides are independent, so both hold with the product of their confidences, and then the difference does too,
//! whatever the two distributions and however unlike their spreads. The product is a lower bound.
//!
//! A side of n runs allows 1 - 2 / 2^n at most. Six on each side give 93.8 %, seven 96.9 %; five would give 87.9 %.
//! Below [`LEAST_RUNS`] on a side there is no interval and no verdict.

use serde::{Deserialize, Serialize};

use crate::stats::{percentile, resolves};

/// A change up to this share of a is no regression, however sure it is, unless something else is asked for.
pub const THRESHOLD: f64 = 0.05;
/// Confidence of an interval where there are runs enough.
pub const CONFIDENCE: f64 = 0.95;
/// Fewest runs on each side that have an interval of their difference, and a verdict.
pub const LEAST_RUNS: usize = 6;
/// A difference up to this share is none, however sure it is.
pub const NEGLIGIBLE: f64 = 0.0005;
/// Fewest values whose median has an interval.
pub const LEAST_VALUES: usize = 3;
/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// As of goodput.
    Higher,
    /// As of round trips.
    Lower,
}

/// Two sets of values of one quantity, the second against the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// The first.
    pub a: Values,
    /// The second.
    pub b: Values,
    /// Median of b - median of a, in the unit of the values.
    pub difference: f64,
    /// Median of b / median of a - 1; null where a value is not above 0.
    pub effect: Option<f64>,
    /// Bounds of the difference, in the unit of the values; null where a side has fewer than [`LEAST_RUNS`].
    pub difference_interval: Option<Interval>,
    /// Bounds of the effect; null where there is no effect or no interval of the difference.
    pub effect_interval: Option<Interval>,
    /// Whether the intervals are the differences themselves, as both sides ran by the virtual clock: from the smallest to the largest.
    #[serde(default)]
    pub exact: bool,
    /// What follows.
    pub verdict: Verdict,
}

/// What a comparison says of a regression beyond a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Regression {
    /// It is one: worse, and the median by more than the threshold.
    Regressed,
    /// It is none: the interval excludes one.
    None,
    /// The interval holds both.
    Inconclusive,
    /// Too few runs.
    Unknown,
}

/// Order statistics of one side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Values {
    /// How many.
    pub n: usize,
    /// Smallest.
    pub min: f64,
    /// 5th percentile; null of fewer than 20 values.
    pub p5: Option<f64>,
    /// Median.
    pub p50: f64,
    /// 95th percentile; null of fewer than 20 values.
    pub p95: Option<f64>,
    /// Largest.
    pub max: f64,
}

impl Values {
    /// Of the values that are finite; `None` where there is none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut values = sorted(values);
        let n = values.len();
        let mut resolved = |p| percentile(&mut values, p).filter(|_| resolves(n as u64, p));
        let (p5, p50, p95) = (resolved(5.0), resolved(50.0)?, resolved(95.0));
        Some(Self { n, min: *values.first()?, p5, p50, p95, max: *values.last()? })
    }
}

/// An interval of confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// How sure at least: [`CONFIDENCE`], or what the runs allow where they are too few for it.
    pub confidence: f64,
}

impl Interval {
    /// Bounds of the median of `values` by order statistics, which hold whatever the distribution: from the k-th smallest to
    /// the k-th largest, k the largest with which they are [`CONFIDENCE`] sure, that is 1 - 2 P(Binomial(n, 1/2) < k)
    /// (David and Nagaraja, "Order Statistics" (2003), section 7.1). Fewer than 6 values can't be that sure: of them all
    /// that they span, 75 % of 3 and 93.75 % of 5. What is not finite is left out; `None` of fewer than [`LEAST_VALUES`].
    pub fn of_median(values: &[f64]) -> Option<Self> {
        let values = sorted(values);
        (values.len() >= LEAST_VALUES).then(|| Self::of_sorted(&values, CONFIDENCE))
    }

    /// The same of one value or more in ascending order, with this confidence where they allow it.
    fn of_sorted(values: &[f64], confidence: f64) -> Self {
        let n = values.len();
        // Logarithms, as 1 / 2^n is soon too small for a number.
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

    /// Those of the medians of two sides, which hold together with [`CONFIDENCE`] where the runs allow it. Which order
    /// statistics they are depends on the numbers of runs alone, and not on which side is the first.
    fn of_both(a: &[f64], b: &[f64]) -> (Self, Self) {
        // Each side has the same part of the risk; where one can't be so sure, the other makes up for it.
        let most = |n: usize| 1.0 - 2.0 * 0.5f64.powf(n as f64);
        let needed = |other: &[f64]| CONFIDENCE.sqrt().max(CONFIDENCE / most(other.len()));
        (Self::of_sorted(a, needed(b)), Self::of_sorted(b, needed(a)))
    }
}

/// What a comparison shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The second is better: its interval leaves no difference out.
    Better,
    /// The second is worse: its interval leaves no difference out.
    Worse,
    /// The interval holds no difference, or only one up to [`NEGLIGIBLE`].
    NoDifferenceShown,
    /// Fewer than [`LEAST_RUNS`] on a side: nothing is known.
    TooFewRuns,
}

impl Verdict {
    /// In words.
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
    /// Compares `b` with `a`. What is not finite is left out; `None` where a side has nothing left.
    pub fn of(a: &[f64], b: &[f64], better: Better) -> Option<Self> {
        let (summary_a, summary_b) = (Values::of(a)?, Values::of(b)?);
        let (a, b) = (sorted(a), sorted(b));
        let positive = a[0] > 0.0 && b[0] > 0.0;
        let enough = a.len().min(b.len()) >= LEAST_RUNS;
        let both = enough.then(|| Interval::of_both(&a, &b));
        // Difference and ratio have the same bounds of the medians, so they agree on whether they hold no difference.
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

    /// The same of values that have no noise, as those of the virtual clock: of as many on each side the n-th of one is compared with the n-th
    /// of the other. Where the differences point both ways and there are runs enough, their interval decides as ever.
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

    /// What it says of a regression beyond `threshold`, a share of a.
    pub fn regression(&self, better: Better, threshold: f64) -> Regression {
        // What is worse is positive.
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
            // Without a ratio there is no share: any change for the worse is one.
            (_, None, Some(difference)) if worst(difference) > 0.0 => Regression::Inconclusive,
            _ => Regression::None,
        }
    }

    /// Whether b is worse than a, which the interval shows, and its median by more than `threshold` (a share of a), which is
    /// an estimate: the interval may hold changes below the threshold.
    pub fn regressed(&self, threshold: f64) -> bool {
        let beyond = self.effect.is_none_or(|effect| effect.abs() > threshold);
        self.verdict == Verdict::Worse && beyond
    }
}

impl Interval {
    /// Whether it holds no change that matters.
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

/// The finite ones, in ascending order.
fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values
}
