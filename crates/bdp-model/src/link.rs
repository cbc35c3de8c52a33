//! What a link is to do to packets: the configuration that a scenario states and the emulator obeys.

use serde::{Deserialize, Serialize};

use crate::units::{ByteCount, Nanos, Probability, Rate};

/// A link between two hosts: two one-way directions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkConfig {
    /// From the first host named to the second.
    pub forward: DirectionConfig,
    /// From the second host to the first.
    pub reverse: DirectionConfig,
    /// Largest IP packet, in bytes, that either device takes.
    pub mtu: u32,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self { forward: DirectionConfig::default(), reverse: DirectionConfig::default(), mtu: 1500 }
    }
}

/// One direction of a link. A packet meets, in this order: rewrite, loss, queue, serialisation, propagation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DirectionConfig {
    /// Bit rate on the wire; `None` is a link without serialisation time.
    pub rate: Option<Rate>,
    /// Bytes on the wire beside each IP packet: 38 for Ethernet with preamble, header, checksum and gap.
    pub overhead_bytes: u32,
    /// One-way propagation delay.
    pub delay: Nanos,
    /// Packets lost before the queue.
    pub loss: Loss,
    /// What may wait for the wire, the packet being serialised included; drop-tail.
    pub limit: QueueLimit,
    /// What a middlebox does to TCP headers.
    pub rewrite: HeaderRewrite,
}

/// Wire bytes that Ethernet adds to an IP packet: preamble 8, header 14, checksum 4, gap 12.
pub const ETHERNET_OVERHEAD_BYTES: u32 = 38;

impl Default for DirectionConfig {
    fn default() -> Self {
        Self {
            rate: None,
            overhead_bytes: ETHERNET_OVERHEAD_BYTES,
            delay: Nanos::ZERO,
            loss: Loss::None,
            limit: QueueLimit::Packets(1000),
            rewrite: HeaderRewrite::default(),
        }
    }
}

/// How packets are lost. Drawn by the packet's index in its direction, never by time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each packet alone, with this probability.
    Independent(Probability),
    /// The last packet of every `n`: those with index n-1, 2n-1, ... counted from zero.
    Periodic(u64),
}

impl Loss {
    /// Fraction of packets lost in the long run.
    pub fn probability(&self) -> f64 {
        match *self {
            Self::None | Self::Periodic(0) => 0.0,
            Self::Independent(p) => p.fraction(),
            Self::Periodic(n) => 1.0 / n as f64,
        }
    }
}

/// The queue's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueLimit {
    /// In packets.
    Packets(u64),
    /// In wire bytes (IP packet and overhead), so that the longest queueing time is limit x 8 / rate.
    Bytes(ByteCount),
    /// None.
    Unlimited,
}

/// A middlebox that changes TCP headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HeaderRewrite {
    /// Upper bound for the raw window field of every segment without SYN. The field's unit is 2^scale bytes.
    pub window_field_max: Option<u16>,
    /// What becomes of the window scale option in SYN segments.
    pub window_scale: Option<WindowScaleRewrite>,
}

impl HeaderRewrite {
    /// Whether packets pass unchanged.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What a middlebox does to the window scale option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowScaleRewrite {
    /// Overwritten with NOPs, so neither side scales.
    Strip,
    /// The shift count is replaced.
    Set(u8),
}
