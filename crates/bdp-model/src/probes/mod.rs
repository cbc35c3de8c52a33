//! Individual probes: when each was due, when it was sent, and its outcome.
//!
//! The time axis of a series is that of the flow it accompanies: nanoseconds since the flow's first byte, negative before.

pub mod flight;
pub mod hops;
pub mod latency_parts;
pub mod mtu_search;
pub mod one_way;
pub mod ping;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::statistics::random::SplitMix64;

/// A probe sent later than this was not sent on time: it counts from when it was due, because a request that
/// arrived then would have waited (coordinated omission). A smaller delay is the host's wake-up time, which is not part of the path.
pub const LATE_NS: u64 = 1_000_000;

/// Outcome of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeOutcome {
    /// It was answered after this many nanoseconds.
    Answered(u64),
    /// The wait for its answer was cut short.
    InFlight {
        /// Time waited: its round trip is longer.
        waited_ns: u64,
    },
    /// No answer came in time.
    Lost {
        /// Time waited.
        waited_ns: u64,
    },
    /// It was not sent: the host could not send it, or it was refused.
    Unsent,
}

impl ProbeOutcome {
    /// Returns the outcome of a probe that counts from one time and was awaited until another; it is lost once older than `patience_ns`.
    pub fn of(rtt_ns: Option<u64>, counts_from_ns: u64, awaited_until_ns: u64, patience_ns: u64) -> Self {
        let waited_ns = awaited_until_ns.saturating_sub(counts_from_ns);
        match rtt_ns {
            Some(rtt_ns) => Self::Answered(rtt_ns),
            None if waited_ns < patience_ns => Self::InFlight { waited_ns },
            None => Self::Lost { waited_ns: patience_ns },
        }
    }

    /// Returns its round trip.
    pub const fn rtt_ns(self) -> Option<u64> {
        match self {
            Self::Answered(rtt_ns) => Some(rtt_ns),
            Self::InFlight { .. } | Self::Lost { .. } | Self::Unsent => None,
        }
    }
}

/// Returns the time from which a probe counts: when it was sent, or when it was due if it was sent late ([`LATE_NS`]).
pub const fn counts_from(due_ns: u64, sent_ns: u64) -> u64 {
    if sent_ns.saturating_sub(due_ns) > LATE_NS { due_ns } else { sent_ns }
}

/// One probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbePoint {
    /// When it was due.
    pub due_ns: i64,
    /// When it was sent.
    pub sent_ns: i64,
    /// Its outcome; a round trip counts from [`ProbePoint::counts_from_ns`].
    pub outcome: ProbeOutcome,
    /// Delay from the near end to the far one, by compared clocks; `None` if the far end reported no times.
    pub there_ns: Option<i64>,
    /// Delay from the far end to the near one, by compared clocks; `None` if the far end reported no times.
    pub back_ns: Option<i64>,
    /// Part of its round trip spent in the two hosts; `None` if no kernel stamped it.
    pub host_ns: Option<u64>,
    /// Probes received by the far end when it answered this one, modulo 256; `None` if it does not count them.
    pub echoed: Option<u8>,
}

impl ProbePoint {
    /// Creates a probe with only its due time, sending time and outcome.
    pub const fn plain(due_ns: i64, sent_ns: i64, outcome: ProbeOutcome) -> Self {
        Self { due_ns, sent_ns, outcome, there_ns: None, back_ns: None, host_ns: None, echoed: None }
    }

    /// Returns the time from which its round trip counts.
    pub const fn counts_from_ns(&self) -> i64 {
        if self.sent_ns.saturating_sub(self.due_ns) > LATE_NS as i64 { self.due_ns } else { self.sent_ns }
    }

    /// Returns its round trip.
    pub const fn rtt_ns(&self) -> Option<u64> {
        self.outcome.rtt_ns()
    }
}

/// Probes in the order in which they were due. Each array has an element for each probe.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "Columns", into = "Columns")]
pub struct ProbeSeries {
    /// Time range of the figures: for a flow, from after omit to its end.
    pub counted_ns: Option<(i64, i64)>,
    /// The probes.
    pub points: Vec<ProbePoint>,
}

