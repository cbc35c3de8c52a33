//! What a capture says of the flows in it: times and counts as they were seen at the place where it was taken.

mod attempts;
mod datagrams;
mod times;

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::finding::Finding;

pub use attempts::{AttemptOutcome, CapturedAttempts, MANY_ATTEMPTS};
pub use datagrams::{
    CapturedDatagrams, CapturedEcho, CapturedQuic, CapturedSpin, CapturedStream, ClockRateSource, FlowEnd,
    NumberedProtocol, QuicHandshake, SpinState,
};
pub use times::CapturedRtt;

/// A file of packets, read and explained.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadCapture {
    /// How the user called it.
    pub name: String,
    /// The capture as a whole.
    pub summary: CaptureSummary,
    /// Its flows, the one with the most bytes first.
    pub flows: Vec<ExplainedFlow>,
    /// Why it could not be read to its end; what was read before counts.
    pub broke: Option<String>,
}

/// A flow with what limits it.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainedFlow {
    /// What was seen of it.
    pub flow: CapturedFlow,
    /// For each way the facts by which it was explained; `None` where there was too little.
    pub facts: [Option<Box<Facts>>; 2],
    /// For each way what limits it, the binding limit first.
    pub findings: [Vec<Finding>; 2],
}

impl ExplainedFlow {
    /// The way that carried most payload: 0 or 1.
    pub fn main_direction(&self) -> usize {
        usize::from(self.flow.directions[1].payload_bytes > self.flow.directions[0].payload_bytes)
    }
}

/// A capture, or several of one place.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaptureSummary {
    /// Packets in it.
    pub packets: u64,
    /// Their bytes before they were cut.
    pub bytes: u64,
    /// From the first packet to the last.
    pub duration_ns: u64,
    /// The first packet, since 1970; null where the capture has no times.
    pub began_at_ns: Option<u64>,
    /// Packets that were cut, so that not all of them was kept.
    pub cut: u64,
    /// Packets that the capturing program says it dropped.
    pub dropped: u64,
    /// Packets that the filter left out.
    pub filtered: u64,
    /// Packets whose time is before that of an earlier one.
    pub out_of_time: u64,
    /// Packets that belong to no flow, and why.
    pub unread: Vec<UnreadPackets>,
    /// Packets of flows that were not followed, as there was no memory for them.
    pub flows_left_out: u64,
    /// Flows of which only packets and bytes were counted from some moment on, for the same reason.
    pub flows_followed_in_part: u64,
    /// The memory limit, where it was reached; null where it was not.
    pub memory_limit_reached_bytes: Option<u64>,
    /// Flows that are alike and never came to anything, counted together where there are more than a thousand; they are not among `flows`.
    pub attempts: Vec<CapturedAttempts>,
}

impl CaptureSummary {
    /// Flows that are counted together.
    pub fn flows_counted_together(&self) -> u64 {
        self.attempts.iter().map(|all| all.flows).sum()
    }
}

/// Packets that belong to no flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnreadPackets {
    /// Why.
    pub why: WhyUnread,
    /// The link layer's number, the Ethernet type or the service access point, where that is why.
    pub number: Option<u16>,
    /// How many.
    pub packets: u64,
}

/// Why a packet belongs to no flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WhyUnread {
    /// Its link layer is unknown.
    LinkType,
    /// It is no IP.
    NotIp,
    /// It is no IP by the header of IEEE 802.2, as of spanning tree.
    Llc,
    /// It manages or controls the link and carries no data, as beacons of 802.11.
    LinkControl,
    /// The link layer encrypts what it carries.
    Encrypted,
    /// The capturing device received it with errors.
    Damaged,
    /// What was kept ends within a header.
    Cut,
    /// A header contradicts itself.
    Malformed,
    /// A fragment that is not the first has no ports.
    Fragment,
}

/// What a flow speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlowProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP, of either IP.
    Icmp,
    /// Another one.
    Other,
}

/// Packets between two ends, both ways.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedFlow {
    /// What it speaks.
    pub protocol: FlowProtocol,
    /// Who began, as far as was seen; its port is 0 where there are none.
    pub a: SocketAddr,
    /// The other end.
    pub b: SocketAddr,
    /// The first packet, since that of the capture.
    pub from_ns: u64,
    /// The last one.
    pub to_ns: u64,
    /// From a to b, and back.
    pub directions: [CapturedDirection; 2],
    /// Of TCP, what more was seen.
    pub tcp: Option<CapturedTcp>,
    /// Of UDP that was recognised as QUIC, what its headers show.
    pub quic: Option<Box<CapturedQuic>>,
}

