//! What a job reports as it goes, whatever its kind: what a live line, interval lines, a stream of JSON and a page read.

use std::time::Duration;

use bdp_flow::session::progress::Progress;
use bdp_model::measurement::Measurement;
use bdp_model::record::Record;

/// A step of a job.
#[derive(Debug)]
pub enum Event<'a> {
    /// A run of the lab begins. From now on it can be resumed.
    Entered {
        /// Its id in the store; `None` where nothing is stored.
        run: Option<&'a str>,
    },
    /// So many cases are to come, which take about this long.
    Planned {
        /// Cases that are not settled yet.
        cases: usize,
        /// Estimate.
        time: Duration,
    },
    /// An attempt at a case begins.
    CaseStarted {
        /// Its key.
        key: &'a str,
        /// From 1.
        attempt: u32,
    },
    /// An attempt at a case ended and its record is durable.
    CaseEnded {
        /// The record.
        record: &'a Record,
        /// Whether no further attempt follows.
        settled: bool,
        /// Estimate of what is left.
        left: Duration,
    },
    /// A measurement goes on.
    Progress {
        /// Of this number, from 1.
        run: u32,
        /// How far it is.
        progress: &'a Progress,
    },
    /// A measurement ended, and is durable where it was to be kept.
    MeasurementEnded {
        /// The id of the stored run; `None` where nothing is stored.
        run: Option<&'a str>,
        /// What it came to.
        measurement: &'a Measurement,
    },
    /// A point of a sweep was measured, and is durable where it was to be kept.
    PointEnded {
        /// What was varied, as `window=64K`.
        key: &'a str,
        /// Points that were measured, this one included.
        done: usize,
        /// Points of the sweep, as far as is known.
        planned: usize,
        /// What it came to.
        measurement: &'a Measurement,
    },
}
