//! One probe with a hop limit, and what came back.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// A packet that was to end at a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HopProbe {
    /// What for.
    pub phase: Phase,
    /// Its hop limit.
    pub hop: u8,
    /// Which flow it belongs to: packets of one take the same branches.
    pub flow: u16,
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// When it was sent, since the first.
    pub sent_ns: u64,
    /// What came back; `None` of nothing.
    pub answer: Option<Answer>,
}

/// A part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Which hops there are.
    Discovery,
    /// Each hop, without load of our own.
    Idle,
    /// Each hop, under load.
    Loaded,
    /// Hops that lost probes, again and so slowly that a limit on ICMP does not bind.
    Slow,
    /// Sizes.
    Sizes,
    /// Branches.
    Branches,
}

/// What came back of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// From whom; `None` where the kernel does not say.
    pub from: Option<IpAddr>,
    /// After how long.
    pub rtt_ns: u64,
    /// What it says.
    pub kind: AnswerKind,
    /// The marks with which the probe came there, where the quoted header could be read.
    pub marks: Option<Marks>,
}

/// What an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// A router: the hop limit was used up there.
    Exceeded,
    /// The destination: an echo, a handshake, a reset, a closed port.
    Arrived,
    /// A router: the probe is too long for its next link, which carries so many bytes; 0 where it does not say.
    TooLong(u32),
    /// It can't be passed on from there, with the code of the message.
    Unreachable(u8),
}

/// The octet of type of service or traffic class: code point and ECN.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Marks {
    /// Differentiated services code point, 0..=63 (RFC 2474).
    pub dscp: u8,
    /// 0 not ECN-capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced (RFC 3168).
    pub ecn: u8,
}

impl Marks {
    /// The two in an octet.
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
