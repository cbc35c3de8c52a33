//! Commands for a stack's sockets, and reports about them. Their JSON is that of the contract.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The number that identifies a socket, chosen by the sender of the commands.
pub type SocketId = u32;

/// A command to a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Waits for one connection, which takes over the socket.
    Listen {
        /// The new socket.
        socket: SocketId,
        /// Local port.
        port: u16,
        /// Settings of the socket.
        #[serde(flatten)]
        options: SocketOptions,
    },
    /// Opens a connection.
    Connect {
        /// The new socket.
        socket: SocketId,
        /// Local end.
        from: SocketAddr,
        /// Remote end.
        to: SocketAddr,
        /// Settings of the socket.
        #[serde(flatten)]
        options: SocketOptions,
    },
    /// Sends more bytes, each its position in the stream modulo 251.
    Send {
        /// The socket.
        socket: SocketId,
        /// Number of bytes; null for no end.
        bytes: Option<u64>,
    },
    /// Reads more bytes as they arrive. Nothing is read without this command.
    Receive {
        /// The socket.
        socket: SocketId,
        /// Number of bytes; null for all that arrive.
        bytes: Option<u64>,
    },
    /// Closes the sending direction (FIN) once everything is sent.
    Finish {
        /// The socket.
        socket: SocketId,
    },
    /// Resets the connection (RST).
    Abort {
        /// The socket.
        socket: SocketId,
    },
}

/// Settings of one socket; the stack decides those that are null.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketOptions {
    /// Congestion control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// Largest receive window, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<u64>,
    /// Largest segment to announce and send: TCP payload and options, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss_bytes: Option<u32>,
    /// Whether small segments are sent at once; if false, they wait for acknowledgements (Nagle).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nodelay: bool,
}

/// State of a socket's connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SocketState {
    /// Waiting for a connection.
    #[default]
    Listening,
    /// The handshake is in progress.
    Connecting,
    /// The handshake is complete, and at least one direction is open.
    Open,
    /// Both directions were closed and acknowledged.
    Closed,
    /// The connection was reset, refused, or given up.
    Lost,
}

/// The state of a socket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketReport {
    /// The socket.
    pub socket: SocketId,
    /// State of its connection.
    pub state: SocketState,
    /// Bytes that the stack accepted for sending.
    #[serde(default)]
    pub sent_bytes: u64,
    /// Bytes read.
    #[serde(default)]
    pub received_bytes: u64,
    /// CRC-32 (IEEE 802.3, as in zlib) of all bytes read.
    #[serde(default)]
    pub received_crc: u32,
    /// Whether the other end closed its direction and all data was read.
    #[serde(default)]
    pub ended: bool,
    /// Congestion window, bytes; null if the stack does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwnd_bytes: Option<u64>,
    /// Smoothed round trip, nanoseconds; null if the stack does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub srtt_ns: Option<u64>,
}

impl Command {
    /// Returns the socket that the command applies to.
    pub fn socket(&self) -> SocketId {
        match self {
            Self::Listen { socket, .. }
            | Self::Connect { socket, .. }
            | Self::Send { socket, .. }
            | Self::Receive { socket, .. }
            | Self::Finish { socket }
            | Self::Abort { socket } => *socket,
        }
    }
}