impl ProbeSeries {
    /// Returns the probes that count in the figures: all if no time range is given.
    pub fn counted(&self) -> impl Iterator<Item = &ProbePoint> {
        let within = self.counted_ns;
        self.points.iter().filter(move |point| {
            within.is_none_or(|(from, until)| (from..until).contains(&point.counts_from_ns()))
        })
    }

    /// Returns the series shifted to a clock that started later by `start_ns`, limited to a range of that clock.
    pub fn since(&self, start_ns: i64, within: Range<i64>) -> Self {
        let points = self.points.iter().map(|point| ProbePoint {
            due_ns: point.due_ns - start_ns,
            sent_ns: point.sent_ns - start_ns,
            ..*point
        });
        Self {
            counted_ns: self.counted_ns.map(|(from, until)| (from - start_ns, until - start_ns)),
            points: points.filter(|point| within.contains(&point.counts_from_ns())).collect(),
        }
    }
}

/// Lost probes of a series, by direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LostEachWay {
    /// Probes that were sent, and whose answer has arrived or can no longer arrive.
    pub known: u64,
    /// Lost between the near end and the far one.
    pub there: u64,
    /// Probes whose answer was lost.
    pub back: u64,
    /// Lost in an unknown direction: no probe answered before or after shows which.
    pub unknown: u64,
}

impl ProbeSeries {
    /// Returns where counted probes were lost, from how far the far end's count grew between answers. `None` if
    /// it does not count them.
    pub fn lost_each_way(&self) -> Option<LostEachWay> {
        let mut lost = LostEachWay::default();
        let (mut before, mut gap, mut counts) = (None::<u8>, 0, false);
        for point in self.counted() {
            match point.outcome {
                ProbeOutcome::InFlight { .. } | ProbeOutcome::Unsent => continue,
                ProbeOutcome::Lost { .. } => gap += 1,
                ProbeOutcome::Answered(_) => {
                    // Of the probes between the two answers, those that arrived. Unknown if there are more than a byte counts, or if probes
                    // overtook each other.
                    let came = before.zip(point.echoed).map(|(before, now)| now.wrapping_sub(before));
                    let came = came.and_then(|came| came.checked_sub(1)).map(u64::from);
                    match came.filter(|&came| came <= gap && gap < u64::from(u8::MAX)) {
                        Some(came) => {
                            lost.back += came;
                            lost.there += gap - came;
                        }
                        None => lost.unknown += gap,
                    }
                    counts |= point.echoed.is_some();
                    before = point.echoed;
                    gap = 0;
                }
            }
            lost.known += 1;
        }
        lost.unknown += gap;
        counts.then_some(lost)
    }
}

/// Probes between two hosts of the lab, before and during the flows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairProbes {
    /// Sending host.
    pub from: String,
    /// Answering host.
    pub to: String,
    /// Probes before the flows, timed from when the first was due.
    pub idle: ProbeSeries,
    /// Probes during the flows, timed from when the flows could start.
    pub loaded: ProbeSeries,
}

/// JSON form of a series.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Columns {
    /// Time range of the probes that count in the figures, from after omit to the end of the flow; null if all count.
    #[serde(default)]
    counted_ns: Option<(i64, i64)>,
    /// When each was due, negative before the first byte of the flow.
    due_ns: Vec<i64>,
    /// When each was sent.
    sent_ns: Vec<i64>,
    /// Round trips, from when it was sent, or due if it was sent more than 1 ms late; null if no answer arrived: the reason is in
    /// `unanswered`.
    rtt_ns: Vec<Option<u64>>,
    /// Probes without an answer.
    #[serde(default)]
    unanswered: Vec<Unanswered>,
    /// Delays from the near end to the far one, by compared clocks; null if the far end reported no times.
    #[serde(default)]
    there_ns: Vec<Option<i64>>,
    /// Delays from the far end to the near one, by compared clocks; null if the far end reported no times.
    #[serde(default)]
    back_ns: Vec<Option<i64>>,
    /// Parts of the round trips spent in the two hosts; null if no kernel stamped them.
    #[serde(default)]
    host_ns: Vec<Option<u64>>,
    /// Probes that had reached the far end when it answered, modulo 256; absent if it does not count them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    echoed: Vec<Option<u8>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Unanswered {
    /// Index in the arrays.
    index: usize,
    /// Why it has no answer.
    outcome: Reason,
    /// How long an answer was awaited.
    #[serde(default)]
    waited_ns: Option<u64>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Reason {
    /// No answer came in time.
    Lost,
    /// The wait was cut short.
    InFlight,
    /// It was not sent.
    Unsent,
}

