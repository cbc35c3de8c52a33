//! Queue disciplines: who may wait for the wire, and who is next.
//!
//! A discipline is asked at arrival whether a packet finds room, and whenever the wire is free for the next one. It holds
//! the packets themselves; how much work they are is known to the transmitter.

mod drop_tail;
mod waiting;

use bdp_model::link::DirectionConfig;

use self::drop_tail::DropTail;
pub(crate) use self::waiting::{Backlog, Ticket, Waiting};

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

    /// All that wait, in the order in which they are served.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        match self {
            Self::DropTail(queue) => queue.iter(),
        }
    }

    /// Gives the next to the wire.
    pub(crate) fn dequeue(&mut self) -> Option<Waiting> {
        match self {
            Self::DropTail(queue) => queue.dequeue(),
        }
    }
}