impl CapturedFlow {
    /// Bytes of both ways, from the IP header on.
    pub fn bytes(&self) -> u64 {
        self.directions.iter().map(|direction| direction.bytes).sum()
    }
}

/// One way of a flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedDirection {
    /// Packets.
    pub packets: u64,
    /// Their bytes from the IP header on.
    pub bytes: u64,
    /// Bytes of payload: of TCP each once.
    pub payload_bytes: u64,
    /// Of TCP, bytes acknowledged / time from the first byte to the last acknowledgement; of others payload / time from the first packet to the
    /// last; bit/s. Null where there is no time between them.
    pub goodput_bps: Option<f64>,
    /// Of TCP, what its data met.
    pub tcp: Option<Box<CapturedData>>,
    /// Of UDP and ICMP, what the headers of its datagrams say.
    pub datagrams: Option<Box<CapturedDatagrams>>,
}

/// A TCP connection.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedTcp {
    /// What the two ends offered each other, a's first; null where its SYN was not captured.
    pub offers: [Option<Offer>; 2],
    /// From the SYN to the acknowledgement of the SYN that answers it.
    pub handshake_rtt_ns: Option<u64>,
    /// The least from here to a and back, to b and back: by the handshake and by timestamps that came back.
    pub to_ends_ns: [Option<u64>; 2],
    /// Where it was captured, by those two.
    pub vantage: Option<Vantage>,
    /// How it ended, as far as was seen.
    pub ended: Ended,
    /// Whether only one way was captured.
    pub one_way: bool,
    /// Whether segments were captured before the network card cut them into packets, or after it joined them.
    pub super_packets: bool,
    /// Of a subflow of multipath TCP, which one; null of plain TCP, and where the other end refused it.
    pub multipath_subflow: Option<MultipathSubflow>,
}

/// Which subflow of a connection of multipath TCP (RFC 8684).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MultipathSubflow {
    /// The one that the connection began with.
    Initial,
    /// One that joined.
    Additional,
    /// Its SYNs were not captured.
    Unknown,
}

/// Where a capture was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Vantage {
    /// At the end that began, or near it.
    NearA,
    /// At the other end, or near it.
    NearB,
    /// On the way.
    Between,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It did not, in this capture.
    #[default]
    Open,
    /// One end closed its way.
    HalfClosed,
    /// Both did.
    Closed,
    /// An end reset it.
    Reset,
}

/// What an end offered in its SYN.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Offer {
    /// Largest segment that it takes.
    pub mss: Option<u16>,
    /// By how many bits its windows are shifted.
    pub window_scale: Option<u8>,
    /// Selective acknowledgements.
    pub sack: bool,
    /// Timestamps.
    pub timestamps: bool,
    /// Explicit congestion notification.
    pub ecn: bool,
    /// Its window, which is not scaled yet.
    pub window: u16,
}

