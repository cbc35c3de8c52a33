//! Round trips of probes: their summaries and percentiles.

use serde::{Deserialize, Serialize};

use crate::probes::ProbeOutcome;
use crate::statistics::histogram::Histogram;
use crate::statistics::{nearest_rank, resolves};

/// Round trips of the probes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RttReport {
    /// Before the load.
    pub idle: Option<RttSummary>,
    /// Under load: probes sent from the end of omit to the end.
    pub loaded: Option<RttSummary>,
    /// The full distributions of both.
    #[serde(default, skip_serializing_if = "RttPercentiles::is_empty")]
    pub percentiles: RttPercentiles,
}

/// Percentiles of round trips in nanoseconds: 101 values from the minimum (0) to the maximum (100), each the nearest rank, exact
/// where [`RttSummary`] rounds up by less than 1 in 64. Empty if no probe was answered, and in older records.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RttPercentiles {
    /// Before the load.
    #[serde(default)]
    pub idle: Vec<u64>,
    /// Under load: probes sent from the end of omit to the end.
    #[serde(default)]
    pub loaded: Vec<u64>,
}

/// A distribution of round trips, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RttSummary {
    /// Probes sent.
    pub sent: u64,
    /// Probes answered.
    pub received: u64,
    /// Probes still waiting for an answer at the end: neither answered nor lost.
    #[serde(default)]
    pub in_flight: u64,
    /// Smallest round trip.
    pub min: u64,
    /// Median of all probes sent, as the text prints it; an unanswered probe counts as slower than the time it was waited for.
    pub p50: u64,
    /// 95th percentile of all probes; null with fewer than 20.
    pub p95: Option<u64>,
    /// 99th percentile of all probes; null with fewer than 100.
    pub p99: Option<u64>,
    /// Largest round trip.
    pub max: u64,
    /// The same percentiles with whether each is exact, if some probes have no answer; null if all have, and in older summaries.
    #[serde(default)]
    pub of_all: Option<OfAll>,
    /// Percentiles of the answered probes, if some have no answer. Older summaries have these in the members above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_answers: Option<OfAnswers>,
}

/// Percentiles of the probes that were answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfAnswers {
    /// Median.
    pub p50: u64,
    /// 95th percentile; null with fewer than 20 answers.
    pub p95: Option<u64>,
    /// 99th percentile; null with fewer than 100.
    pub p99: Option<u64>,
}

/// Percentiles of all probes; an unanswered probe counts as slower than the time it was waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfAll {
    /// Median.
    pub p50: Bound,
    /// 95th percentile; null with fewer than 20 probes.
    pub p95: Option<Bound>,
    /// 99th percentile; null with fewer than 100.
    pub p99: Option<Bound>,
}

/// A percentile, or its lower bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bound {
    /// Nanoseconds.
    pub ns: u64,
    /// Whether the percentile is exactly that; otherwise it is larger.
    pub exact: bool,
}

impl RttReport {
    /// Creates the report from the outcomes of the probes before the workload and during it.
    pub fn of_probes(
        idle: impl IntoIterator<Item = ProbeOutcome>,
        loaded: impl IntoIterator<Item = ProbeOutcome>,
    ) -> Self {
        let [idle, loaded] = [Tally::of(idle), Tally::of(loaded)];
        Self {
            idle: idle.summary(),
            loaded: loaded.summary(),
            percentiles: RttPercentiles { idle: idle.percentiles(), loaded: loaded.percentiles() },
        }
    }

    /// Creates the report from round trips under load only, in nanoseconds.
    pub fn of_loaded(rtts_ns: impl IntoIterator<Item = u64>) -> Self {
        Self::of_probes([], rtts_ns.into_iter().map(ProbeOutcome::Answered))
    }
}

impl RttPercentiles {
    /// Whether there are no round trips.
    pub fn is_empty(&self) -> bool {
        self.idle.is_empty() && self.loaded.is_empty()
    }
}