impl From<ProbeSeries> for Columns {
    fn from(ProbeSeries { counted_ns, points }: ProbeSeries) -> Self {
        let unanswered = |(index, point): (usize, &ProbePoint)| {
            let (outcome, waited_ns) = match point.outcome {
                ProbeOutcome::Answered(_) => return None,
                ProbeOutcome::InFlight { waited_ns } => (Reason::InFlight, Some(waited_ns)),
                ProbeOutcome::Lost { waited_ns } => (Reason::Lost, Some(waited_ns)),
                ProbeOutcome::Unsent => (Reason::Unsent, None),
            };
            Some(Unanswered { index, outcome, waited_ns })
        };
        Self {
            counted_ns,
            due_ns: points.iter().map(|point| point.due_ns).collect(),
            sent_ns: points.iter().map(|point| point.sent_ns).collect(),
            rtt_ns: points.iter().map(ProbePoint::rtt_ns).collect(),
            unanswered: points.iter().enumerate().filter_map(unanswered).collect(),
            there_ns: column(&points, |point| point.there_ns),
            back_ns: column(&points, |point| point.back_ns),
            host_ns: column(&points, |point| point.host_ns),
            echoed: column(&points, |point| point.echoed),
        }
    }
}

/// Returns a column, empty if no probe has the member.
fn column<T>(points: &[ProbePoint], of: impl Fn(&ProbePoint) -> Option<T>) -> Vec<Option<T>> {
    let all: Vec<Option<T>> = points.iter().map(of).collect();
    if all.iter().all(Option::is_none) { Vec::new() } else { all }
}

impl TryFrom<Columns> for ProbeSeries {
    type Error = String;

    fn try_from(columns: Columns) -> Result<Self, String> {
        let n = columns.due_ns.len();
        let lengths = [columns.sent_ns.len(), columns.rtt_ns.len()];
        let optional =
            [columns.there_ns.len(), columns.back_ns.len(), columns.host_ns.len(), columns.echoed.len()];
        if lengths.iter().any(|&length| length != n)
            || optional.iter().any(|&length| length != 0 && length != n)
        {
            return Err(format!("the arrays of a probe series do not all have {n} entries"));
        }
        let mut outcomes: Vec<ProbeOutcome> = columns
            .rtt_ns
            .iter()
            .map(|rtt| rtt.map_or(ProbeOutcome::Unsent, ProbeOutcome::Answered))
            .collect();
        for Unanswered { index, outcome, waited_ns } in columns.unanswered {
            let slot = outcomes.get_mut(index).filter(|slot| slot.rtt_ns().is_none()).ok_or_else(|| {
                format!("probe {index} of {n} is marked as unanswered, but was answered or does not exist")
            })?;
            let waited_ns = waited_ns.unwrap_or(0);
            *slot = match outcome {
                Reason::Lost => ProbeOutcome::Lost { waited_ns },
                Reason::InFlight => ProbeOutcome::InFlight { waited_ns },
                Reason::Unsent => ProbeOutcome::Unsent,
            };
        }
        let points = (0..n).map(|i| ProbePoint {
            due_ns: columns.due_ns[i],
            sent_ns: columns.sent_ns[i],
            outcome: outcomes[i],
            there_ns: columns.there_ns.get(i).copied().flatten(),
            back_ns: columns.back_ns.get(i).copied().flatten(),
            host_ns: columns.host_ns.get(i).copied().flatten(),
            echoed: columns.echoed.get(i).copied().flatten(),
        });
        Ok(Self { counted_ns: columns.counted_ns, points: points.collect() })
    }
}

