//! What a capture shows of its flows: times and counts as seen at the capture point.

mod attempts;
mod datagrams;
pub mod pair;
mod times;

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::finding::Finding;
use crate::names;

pub use attempts::{AttemptOutcome, CapturedAttempts, MANY_ATTEMPTS};
pub use datagrams::{
    CapturedDatagrams, CapturedEcho, CapturedQuic, CapturedSpin, CapturedStream, ClockRateSource, FlowEnd,
    NumberedProtocol, QuicHandshake, SpinState,
};
pub use times::CapturedRtt;

/// A packet capture, read and explained.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadCapture {
    /// Name given by the user.
    pub name: String,
    /// The capture as a whole.
    pub summary: CaptureSummary,
    /// Its flows, those with the most bytes first.
    pub flows: Vec<ExplainedFlow>,
    /// Why it could not be read to the end; what was read before is used.
    pub broke: Option<String>,
}

/// A flow and what limits it.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainedFlow {
    /// The flow as captured.
    pub flow: CapturedFlow,
    /// Facts that explain each direction; `None` if there were too few.
    pub facts: [Option<Box<Facts>>; 2],
    /// Findings of each direction, the binding limit first.
    pub findings: [Vec<Finding>; 2],
}

impl ExplainedFlow {
    /// Returns the direction with more payload: 0 or 1.
    pub fn main_direction(&self) -> usize {
        usize::from(self.flow.directions[1].payload_bytes > self.flow.directions[0].payload_bytes)
    }
}

/// A capture, or several from the same place.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaptureSummary {
    /// Packets in it.
    pub packets: u64,
    /// Their bytes before truncation to the snap length.
    pub bytes: u64,
    /// From the first packet to the last.
    pub duration_ns: u64,
    /// Time of the first packet, since 1970; null if the capture has no times.
    pub began_at_ns: Option<u64>,
    /// Packets truncated by the snap length.
    pub cut: u64,
    /// Packets dropped according to the capturing program.
    pub dropped: u64,
    /// Packets excluded by the filter.
    pub filtered: u64,
    /// Packets whose timestamp is before that of an earlier packet.
    pub out_of_time: u64,
    /// Packets that belong to no flow, by reason.
    pub unread: Vec<UnreadPackets>,
    /// Packets of flows that were not tracked because memory ran out.
    pub flows_left_out: u64,
    /// Flows of which only packets and bytes were counted after memory ran out.
    pub flows_followed_in_part: u64,
    /// Memory limit, if reached; null otherwise.
    pub memory_limit_reached_bytes: Option<u64>,
    /// Similar flows that were never established, counted together if there are more than a thousand; they are not in `flows`.
    pub attempts: Vec<CapturedAttempts>,
}

impl CaptureSummary {
    /// Returns the number of flows that are counted together.
    pub fn flows_counted_together(&self) -> u64 {
        self.attempts.iter().map(|all| all.flows).sum()
    }
}

/// Packets that belong to no flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnreadPackets {
    /// The reason.
    pub why: WhyUnread,
    /// Number of the link layer, Ethernet type or service access point, if that is the reason.
    pub number: Option<u16>,
    /// Number of packets.
    pub packets: u64,
}

/// Why a packet belongs to no flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WhyUnread {
    /// Its link layer is unknown.
    LinkType,
    /// It is not IP.
    NotIp,
    /// It is not IP according to its IEEE 802.2 header, for example spanning tree.
    Llc,
    /// It is link management or control without data, for example an 802.11 beacon.
    LinkControl,
    /// Its payload is encrypted at the link layer.
    Encrypted,
    /// The capturing device received it with errors.
    Damaged,
    /// The captured part ends within a header.
    Cut,
    /// A header contradicts itself.
    Malformed,
    /// It is a fragment other than the first, without ports.
    Fragment,
}

/// Protocol of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlowProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP or ICMPv6.
    Icmp,
    /// Any other protocol.
    Other,
}

/// Packets between two ends, in both directions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedFlow {
    /// Protocol.
    pub protocol: FlowProtocol,
    /// End that started the flow, as far as seen; port 0 for protocols without ports.
    pub a: SocketAddr,
    /// The other end.
    pub b: SocketAddr,
    /// Time of the first packet, from the first packet of the capture.
    pub from_ns: u64,
    /// Time of the last packet, from the first packet of the capture.
    pub to_ns: u64,
    /// Direction from a to b, and from b to a.
    pub directions: [CapturedDirection; 2],
    /// Details of a TCP connection; null for other protocols.
    pub tcp: Option<CapturedTcp>,
    /// Details from the headers of QUIC; null for other protocols.
    pub quic: Option<Box<CapturedQuic>>,
}

