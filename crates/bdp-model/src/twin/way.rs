//! One way of a twin: what its link does.

use serde::{Deserialize, Serialize};

/// One way of a twin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwinWay {
    /// Propagation delay, nanoseconds.
    pub delay_ns: u64,
    /// Its variation.
    pub jitter: Option<TwinJitter>,
    /// The bottleneck; null where nobody has seen one.
    pub bottleneck: Option<Bottleneck>,
    /// Losses at any load.
    pub loss: Option<TwinLoss>,
    /// What drops above a rate.
    pub policer: Option<TwinPolicer>,
    /// Times in which nothing was delivered.
    pub outages: Vec<TwinOutage>,
    /// Segments that overtake others.
    pub reorder: Option<TwinReorder>,
    /// Whether window scaling is stripped from handshakes.
    pub strips_window_scaling: bool,
}

/// A rate and the queue before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bottleneck {
    /// On the wire, bit/s; where it changes, the first.
    pub rate_bps: f64,
    /// Later rates, each with the moment since the flow's start from which it holds, nanoseconds.
    pub steps: Vec<(u64, f64)>,
    /// Packets that the queue holds.
    pub limit_packets: u64,
    /// What manages it.
    pub discipline: Discipline,
    /// Packets in the queue from which on ECN-capable ones are marked.
    pub mark_packets: Option<u64>,
}

/// What manages a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Discipline {
    /// It drops what finds it full.
    #[default]
    DropTail,
    /// It keeps the delay near a target (RFC 8289).
    Codel {
        /// Nanoseconds.
        target_ns: u64,
        /// Whether it marks ECN-capable packets.
        ecn: bool,
    },
    /// The same for each flow by itself (RFC 8290).
    FqCodel {
        /// Nanoseconds.
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
    /// Evenly to both sides of the delay.
    Uniform {
        /// Half the width, nanoseconds.
        spread_ns: u64,
    },
    /// Normal about the delay.
    Normal {
        /// Standard deviation, nanoseconds.
        deviation_ns: u64,
        /// Time in which it changes; null of each packet by itself.
        correlation_ns: Option<u64>,
    },
    /// By quantiles, added to the delay.
    Table {
        /// Nanoseconds.
        quantiles_ns: Vec<i64>,
    },
}

/// Losses that come at any load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TwinLoss {
    /// Each packet alone.
    Random {
        /// Share of packets.
        share: f64,
    },
    /// In bursts: Gilbert-Elliott with all lost in the bad state.
    Bursts {
        /// Probability that a packet begins one.
        begins: f64,
        /// Mean number of packets of one.
        packets: f64,
    },
}

impl TwinLoss {
    /// Share of packets.
    pub fn share(&self) -> f64 {
        match *self {
            Self::Random { share } => share,
            Self::Bursts { begins, packets } => begins * packets / (1.0 + begins * packets),
        }
    }

    /// With so many times the losses.
    pub fn scaled(self, factor: f64) -> Self {
        match self {
            Self::Random { share } => Self::Random { share: (share * factor).min(0.5) },
            Self::Bursts { begins, packets } => Self::Bursts { begins: (begins * factor).min(0.5), packets },
        }
    }
}

/// What drops above a rate without queueing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwinPolicer {
    /// Of IP bits, bit/s.
    pub rate_bps: f64,
    /// Bytes that pass above it at once.
    pub burst_bytes: u64,
}

/// A time in which nothing was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwinOutage {
    /// Since the flow's start, nanoseconds.
    pub at_ns: u64,
    /// How long it lasted, nanoseconds.
    pub for_ns: u64,
    /// Whether packets were lost in it.
    pub drops: bool,
}

/// Packets that are held back so that later ones overtake them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwinReorder {
    /// Share of packets.
    pub share: f64,
    /// For how long, nanoseconds.
    pub by_ns: u64,
}
