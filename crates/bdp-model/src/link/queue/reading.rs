//! Limits of queues, and their state as read.

use serde::{Deserialize, Serialize};

use crate::units::{ByteCount, Nanos};

/// Limit of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum QueueLimit {
    /// In packets.
    Packets(u64),
    /// In wire bytes (IP packet and overhead), so that the longest queueing time is limit x 8 / rate.
    Bytes(ByteCount),
    /// No limit.
    Unlimited,
}

/// State of a queue at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueReading {
    /// Packets waiting, without the one on the wire.
    pub packets: u64,
    /// Bytes on the wire of the waiting packets.
    pub bytes: u64,
    /// How long the packet on the wire had waited; zero if the wire is free.
    pub delay_ns: u64,
}

/// State of a queue over time; each member is a list of samples at the interval, the first at time zero.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueSamples {
    /// Sampling interval: the requested one, doubled until there are fewer than 8,192 samples.
    pub interval_ns: u64,
    /// Packets waiting, without the one on the wire.
    pub packets: Vec<u64>,
    /// Bytes on the wire of the waiting packets.
    pub bytes: Vec<u64>,
    /// How long the packet on the wire had waited; zero if the wire is free.
    pub delay_ns: Vec<u64>,
}

impl QueueSamples {
    /// Collects samples at an interval.
    pub fn new(interval: Nanos, readings: &[QueueReading]) -> Self {
        Self {
            interval_ns: interval.as_ns(),
            packets: readings.iter().map(|reading| reading.packets).collect(),
            bytes: readings.iter().map(|reading| reading.bytes).collect(),
            delay_ns: readings.iter().map(|reading| reading.delay_ns).collect(),
        }
    }
}
