//! What the headers of datagrams say: numbered streams, echoes, QUIC. Payloads are not looked at, and nothing is decrypted.

use serde::{Deserialize, Serialize};

use super::times::CapturedRtt;

/// Datagrams that go one way.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedDatagrams {
    /// Datagrams of UDP of which too little was kept to look at their headers: what these would have shown is not in the figures.
    pub headers_cut: u64,
    /// Streams whose datagrams bear numbers and times, in the order in which they began; empty where none was recognised.
    pub streams: Vec<CapturedStream>,
    /// Whether there were further streams, which were not followed.
    pub more_streams: bool,
    /// Requests that go this way and are to be sent back: ICMP's, or those of `bdp ping`. Null where there were none.
    pub echo: Option<CapturedEcho>,
}

/// A stream of datagrams that bear numbers and times, as they passed here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedStream {
    /// Whose header they have.
    pub protocol: NumberedProtocol,
    /// Of RTP, who sends (RFC 3550, section 3).
    pub ssrc: Option<u32>,
    /// Of RTP, its payload types.
    pub payload_types: Vec<u8>,
    /// Datagrams of it.
    pub packets: u64,
    /// Bytes of their UDP payload, headers of the stream included.
    pub payload_bytes: u64,
    /// The same / time from the first to the last; bit/s. Null where there is no time between them.
    pub rate_bps: Option<f64>,
    /// Datagrams that should have passed: from the lowest number seen, or the first where the beginning was captured, to the highest, or to
    /// what the sender says was its last.
    pub expected: u64,
    /// Of these, such as never passed here (RFC 3550, A.3, with each number once).
    pub lost: u64,
    /// Such as passed after one with a higher number (RFC 4737, section 3.3).
    pub reordered: u64,
    /// Such as had passed before.
    pub duplicates: u64,
    /// Such as fit the numbers before so little that they are in no count: too late by 8192, or a jump that did not last.
    pub stale: u64,
    /// How often the numbers began anew; what was lost in between is not known.
    pub restarts: u64,
    /// Of RTP, ticks of its timestamps in a second; null where it is not known.
    pub clock_rate_hz: Option<u32>,
    /// How that is known.
    pub clock_rate_from: Option<ClockRateSource>,
    /// Interarrival jitter at the end (RFC 3550, section 6.4.1); null where times or the clock rate are not known.
    pub jitter_ns: Option<f64>,
    /// Its mean over all datagrams.
    pub jitter_mean_ns: Option<f64>,
    /// Its largest value.
    pub jitter_max_ns: Option<f64>,
}

/// Protocols whose datagrams bear numbers and times in the clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NumberedProtocol {
    /// RTP (RFC 3550).
    Rtp,
    /// Datagrams of a measurement of bdp.
    Bdp,
    /// Those of iperf3.
    Iperf3,
    /// Those of iperf2.
    Iperf2,
}

impl NumberedProtocol {
    /// As it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rtp => "rtp",
            Self::Bdp => "bdp",
            Self::Iperf3 => "iperf3",
            Self::Iperf2 => "iperf2",
        }
    }
}

/// How the rate of a stream's clock is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ClockRateSource {
    /// By its payload type (RFC 3551, section 6).
    PayloadType,
    /// Its timestamps ran at a usual rate beside the times of the capture, to 2 %.
    Timestamps,
}

/// Requests that are to be sent back, and their answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedEcho {
    /// Requests.
    pub sent: u64,
    /// Of these, such as were answered, as far as was seen.
    pub answered: u64,
    /// Answers to a request that had been answered.
    pub duplicates: u64,
    /// Answers to what was not seen, or was sent more than 1024 requests before.
    pub unasked: u64,
    /// From here to who answers and back.
    pub rtt: Option<CapturedRtt>,
}

/// A QUIC connection (RFC 9000) by what is not encrypted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedQuic {
    /// Its version, as the server uses it; where nothing of the server was seen, as the client does.
    pub version: u32,
    /// Which end is the client.
    pub client: FlowEnd,
    /// The server wanted the client's address validated first.
    pub retry: bool,
    /// The server knew none of the client's first version.
    pub version_negotiation: bool,
    /// Packets of 0-RTT.
    pub zero_rtt: u64,
    /// From the client's first Initial to the server's first Initial or Handshake packet, as both passed here: a round trip to the server with
    /// what it took to answer, and what was lost or retried before. Null where either was not seen.
    pub first_answer_ns: Option<u64>,
    /// From the client's first Initial to the client's first 1-RTT packet to the connection ID that the server chose, as both passed here.
    pub handshake_ns: Option<u64>,
    /// Whether that is known, and else why not.
    pub handshake: QuicHandshake,
    /// The spin bit (RFC 9000, section 17.4).
    pub spin: CapturedSpin,
}

/// An end of a flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlowEnd {
    /// The one that began, as far as was seen.
    #[default]
    A,
    /// The other one.
    B,
}

/// What is known of a handshake's time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum QuicHandshake {
    /// It is known.
    Known,
    /// The client's first Initial was not captured.
    BeginningMissing,
    /// Packets of the client that share a datagram with others were cut off.
    Cut,
    /// No 1-RTT packet of the client was seen.
    #[default]
    NotSeen,
}

/// What the spin bit shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedSpin {
    /// Whether it spins, and else why there is no round trip.
    pub state: SpinState,
    /// Packets with a spin bit, from a to b and back.
    pub packets: [u64; 2],
    /// Edges that came in turn.
    pub edges: u64,
    /// Packets whose bit changed out of turn: reordering where they are few.
    pub out_of_turn: u64,
    /// From one edge to the next, of the packets from a to b and of those back: round trips from end to end, with the pauses of both programs.
    pub rtt: [Option<CapturedRtt>; 2],
    /// From an edge to the one that answers it: from here to a and back, to b and back.
    pub to_ends: [Option<CapturedRtt>; 2],
}

/// Whether a spin bit spins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SpinState {
    /// It does.
    Spins,
    /// It never changes: an end has it disabled.
    Constant,
    /// It changes, but not in turn: an end has it disabled and sends random bits.
    Erratic,
    /// Fewer than eight edges.
    #[default]
    TooFew,
    /// 1-RTT packets of only one way were captured.
    OneWay,
}
