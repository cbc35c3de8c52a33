//! A probe with a hop limit, and its answer.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// A packet sent to expire at a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HopProbe {
    /// The phase of the run.
    pub phase: Phase,
    /// Its hop limit.
    pub hop: u8,
    /// Its flow: packets of a flow take the same branches.
    pub flow: u16,
    /// Length of the IP packet, bytes.
    pub bytes: u32,
    /// Time of sending, since the first probe.
    pub sent_ns: u64,
    /// The answer; null if none arrived.
    pub answer: Option<Answer>,
}

/// A phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Discovery of the hops.
    Discovery,
    /// Each hop, without load.
    Idle,
    /// Each hop, under load.
    Loaded,
    /// Hops that lost probes, probed again slowly enough not to exceed an ICMP rate limit.
    Slow,
    /// Packet sizes.
    Sizes,
    /// Branches.
    Branches,
}

/// The answer to a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// Its source address; null if the kernel does not report it.
    pub from: Option<IpAddr>,
    /// Round trip.
    pub rtt_ns: u64,
    /// Its kind.
    pub kind: AnswerKind,
    /// Marks with which the probe arrived, if the quoted header could be read.
    pub marks: Option<Marks>,
}

/// The kind of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// From a router: the hop limit was exceeded.
    Exceeded,
    /// From the destination: an echo, a handshake, a reset or a closed port.
    Arrived,
    /// From a router: the probe is too long for its next link, with the MTU of that link; 0 if not stated.
    TooLong(u32),
    /// The probe cannot be forwarded, with the code of the message.
    Unreachable(u8),
}

/// The type of service or traffic class octet: code point and ECN.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Marks {
    /// Differentiated services code point, 0 to 63 (RFC 2474).
    pub dscp: u8,
    /// 0 not ECN-capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced (RFC 3168).
    pub ecn: u8,
}

impl Marks {
    /// Splits an octet into the two.
    pub const fn of(octet: u8) -> Self {
        Self { dscp: octet >> 2, ecn: octet & 0b11 }
    }
}

impl HopProbe {
    /// Whether the hop, or the destination before it, answered.
    pub fn is_answered(&self) -> bool {
        self.rtt_ns().is_some()
    }

    /// The round trip to the hop.
    pub fn rtt_ns(&self) -> Option<u64> {
        self.answer
            .filter(|answer| !matches!(answer.kind, AnswerKind::TooLong(_)))
            .map(|answer| answer.rtt_ns)
    }
}
