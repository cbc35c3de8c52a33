//! Why a setting is changed, and what that gives.

use serde::{Deserialize, Serialize};

use crate::ends::Direction;
use crate::finding::Limit;

/// What a change gives by the model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gain {
    /// The direction whose goodput it is.
    pub direction: Direction,
    /// Goodput as it was measured.
    pub before_bps: f64,
    /// Goodput with it, together with the changes before it.
    pub after_bps: f64,
    /// What binds then; null where that is not known.
    pub next: Option<Limit>,
    /// What it takes off the median round trip under load, nanoseconds; null where it is not for that.
    pub loaded_rtt_less_ns: Option<u64>,
}

/// Why a setting is changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reason {
    /// The largest buffer holds less than the path needs in flight.
    Buffer {
        /// Bytes that it needs.
        needed_bytes: u64,
        /// Of these the part that is in flight: rate x round trip.
        in_flight_bytes: u64,
    },
    /// It is off, and the path needs it.
    Off,
    /// Losses that the load does not cause, to which this congestion control answers by a smaller window.
    RandomLoss {
        /// Share of segments that are lost.
        loss: f64,
        /// The congestion control.
        congestion_control: String,
    },
    /// The sender keeps a queue standing at the bottleneck.
    StandingQueue {
        /// What it adds to the median round trip, nanoseconds.
        added_ns: u64,
    },
    /// Bursts overflow a queue that is too short for them.
    ShallowQueue,
    /// Something drops what exceeds a rate.
    Policer {
        /// The rate, bit/s.
        rate_bps: f64,
    },
    /// Transfers end before slow start does.
    SlowStart {
        /// Round trips that it takes.
        round_trips: f64,
    },
    /// Retransmission timeouts, of which each takes many round trips.
    Timeouts {
        /// How many.
        timeouts: u64,
    },
    /// Packets of full size vanish.
    MtuBlackHole,
    /// The kernel dropped packets that had come.
    HostDrops {
        /// How many.
        packets: u64,
    },
}
