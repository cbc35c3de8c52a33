//! Queues that manage themselves: active queue management (RFC 7567), by their options as `tc` names them.
//!
//! How many packets may wait is the direction's `limit`, as it is of drop-tail.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// The queue of a direction that is not drop-tail.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Queue {
    /// Controlled delay (RFC 8289).
    Codel(Codel),
    /// A queue with CoDel for each flow (RFC 8290).
    FqCodel(FqCodel),
}

/// CoDel: drops or marks at dequeue while the sojourn time stays above the target for an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Codel {
    /// The sojourn time that is acceptable.
    #[serde(rename = "target_ns", with = "crate::units::nanoseconds")]
    pub target: Nanos,
    /// For how long it may be exceeded: the longest usual round trip.
    #[serde(rename = "interval_ns", with = "crate::units::nanoseconds")]
    pub interval: Nanos,
    /// Whether an ECN-capable packet is marked instead of dropped.
    pub ecn: bool,
    /// ECN-capable packets are marked whose sojourn time is above it, at once.
    #[serde(default, rename = "ce_threshold_ns", with = "crate::units::nanoseconds::option")]
    pub ce_threshold: Option<Nanos>,
}

/// FQ-CoDel: deficit round robin among flows, those that are new first, with CoDel in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FqCodel {
    /// Of each flow's queue.
    pub codel: Codel,
    /// Queues into which flows are hashed.
    pub flows: u32,
    /// IP bytes that a flow may send in its turn.
    pub quantum_bytes: u32,
}

impl Queue {
    /// Kinds as scenarios name them.
    pub const KINDS: [&str; 2] = ["codel", "fq_codel"];

    /// The queue of this kind with its defaults, which are those of Linux.
    pub fn of_kind(kind: &str) -> Option<Self> {
        match kind {
            "codel" => Some(Self::Codel(Codel::default())),
            "fq_codel" | "fq-codel" => Some(Self::FqCodel(FqCodel::default())),
            _ => None,
        }
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Codel(_) => "codel",
            Self::FqCodel(_) => "fq_codel",
        }
    }

    /// Packets that may wait where nothing else is said: Linux's defaults.
    pub const fn default_limit(&self) -> u64 {
        match self {
            Self::Codel(_) => 1000,
            Self::FqCodel(_) => 10_240,
        }
    }
}

impl Default for Codel {
    fn default() -> Self {
        Self { target: Nanos::millis(5), interval: Nanos::millis(100), ecn: false, ce_threshold: None }
    }
}

impl Default for FqCodel {
    fn default() -> Self {
        Self { codel: Codel { ecn: true, ..Codel::default() }, flows: 1024, quantum_bytes: 1514 }
    }
}
