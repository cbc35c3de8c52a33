//! One direction of a twin's path: what its link does.

use serde::{Deserialize, Serialize};

/// One direction of the twin's path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwinWay {
    /// Propagation delay, nanoseconds.
    pub delay_ns: u64,
    /// Variation of the delay; null if there is none.
    pub jitter: Option<TwinJitter>,
    /// The bottleneck; null if none was observed.
    pub bottleneck: Option<Bottleneck>,
    /// Losses that occur at any load.
    pub loss: Option<TwinLoss>,
    /// A policer, which drops above a rate without queueing.
    pub policer: Option<TwinPolicer>,
    /// Periods in which nothing was delivered.
    pub outages: Vec<TwinOutage>,
    /// Packets delivered out of order.
    pub reorder: Option<TwinReorder>,
    /// Whether window scaling is stripped from handshakes.
    pub strips_window_scaling: bool,
}

/// A bottleneck: a rate and its queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bottleneck {
    /// Rate on the wire, bit/s; the first one if it changes.
    pub rate_bps: f64,
    /// Later rates, each with its start since the start of the flow, nanoseconds.
    pub steps: Vec<(u64, f64)>,
    /// Length of the queue, packets.
    pub limit_packets: u64,
    /// Queue management.
    pub discipline: Discipline,
    /// Queue length from which ECN-capable packets are marked.
    pub mark_packets: Option<u64>,
}

/// Queue management.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Discipline {
    /// Drops packets that find the queue full.
    #[default]
    DropTail,
    /// Keeps the delay near a target (RFC 8289).
    Codel {
        /// Target delay, nanoseconds.
        target_ns: u64,
        /// Whether it marks ECN-capable packets.
        ecn: bool,
    },
    /// CoDel with a queue per flow (RFC 8290).
    FqCodel {
        /// Target delay, nanoseconds.
        target_ns: u64,
        /// Whether it marks ECN-capable packets.
        ecn: bool,
    },
}

/// Variation of the delay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TwinJitter {
    /// Uniform on both sides of the delay.
    Uniform {
        /// Half the width, nanoseconds.
        spread_ns: u64,
    },
    /// Normal distribution about the delay.
    Normal {
        /// Standard deviation, nanoseconds.
        deviation_ns: u64,
        /// Correlation time, nanoseconds; null if packets vary independently.
        correlation_ns: Option<u64>,
    },
    /// Quantiles of the deviation from the delay.
    Table {
        /// The quantiles, nanoseconds.
        quantiles_ns: Vec<i64>,
    },
}

/// Losses that occur at any load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TwinLoss {
    /// Independent losses.
    Random {
        /// Share of packets.
        share: f64,
    },
    /// Loss bursts: Gilbert-Elliott with every packet lost in the bad state.
    Bursts {
        /// Probability that a packet starts a burst.
        begins: f64,
        /// Mean length of a burst, packets.
        packets: f64,
    },
}

impl TwinLoss {
    /// Returns the share of packets lost.
    pub fn share(&self) -> f64 {
        match *self {
            Self::Random { share } => share,
            Self::Bursts { begins, packets } => begins * packets / (1.0 + begins * packets),
        }
    }

    /// Returns these losses multiplied by a factor.
    pub fn scaled(self, factor: f64) -> Self {
        match self {
            Self::Random { share } => Self::Random { share: (share * factor).min(0.5) },
            Self::Bursts { begins, packets } => Self::Bursts { begins: (begins * factor).min(0.5), packets },
        }
    }
}

/// A policer: drops above a rate without queueing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwinPolicer {
    /// Rate of IP packets, bit/s.
    pub rate_bps: f64,
    /// Burst allowed above the rate, bytes.
    pub burst_bytes: u64,
}

/// A period in which nothing was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwinOutage {
    /// Start since the start of the flow, nanoseconds.
    pub at_ns: u64,
    /// Duration, nanoseconds.
    pub for_ns: u64,
    /// Whether its packets were lost rather than delayed.
    pub drops: bool,
}

/// Packets delayed so that later ones overtake them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwinReorder {
    /// Share of packets.
    pub share: f64,
    /// Extra delay, nanoseconds.
    pub by_ns: u64,
}