impl RttSummary {
    /// Summarises answered probes by their round trips in nanoseconds; `None` if there are none.
    pub fn of(rtts_ns: impl IntoIterator<Item = u64>) -> Option<Self> {
        Self::of_probes(rtts_ns.into_iter().map(ProbeOutcome::Answered))
    }

    /// Summarises probes by outcome; `None` if none was answered.
    pub fn of_probes(outcomes: impl IntoIterator<Item = ProbeOutcome>) -> Option<Self> {
        Tally::of(outcomes).summary()
    }

    /// Median, 95th and 99th percentile of all probes, each exact or a lower bound; `None` for a percentile that needs more
    /// probes.
    pub fn bounds(&self) -> [Option<Bound>; 3] {
        match self.of_all {
            Some(OfAll { p50, p95, p99 }) => [Some(p50), p95, p99],
            None => [Some(self.p50), self.p95, self.p99].map(|ns| ns.map(|ns| Bound { ns, exact: true })),
        }
    }

    /// Percentiles of the answered probes, regardless of losses.
    pub fn answers(&self) -> OfAnswers {
        self.of_answers.unwrap_or(OfAnswers { p50: self.p50, p95: self.p95, p99: self.p99 })
    }

    /// Probes that were not answered in time.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received + self.in_flight)
    }
}

/// Probes counted by outcome.
#[derive(Default)]
struct Tally {
    sent: u64,
    in_flight: u64,
    answered: Histogram,
    round_trips_ns: Vec<u64>,
    /// Waiting times of the unanswered probes.
    waited_ns: Vec<u64>,
    unsent: u64,
}

impl Tally {
    fn of(outcomes: impl IntoIterator<Item = ProbeOutcome>) -> Self {
        let mut tally = Self::default();
        for outcome in outcomes {
            tally.sent += 1;
            match outcome {
                ProbeOutcome::Answered(rtt_ns) => {
                    tally.answered.record(rtt_ns);
                    tally.round_trips_ns.push(rtt_ns);
                }
                ProbeOutcome::InFlight { waited_ns } => {
                    tally.in_flight += 1;
                    tally.waited_ns.push(waited_ns);
                }
                ProbeOutcome::Lost { waited_ns } => tally.waited_ns.push(waited_ns),
                ProbeOutcome::Unsent => tally.unsent += 1,
            }
        }
        tally
    }

    fn summary(&self) -> Option<RttSummary> {
        let histogram = &self.answered;
        if histogram.count() == 0 {
            return None;
        }
        let answers = OfAnswers {
            p50: histogram.percentile(50.0),
            p95: histogram.resolved(95.0),
            p99: histogram.resolved(99.0),
        };
        let of_all = self.of_all();
        let at = |bound: Option<Bound>| bound.map(|bound| bound.ns);
        let (p50, p95, p99) = match of_all {
            Some(all) => (all.p50.ns, at(all.p95), at(all.p99)),
            None => (answers.p50, answers.p95, answers.p99),
        };
        Some(RttSummary {
            sent: self.sent,
            received: histogram.count(),
            in_flight: self.in_flight,
            min: histogram.min(),
            p50,
            p95,
            p99,
            max: histogram.max(),
            of_all,
            of_answers: of_all.map(|_| answers),
        })
    }

    /// A probe that was never sent counts as slower than all others.
    fn of_all(&self) -> Option<OfAll> {
        let (least, most) =
            (self.waited_ns.iter().min(), self.waited_ns.iter().chain(&self.round_trips_ns).max());
        let exact_to = match (least, self.unsent) {
            (Some(&least), _) => least,
            (None, 1..) => u64::MAX,
            (None, 0) => return None,
        };
        let unsent = std::iter::repeat_n(*most?, self.unsent as usize);
        let mut all: Vec<u64> =
            self.round_trips_ns.iter().chain(&self.waited_ns).copied().chain(unsent).collect();
        all.sort_unstable();
        let answered = self.round_trips_ns.iter().filter(|&&ns| ns <= exact_to).count() as u64;
        let at = |percent: f64| {
            let rank = nearest_rank(all.len() as u64, percent);
            let ns = all.get(rank.saturating_sub(1) as usize).copied();
            ns.map(|ns| Bound { ns, exact: rank <= answered })
        };
        let resolved = |percent: f64| resolves(all.len() as u64, percent).then(|| at(percent)).flatten();
        Some(OfAll { p50: at(50.0)?, p95: resolved(95.0), p99: resolved(99.0) })
    }

