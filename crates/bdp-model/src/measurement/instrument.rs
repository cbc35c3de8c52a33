//! Results of `bdp selftest`: the machine's accuracy as an instrument. The JSON form is specified in
//! `docs/selftest.schema.json`.

use serde::{Deserialize, Serialize};

use crate::finding::caveat::Caveat;
use crate::flow::method::FloorProtocol;
use crate::probes::ping::Distribution;

/// Schema version; a reader refuses a larger major number.
pub const INSTRUMENT_SCHEMA: &str = "bdp.selftest/1";

/// Measuring accuracy of this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Instrument {
    /// Schema name and version.
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
    /// Properties of the clock.
    pub clock: ClockFacts,
    /// How much longer than requested a sleep takes.
    pub sleep_overshoot_ns: Option<Distribution>,
    /// Time that a thread that never sleeps loses on its processor.
    pub stalls: StallFacts,
    /// Round trips over loopback between two threads that never sleep: the lower bound of any round trip.
    pub floors: Vec<Floor>,
    /// What a reader should know before relying on the figures.
    pub caveats: Vec<Caveat>,
}

/// The monotonic clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockFacts {
    /// Clock source of the kernel, for example `tsc`; null if it does not report it.
    pub source: Option<String>,
    /// Smallest step between two readings, nanoseconds.
    pub step_ns: u64,
    /// Cost of one reading, picoseconds.
    pub cost_ps: u64,
    /// Readings compared with an earlier one of another processor.
    pub compared: u64,
    /// Readings that were smaller than the earlier one.
    pub backwards: u64,
    /// Largest step backwards, nanoseconds.
    pub backwards_max_ns: u64,
}

/// Time lost by a thread that only reads the clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StallFacts {
    /// Time observed, all processors together, nanoseconds.
    pub watched_ns: u64,
    /// Gaps of more than 10 us between two readings.
    pub count: u64,
    /// Sum of the gaps, nanoseconds.
    pub sum_ns: u64,
    /// Longest gap, nanoseconds.
    pub max_ns: u64,
}

/// Round trips through this machine's stack only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Floor {
    /// Protocol of the round trips.
    pub protocol: FloorProtocol,
    /// Round trips, nanoseconds.
    pub rtt_ns: Option<Distribution>,
}
