//! What `bdp selftest` finds out about the machine as an instrument. Its JSON form is specified in
//! `docs/selftest.schema.json`.

use serde::{Deserialize, Serialize};

use crate::caveat::Caveat;
use crate::method::FloorProtocol;
use crate::ping::Distribution;

/// Version of the shape; a reader refuses a larger major number.
pub const INSTRUMENT_SCHEMA: &str = "bdp.selftest/1";

/// How exact this machine can be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Instrument {
    /// Name and version of this document's shape.
    #[cfg_attr(feature = "schema", schemars(extend("const" = INSTRUMENT_SCHEMA)))]
    pub schema: String,
    /// Version of bdp that measured.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub bdp: String,
    /// `uname -r`.
    pub kernel: String,
    /// Processors that bdp may run on.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub cpus: u32,
    /// The clock.
    pub clock: ClockFacts,
    /// How much longer than asked a sleep takes.
    pub sleep_overshoot_ns: Option<Distribution>,
    /// What a thread that never sleeps misses of its processor.
    pub stalls: StallFacts,
    /// Round trips over loopback between two threads that keep their processors: what no round trip goes below.
    pub floors: Vec<Floor>,
    /// What a reader should know.
    pub caveats: Vec<Caveat>,
}

/// The monotonic clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockFacts {
    /// Where the kernel takes it from, `tsc`; null where it does not tell.
    pub source: Option<String>,
    /// Smallest step between two readings, nanoseconds.
    pub step_ns: u64,
    /// What one reading costs, picoseconds.
    pub cost_ps: u64,
    /// Readings that were held against one of another processor that had come before.
    pub compared: u64,
    /// Of those, the ones that were smaller.
    pub backwards: u64,
    /// By how much at most, nanoseconds.
    pub backwards_max_ns: u64,
}

/// What a thread that only reads the clock misses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StallFacts {
    /// Time watched, all processors together, nanoseconds.
    pub watched_ns: u64,
    /// Gaps of more than 10 us between two readings.
    pub count: u64,
    /// Their sum, nanoseconds.
    pub sum_ns: u64,
    /// The longest, nanoseconds.
    pub max_ns: u64,
}

/// A round trip that only the stack of this machine is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Floor {
    /// What makes them.
    pub protocol: FloorProtocol,
    /// The round trips, nanoseconds.
    pub rtt_ns: Option<Distribution>,
}
