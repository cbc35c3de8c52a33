//! A direction's own wire: the queue with its limit and its mark, and the serialiser behind it.
//!
//! The delay behind the wire is no concern of it: a packet's departure from the wire is known when it is admitted.

use std::collections::VecDeque;

use bdp_model::link::{DirectionConfig, QueueLimit};
use bdp_model::units::Nanos;

use crate::ecn;
use crate::queue::DropTail;
use crate::serialiser::{Serialiser, WORK_PER_BIT};

/// The wire of a full-duplex direction.
#[derive(Debug, Clone)]
pub(crate) struct Wire {
    queue: DropTail,
    threshold: Option<QueueLimit>,
    serialiser: Serialiser,
    /// Ends of serialisation not yet past, as of the latest arrival; kept only where packets are counted.
    finishes: VecDeque<Nanos>,
    counts_packets: bool,
}

/// A packet's way over the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Admission {
    /// End of serialisation.
    pub finish: Nanos,
    /// Whether so much was waiting that an ECN-capable packet is marked.
    pub congested: bool,
}

impl Wire {
    pub(crate) fn new(config: &DirectionConfig) -> Self {
        let in_packets = |limit| matches!(limit, QueueLimit::Packets(_));
        Self {
            queue: DropTail::new(config.limit),
            threshold: config.ecn_threshold,
            serialiser: Serialiser::new(config.rate),
            finishes: VecDeque::new(),
            counts_packets: config.rate.is_some()
                && (in_packets(config.limit) || config.ecn_threshold.is_some_and(in_packets)),
        }
    }

    /// Takes a packet of so many bits that arrives at `now`; `None` where it finds no room.
    pub(crate) fn admit(&mut self, wire_bits: u64, now: Nanos) -> Option<Admission> {
        let waiting = self.waiting(now);
        let slot = self.serialiser.plan(wire_bits, now)?;
        let mut congested = false;
        // Without a rate nothing ever waits, so neither limit nor threshold is reached.
        if !self.serialiser.is_instant() {
            if !self.queue.admits(waiting, slot.work) {
                return None;
            }
            let own = u128::from(wire_bits) * WORK_PER_BIT;
            congested =
                self.threshold.is_some_and(|t| ecn::reaches(t, waiting, slot.work.saturating_sub(own)));
        }
        self.serialiser.occupy(&slot);
        if self.counts_packets {
            self.finishes.push_back(slot.finish);
        }
        Some(Admission { finish: slot.finish, congested })
    }

    /// Packets whose serialisation has not ended at `now`. Each packet is stepped over once in its life.
    fn waiting(&mut self, now: Nanos) -> u64 {
        while self.finishes.front().is_some_and(|finish| *finish <= now) {
            self.finishes.pop_front();
        }
        self.finishes.len() as u64
    }
}
