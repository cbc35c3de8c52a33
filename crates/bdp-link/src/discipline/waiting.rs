//! Content of a queue, and the backlog on arrival.

use bdp_model::units::Nanos;

use crate::duplication::Copy;
use crate::packet::Packet;

/// A packet waiting for the wire.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub packet: Packet,
    /// Ticket of its first segment; the indices of the others follow.
    pub ticket: Ticket,
    /// Number of wire segments.
    pub segments: u32,
    /// Wire bits of each segment but the last.
    pub wire_bits: u64,
    /// Wire bits of the last segment.
    pub last_wire_bits: u64,
}

/// State of a segment from its arrival to its departure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket {
    /// Its index in the direction.
    pub index: u64,
    pub copy: Copy,
    pub held_back: bool,
    pub arrived: Nanos,
}

/// Backlog before an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Backlog {
    /// Segments whose serialisation has not ended.
    pub packets: u64,
    /// Their work; the segment on the wire counts by its remaining work.
    pub work: u128,
}
