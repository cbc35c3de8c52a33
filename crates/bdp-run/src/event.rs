//! What a job reports as it goes, whatever its kind: what a live line, interval lines, a stream of JSON and a page read.

use std::borrow::Cow;

use bdp_agent::ping::PingProgress;
use bdp_flow::session::progress::Progress;
use bdp_model::hops::Phase;
use bdp_model::measurement::Measurement;
use bdp_model::record::Record;
use bdp_model::units::Nanos;
use bdp_model::watch::WatchInterval;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{RunError, document};

/// Version of an event's shape.
pub const EVENT_SCHEMA: &str = "bdp.event/1";

/// A step of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event<'a> {
    /// An unfinished run of the lab is resumed.
    Resumed {
        /// Its id.
        run: Cow<'a, str>,
        /// Cases that are settled.
        done: usize,
        /// Cases of the plan.
        planned: usize,
    },
    /// There is no unfinished run to resume; a new one begins.
    NothingToResume,
    /// A run of the lab begins. From now on it can be resumed.
    Entered {
        /// Its id in the store; `None` where nothing is stored.
        run: Option<Cow<'a, str>>,
        /// Cases that are settled.
        done: usize,
        /// Cases of the plan.
        planned: usize,
    },
    /// So many cases are to come, which take about this long.
    Planned {
        /// Cases that are not settled yet.
        cases: usize,
        /// Estimate.
        #[serde(rename = "time_ns", with = "bdp_model::units::nanoseconds")]
        time: Nanos,
    },
    /// An attempt at a case begins.
    CaseStarted {
        /// Its key.
        key: Cow<'a, str>,
        /// From 1.
        attempt: u32,
    },
    /// An attempt at a case ended and its record is durable.
    CaseEnded {
        /// The record.
        record: Cow<'a, Record>,
        /// Whether no further attempt follows.
        settled: bool,
        /// Estimate of what is left.
        #[serde(rename = "left_ns", with = "bdp_model::units::nanoseconds")]
        left: Nanos,
    },
    /// A measurement goes on.
    Progress {
        /// Of this number, from 1.
        repetition: u32,
        /// How far it is.
        progress: Cow<'a, Progress>,
    },
    /// A measurement ended, and is durable where it was to be kept.
    MeasurementEnded {
        /// The id of the stored run; `None` where nothing is stored.
        run: Option<Cow<'a, str>>,
        /// The measurement.
        measurement: Cow<'a, Measurement>,
    },
    /// A point of a sweep was measured, and is durable where it was to be kept.
    PointEnded {
        /// What was varied, as `window=64K`.
        key: Cow<'a, str>,
        /// Points that were measured, this one included.
        done: usize,
        /// Points of the sweep, as far as is known.
        planned: usize,
        /// The measurement.
        measurement: Cow<'a, Measurement>,
    },
    /// A part of the probing of a path begins.
    Hops {
        /// Which.
        phase: Phase,
        /// Hops of the path, as far as is known; 0 before any is.
        hops: u8,
    },
    /// Probes are under way.
    Probes {
        /// How far they are.
        progress: Cow<'a, PingProgress>,
    },
    /// What sockets of other programs did in an interval.
    Sockets {
        /// Each of them.
        interval: Cow<'a, WatchInterval>,
    },
}

impl Event<'_> {
    /// As JSON.
    pub fn to_json(&self) -> Value {
        document::write(self, EVENT_SCHEMA)
    }

    /// An event that [`Event::to_json`] wrote; another version's is refused.
    pub fn from_json(document: Value) -> Result<Event<'static>, RunError> {
        document::read(document, EVENT_SCHEMA)
    }
}
