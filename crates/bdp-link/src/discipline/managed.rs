//! What queues that manage themselves find before a packet, and what they did beside what they were asked for.

use bdp_model::units::Nanos;

use super::waiting::Waiting;
use crate::verdict::DropCause;

/// The segment on the wire, which counts for the queue's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OnWire {
    /// One, or none where the wire is free.
    pub packets: u64,
    /// Its IP bytes.
    pub bytes: u64,
}

/// A packet that waited and is gone.
#[derive(Debug, Clone)]
pub(crate) struct Removed {
    pub waiting: Waiting,
    pub at: Nanos,
    pub cause: DropCause,
}

/// What became of packets that had been admitted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Effects {
    pub removed: Vec<Removed>,
    /// Packets that were marked when their turn came.
    pub marked: u64,
}

impl Effects {
    pub(super) fn drop(&mut self, waiting: Waiting, at: Nanos, cause: DropCause) {
        self.removed.push(Removed { waiting, at, cause });
    }

    pub(super) fn dropped(&mut self, waiting: Option<Waiting>, at: Nanos, cause: DropCause) {
        if let Some(waiting) = waiting {
            self.drop(waiting, at, cause);
        }
    }
}
