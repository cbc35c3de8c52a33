//! Flows that are alike and never came to anything, counted together: floods and scans.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::FlowProtocol;

/// More such flows than this are counted together instead of one by one.
pub const MANY_ATTEMPTS: usize = 1000;

/// Flows of at most three packets without an exchange of data, which have in common what is stated and else differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedAttempts {
    /// What they speak.
    pub protocol: FlowProtocol,
    /// What became of them.
    pub outcome: AttemptOutcome,
    /// Who began all of them; null where several addresses did.
    pub from: Option<IpAddr>,
    /// Whom all of them were meant for; null where that were several addresses.
    pub to: Option<IpAddr>,
    /// The port there; null where they are several, or there are none.
    pub port: Option<u16>,
    /// Flows.
    pub flows: u64,
    /// Their packets, both ways.
    pub packets: u64,
    /// The bytes of these from the IP header on.
    pub bytes: u64,
    /// Addresses that began one.
    pub sources: u64,
    /// Addresses that one was meant for.
    pub destinations: u64,
    /// Ports that one was meant for.
    pub ports: u64,
    /// Packets that went the same way when the memory limit had been reached.
    pub further_packets: u64,
    /// The first packet, since that of the capture.
    pub from_ns: u64,
    /// The last one.
    pub to_ns: u64,
}

/// What became of a flow of few packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// Nothing came back: of TCP a SYN and no answer, of others packets one way.
    Unanswered,
    /// The SYN was answered by a reset: nothing listens there, or something on the way refuses it.
    Refused,
    /// The SYN was answered, and that was not acknowledged.
    HalfOpen,
    /// Who began reset it when the SYN had been answered, as scanners do.
    Abandoned,
    /// The answer to a SYN that was not captured, as who is flooded sends it to addresses that were forged.
    AnswerAlone,
    /// A reset without what it resets.
    ResetAlone,
    /// Segments of a connection that was not seen to begin.
    Stray,
}
