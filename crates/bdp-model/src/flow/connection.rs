//! Options that both ends of a TCP connection agreed on in their handshake.

use serde::{Deserialize, Serialize};

/// Options of a connection, according to a kernel at one of its ends; members that it does not report are absent.
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
    /// Window scale of the sender's own windows, bits; 0 if it announced none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_window_shift: Option<u8>,
    /// Window scale of the receiver, whose windows limit the data, bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver_window_shift: Option<u8>,
}