/// What the data of one way met, as the place of the capture shows it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedData {
    /// Segments with payload; a super-packet is as many as it holds.
    pub segments: u64,
    /// Payload of a full segment.
    pub mss_bytes: u64,
    /// Bytes that the other end acknowledged.
    pub acked_bytes: u64,
    /// Segments sent once more.
    pub retransmissions: Retransmissions,
    /// Of the retransmissions, such as were lost before they came here: their first copy was not seen.
    pub lost_before_here: u64,
    /// Segments that others overtook before they came here.
    pub reordered: u64,
    /// By how many segments at the most.
    pub reordered_most: u64,
    /// Packets that are in the capture twice.
    pub duplicates: u64,
    /// Segments that reached the receiver twice though they were sent once, as it reports (DSACK, RFC 2883).
    pub duplicated_by_network: u64,
    /// Bytes that were acknowledged and never seen: the capture lacks their packets.
    pub missing_bytes: u64,
    /// Round trips from a segment that was sent once to its acknowledgement, from here to the receiver and back.
    pub rtt_to_receiver: Option<CapturedRtt>,
    /// Smallest round trip from the sender to the receiver and back.
    pub rtt_min_ns: Option<u64>,
    /// The most that was in flight.
    pub in_flight_most_bytes: u64,
    /// What was in flight before anything was acknowledged.
    pub initial_flight_bytes: u64,
    /// The largest window that the receiver gave; null where its scale is not known.
    pub window_most_bytes: Option<u64>,
    /// The smallest.
    pub window_least_bytes: Option<u64>,
    /// Segments after which no further one fitted the receiver's window.
    pub window_full: u64,
    /// How long the sender then waited for the next acknowledgement that gave room.
    pub window_waits: Option<CapturedRtt>,
    /// Of these, such as took half a round trip or more: the sender was idle until the receiver had the whole window.
    pub window_stalls: Option<CapturedRtt>,
    /// Packets of the receiver that gave a window of 0.
    pub zero_windows: u64,
    /// For how long it was closed.
    pub zero_window_ns: u64,
    /// Probes of such a window.
    pub probes: u64,
    /// Keep-alives of the sender.
    pub keep_alives: u64,
    /// Acknowledgements that repeat another.
    pub duplicate_acks: u64,
    /// The largest payload of a packet.
    pub largest_payload: u32,
    /// Packets of it that carry a congestion mark (ECN).
    pub marked: u64,
    /// Acknowledgements that echo one.
    pub echoes: u64,
    /// Small segments that waited until the one before them was acknowledged, later than a round trip takes: Nagle's algorithm beside delayed
    /// acknowledgements.
    pub held: u64,
    /// Of the times that the sender went on to send, the share that no acknowledgement set off: it paces, or the program writes by its own
    /// clock. Null where the capture was not taken at the sender.
    pub unprompted: Option<f64>,
    /// Congestion events: recoveries, timeouts, reductions after marks.
    pub episodes: u64,
    /// The congestion control that the sender's reactions to losses fit; null where there were too few.
    pub congestion_control: Option<CongestionGuess>,
    /// How sequence and acknowledgement numbers went on; at most about a thousand points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<TracePoint>,
    /// Of the first thousand retransmissions when each passed, since the first byte of data, and its first byte.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retransmitted_at: Vec<(u64, u64)>,
    /// The first thousand times that the receive window was closed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed_windows: Vec<ClosedWindow>,
}

/// A moment of a sender's data. Bytes count from the first byte of data of this way, 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TracePoint {
    /// Since the first byte of data of this way.
    pub at_ns: u64,
    /// The end of what was sent.
    pub sent_bytes: u64,
    /// The end of what is acknowledged.
    pub acked_bytes: u64,
    /// The end of what the receive window lets through; null where its scale is not known.
    pub window_edge_bytes: Option<u64>,
    /// Sent and not acknowledged, less what was acknowledged selectively.
    pub in_flight_bytes: u64,
}

/// A receive window that was closed for a time: zero window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClosedWindow {
    /// Since the first byte of data of this way.
    pub from_ns: u64,
    /// When it was opened, or the end of what was seen.
    pub to_ns: u64,
    /// The end of what was acknowledged then.
    pub acked_bytes: u64,
}

/// A congestion control by what it does after a loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CongestionGuess {
    /// Which it fits.
    pub like: CongestionLike,
    /// Median of what was in flight after a loss / before it; null where it was told by its pacing.
    pub kept: Option<f64>,
    /// Losses that this is of.
    pub losses: u64,
}

/// Kinds of congestion control that differ in what they keep of their window after a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CongestionLike {
    /// Half: Reno (RFC 5681).
    Reno,
    /// 0.7: CUBIC (RFC 9438).
    Cubic,
    /// All: one that does not go by losses, such as BBR.
    Bbr,
}

impl CongestionLike {
    /// By the name that Linux has for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }
}

/// Retransmissions by what set them off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Retransmissions {
    /// Segments in all.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// After acknowledgements had shown a loss (RFC 5681, RFC 6675, RFC 8985).
    pub fast: u64,
    /// After a retransmission timeout (RFC 6298).
    pub timeout: u64,
    /// The last segment once more before that timeout (RFC 8985, section 7).
    pub tail_loss_probe: u64,
    /// None of these fits what was seen.
    pub unclear: u64,
    /// Of all, such as the receiver had acknowledged when they passed here.
    pub needless: u64,
    /// Of all, such as the receiver reported to have had (DSACK, RFC 2883).
    pub needless_reported: u64,
}
