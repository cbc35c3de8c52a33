//! What the headers of datagrams show: numbered streams, echoes, QUIC. Payloads are not read, and nothing is decrypted.

use serde::{Deserialize, Serialize};

use super::times::CapturedRtt;
use crate::names;

/// Datagrams in one direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedDatagrams {
    /// UDP datagrams captured too short to read their headers; they are missing from the figures.
    pub headers_cut: u64,
    /// Streams of numbered, timestamped datagrams in the order in which they began; empty if none was recognised.
    pub streams: Vec<CapturedStream>,
    /// Whether there were further streams that were not tracked.
    pub more_streams: bool,
    /// Echo requests in this direction, from ICMP or `bdp ping`; null if there were none.
    pub echo: Option<CapturedEcho>,
}

/// A stream of numbered, timestamped datagrams as seen at the capture point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedStream {
    /// The protocol of the header.
    pub protocol: NumberedProtocol,
    /// Synchronisation source of an RTP stream (RFC 3550, section 3).
    pub ssrc: Option<u32>,
    /// Payload types of an RTP stream.
    pub payload_types: Vec<u8>,
    /// Number of datagrams.
    pub packets: u64,
    /// UDP payload bytes, including the headers of the stream.
    pub payload_bytes: u64,
    /// UDP payload rate from the first to the last datagram, bit/s; null if no time passed between them.
    pub rate_bps: Option<f64>,
    /// Datagrams expected here: from the lowest number seen (the first, if the beginning was captured) to the highest, or to the last number
    /// that the sender reports.
    pub expected: u64,
    /// Expected datagrams that were not seen here (RFC 3550, A.3, with each number counted once).
    pub lost: u64,
    /// Datagrams seen after one with a higher number (RFC 4737, section 3.3).
    pub reordered: u64,
    /// Datagrams that were seen before.
    pub duplicates: u64,
    /// Datagrams whose numbers fit too badly to be counted: 8192 or more late, or a jump that did not last.
    pub stale: u64,
    /// Times that the numbering restarted; losses in between are not known.
    pub restarts: u64,
    /// RTP clock rate, ticks per second; null if unknown.
    pub clock_rate_hz: Option<u32>,
    /// How the clock rate is known.
    pub clock_rate_from: Option<ClockRateSource>,
    /// Interarrival jitter at the end (RFC 3550, section 6.4.1); null if times or the clock rate are unknown.
    pub jitter_ns: Option<f64>,
    /// Mean jitter over all datagrams.
    pub jitter_mean_ns: Option<f64>,
    /// Largest jitter.
    pub jitter_max_ns: Option<f64>,
}

/// Protocols whose datagrams carry unencrypted numbers and timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NumberedProtocol {
    /// RTP (RFC 3550).
    Rtp,
    /// A bdp measurement.
    Bdp,
    /// iperf3.
    Iperf3,
    /// iperf2.
    Iperf2,
}

names!(NumberedProtocol: Rtp = "rtp", Bdp = "bdp", Iperf3 = "iperf3", Iperf2 = "iperf2");

/// How a stream's clock rate is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ClockRateSource {
    /// From its payload type (RFC 3551, section 6).
    PayloadType,
    /// Its timestamps advanced at a common rate relative to the capture, within 2 %.
    Timestamps,
}

/// Echo requests and their replies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedEcho {
    /// Requests seen.
    pub sent: u64,
    /// Requests whose reply was seen.
    pub answered: u64,
    /// Further replies to an answered request.
    pub duplicates: u64,
    /// Replies to requests that were not seen, or that were sent more than 1024 requests earlier.
    pub unasked: u64,
    /// Round trips from here to the replying host.
    pub rtt: Option<CapturedRtt>,
}

/// The unencrypted information of a QUIC connection (RFC 9000).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedQuic {
    /// Version used by the server; the client's if no packet of the server was seen.
    pub version: u32,
    /// Which end is the client.
    pub client: FlowEnd,
    /// Whether the server validated the client's address first (Retry).
    pub retry: bool,
    /// Whether the server rejected the client's first version.
    pub version_negotiation: bool,
    /// 0-RTT packets.
    pub zero_rtt: u64,
    /// From the client's first Initial to the server's first Initial or Handshake packet, both as seen here: a round trip to the server, plus
    /// its response time and earlier losses or retries. Null if either was not seen.
    pub first_answer_ns: Option<u64>,
    /// From the client's first Initial to its first 1-RTT packet to the connection ID chosen by the server, both as seen here.
    pub handshake_ns: Option<u64>,
    /// Whether the handshake time is known, or why not.
    pub handshake: QuicHandshake,
    /// The spin bit (RFC 9000, section 17.4).
    pub spin: CapturedSpin,
}

/// An end of a flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlowEnd {
    /// The initiator, as far as was seen.
    #[default]
    A,
    /// The other one.
    B,
}

/// Whether a handshake's time is known, or why not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum QuicHandshake {
    /// The time is known.
    Known,
    /// The client's first Initial was not captured.
    BeginningMissing,
    /// Client packets that share a datagram with others were cut off.
    Cut,
    /// No 1-RTT packet of the client was seen.
    #[default]
    NotSeen,
}

/// Measurements from the spin bit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedSpin {
    /// Whether it spins, or why there is no round trip.
    pub state: SpinState,
    /// Packets with a spin bit, from a to b and back.
    pub packets: [u64; 2],
    /// Edges in alternating order.
    pub edges: u64,
    /// Packets whose bit changed out of turn; a few indicate reordering.
    pub out_of_turn: u64,
    /// Edge intervals, from a to b and back: end-to-end round trips, including pauses of both programs.
    pub rtt: [Option<CapturedRtt>; 2],
    /// From an edge to the edge that answers it: from here to a and back, to b and back.
    pub to_ends: [Option<CapturedRtt>; 2],
}

/// Whether a spin bit spins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SpinState {
    /// It spins.
    Spins,
    /// It never changes: one end has disabled it.
    Constant,
    /// It changes, but not in turn: one end has disabled it and sends random bits.
    Erratic,
    /// Fewer than eight edges.
    #[default]
    TooFew,
    /// 1-RTT packets were captured in one direction only.
    OneWay,
}
