//! What a queue holds, and what an arrival finds in it.

use bdp_model::units::Nanos;

use crate::duplication::Copy;
use crate::packet::Packet;

/// What waits for the wire.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub packet: Packet,
    /// Of its first segment; the indices of the others follow.
    pub ticket: Ticket,
    /// Wire segments that it is.
    pub segments: u32,
    /// Of each segment but the last.
    pub wire_bits: u64,
    /// Of the last segment.
    pub last_wire_bits: u64,
}

/// What a segment carries from its arrival to its departure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket {
    /// Its index in the direction.
    pub index: u64,
    pub copy: Copy,
    pub held_back: bool,
    pub arrived: Nanos,
}

/// What an arrival finds before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Backlog {
    /// Segments whose serialisation has not ended.
    pub packets: u64,
    /// Their work; the segment on the wire counts by what remains of it.
    pub work: u128,
}
