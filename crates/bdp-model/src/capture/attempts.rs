//! Similar flows without any exchange of data, counted together: floods and scans.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::FlowProtocol;

/// If more such flows exist, they are counted together instead of individually.
pub const MANY_ATTEMPTS: usize = 1000;

/// Flows of at most three packets without data that share the given properties.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedAttempts {
    /// Their protocol.
    pub protocol: FlowProtocol,
    /// Their outcome.
    pub outcome: AttemptOutcome,
    /// The initiating address; null if there are several.
    pub from: Option<IpAddr>,
    /// The destination address; null if there are several.
    pub to: Option<IpAddr>,
    /// The destination port; null if there are several or none.
    pub port: Option<u16>,
    /// Number of flows.
    pub flows: u64,
    /// Packets in both directions.
    pub packets: u64,
    /// Bytes of these packets, from the IP header on.
    pub bytes: u64,
    /// Number of initiating addresses.
    pub sources: u64,
    /// Number of destination addresses.
    pub destinations: u64,
    /// Number of destination ports.
    pub ports: u64,
    /// Packets of the same kind after the memory limit was reached.
    pub further_packets: u64,
    /// Time of the first packet, since the first of the capture.
    pub from_ns: u64,
    /// Time of the last packet, since the first of the capture.
    pub to_ns: u64,
}

/// The outcome of a flow of few packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// No answer: a TCP SYN without an answer, or other packets in one direction only.
    Unanswered,
    /// The SYN was answered by a reset: nothing listens there, or a middlebox refuses it.
    Refused,
    /// The SYN was answered, but the answer was not acknowledged.
    HalfOpen,
    /// The initiator reset the connection after the SYN was answered, as scanners do.
    Abandoned,
    /// The answer to a SYN that was not captured, as a flooded host sends to forged addresses.
    AnswerAlone,
    /// A reset without the packet that it answers.
    ResetAlone,
    /// Segments of a connection whose beginning was not captured.
    Stray,
}
