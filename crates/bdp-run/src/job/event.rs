//! Events of a running job of any kind, as read by the live line, interval lines, the JSON stream and the page.

use std::borrow::Cow;

use bdp_agent::ping::PingProgress;
use bdp_flow::session::progress::Progress;
use bdp_model::measurement::Measurement;
use bdp_model::measurement::ends::End;
use bdp_model::probes::hops::Phase;
use bdp_model::record::Record;
use bdp_model::tuning::{Change, Plan, Rehearsal, Verification};
use bdp_model::units::Nanos;
use bdp_model::watch::WatchInterval;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::RunError;
use crate::job::document;

/// Version of the event schema.
pub const EVENT_SCHEMA: &str = "bdp.event/1";

/// An event of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event<'a> {
    /// An unfinished run of the lab is resumed.
    Resumed {
        /// The run's id.
        run: Cow<'a, str>,
        /// Number of settled cases.
        done: usize,
        /// Number of cases in the plan.
        planned: usize,
    },
    /// There is no unfinished run to resume; a new one begins.
    NothingToResume,
    /// A run of the lab begins. From now on it can be resumed.
    Entered {
        /// The run's id in the store; `None` if nothing is stored.
        run: Option<Cow<'a, str>>,
        /// Number of settled cases.
        done: usize,
        /// Number of cases in the plan.
        planned: usize,
    },
    /// The number of cases to run and their estimated time.
    Planned {
        /// Number of cases that are not settled yet.
        cases: usize,
        /// Estimated time for all of them.
        #[serde(rename = "time_ns", with = "bdp_model::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        time: Nanos,
    },
    /// An attempt at a case begins.
    CaseStarted {
        /// The case's key.
        key: Cow<'a, str>,
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// An attempt at a case ended, and its record is durable.
    CaseEnded {
        /// The record.
        record: Cow<'a, Record>,
        /// Whether no further attempt follows.
        settled: bool,
        /// Estimated time left.
        #[serde(rename = "left_ns", with = "bdp_model::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        left: Nanos,
    },
    /// A measurement made progress.
    Progress {
        /// Number of the repetition, from 1.
        repetition: u32,
        /// The measurement's progress.
        progress: Cow<'a, Progress>,
    },
    /// A measurement ended, and is durable if it is to be stored.
    MeasurementEnded {
        /// The id of the stored run; `None` if nothing is stored.
        run: Option<Cow<'a, str>>,
        /// The measurement.
        measurement: Cow<'a, Measurement>,
    },
    /// A point of a sweep was measured, and is durable if it is to be stored.
    PointEnded {
        /// The varied parameters, such as `window=64K`.
        key: Cow<'a, str>,
        /// Number of points measured, including this one.
        done: usize,
        /// Number of points of the sweep, as far as known.
        planned: usize,
        /// The measurement.
        measurement: Cow<'a, Measurement>,
    },
    /// A phase of probing a path begins.
    Hops {
        /// The phase.
        phase: Phase,
        /// Number of hops of the path, as far as known; 0 if unknown.
        hops: u8,
    },
    /// Probes are in progress.
    Probes {
        /// Progress of the probes.
        progress: Cow<'a, PingProgress>,
    },
    /// A capture of an interface began.
    Capturing {
        /// The interface; `any` for all of them.
        interface: Cow<'a, str>,
        /// How long it captures; `None` until cancelled.
        #[serde(rename = "time_ns", with = "bdp_model::units::nanoseconds::option")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
        time: Option<Nanos>,
    },
    /// A stage of a fix begins.
    Stage {
        /// The stage.
        stage: Stage,
        /// Number of streams, if it measures the path's capacity.
        streams: Option<u32>,
    },
    /// A plan was made.
    Plan {
        /// The plan.
        plan: Cow<'a, Plan>,
    },
    /// The plan cannot be rehearsed here.
    NotRehearsed {
        /// Why not.
        why: Cow<'a, str>,
    },
    /// The plan was rehearsed.
    Rehearsed {
        /// What each variant is predicted to do.
        rehearsal: Cow<'a, Rehearsal>,
    },
    /// The far end's owner must make changes.
    LeftToOwner {
        /// Number of changes.
        changes: usize,
    },
    /// A question to the user.
    Question {
        /// The question.
        question: Question<'a>,
    },
    /// No change was wanted.
    NothingApplied,
    /// Changes were applied.
    Applied {
        /// Where.
        journals: Journals,
    },
    /// The path was measured again and judged.
    Verified {
        /// The verdicts.
        verification: Cow<'a, Verification>,
    },
    /// The changes stay.
    Kept,
    /// Not everything could be put back; the rest reverts when its time is up.
    NotPutBack {
        /// Why not.
        why: Cow<'a, str>,
    },
    /// The changes were put back.
    PutBack {
        /// Number of settings that are as before.
        settings: usize,
    },
    /// Activity of other programs' sockets in an interval.
    Sockets {
        /// The sockets in this interval.
        interval: Cow<'a, WatchInterval>,
    },
}

/// A stage of a fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FixStage"))]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The first measurement.
    Measure,
    /// A measurement with more streams, to find the path's capacity.
    Capacity,
    /// The plan.
    Plan,
    /// Its rehearsal.
    Rehearse,
    /// Applying the changes.
    Apply,
    /// The measurement after the changes.
    Verify,
}

/// A question of a job, answered by yes or no.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum Question<'a> {
    /// Whether to apply a change.
    Apply {
        /// The change.
        change: Cow<'a, Change>,
    },
    /// Whether to keep what was applied.
    Keep,
}

/// The journals of applied changes; none if everything was already set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Journals {
    /// The journal of this host.
    pub near: Option<u32>,
    /// The journal of the far end.
    pub far: Option<u32>,
}

impl Journals {
    /// Whether nothing was set.
    pub const fn is_empty(self) -> bool {
        self.near.is_none() && self.far.is_none()
    }

    /// Each end that has one.
    pub fn each(self) -> impl Iterator<Item = (End, u32)> {
        let (near, far) = (self.near.map(|id| (End::Near, id)), self.far.map(|id| (End::Far, id)));
        near.into_iter().chain(far)
    }
}

impl Event<'_> {
    /// Returns the event as JSON.
    pub fn to_json(&self) -> Value {
        document::write(self, EVENT_SCHEMA)
    }

    /// Reads an event that [`Event::to_json`] wrote; refuses any other version.
    pub fn from_json(document: Value) -> Result<Event<'static>, RunError> {
        document::read(document, EVENT_SCHEMA)
    }
}
