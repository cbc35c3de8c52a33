//! One direction of a link, but for the wire: what comes before it, and what lies behind it.

use bdp_model::link::{DirectionConfig, HeaderRewrite};
use bdp_model::units::Nanos;

use crate::corruption;
use crate::counters::Counters;
use crate::entry::Entry;
use crate::packet::Packet;
use crate::policer::Policer;
use crate::propagation::{Course, Propagation};
use crate::rewrite;
use crate::{DropCause, End};

/// One direction. Its parts are met in their order; the link puts the wire between policer and propagation.
#[derive(Debug, Clone)]
pub(crate) struct Direction {
    rewrite: HeaderRewrite,
    entry: Entry,
    policer: Option<Policer>,
    overhead_bytes: u64,
    pub propagation: Propagation,
    pub counters: Counters,
}

/// A packet that has passed the entry.
#[derive(Debug, Clone)]
pub(crate) struct Entered {
    pub packet: Packet,
    pub index: u64,
    pub corrupted: bool,
    pub duplicate: bool,
}

impl Direction {
    pub(crate) fn new(config: &DirectionConfig, seed: u64, from: End) -> Self {
        Self {
            rewrite: config.rewrite,
            entry: Entry::new(config, seed, from),
            policer: config.policer.map(Policer::new),
            overhead_bytes: u64::from(config.overhead_bytes),
            propagation: Propagation::new(config, seed, from),
            counters: Counters::default(),
        }
    }

    /// Rewrite, drop by size, loss, corruption, duplication.
    pub(crate) fn enter(&mut self, mut packet: Packet) -> Result<Entered, DropCause> {
        self.counters.packets_in += 1;
        self.counters.bytes_in += packet.len_bytes();
        rewrite::apply(&self.rewrite, &mut packet);
        let passage = self.entry.decide(packet.len_bytes())?;
        let corrupted = passage.corrupt.is_some_and(|choice| corruption::invert(&mut packet, choice));
        self.counters.corrupted += u64::from(corrupted);
        self.counters.duplicated += u64::from(passage.duplicate);
        Ok(Entered { packet, index: passage.index, corrupted, duplicate: passage.duplicate })
    }

    /// Whether a packet passes the policer.
    pub(crate) fn passes_policer(&mut self, packet: &Packet, now: Nanos) -> bool {
        self.policer.as_mut().is_none_or(|policer| policer.passes(packet.len_bytes(), now))
    }

    /// Sends a packet on its way that arrived at `arrived` and leaves the wire at `finish`.
    pub(crate) fn launch(&mut self, packet: Packet, course: Course, arrived: Nanos, finish: Nanos) {
        let queueing = finish.saturating_sub(arrived);
        self.counters.queueing_max = self.counters.queueing_max.max(queueing);
        let due = self.propagation.due(course, finish);
        self.propagation.launch(due, packet);
    }

    pub(crate) fn pop(&mut self, now: Nanos) -> Option<(Nanos, Packet)> {
        let (due, packet) = self.propagation.pop(now)?;
        self.counters.packets_out += 1;
        self.counters.bytes_out += packet.len_bytes();
        Some((due, packet))
    }

    pub(crate) fn wire_bits(&self, packet: &Packet) -> u64 {
        packet.len_bytes().saturating_add(self.overhead_bytes).saturating_mul(8)
    }
}