/// Schedule of probes: one per interval, at a moment drawn uniformly from a seed. The mean distance is the interval, and the probes
/// do not stay in step with any period of a load (RFC 2330, section 11.1.1; RFC 3432, section 4, requires a random start, which this has for
/// every probe).
#[derive(Debug, Clone)]
pub struct ProbeTimes {
    seed: u64,
    interval_ns: u64,
    /// Part of each interval in which its probe falls.
    width_ns: u64,
}

impl ProbeTimes {
    /// Creates a schedule with probes anywhere within each interval.
    pub const fn new(seed: u64, interval_ns: u64) -> Self {
        Self::within(seed, interval_ns, interval_ns)
    }

    /// Creates a schedule with probes in the first `width_ns` of each interval; 0 for no randomness.
    pub const fn within(seed: u64, interval_ns: u64, width_ns: u64) -> Self {
        Self { seed, interval_ns, width_ns }
    }

    /// Returns when a probe is due, from the start. Depends only on the seed and its number.
    pub fn due_ns(&self, number: u64) -> u64 {
        let start = number.saturating_mul(self.interval_ns);
        // Each number has its own generator, so that the order of calls does not matter.
        let drawn =
            SplitMix64(SplitMix64(self.seed ^ number.wrapping_mul(0xa076_1d64_78bd_642f)).next()).next();
        start.saturating_add(((u128::from(drawn) * u128::from(self.width_ns)) >> 64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: i64 = 1_000_000;

    fn series() -> ProbeSeries {
        let points = vec![
            ProbePoint {
                there_ns: Some(3 * MS),
                ..ProbePoint::plain(-5 * MS, -5 * MS, ProbeOutcome::Answered(7))
            },
            ProbePoint::plain(5 * MS, 5 * MS, ProbeOutcome::Lost { waited_ns: 9 }),
            ProbePoint::plain(15 * MS, 18 * MS, ProbeOutcome::InFlight { waited_ns: 4 }),
            ProbePoint::plain(25 * MS, 25 * MS, ProbeOutcome::Unsent),
        ];
        ProbeSeries { counted_ns: Some((0, 16 * MS)), points }
    }

    #[test]
    fn a_series_is_arrays_in_json_and_says_why_probes_have_no_answer() {
        let json = serde_json::to_value(series()).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "counted_ns": [0, 16 * MS],
                "due_ns": [-5 * MS, 5 * MS, 15 * MS, 25 * MS],
                "sent_ns": [-5 * MS, 5 * MS, 18 * MS, 25 * MS],
                "rtt_ns": [7, null, null, null],
                "unanswered": [
                    {"index": 1, "outcome": "lost", "waited_ns": 9},
                    {"index": 2, "outcome": "in_flight", "waited_ns": 4},
                    {"index": 3, "outcome": "unsent", "waited_ns": null},
                ],
                "there_ns": [3 * MS, null, null, null],
                "back_ns": [],
                "host_ns": [],
            })
        );
        assert_eq!(serde_json::from_value::<ProbeSeries>(json).unwrap(), series());
    }

    #[test]
    fn the_count_of_the_far_end_tells_the_ways_of_losses_apart() {
        let answered = |echoed| ProbePoint {
            echoed: Some(echoed),
            ..ProbePoint::plain(0, 0, ProbeOutcome::Answered(1))
        };
        let lost = ProbePoint::plain(0, 0, ProbeOutcome::Lost { waited_ns: 9 });
        let waits = ProbePoint::plain(0, 0, ProbeOutcome::InFlight { waited_ns: 9 });
        let of = |points: Vec<ProbePoint>| ProbeSeries { counted_ns: None, points }.lost_each_way();
        let found = |known, there, back, unknown| Some(LostEachWay { known, there, back, unknown });
        assert_eq!(of(vec![answered(1), lost, lost, lost, answered(3)]), found(5, 2, 1, 0));
        assert_eq!(of(vec![answered(255), lost, answered(0), lost, answered(2)]), found(5, 1, 1, 0));
        // Nothing is known before the first answer and after the last.
        assert_eq!(of(vec![lost, answered(7), answered(8), lost, waits]), found(4, 0, 0, 2));
        // A probe that overtook another, and a gap that a byte cannot count.
        assert_eq!(of(vec![answered(7), lost, answered(7)]), found(3, 0, 0, 1));
        let pause = [vec![answered(0)], vec![lost; 255], vec![answered(1)]].concat();
        assert_eq!(of(pause), found(257, 0, 0, 255));
        let silent = ProbePoint::plain(0, 0, ProbeOutcome::Answered(1));
        assert_eq!(of(vec![silent, lost, silent]), None);
        assert_eq!(of(Vec::new()), None);
    }

