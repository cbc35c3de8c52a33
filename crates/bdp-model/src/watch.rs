//! Sockets of other programs, as they are seen from outside while they are used.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::finding::{Finding, Limit};

/// Version of the shape of a line of JSON.
pub const WATCH_SCHEMA: &str = "bdp.watch/1";

/// What is to be watched.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WatchTarget {
    /// A process, and those that it has started.
    Process(u32),
    /// A port, at either end.
    Port(u16),
    /// Another host, by name or address, and its port where one is given.
    Host(String, Option<u16>),
    /// Every connection.
    All,
}

/// A program that has a socket open.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Holder {
    /// Its process.
    pub pid: u32,
    /// Its name.
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

impl ConnectionState {
    /// By its number in Linux, `include/net/tcp_states.h`; what is none of a connection is closed.
    pub const fn of_linux(number: u8) -> Self {
        match number {
            1 => Self::Established,
            2 => Self::SynSent,
            // TCP_SYN_RECV of a socket, TCP_NEW_SYN_RECV of a request for one.
            3 | 12 => Self::SynReceived,
            4 => Self::FinWait1,
            5 => Self::FinWait2,
            8 => Self::CloseWait,
            9 => Self::LastAck,
            11 => Self::Closing,
            _ => Self::Closed,
        }
    }

    /// As RFC 9293 has it, in small letters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Established => "established",
            Self::SynSent => "syn-sent",
            Self::SynReceived => "syn-received",
            Self::FinWait1 => "fin-wait-1",
            Self::FinWait2 => "fin-wait-2",
            Self::CloseWait => "close-wait",
            Self::LastAck => "last-ack",
            Self::Closing => "closing",
            Self::Closed => "closed",
        }
    }
}

/// What this end of a socket does, by the bytes of the last seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It sends more than it receives.
    Sending,
    /// It receives more than it sends.
    Receiving,
    /// No byte was acknowledged or received, and none waits.
    Quiet,
}

/// Who has a socket, and between which ends it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SocketName {
    /// A number that no other socket of this machine has for as long as that is up.
    pub cookie: u64,
    /// The number by which `/proc/PID/fd` names it.
    pub inode: u32,
    /// The program that has it open; null where that can't be seen.
    pub holder: Option<Holder>,
    /// The user who owns it.
    pub user: u32,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
}

/// How long a sender had work in an interval, and what kept it back, as its kernel counts it; shares of the interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BusyShares {
    /// With data in flight or to send.
    pub busy: f64,
    /// Of that, limited by the receive window; known to under-report.
    pub rwnd_limited: f64,
    /// Of that, limited by the send buffer.
    pub sndbuf_limited: f64,
}

/// One socket in one interval. What the kernel did not report is null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SocketReading {
    /// Which it is.
    #[serde(flatten)]
    pub name: SocketName,
    /// State of the connection.
    pub state: ConnectionState,
    /// What this end does.
    pub role: Role,
    /// Congestion control of this end.
    pub congestion_control: Option<String>,
    /// Bytes acknowledged by the other end in the interval x 8 / its length.
    pub sent_bps: f64,
    /// Bytes received in the interval x 8 / its length.
    pub received_bps: f64,
    /// Bytes acknowledged since the socket was first seen here.
    pub sent_bytes: u64,
    /// Bytes received since then.
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
    /// Receive window of the other end.
    pub send_window_bytes: Option<u64>,
    /// Receive window that this end means to advertise.
    pub receive_window_bytes: Option<u64>,
    /// Segments retransmitted in the interval.
    pub retransmits: Option<u64>,
    /// Segments retransmitted since the connection began.
    pub retransmits_total: Option<u64>,
    /// Segments that came out of order in the interval.
    pub out_of_order: Option<u64>,
    /// Latest sample of the rate of delivery.
    pub delivery_rate_bps: Option<u64>,
    /// Whether the sender had too little to send when that was sampled.
    pub app_limited: Option<bool>,
    /// How long the sender had work, and what kept it back.
    pub limited: Option<BusyShares>,
    /// Bytes received that the program has not read.
    pub unread_bytes: u32,
    /// Bytes written by the program that are not acknowledged.
    pub queued_bytes: u32,
    /// Of those, bytes that were never sent.
    pub not_sent_bytes: Option<u64>,
    /// `SO_SNDBUF`, as the kernel has it.
    pub send_buffer_bytes: Option<u32>,
    /// `SO_RCVBUF`, as the kernel has it.
    pub receive_buffer_bytes: Option<u32>,
    /// What limits it; null of one that is quiet, and before there are samples enough.
    pub finding: Option<Finding>,
}

/// All sockets in one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchInterval {
    /// Its end, since watching began.
    pub at_ns: u64,
    /// Its length.
    pub took_ns: u64,
    /// Times that the sockets were read.
    pub samples: u32,
    /// Readings that could not be had, or that may lack sockets.
    pub incomplete: u32,
    /// Each socket, in the order in which they were first seen.
    pub sockets: Vec<SocketReading>,
    /// Sockets that moved, and were too many for all to be explained in this interval.
    pub unexplained: u32,
    /// What changed, and is worth a line: a process that ended, programs that can't be seen.
    pub notes: Vec<String>,
}

/// What limited a socket for a part of the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimitShare {
    /// What it was.
    pub limit: Limit,
    /// Share of the time in which it was not quiet.
    pub share: f64,
    /// The surest finding of it.
    pub finding: Finding,
}

/// A socket as it was over all the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SocketTotal {
    /// Its last figures.
    pub last: SocketReading,
    /// How long it was watched.
    pub watched_ns: u64,
    /// Of that, the time in which it was not quiet.
    pub active_ns: u64,
    /// Whether it ended meanwhile.
    pub ended: bool,
    /// Segments retransmitted meanwhile.
    pub retransmits: Option<u64>,
    /// What limited it, the longest first; empty where it was never explained.
    pub limits: Vec<LimitShare>,
}

/// All that was watched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchSummary {
    /// How long.
    pub took_ns: u64,
    /// Times that the sockets were read.
    pub samples: u64,
    /// Readings that could not be had, or that may lack sockets.
    pub incomplete: u64,
    /// Each socket that carried data, those with most bytes first, up to [`MOST_TOTALS`].
    pub sockets: Vec<SocketTotal>,
    /// Sockets that were seen, quiet ones included.
    pub seen: u64,
    /// Processor time that watching took in user mode.
    pub user_ns: u64,
    /// The same in the kernel, where the sockets are listed.
    pub system_ns: u64,
}

/// Sockets that a summary holds.
pub const MOST_TOTALS: usize = 1000;
