//! What a stack is asked to do with sockets, and what it says of them. In JSON it is the contract's.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The number by which a socket is named; the one who gives the commands chooses it.
pub type SocketId = u32;

/// A command to a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Awaits one connection, and becomes it.
    Listen {
        /// The new socket.
        socket: SocketId,
        /// Its own port.
        port: u16,
        /// Its settings.
        #[serde(flatten)]
        options: SocketOptions,
    },
    /// Opens a connection.
    Connect {
        /// The new socket.
        socket: SocketId,
        /// Its own end.
        from: SocketAddr,
        /// The other end.
        to: SocketAddr,
        /// Its settings.
        #[serde(flatten)]
        options: SocketOptions,
    },
    /// Sends so many more bytes, each the remainder of its position in the stream divided by 251.
    Send {
        /// Which.
        socket: SocketId,
        /// How many; null: without end.
        bytes: Option<u64>,
    },
    /// Reads so many more bytes as they come. Before it nothing is read.
    Receive {
        /// Which.
        socket: SocketId,
        /// How many; null: all that come.
        bytes: Option<u64>,
    },
    /// Ends its own direction (FIN) once all is sent.
    Finish {
        /// Which.
        socket: SocketId,
    },
    /// Resets the connection (RST).
    Abort {
        /// Which.
        socket: SocketId,
    },
}

/// Settings of one socket. What is null is the stack's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketOptions {
    /// Congestion control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// The largest receive window that is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<u64>,
    /// Largest segment that it announces and sends, TCP payload and options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss_bytes: Option<u32>,
    /// Whether small segments wait for acknowledgements (Nagle); false: they do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nodelay: bool,
}

/// Where a socket's connection stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SocketState {
    /// It awaits a connection.
    #[default]
    Listening,
    /// The handshake is under way.
    Connecting,
    /// The handshake is done, and one direction is open at least.
    Open,
    /// Both directions were ended and acknowledged.
    Closed,
    /// It was reset, refused, or given up.
    Lost,
}

/// What is to be known of a socket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketReport {
    /// Which.
    pub socket: SocketId,
    /// Where its connection stands.
    pub state: SocketState,
    /// Bytes that the stack has taken to send.
    #[serde(default)]
    pub sent_bytes: u64,
    /// Bytes that were read.
    #[serde(default)]
    pub received_bytes: u64,
    /// CRC-32 (IEEE 802.3, as zlib has it) of all that was read.
    #[serde(default)]
    pub received_crc: u32,
    /// Whether the other end's direction has ended and all of it was read.
    #[serde(default)]
    pub ended: bool,
    /// Congestion window in bytes, where the stack shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwnd_bytes: Option<u64>,
    /// Smoothed round trip, where the stack shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub srtt_ns: Option<u64>,
}

impl Command {
    /// The socket that it is about.
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