impl CapturedFlow {
    /// Returns the bytes of both directions, from the IP header on.
    pub fn bytes(&self) -> u64 {
        self.directions.iter().map(|direction| direction.bytes).sum()
    }
}

/// One direction of a flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedDirection {
    /// Packets.
    pub packets: u64,
    /// Their bytes from the IP header on.
    pub bytes: u64,
    /// Bytes of payload; for TCP, each byte is counted once.
    pub payload_bytes: u64,
    /// For TCP, bytes acknowledged / time from the first byte to the last acknowledgement; otherwise payload / time from the first to the last
    /// packet; bit/s. Null if that time is zero.
    pub goodput_bps: Option<f64>,
    /// Details of TCP data; null for other protocols.
    pub tcp: Option<Box<CapturedData>>,
    /// Details from the headers of UDP and ICMP datagrams; null for other protocols.
    pub datagrams: Option<Box<CapturedDatagrams>>,
}

/// A TCP connection.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedTcp {
    /// Options offered in the SYN of a and of b; null if that SYN was not captured.
    pub offers: [Option<Offer>; 2],
    /// From the SYN to the acknowledgement of the SYN-ACK.
    pub handshake_rtt_ns: Option<u64>,
    /// Smallest round trip from the capture point to a, and to b: from the handshake and from echoed timestamps.
    pub to_ends_ns: [Option<u64>; 2],
    /// Capture point, derived from these two.
    pub vantage: Option<Vantage>,
    /// How it ended, as far as seen.
    pub ended: Ended,
    /// Whether only one direction was captured.
    pub one_way: bool,
    /// Whether segments were captured before segmentation by the network card, or after coalescing.
    pub super_packets: bool,
    /// Subflow of Multipath TCP; null for plain TCP, and if the other end refused it.
    pub multipath_subflow: Option<MultipathSubflow>,
}

/// Role of a subflow in a Multipath TCP connection (RFC 8684).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MultipathSubflow {
    /// The subflow that established the connection.
    Initial,
    /// A subflow that joined later.
    Additional,
    /// Unknown: its SYNs were not captured.
    Unknown,
}

/// Where a capture was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Vantage {
    /// At or near the end that started the connection.
    NearA,
    /// At or near the other end.
    NearB,
    /// Between the ends.
    Between,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It had not ended in this capture.
    #[default]
    Open,
    /// One end closed its direction.
    HalfClosed,
    /// Both ends closed.
    Closed,
    /// An end reset it.
    Reset,
}

/// Options that an end offered in its SYN.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Offer {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Window scale: the shift count of its windows.
    pub window_scale: Option<u8>,
    /// Selective acknowledgements.
    pub sack: bool,
    /// Timestamps.
    pub timestamps: bool,
    /// Explicit congestion notification.
    pub ecn: bool,
    /// Receive window, not yet scaled.
    pub window: u16,
}

