//! One direction of a link: the impairments in their order, and the packets inside.

use std::collections::VecDeque;

use bdp_model::link::{DirectionConfig, HeaderRewrite};
use bdp_model::units::Nanos;

use crate::busy::BusyMeter;
use crate::counters::Counters;
use crate::loss::LossModel;
use crate::packet::Packet;
use crate::queue::DropTail;
use crate::rewrite;
use crate::serialiser::Serialiser;
use crate::{DropCause, End, Verdict};

/// One direction. The delay is constant, so the order of entry is the order of departure and one FIFO holds all.
#[derive(Debug, Clone)]
pub(crate) struct Direction {
    rewrite: HeaderRewrite,
    loss: LossModel,
    queue: DropTail,
    serialiser: Serialiser,
    overhead_bytes: u64,
    delay: Nanos,
    inside: VecDeque<Inside>,
    /// How many at the front of `inside` have left the wire, as of the latest arrival.
    propagating: usize,
    counters: Counters,
    busy: BusyMeter,
}

/// A packet inside.
#[derive(Debug, Clone)]
struct Inside {
    packet: Packet,
    /// End of serialisation.
    finish: Nanos,
    /// Whether its serialisation began the moment the previous one ended.
    continues: bool,
}

impl Direction {
    pub(crate) fn new(config: &DirectionConfig, seed: u64, from: End) -> Self {
        Self {
            rewrite: config.rewrite,
            loss: LossModel::new(config.loss.clone(), seed, from),
            queue: DropTail::new(config.limit),
            serialiser: Serialiser::new(config.rate),
            overhead_bytes: u64::from(config.overhead_bytes),
            delay: config.delay,
            inside: VecDeque::new(),
            propagating: 0,
            counters: Counters::default(),
            busy: BusyMeter::default(),
        }
    }

    pub(crate) fn enqueue(&mut self, mut packet: Packet, now: Nanos) -> Verdict {
        self.counters.packets_in += 1;
        self.counters.bytes_in += packet.len_bytes();

        rewrite::apply(&self.rewrite, &mut packet);

        if self.loss.loses_next() {
            self.counters.lost += 1;
            return Verdict::Dropped(DropCause::Loss);
        }

        let waiting = self.waiting(now);
        let slot = self
            .serialiser
            .plan(self.wire_bits(&packet), now)
            .filter(|slot| self.serialiser.is_instant() || self.queue.admits(waiting, slot.work));
        let Some(slot) = slot else {
            self.counters.queue_dropped += 1;
            return Verdict::Dropped(DropCause::Queue);
        };
        self.serialiser.occupy(&slot);

        let queueing = slot.finish.saturating_sub(now);
        self.counters.queueing_max = self.counters.queueing_max.max(queueing);
        self.inside.push_back(Inside { packet, finish: slot.finish, continues: slot.continues });
        Verdict::Queued
    }

    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.inside.front().map(|head| head.finish + self.delay)
    }

    pub(crate) fn pop(&mut self, now: Nanos) -> Option<(Nanos, Packet)> {
        let due = self.next_due().filter(|due| *due <= now)?;
        let Inside { packet, continues, .. } = self.inside.pop_front()?;
        self.propagating = self.propagating.saturating_sub(1);
        self.counters.packets_out += 1;
        self.counters.bytes_out += packet.len_bytes();
        if !self.serialiser.is_instant() {
            self.busy.release(self.wire_bits(&packet), continues, now);
        }
        Some((due, packet))
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn queued(&self) -> u64 {
        self.inside.len() as u64
    }

    pub(crate) fn busy_rate_bps(&self) -> Option<f64> {
        self.busy.rate_bps()
    }

    /// Packets whose serialisation has not ended at `now`. Each packet is stepped over once in its life.
    fn waiting(&mut self, now: Nanos) -> u64 {
        while self.inside.get(self.propagating).is_some_and(|p| p.finish <= now) {
            self.propagating += 1;
        }
        (self.inside.len() - self.propagating) as u64
    }

    fn wire_bits(&self, packet: &Packet) -> u64 {
        packet.len_bytes().saturating_add(self.overhead_bytes).saturating_mul(8)
    }
}
