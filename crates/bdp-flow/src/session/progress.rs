//! Progress of a measurement.

use bdp_model::finding::Limit;
use bdp_model::measurement::Direction;
use bdp_model::units::Nanos;
use bdp_sys::tcp_info::TcpInfo;
use serde::{Deserialize, Serialize};

pub use crate::meter::ArrivalReading;

/// Progress of a measurement, reported about every `interval` of its flows, at most every 100 ms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Progress {
    /// The current stage.
    pub stage: Stage,
    /// Time since the stage began.
    #[serde(rename = "elapsed_ns", with = "bdp_model::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub elapsed: Nanos,
    /// Planned duration of the stage; zero if unknown.
    #[serde(rename = "total_ns", with = "bdp_model::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub total: Nanos,
    /// Time over which the goodput is measured; `None` for the time since the last report.
    #[serde(default, rename = "span_ns", with = "bdp_model::units::nanoseconds::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub span: Option<Nanos>,
    /// Goodput since the last report, in bit/s, of each running direction, as seen by the local end.
    pub goodput_bps: Vec<(Direction, f64)>,
    /// Goodput of each stream, in order of connection; empty if unknown.
    pub stream_goodput_bps: Vec<(Direction, Vec<f64>)>,
    /// The local kernel's report of each sent stream, from the last sample; TCP only.
    pub sender_infos: Vec<(Direction, Vec<TcpInfo>)>,
    /// Arrivals so far of each stream of datagrams that the local end receives.
    pub arrivals: Vec<(Direction, Vec<ArrivalReading>)>,
    /// Payload size of the datagrams that the local end sends; `None` if it sends none.
    #[serde(default)]
    pub datagram_bytes: Option<u64>,
    /// Whether the stage is over: the figures are those since the last report, and `sender_infos` the last known.
    pub is_last: bool,
    /// The latest round trip of the probe flow.
    pub rtt_ns: Option<u64>,
}

/// A stage of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Resolving the host, connecting and greeting the server.
    Connecting,
    /// The round trip without load.
    Idle,
    /// One direction under load; `both` if both run at once.
    Direction(Direction),
    /// Both directions under load.
    Both,
    /// A trial of a search for the highest rate without loss, or the second in which a datagram rate is checked
    /// before the test.
    Trial(Direction),
    /// A short flow after the test, to distinguish two limits.
    Experiment(Direction, [Limit; 2]),
}
