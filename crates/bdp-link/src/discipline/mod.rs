//! Queue disciplines: who may wait for the wire, and who is next.
//!
//! A discipline is asked at arrival whether a packet finds room, and whenever the wire is free for the next one. It holds
//! the packets themselves; how much work they are is known to the transmitter.

mod drop_tail;

use bdp_model::link::DirectionConfig;
use bdp_model::units::Nanos;

use self::drop_tail::DropTail;
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

/// The discipline of one direction.
#[derive(Debug, Clone)]
pub(crate) enum Discipline {
    DropTail(DropTail),
}

impl Discipline {
    pub(crate) fn new(config: &DirectionConfig) -> Self {
        Self::DropTail(DropTail::new(config.limit, config.ecn_threshold))
    }

    /// Whether a segment of so much work finds room behind the backlog, and if so whether an ECN-capable one is marked.
    pub(crate) fn admits(&self, backlog: &Backlog, work: u128) -> Option<bool> {
        match self {
            Self::DropTail(queue) => queue.admits(backlog, work),
        }
    }

    /// Takes a packet all of whose segments were admitted.
    pub(crate) fn push(&mut self, waiting: Waiting) {
        match self {
            Self::DropTail(queue) => queue.push(waiting),
        }
    }

    /// The next to be served.
    pub(crate) fn head(&self) -> Option<&Waiting> {
        match self {
            Self::DropTail(queue) => queue.head(),
        }
    }

    /// Gives the next to the wire.
    pub(crate) fn dequeue(&mut self) -> Option<Waiting> {
        match self {
            Self::DropTail(queue) => queue.dequeue(),
        }
    }
}