/// What happened to the data of one direction, as seen at the capture point.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedData {
    /// Segments with payload; a super-packet counts as the segments it holds.
    pub segments: u64,
    /// Payload of a full segment, bytes.
    pub mss_bytes: u64,
    /// Bytes acknowledged by the other end.
    pub acked_bytes: u64,
    /// Retransmitted segments.
    pub retransmissions: Retransmissions,
    /// Retransmissions whose original was lost before the capture point and not seen.
    pub lost_before_here: u64,
    /// Segments overtaken by others before the capture point.
    pub reordered: u64,
    /// Largest number of segments that overtook one.
    pub reordered_most: u64,
    /// Packets that were captured twice.
    pub duplicates: u64,
    /// Segments sent once that the receiver reports as received twice (DSACK, RFC 2883).
    pub duplicated_by_network: u64,
    /// Bytes that were acknowledged but never seen: the capture lacks their packets.
    pub missing_bytes: u64,
    /// Round trips from the capture point to the receiver: from a segment sent once to its acknowledgement.
    pub rtt_to_receiver: Option<CapturedRtt>,
    /// Smallest round trip between sender and receiver.
    pub rtt_min_ns: Option<u64>,
    /// Most bytes in flight.
    pub in_flight_most_bytes: u64,
    /// Bytes in flight before the first acknowledgement of data.
    pub initial_flight_bytes: u64,
    /// Largest receive window advertised; null if its scale is unknown.
    pub window_most_bytes: Option<u64>,
    /// Smallest receive window advertised.
    pub window_least_bytes: Option<u64>,
    /// Times that the receive window had no room for another segment.
    pub window_full: u64,
    /// How long the sender then waited for an acknowledgement that made room.
    pub window_waits: Option<CapturedRtt>,
    /// Those waits of at least half a round trip: the sender was idle until the receiver had the whole window.
    pub window_stalls: Option<CapturedRtt>,
    /// Packets of the receiver that advertised a window of 0.
    pub zero_windows: u64,
    /// How long the window was closed.
    pub zero_window_ns: u64,
    /// Window probes sent.
    pub probes: u64,
    /// Keep-alives sent.
    pub keep_alives: u64,
    /// Duplicate acknowledgements.
    pub duplicate_acks: u64,
    /// Largest payload of a packet, bytes.
    pub largest_payload: u32,
    /// Packets with an ECN congestion mark.
    pub marked: u64,
    /// Acknowledgements that echo a congestion mark.
    pub echoes: u64,
    /// Small segments held until the one before was acknowledged, which took longer than a round trip: Nagle's algorithm with delayed
    /// acknowledgements.
    pub held: u64,
    /// Share of the times the sender resumed sending without being triggered by an acknowledgement: it paces, or the program writes by its own
    /// clock. Null if the capture was not taken at the sender.
    pub unprompted: Option<f64>,
    /// Congestion events: recoveries, timeouts and reductions after marks.
    pub episodes: u64,
    /// Congestion control that fits the sender's reactions to losses; null if there were too few.
    pub congestion_control: Option<CongestionGuess>,
    /// Progress of sequence and acknowledgement numbers; at most about a thousand points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<TracePoint>,
    /// Time of each of the first thousand retransmissions, from the first byte of data, and its first byte.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retransmitted_at: Vec<(u64, u64)>,
    /// The first thousand times that the receive window was closed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed_windows: Vec<ClosedWindow>,
}

/// State of a sender's data at a moment. Bytes count from the first byte of data of this direction, 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TracePoint {
    /// Time from the first byte of data of this direction.
    pub at_ns: u64,
    /// End of the data sent.
    pub sent_bytes: u64,
    /// End of the data acknowledged.
    pub acked_bytes: u64,
    /// Right edge of the receive window; null if its scale is unknown.
    pub window_edge_bytes: Option<u64>,
    /// Bytes sent but not acknowledged, less those acknowledged selectively.
    pub in_flight_bytes: u64,
}

/// A period in which the receive window was closed (zero window).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClosedWindow {
    /// Start, from the first byte of data of this direction.
    pub from_ns: u64,
    /// When it was opened again, or the end of the flow as seen.
    pub to_ns: u64,
    /// End of the data acknowledged at that time.
    pub acked_bytes: u64,
}

/// Congestion control inferred from its reaction to losses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CongestionGuess {
    /// Kind of congestion control that fits.
    pub like: CongestionLike,
    /// Median of bytes in flight after a loss / before it; null if inferred from pacing.
    pub kept: Option<f64>,
    /// Losses that it is based on.
    pub losses: u64,
}

/// Kinds of congestion control that differ in how much of the window they keep after a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CongestionLike {
    /// Keeps half: Reno (RFC 5681).
    Reno,
    /// Keeps 0.7: CUBIC (RFC 9438).
    Cubic,
    /// Keeps all: one that does not react to losses, for example BBR.
    Bbr,
}

names!(CongestionLike: Reno = "reno", Cubic = "cubic", Bbr = "bbr");

/// Retransmissions by trigger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Retransmissions {
    /// Segments retransmitted.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Fast retransmissions, after acknowledgements indicated a loss (RFC 5681, RFC 6675, RFC 8985).
    pub fast: u64,
    /// Retransmissions after a timeout (RFC 6298).
    pub timeout: u64,
    /// Tail loss probes: the last segment repeated before the timeout (RFC 8985, section 7).
    pub tail_loss_probe: u64,
    /// Retransmissions whose trigger is unclear.
    pub unclear: u64,
    /// Retransmissions of data that had been acknowledged when they passed the capture point.
    pub needless: u64,
    /// Retransmissions of data that the receiver reported to have already (DSACK, RFC 2883).
    pub needless_reported: u64,
}
