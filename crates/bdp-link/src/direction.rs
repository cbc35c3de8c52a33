//! One direction of a link, but for the wire: what comes before it, and what lies behind it.

use bdp_model::link::{DirectionConfig, HeaderRewrite};
use bdp_model::units::Nanos;

use crate::corruption;
use crate::counters::Counters;
use crate::entry::{Entry, Passage};
use crate::packet::Packet;
use crate::policer::Policer;
use crate::propagation::{Course, Propagation};
use crate::rewrite;
use crate::segments::Segments;
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
        self.rewrite(&mut packet);
        let passage = self.decide(packet.len_bytes())?;
        Ok(self.apply(packet, passage))
    }

    pub(crate) fn rewrite(&self, packet: &mut Packet) {
        rewrite::apply(&self.rewrite, packet);
    }

    /// Counts a packet in that has so many IP bytes, and says what becomes of it.
    pub(crate) fn decide(&mut self, ip_bytes: u64) -> Result<Passage, DropCause> {
        self.counters.packets_in += 1;
        self.counters.bytes_in += ip_bytes;
        self.entry.decide(ip_bytes)
    }

    /// Does to a packet what was decided.
    pub(crate) fn apply(&mut self, mut packet: Packet, passage: Passage) -> Entered {
        let corrupted = passage.corrupt.is_some_and(|choice| corruption::invert(&mut packet, choice));
        self.counters.corrupted += u64::from(corrupted);
        self.counters.duplicated += u64::from(passage.duplicate);
        Entered { packet, index: passage.index, corrupted, duplicate: passage.duplicate }
    }

    /// Whether a packet of so many IP bytes passes the policer.
    pub(crate) fn passes_policer(&mut self, ip_bytes: u64, now: Nanos) -> bool {
        self.policer.as_mut().is_none_or(|policer| policer.passes(ip_bytes, now))
    }

    /// Sends a packet on its way that arrived at `arrived` and leaves the wire at `finish`.
    pub(crate) fn launch(&mut self, packet: Packet, course: Course, arrived: Nanos, finish: Nanos) {
        let due = self.due(course, arrived, finish);
        self.propagation.launch(due, 1, packet);
    }

    /// When a packet comes out that arrived at `arrived` and leaves the wire at `finish`.
    pub(crate) fn due(&mut self, course: Course, arrived: Nanos, finish: Nanos) -> Nanos {
        let queueing = finish.saturating_sub(arrived);
        self.counters.queueing_max = self.counters.queueing_max.max(queueing);
        self.propagation.due(course, finish)
    }

    /// What is due next: when, in how many wire segments of how many IP bytes together, and the packet.
    pub(crate) fn pop(&mut self, now: Nanos) -> Option<(Nanos, u32, u64, Packet)> {
        let (due, segments, packet) = self.propagation.pop(now)?;
        let ip_bytes = match segments {
            1 => packet.len_bytes(),
            run => Segments::of(&packet).run_bytes(0..run),
        };
        self.counters.packets_out += u64::from(segments);
        self.counters.bytes_out += ip_bytes;
        Some((due, segments, ip_bytes, packet))
    }

    pub(crate) fn wire_bits(&self, ip_bytes: u64) -> u64 {
        ip_bytes.saturating_add(self.overhead_bytes).saturating_mul(8)
    }
}
