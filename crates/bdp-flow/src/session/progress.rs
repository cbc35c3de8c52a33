//! How far a measurement is.

use bdp_model::finding::Limit;
use bdp_model::measurement::Direction;
use bdp_model::units::Nanos;
use bdp_sys::tcp_info::TcpInfo;
use serde::{Deserialize, Serialize};

pub use crate::meter::ArrivalReading;

/// How far a measurement is, for one live line. Comes about every [`bdp_model::flow::FlowSpec::interval`], but not more often
/// than every 100 ms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// What is going on.
    pub stage: Stage,
    /// Since the stage began.
    #[serde(rename = "elapsed_ns", with = "bdp_model::units::nanoseconds")]
    pub elapsed: Nanos,
    /// How long the stage is meant to take; zero where that is not known.
    #[serde(rename = "total_ns", with = "bdp_model::units::nanoseconds")]
    pub total: Nanos,
    /// Over how long the goodput is one; `None` where that is since the report before.
    #[serde(default, rename = "span_ns", with = "bdp_model::units::nanoseconds::option")]
    pub span: Option<Nanos>,
    /// Goodput since the report before, bit/s, of each direction that runs; as the near end sees it.
    pub goodput_bps: Vec<(Direction, f64)>,
    /// The same of each stream, in order of connection; empty where that is unknown.
    pub stream_goodput_bps: Vec<(Direction, Vec<f64>)>,
    /// What this end's kernel reports of each stream that it sends, as of the last sample; of TCP alone.
    pub sender_infos: Vec<(Direction, Vec<TcpInfo>)>,
    /// What came so far of each stream of datagrams that this end receives.
    pub arrivals: Vec<(Direction, Vec<ArrivalReading>)>,
    /// Payload of the datagrams that this end sends; `None` where it sends none.
    #[serde(default)]
    pub datagram_bytes: Option<u64>,
    /// The stage is over: given are what moved since the report before, and `sender_infos` as they were last.
    pub is_last: bool,
    /// The last round trip of the probe flow.
    pub rtt_ns: Option<u64>,
}

/// A part of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Finding and greeting the server.
    Connecting,
    /// The round trip without load.
    Idle,
    /// One direction under load; where both run at once, [`Stage::Both`].
    Direction(Direction),
    /// Both directions under load.
    Both,
    /// A trial of a search for the highest rate without loss, or the second of a rate that is watched before the test.
    Trial(Direction),
    /// A short flow after the test, to tell two limits apart.
    Experiment(Direction, [Limit; 2]),
}
