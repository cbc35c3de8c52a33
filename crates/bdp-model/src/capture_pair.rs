//! What two captures of one path say together: what passed both places, what was lost, changed and delayed between them.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// Two captures that hold the same connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturePair {
    /// Which captures, by their place in the list of captures, from 0.
    pub captures: [usize; 2],
    /// What is known of their clocks; null where none of the connections tells.
    pub clock: Option<ClockBetween>,
    /// The connections that passed both places, as they stand in the table of the first capture.
    pub connections: Vec<PairedConnection>,
    /// TCP connections that only one of them holds.
    pub unpaired: [usize; 2],
    /// Segments of each that were not compared: there were more than are kept of a file.
    pub not_compared: [u64; 2],
}

/// What is known of the clock of the second capture beside that of the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockBetween {
    /// Second - first at the first compared packet lies between these two. Where in between no packet says: the delay of each way is not
    /// known, the sum of both is.
    pub offset_ns: [i64; 2],
    /// How much faster the second one goes, parts per million; null where the packets are too few or of less than a second. Where it is null nothing was
    /// removed.
    pub drift_ppm: Option<f64>,
}

/// A connection that passed both places.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairedConnection {
    /// Its number in each capture's list of flows, from 1.
    pub flows: [usize; 2],
    /// How it was recognised.
    pub recognised: Recognised,
    /// The capture that is nearer to `a`, 0 or 1 of the two: what goes from a to b passes it first.
    pub nearer_a: usize,
    /// What says so.
    pub order_by: OrderBy,
    /// The capture that is nearer to the one who sends most, whose findings are those of the connection: 0 or 1 of the two.
    pub explained_by: usize,
    /// Something between the two places ends TCP and begins it anew, as a proxy does. Losses and delays are then not compared.
    pub terminated: bool,
    /// Segments were cut or joined by a network card at one of the places: bytes are compared, and times are not those on the wire.
    pub super_packets: bool,
    /// The least from the first place to the second and back: the least delays of both ways, of which the offset of the clocks is no part. Null where
    /// only one way passed both, or times are not known.
    pub rtt_between_ns: Option<u64>,
    /// What was changed between the two, the handshake's first.
    pub changes: Vec<Change>,
    /// From a to b, and back.
    pub directions: [BetweenDirection; 2],
}

/// How a connection was recognised in the other capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Recognised {
    /// The same addresses and ports.
    Ends,
    /// Other addresses or ports, the same initial sequence numbers.
    SequenceNumbers,
    /// Other addresses or ports and other sequence numbers, the same timestamps in both SYNs.
    Timestamps,
}

/// What says which place comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OrderBy {
    /// What goes one way takes longer by these two clocks than what goes the other: times that are possible in one order alone.
    Times,
    /// TTL or hop limit falls.
    HopLimit,
    /// The round trip to `a` is shorter.
    RoundTrip,
    /// Packets are missing at one place alone.
    Losses,
    /// Nothing: the order in which the captures were named.
    Named,
}

/// One way between the two places.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BetweenDirection {
    /// Segments with payload that passed the first place of this way and could be compared; a super-packet is as many as it holds.
    pub segments: u64,
    /// Their payload.
    pub bytes: u64,
    /// Of them, such as never passed the second place.
    pub lost_segments: u64,
    /// Their payload.
    pub lost_bytes: u64,
    /// Packets without payload that passed the first place and could be compared: acknowledgements, SYN, FIN, RST.
    pub acks: u64,
    /// Of them, such as never passed the second place.
    pub lost_acks: u64,
    /// Packets that passed the first place when the second capture did not run yet, or no longer.
    pub outside: u64,
    /// Segments that are missing in the second capture though the receiver acknowledged them: the capture lacks them, they were not lost.
    pub missed_by_capture: u64,
    /// Packets that passed the second place and are not in the first capture.
    pub only_second: u64,
    /// Packets that are at the second place twice and at the first one once.
    pub duplicated: u64,
    /// Packets that came to the second place after one that passed the first place later.
    pub reordered: u64,
    /// By how many packets at the most.
    pub reordered_most: u64,
    /// Segments retransmitted at the first place whose copy before was lost between the two.
    pub retransmitted_after_loss: u64,
    /// Segments retransmitted though the copy before had passed the second place: lost after it, or not lost.
    pub retransmitted_otherwise: u64,
    /// Delay less the least of this way; null where times are not known.
    pub queueing: Option<QueueingDelay>,
    /// Where losses happened in time; at most a thousand points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<LostAt>,
    /// The queueing delay over time; at most a thousand points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delays: Vec<DelayAt>,
}

impl BetweenDirection {
    /// Packets lost, with payload or without.
    pub const fn lost(&self) -> u64 {
        self.lost_segments + self.lost_acks
    }
}

/// How much longer than the least packets took from one place to the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueingDelay {
    /// Packets of which it is known.
    pub packets: u64,
    /// Median.
    pub p50_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// The most.
    pub max_ns: u64,
}

/// Packets that were lost about a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LostAt {
    /// When the first of them passed the first place, since the first compared packet there.
    pub at_ns: u64,
    /// How many packets.
    pub packets: u64,
}

/// The delay about a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DelayAt {
    /// When the first packet passed the first place, since the first compared packet there.
    pub at_ns: u64,
    /// The most above the least.
    pub queueing_ns: u64,
}

/// What something between the two places changed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// What.
    pub what: Changed,
    /// Which way it went: 0 from a to b, 1 back.
    pub direction: usize,
    /// At the first place of this way; null where it was not there. Of what differs from packet to packet an example.
    pub sent: Option<ChangedValue>,
    /// At the second place.
    pub arrived: Option<ChangedValue>,
    /// Packets that it happened to.
    pub packets: u64,
    /// Packets of this way in which it could be seen.
    pub of: u64,
}

/// What a middlebox may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Changed {
    /// Address or port of the one who sends.
    Source,
    /// Address or port of the one to whom it goes.
    Destination,
    /// Maximum segment size in a SYN.
    Mss,
    /// Window scale in a SYN.
    WindowScale,
    /// SACK permitted in a SYN: 1 or null.
    SackPermitted,
    /// The timestamps option in a SYN: 1 or null.
    TimestampsOffered,
    /// ECN asked for or agreed to by the flags of a SYN: 1 or 0.
    EcnOffered,
    /// All sequence numbers, by the same offset; the values are the first ones.
    SequenceNumbers,
    /// The timestamps option of segments: its value, or null.
    Timestamps,
    /// The window as it is written.
    Window,
    /// The two ECN bits: 0 none, 1 and 2 capable, 3 congestion experienced.
    Ecn,
    /// DSCP.
    Dscp,
    /// TTL or hop limit: the difference are routers in between.
    HopLimit,
    /// Payload in other segments: bytes of one at either place.
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
