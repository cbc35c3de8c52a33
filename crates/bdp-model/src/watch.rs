//! Sockets of other programs, observed from outside while in use.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::finding::{Finding, Limit};
use crate::names;

/// Schema version of a JSON line.
pub const WATCH_SCHEMA: &str = "bdp.watch/1";

/// What to watch.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WatchTarget {
    /// A process and its descendants.
    Process(u32),
    /// A port, local or remote.
    Port(u16),
    /// A remote host, by name or address, and its port if given.
    Host(String, Option<u16>),
    /// Every connection.
    All,
}

/// A program that has a socket open.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Holder {
    /// Process ID.
    pub pid: u32,
    /// Program name.
    pub name: String,
}

/// State of a connection (RFC 9293, section 3.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ConnectionState {
    Established,
    SynSent,
    SynReceived,
    FinWait1,
    FinWait2,
    CloseWait,
    LastAck,
    Closing,
    Closed,
}

names!(
    ConnectionState: Established = "established", SynSent = "syn-sent", SynReceived = "syn-received",
        FinWait1 = "fin-wait-1", FinWait2 = "fin-wait-2", CloseWait = "close-wait", LastAck = "last-ack",
        Closing = "closing", Closed = "closed"
);

impl ConnectionState {
    /// Converts the state number of Linux, `include/net/tcp_states.h`; numbers that are not a connection's state mean closed.
    pub const fn of_linux(number: u8) -> Self {
        match number {
            1 => Self::Established,
            2 => Self::SynSent,
            // TCP_SYN_RECV of a socket, TCP_NEW_SYN_RECV of a connection request.
            3 | 12 => Self::SynReceived,
            4 => Self::FinWait1,
            5 => Self::FinWait2,
            8 => Self::CloseWait,
            9 => Self::LastAck,
            11 => Self::Closing,
            _ => Self::Closed,
        }
    }
}

/// Role of this end of a socket, by its bytes in the last seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It sends more than it receives.
    Sending,
    /// It receives more than it sends.
    Receiving,
    /// No byte was acknowledged or received, and none is queued.
    Quiet,
}

/// Identity of a socket: its ends and its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SocketName {
    /// Socket cookie, unique on this machine until it reboots.
    pub cookie: u64,
    /// Inode number, as in `/proc/PID/fd`.
    pub inode: u32,
    /// Program that has it open; null if that is not visible.
    pub holder: Option<Holder>,
    /// User ID of the owner.
    pub user: u32,
    /// Local address and port.
    pub local: SocketAddr,
    /// Remote address and port.
    pub remote: SocketAddr,
}

/// How long a sender was busy in an interval, and what limited it, as counted by its kernel; shares of the interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BusyShares {
    /// Time with data in flight or to send.
    pub busy: f64,
    /// Part of the busy time limited by the receive window; known to under-report.
    pub rwnd_limited: f64,
    /// Part of the busy time limited by the send buffer.
    pub sndbuf_limited: f64,
}

/// One socket in one interval. Null for what the kernel did not report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SocketReading {
    /// Identity of the socket.
    #[serde(flatten)]
    pub name: SocketName,
    /// State of the connection.
    pub state: ConnectionState,
    /// Role of this end.
    pub role: Role,
    /// Congestion control of this end.
    pub congestion_control: Option<String>,
    /// Bytes acknowledged by the other end in the interval x 8 / its length, bit/s.
    pub sent_bps: f64,
    /// Bytes received in the interval x 8 / its length, bit/s.
    pub received_bps: f64,
    /// Bytes acknowledged since the socket was first seen.
    pub sent_bytes: u64,
    /// Bytes received since the socket was first seen.
    pub received_bytes: u64,
    /// Smoothed round trip.
    pub rtt_ns: Option<u64>,
    /// Smallest round trip of the last minutes.
    pub min_rtt_ns: Option<u64>,
    /// Payload bytes of a full segment sent.
    pub mss_bytes: Option<u64>,
    /// Congestion window, segments.
    pub cwnd_segments: Option<u32>,
    /// Slow start threshold, segments; null before the first congestion event.
    pub ssthresh_segments: Option<u32>,
    /// Segments in flight.
    pub in_flight_segments: Option<u32>,
    /// Receive window advertised by the other end.
    pub send_window_bytes: Option<u64>,
    /// Receive window that this end intends to advertise.
    pub receive_window_bytes: Option<u64>,
    /// Segments retransmitted in the interval.
    pub retransmits: Option<u64>,
    /// Segments retransmitted since the connection began.
    pub retransmits_total: Option<u64>,
    /// Segments received out of order in the interval.
    pub out_of_order: Option<u64>,
    /// Latest sample of the delivery rate, bit/s.
    pub delivery_rate_bps: Option<u64>,
    /// Whether the sender had too little to send at that sample.
    pub app_limited: Option<bool>,
    /// How long the sender was busy, and what limited it.
    pub limited: Option<BusyShares>,
    /// Bytes received but not yet read by the program.
    pub unread_bytes: u32,
    /// Bytes written by the program but not yet acknowledged.
    pub queued_bytes: u32,
    /// Part of these that was never sent.
    pub not_sent_bytes: Option<u64>,
    /// `SO_SNDBUF`, as reported by the kernel.
    pub send_buffer_bytes: Option<u32>,
    /// `SO_RCVBUF`, as reported by the kernel.
    pub receive_buffer_bytes: Option<u32>,
    /// What limits it; null if it is quiet, or if there are too few samples.
    pub finding: Option<Finding>,
}

/// All sockets in one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchInterval {
    /// End of the interval, from the start of watching.
    pub at_ns: u64,
    /// Length of the interval.
    pub took_ns: u64,
    /// Times that the sockets were sampled.
    pub samples: u32,
    /// Samples that failed or may lack sockets.
    pub incomplete: u32,
    /// The sockets, in the order in which they were first seen.
    pub sockets: Vec<SocketReading>,
    /// Active sockets that were not explained in this interval because there were too many.
    pub unexplained: u32,
    /// Notable changes: a process that ended, programs that are not visible.
    pub notes: Vec<String>,
}

/// What limited a socket for part of the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimitShare {
    /// The limit.
    pub limit: Limit,
    /// Share of the active time.
    pub share: f64,
    /// The most certain finding of this limit.
    pub finding: Finding,
}

/// Summary of a socket over the whole time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SocketTotal {
    /// Its last sample.
    pub last: SocketReading,
    /// How long it was watched.
    pub watched_ns: u64,
    /// Part of that time in which it was not quiet.
    pub active_ns: u64,
    /// Whether it was closed in that time.
    pub ended: bool,
    /// Segments retransmitted in that time.
    pub retransmits: Option<u64>,
    /// Limits, the longest first; empty if it was never explained.
    pub limits: Vec<LimitShare>,
}

/// Summary of everything watched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchSummary {
    /// How long the sockets were watched.
    pub took_ns: u64,
    /// Times that the sockets were sampled.
    pub samples: u64,
    /// Samples that failed or may lack sockets.
    pub incomplete: u64,
    /// Sockets that carried data, those with the most bytes first, up to [`MOST_TOTALS`].
    pub sockets: Vec<SocketTotal>,
    /// Sockets seen, quiet ones included.
    pub seen: u64,
    /// CPU time of watching in user mode.
    pub user_ns: u64,
    /// CPU time of watching in the kernel, which lists the sockets.
    pub system_ns: u64,
}

/// Most sockets in a summary.
pub const MOST_TOTALS: usize = 1000;