    #[test]
    fn arrays_of_other_lengths_and_answers_that_are_none_are_refused() {
        for wrong in [
            r#"{"due_ns": [1], "sent_ns": [], "rtt_ns": [1]}"#,
            r#"{"due_ns": [1], "sent_ns": [1], "rtt_ns": [1], "host_ns": [1, 2]}"#,
            r#"{"due_ns": [1], "sent_ns": [1], "rtt_ns": [1], "unanswered": [{"index": 0, "outcome": "lost"}]}"#,
            r#"{"due_ns": [], "sent_ns": [], "rtt_ns": [], "unanswered": [{"index": 0, "outcome": "lost"}]}"#,
        ] {
            assert!(serde_json::from_str::<ProbeSeries>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_late_probe_counts_from_when_it_was_due() {
        assert_eq!(counts_from(100, 100 + LATE_NS), 100 + LATE_NS);
        assert_eq!(counts_from(100, 101 + LATE_NS), 100);
        // Due within the time but sent after it; the first and the last are outside.
        let counted: Vec<i64> = series().counted().map(|point| point.due_ns).collect();
        assert_eq!(counted, [5 * MS, 15 * MS]);
    }

    #[test]
    fn another_start_shifts_all_times_and_cuts() {
        let later = series().since(10 * MS, -10 * MS..10 * MS);
        assert_eq!(later.counted_ns, Some((-10 * MS, 6 * MS)));
        assert_eq!(later.points.iter().map(|p| p.due_ns).collect::<Vec<_>>(), [-5 * MS, 5 * MS]);
        assert_eq!(later.points[1].sent_ns, 8 * MS);
    }

    #[test]
    fn an_outcome_is_known_by_how_long_it_was_waited_for() {
        assert_eq!(ProbeOutcome::of(Some(5), 0, 100, 50), ProbeOutcome::Answered(5));
        assert_eq!(ProbeOutcome::of(None, 0, 100, 50), ProbeOutcome::Lost { waited_ns: 50 });
        assert_eq!(ProbeOutcome::of(None, 60, 100, 50), ProbeOutcome::InFlight { waited_ns: 40 });
    }

    proptest! {
        #[test]
        fn each_interval_has_one_probe_and_a_seed_gives_the_same(
            seed: u64,
            interval in 1_000u64..100_000_000,
            number in 0u64..1_000_000,
        ) {
            let times = ProbeTimes::new(seed, interval);
            let due = times.due_ns(number);
            prop_assert_eq!(due / interval, number);
            prop_assert_eq!(due, ProbeTimes::new(seed, interval).due_ns(number));
            prop_assert_eq!(ProbeTimes::within(seed, interval, 0).due_ns(number), number * interval);
        }
    }

    /// A load whose period is the probes' interval is sampled at all its phases: none of ten equal parts is missed or
    /// sampled twice as often as expected.
    #[test]
    fn no_phase_of_a_load_with_the_same_period_is_left_out() {
        let times = ProbeTimes::new(7, 50 * MS as u64);
        let mut phases = [0; 10];
        for number in 0..2_000 {
            phases[(times.due_ns(number) % (50 * MS as u64) / (5 * MS as u64)) as usize] += 1;
        }
        assert!(phases.iter().all(|&n| (140..260).contains(&n)), "{phases:?}");
        assert_ne!(times.due_ns(3), ProbeTimes::new(8, 50 * MS as u64).due_ns(3));
    }
}
