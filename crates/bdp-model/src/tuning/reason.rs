//! Why a setting is changed, and the predicted gain.

use serde::{Deserialize, Serialize};

use crate::finding::Limit;
use crate::measurement::ends::Direction;

/// The gain that the model predicts for a change.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gain {
    /// The direction of the goodput.
    pub direction: Direction,
    /// Measured goodput, bit/s.
    pub before_bps: f64,
    /// Goodput with this change and those before it, bit/s.
    pub after_bps: f64,
    /// What limits the goodput after the change; null if unknown.
    pub next: Option<Limit>,
    /// Reduction of the median round trip under load, nanoseconds; null if the change does not aim at it.
    pub loaded_rtt_less_ns: Option<u64>,
}

/// Why a setting is changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reason {
    /// The maximum buffer is smaller than the path needs in flight.
    Buffer {
        /// Bytes needed.
        needed_bytes: u64,
        /// Bytes of these that are in flight: rate x round trip.
        in_flight_bytes: u64,
    },
    /// The feature is off, and the path needs it.
    Off,
    /// Losses not caused by the load, to which this congestion control responds with a smaller window.
    RandomLoss {
        /// Share of segments lost.
        loss: f64,
        /// The congestion control.
        congestion_control: String,
    },
    /// The sender keeps a standing queue at the bottleneck.
    StandingQueue {
        /// Added to the median round trip, nanoseconds.
        added_ns: u64,
    },
    /// Bursts overflow a queue that is too short.
    ShallowQueue,
    /// A policer drops traffic above a rate.
    Policer {
        /// The rate, bit/s.
        rate_bps: f64,
    },
    /// Transfers end before slow start does.
    SlowStart {
        /// Round trips that slow start takes.
        round_trips: f64,
    },
    /// Retransmission timeouts, each of which costs many round trips.
    Timeouts {
        /// Number of timeouts.
        timeouts: u64,
    },
    /// Full-size packets are lost.
    MtuBlackHole,
    /// The kernel dropped packets after receiving them.
    HostDrops {
        /// Number of packets.
        packets: u64,
    },
}
