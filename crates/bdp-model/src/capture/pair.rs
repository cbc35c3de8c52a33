//! What two captures of one path show together: which packets passed both places, and which were lost, changed or delayed between them.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// Two captures of the same connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturePair {
    /// Indices of the two captures in the list of captures, from 0.
    pub captures: [usize; 2],
    /// Relation of their clocks; null if none of the connections reveals it.
    pub clock: Option<ClockBetween>,
    /// Connections that passed both places, in the order of the first capture's table.
    pub connections: Vec<PairedConnection>,
    /// TCP connections that are in only one of the captures.
    pub unpaired: [usize; 2],
    /// Segments of each capture that were not compared because they exceeded the number kept.
    pub not_compared: [u64; 2],
}

/// Relation of the second capture's clock to the first one's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockBetween {
    /// Bounds of second - first at the first compared packet. Packets cannot narrow them further: the one-way delays are
    /// unknown, only their sum is known.
    pub offset_ns: [i64; 2],
    /// How much faster the second clock runs, parts per million; null, and not corrected, if packets are too few or span less than a
    /// second.
    pub drift_ppm: Option<f64>,
}

/// A connection that passed both places.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairedConnection {
    /// Its number in the list of flows of each capture, from 1.
    pub flows: [usize; 2],
    /// How it was matched.
    pub recognised: Recognised,
    /// The capture nearer to `a`, 0 or 1 of the two: packets from a to b pass it first.
    pub nearer_a: usize,
    /// Evidence for this order.
    pub order_by: OrderBy,
    /// The capture nearer to the main sender, 0 or 1 of the two; the connection's findings are taken from it.
    pub explained_by: usize,
    /// Whether TCP is terminated between the two places, for example by a proxy. Losses and delays are then not compared.
    pub terminated: bool,
    /// Whether a network card split or joined segments at one of the places: bytes are compared, and times are not those on the wire.
    pub super_packets: bool,
    /// Smallest round trip between the two places: the sum of the least delays of both directions, independent of the clock offset. Null if
    /// only one direction passed both places, or times are unknown.
    pub rtt_between_ns: Option<u64>,
    /// What was changed between the two places, the handshake's changes first.
    pub changes: Vec<Change>,
    /// Direction from a to b, and from b to a.
    pub directions: [BetweenDirection; 2],
}

/// How a connection was matched with the other capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Recognised {
    /// The same addresses and ports.
    Ends,
    /// Other addresses or ports, but the same initial sequence numbers.
    SequenceNumbers,
    /// Other addresses, ports and sequence numbers, but the same timestamps in both SYNs.
    Timestamps,
}

/// Evidence for which place comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OrderBy {
    /// Clock differences: the times are possible in only one order of the places.
    Times,
    /// The TTL or hop limit decreases.
    HopLimit,
    /// The round trip to `a` is shorter.
    RoundTrip,
    /// Only one of the places lacks packets.
    Losses,
    /// No evidence: the order in which the captures were named.
    Named,
}

/// One direction between the two places.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BetweenDirection {
    /// Segments with payload that passed the first place and could be compared; a super-packet counts as the segments it holds.
    pub segments: u64,
    /// Their payload, bytes.
    pub bytes: u64,
    /// Segments lost between the two places.
    pub lost_segments: u64,
    /// Their payload, bytes.
    pub lost_bytes: u64,
    /// Packets without payload that passed the first place and could be compared: ACK, SYN, FIN, RST.
    pub acks: u64,
    /// Packets without payload lost between the two places.
    pub lost_acks: u64,
    /// Packets that passed the first place before the second capture started or after it ended.
    pub outside: u64,
    /// Segments that the second capture lacks although the receiver acknowledged them: missed by the capture, not lost.
    pub missed_by_capture: u64,
    /// Packets that passed the second place but are not in the first capture.
    pub only_second: u64,
    /// Packets duplicated between the two places.
    pub duplicated: u64,
    /// Packets that reached the second place after one that had passed the first place later.
    pub reordered: u64,
    /// Largest number of packets that overtook one.
    pub reordered_most: u64,
    /// Segments retransmitted at the first place whose previous copy was lost between the two.
    pub retransmitted_after_loss: u64,
    /// Segments retransmitted although the previous copy had passed the second place: lost after it, or not lost.
    pub retransmitted_otherwise: u64,
    /// Delay above the least of this direction; null if times are unknown.
    pub queueing: Option<QueueingDelay>,
    /// Losses over time; at most a thousand points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<LostAt>,
    /// Queueing delay over time; at most a thousand points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delays: Vec<DelayAt>,
}

impl BetweenDirection {
    /// Returns the packets lost, with or without payload.
    pub const fn lost(&self) -> u64 {
        self.lost_segments + self.lost_acks
    }
}

/// Delay between the two places above the least delay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueingDelay {
    /// Packets with known delay.
    pub packets: u64,
    /// Median.
    pub p50_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

/// Packets lost around one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LostAt {
    /// When the first of them passed the first place, from the first compared packet there.
    pub at_ns: u64,
    /// Packets lost.
    pub packets: u64,
}

/// Queueing delay around one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DelayAt {
    /// When the first packet passed the first place, from the first compared packet there.
    pub at_ns: u64,
    /// Largest delay above the least, nanoseconds.
    pub queueing_ns: u64,
}

/// A change made between the two places.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// What was changed.
    pub what: Changed,
    /// Direction of the packets: 0 from a to b, 1 from b to a.
    pub direction: usize,
    /// Value at the first place of this direction; null if absent. An example if it differs from packet to packet.
    pub sent: Option<ChangedValue>,
    /// Value at the second place.
    pub arrived: Option<ChangedValue>,
    /// Packets changed.
    pub packets: u64,
    /// Packets of this direction in which a change would be visible.
    pub of: u64,
}

/// Fields that a middlebox may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Changed {
    /// Source address or port.
    Source,
    /// Destination address or port.
    Destination,
    /// Maximum segment size in a SYN.
    Mss,
    /// Window scale in a SYN.
    WindowScale,
    /// SACK permitted in a SYN: 1 or null.
    SackPermitted,
    /// Timestamps option in a SYN: 1 or null.
    TimestampsOffered,
    /// ECN requested or accepted by the flags of a SYN: 1 or 0.
    EcnOffered,
    /// All sequence numbers, by the same offset; the values are the first ones.
    SequenceNumbers,
    /// Timestamps option of segments: its value, or null.
    Timestamps,
    /// Window field.
    Window,
    /// The two ECN bits: 0 none, 1 and 2 capable, 3 congestion experienced.
    Ecn,
    /// DSCP.
    Dscp,
    /// TTL or hop limit: the difference is the number of routers in between.
    HopLimit,
    /// Segment boundaries: bytes of one segment at either place.
    Segments,
}

/// A value at one of the places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ChangedValue {
    /// A number.
    Number(u64),
    /// An address with a port.
    End(SocketAddr),
}
