//! What the two ends of a TCP connection agreed on in their handshake.

use serde::{Deserialize, Serialize};

/// What a connection uses, as a kernel at one of its ends has it; absent members are ones that it does not report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Connection {
    /// Selective acknowledgements (RFC 2018).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sack: Option<bool>,
    /// Timestamps (RFC 7323).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<bool>,
    /// Explicit congestion notification (RFC 3168).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,
    /// By how many bits the sender's own windows are shifted; 0 where it announced none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_window_shift: Option<u8>,
    /// The same of the receiver, whose windows bound the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver_window_shift: Option<u8>,
}