    fn percentiles(mut self) -> Vec<u64> {
        self.round_trips_ns.sort_unstable();
        let all = &self.round_trips_ns;
        let rank = |percent| nearest_rank(all.len() as u64, f64::from(percent)).saturating_sub(1) as usize;
        (0..=100).filter_map(|percent| all.get(rank(percent)).copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_agree_with_the_summary_and_older_records_have_none() {
        let lost = [ProbeOutcome::Lost { waited_ns: 1 }, ProbeOutcome::InFlight { waited_ns: 1 }];
        let loaded = (1..=400u64).map(|ms| ProbeOutcome::Answered(ms * 1_000_000)).chain(lost);
        let report = RttReport::of_probes([], loaded);
        let (all, summary) = (&report.percentiles.loaded, report.loaded.unwrap());
        assert_eq!(report.idle, None);
        assert!(report.percentiles.idle.is_empty());
        assert_eq!((all.len(), all[0], all[100]), (101, summary.min, summary.max));
        assert_eq!([all[50], all[95], all[99]], [200_000_000, 380_000_000, 396_000_000]);
        let answers = summary.answers();
        for (exact, rounded) in [(all[50], Some(answers.p50)), (all[95], answers.p95), (all[99], answers.p99)]
        {
            assert!((exact..=exact + exact / 64).contains(&rounded.unwrap()), "{exact} {rounded:?}");
        }
        assert!(all.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!((summary.sent, summary.received, summary.in_flight, summary.lost()), (402, 400, 1, 1));

        let older: RttReport = serde_json::from_str(r#"{"idle": null, "loaded": null}"#).unwrap();
        assert_eq!(older, RttReport::default());
        assert_eq!(serde_json::to_string(&older).unwrap(), r#"{"idle":null,"loaded":null}"#);
    }

    #[test]
    fn a_percentile_among_probes_without_an_answer_is_above_what_they_were_waited_for() {
        let ms = |ms: u64| ms * 1_000_000;
        let bound = |at, exact| Bound { ns: ms(at), exact };
        let of = |answered: u64, more: &[ProbeOutcome]| {
            let answered = (1..=answered).map(|n| ProbeOutcome::Answered(ms(n)));
            RttSummary::of_probes(answered.chain(more.iter().copied())).unwrap()
        };
        assert_eq!(of(100, &[]).of_all, None);
        // Ten of a hundred are lost after a second: the 95th percentile is among them.
        let lost = of(90, &[ProbeOutcome::Lost { waited_ns: ms(1_000) }; 10]);
        let [p50, p95, p99] = lost.bounds().map(Option::unwrap);
        assert_eq!((p50, p95, p99), (bound(50, true), bound(1_000, false), bound(1_000, false)));
        assert_eq!(lost.answers().p95, RttSummary::of((1..=90).map(ms)).unwrap().p95);
        // A run has one p99, the same in every output.
        assert_eq!((lost.p50, lost.p95, lost.p99), (p50.ns, Some(p95.ns), Some(p99.ns)));
        // A probe in flight for 60 ms may have been as fast as any answer slower than that.
        let young = of(99, &[ProbeOutcome::InFlight { waited_ns: ms(60) }]);
        assert_eq!(young.bounds().map(|b| b.unwrap().exact), [true, false, false]);
        let never_left = of(99, &[ProbeOutcome::Unsent]);
        assert_eq!(
            never_left.bounds().map(Option::unwrap),
            [bound(50, true), bound(95, true), bound(99, true)]
        );
    }
}
