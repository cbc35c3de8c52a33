//! Compares a measurement after a change with the one before it and with the prediction.

use serde::{Deserialize, Serialize};

use super::rehearsal::{Predicted, Rehearsal};
use crate::finding::Limit;
use crate::measurement::ends::Direction;
use crate::measurement::{DirectionResult, Measurement};
use crate::names;
use crate::statistics::Estimate;
use crate::twin::Fidelity;

/// Version of the verification schema; a reader refuses a larger number.
pub const VERIFICATION_SCHEMA: &str = "bdp.verification/1";

/// The effect of a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verification {
    /// Name and version of this document's schema.
    #[cfg_attr(feature = "schema", schemars(extend("const" = VERIFICATION_SCHEMA)))]
    pub schema: String,
    /// Version of bdp.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub bdp: String,
    /// Id of the run before the change; null if its file does not record it.
    pub run: Option<String>,
    /// Id of the run after the change; null if it was not stored.
    pub again: Option<String>,
    /// Name of the predicted variant; null without a rehearsal.
    pub predicted: Option<String>,
    /// The directions measured both times.
    pub directions: Vec<Verified>,
}

/// One direction before and after the change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verified {
    /// The direction.
    pub direction: Direction,
    /// Goodput, bit/s.
    pub goodput_bps: Outcome,
    /// Median round trip under load, nanoseconds; null if it was not measured.
    pub loaded_p50_ns: Option<Outcome>,
    /// What limited the goodput before.
    pub limit_before: Option<Limit>,
    /// What limits the goodput now.
    pub limit_now: Option<Limit>,
}

/// A figure before the change, as predicted, and now.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// Value before the change.
    pub before: f64,
    /// Predicted value; null without a rehearsal.
    pub predicted: Option<f64>,
    /// Range within which a single measurement confirms the prediction: the spread of the twin's repetitions, at least the twin's tolerance
    /// (10 % of goodput, 20 % of a round trip). Null without a rehearsal.
    pub range: Option<[f64; 2]>,
    /// Value now.
    pub now: f64,
    /// Whether the prediction was met.
    pub verdict: Verdict,
}

/// Whether a prediction was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Within the predicted range.
    Held,
    /// Better than the predicted range.
    Exceeded,
    /// Worse than the predicted range.
    Missed,
    /// Nothing was predicted.
    NotPredicted,
}

names!(Verdict: Held = "held", Exceeded = "exceeded", Missed = "missed", NotPredicted = "not_predicted");

impl Verification {
    /// Compares the measurement after a change with the one before it.
    pub fn of(before: &Measurement, now: &Measurement, rehearsal: Option<&Rehearsal>) -> Self {
        let directions = before.directions.iter().filter_map(|then| {
            let now = now.directions.iter().find(|now| now.direction == then.direction)?;
            let predicted = rehearsal.and_then(|rehearsal| rehearsal.predicted(then.direction));
            Some(verify(then, now, predicted))
        });
        Self {
            schema: VERIFICATION_SCHEMA.to_owned(),
            bdp: before.near.bdp.clone(),
            run: None,
            again: None,
            predicted: rehearsal.and_then(|rehearsal| rehearsal.choice.clone()),
            directions: directions.collect(),
        }
    }

    /// Whether any figure is worse than predicted.
    pub fn missed(&self) -> bool {
        self.directions.iter().any(|direction| {
            let delay = direction.loaded_p50_ns.map(|delay| delay.verdict);
            direction.goodput_bps.verdict == Verdict::Missed || delay == Some(Verdict::Missed)
        })
    }
}

fn verify(then: &DirectionResult, now: &DirectionResult, predicted: Option<&Predicted>) -> Verified {
    let loaded = |result: &DirectionResult| {
        result.rtt_ns.loaded.filter(|rtt| rtt.received > 0).map(|rtt| rtt.p50 as f64)
    };
    let limit = |result: &DirectionResult| result.findings.first().map(|finding| finding.limit);
    let goodput = predicted.map(|predicted| predicted.goodput_bps);
    let delay = predicted.and_then(|predicted| predicted.loaded_p50_ns);
    Verified {
        direction: then.direction,
        goodput_bps: outcome(then.goodput_bps, now.goodput_bps, goodput, Fidelity::GOODPUT, true),
        loaded_p50_ns: loaded(then)
            .zip(loaded(now))
            .map(|(then, now)| outcome(then, now, delay, Fidelity::DELAY, false)),
        limit_before: limit(then),
        limit_now: limit(now),
    }
}

fn outcome(before: f64, now: f64, predicted: Option<Estimate>, bound: f64, more_is_better: bool) -> Outcome {
    let range = predicted.map(|estimate| {
        let [low, high] = estimate.next.unwrap_or([estimate.mean; 2]);
        [low.min(estimate.mean * (1.0 - bound)).max(0.0), high.max(estimate.mean * (1.0 + bound))]
    });
    let verdict = match range {
        None => Verdict::NotPredicted,
        Some([low, high]) if (low..=high).contains(&now) => Verdict::Held,
        Some([_, high]) if (now > high) == more_is_better => Verdict::Exceeded,
        Some(_) => Verdict::Missed,
    };
    Outcome { before, predicted: predicted.map(|estimate| estimate.mean), range, now, verdict }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_predicted_holds_within_the_twins_bounds_and_its_spread() {
        let estimate = |values: &[f64]| Estimate::of(values);
        let goodput =
            |now, values: &[f64]| outcome(50.0, now, estimate(values), Fidelity::GOODPUT, true).verdict;
        assert_eq!(goodput(91.0, &[100.0]), Verdict::Held);
        assert_eq!(goodput(89.0, &[100.0]), Verdict::Missed);
        assert_eq!(goodput(111.0, &[100.0]), Verdict::Exceeded);
        // A wide spread of repetitions widens the range.
        assert_eq!(goodput(80.0, &[85.0, 100.0, 115.0]), Verdict::Held);
        assert_eq!(outcome(50.0, 60.0, None, Fidelity::GOODPUT, true).verdict, Verdict::NotPredicted);
        let delay = |now| outcome(200.0, now, estimate(&[50.0]), Fidelity::DELAY, false).verdict;
        assert_eq!(
            [delay(55.0), delay(70.0), delay(30.0)],
            [Verdict::Held, Verdict::Missed, Verdict::Exceeded]
        );
    }
}
