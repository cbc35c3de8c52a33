//! One direction of a link: everything a packet passes, from the rewrite to the propagation.

use bdp_model::link::{HeaderRewrite, LinkConfig};
use bdp_model::units::Nanos;

use crate::counters::Counters;
use crate::discipline::{Effects, Removed, Ticket, Waiting};
use crate::duplication::Copy;
use crate::end::End;
use crate::entry::{Entry, Passage};
use crate::loss::Expected;
use crate::packet::Packet;
use crate::policer::Policer;
use crate::propagation::Propagation;
use crate::segments::Segments;
use crate::train::{Departing, Train};
use crate::transmitter::{Arrivals, Transmitter};
use crate::verdict::{DropCause, Fate, Verdict};
use crate::{corruption, ecn, rewrite};

/// One direction. A packet passes its parts in their order.
#[derive(Debug, Clone)]
pub(crate) struct Direction {
    rewrite: HeaderRewrite,
    entry: Entry,
    policer: Option<Policer>,
    overhead_bytes: u64,
    pub transmitter: Transmitter,
    /// The super-packet on the wire.
    train: Option<Train>,
    /// What the queue did to admitted packets and is not counted yet.
    effects: Effects,
    /// Admitted packets that it dropped, if [`Self::keep_removed`] was called.
    removed: Option<Vec<Removed>>,
    propagation: Propagation,
    pub counters: Counters,
}

impl Direction {
    pub(crate) fn new(link: &LinkConfig, seed: u64, from: End) -> Self {
        let config = match from {
            End::A => &link.forward,
            End::B => &link.reverse,
        };
        Self {
            rewrite: config.rewrite,
            entry: Entry::new(config, seed, from),
            policer: config.policer.map(Policer::new),
            overhead_bytes: u64::from(config.overhead_bytes),
            transmitter: Transmitter::new(link, config, seed, from),
            effects: Effects::default(),
            removed: None,
            train: None,
            propagation: Propagation::new(config, seed, from),
            counters: Counters::default(),
        }
    }

    /// Sets time zero of everything that changes over time.
    pub(crate) fn start_clock(&mut self, at: Nanos) {
        self.entry.start_clock(at);
        self.transmitter.start_clock(at);
        self.propagation.start_clock(at);
    }

    /// Expected losses among the packets so far, if the loss depends on time.
    pub(crate) fn loss_expected(&self) -> Option<Expected> {
        self.entry.loss_expected()
    }

    /// Takes a packet of one segment.
    pub(crate) fn enqueue(&mut self, mut packet: Packet, now: Nanos) -> Verdict {
        rewrite::apply(&self.rewrite, &mut packet);
        match self.decide(packet.len_bytes(), now) {
            Ok(passage) => self.enqueue_passed(packet, passage, now),
            Err(cause) => self.dropped(cause),
        }
    }

    /// Takes a packet of several segments, and reports the fate of each. For directions whose packets keep their order on their own wire only.
    pub(crate) fn enqueue_super(
        &mut self,
        mut packet: Packet,
        segments: &Segments,
        now: Nanos,
        report: &mut dyn FnMut(Verdict),
    ) {
        rewrite::apply(&self.rewrite, &mut packet);
        let capable = ecn::is_capable(&packet);
        let mut arrivals = self.transmitter.arrivals(now);
        let mut stretch: Option<Stretch> = None;
        for i in 0..segments.count() {
            let ip_bytes = segments.len_bytes(i);
            let verdict = match self.decide(ip_bytes, now) {
                Err(cause) => self.dropped(cause),
                Ok(passage) if passage.is_plain() => match self.admit(&mut arrivals, ip_bytes, now) {
                    Err(cause) => self.dropped(cause),
                    Ok(congested) => {
                        let marked = congested && capable;
                        match &mut stretch {
                            Some(open) if open.end == i && open.marked == marked => open.end += 1,
                            _ => {
                                let next = Stretch { begin: i, end: i + 1, marked, index: passage.index };
                                if let Some(ended) = stretch.replace(next) {
                                    self.push_cut(ended, &packet, segments, now);
                                }
                            }
                        }
                        self.queued(marked, false)
                    }
                },
                // Its bytes differ from its neighbours', or a copy comes between it and the next.
                Ok(passage) => {
                    if let Some(ended) = stretch.take() {
                        self.push_cut(ended, &packet, segments, now);
                    }
                    let single = segments.cut(&packet, i..i + 1);
                    let verdict = self.enqueue_passed(single, passage, now);
                    arrivals = self.transmitter.arrivals(now);
                    verdict
                }
            };
            report(verdict);
        }
        match stretch {
            Some(last) if last.begin == 0 => {
                let packet = segments.keep_front(packet, last.end);
                self.push_stretch(last, packet, segments, now);
            }
            Some(last) => self.push_cut(last, &packet, segments, now),
            None => {}
        }
    }

    /// Whether super-packets may stay whole, and the next departure is known: on a wire of their own, where packets leave in order of entry.
    pub(crate) fn keeps_order(&self) -> bool {
        self.propagation.keeps_order() && !self.transmitter.is_managed()
    }

    /// Keeps the packets that the queue drops after admission from now on.
    pub(crate) fn keep_removed(&mut self) {
        self.removed.get_or_insert_default();
    }

    /// Takes the packets that the queue dropped after admission since the last call.
    pub(crate) fn take_removed(&mut self) -> Vec<Removed> {
        self.removed.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Starts to serve everything whose turn has come by `now` on a wire of its own.
    pub(crate) fn transmit(&mut self, now: Nanos) {
        while self.transmitter.free() <= now && self.transmitter.len() > 0 {
            self.serve_next(Nanos::ZERO);
        }
    }

    /// Starts to serve the next segment, not before `start`, its arrival, or the end of the one before it.
    pub(crate) fn serve_next(&mut self, start: Nanos) {
        if self.train.is_some() {
            self.serve_of_train(start);
        } else {
            let next = self.transmitter.take(&mut self.effects);
            self.settle();
            if let Some(waiting) = next {
                self.begin(waiting, start);
            }
        }
    }

    /// Counts what the queue did to admitted packets.
    fn settle(&mut self) {
        self.counters.marked += std::mem::take(&mut self.effects.marked);
        for removed in self.effects.removed.drain(..) {
            self.transmitter.forget(&removed.waiting);
            self.counters.note(Fate::Dropped(removed.cause));
            if let Some(kept) = &mut self.removed {
                kept.push(removed);
            }
        }
    }

    /// Starts to serve a packet whose turn has come.
    fn begin(&mut self, waiting: Waiting, start: Nanos) {
        if waiting.segments == 1 {
            let due = self.serve(waiting.ticket, waiting.last_wire_bits, start);
            self.propagation.launch(due, 1, waiting.packet);
        } else {
            self.train = Some(Train::new(waiting));
            self.serve_of_train(start);
        }
    }

    fn serve_of_train(&mut self, start: Nanos) {
        let Some((ticket, wire_bits)) = self.train.as_ref().map(Train::next) else { return };
        let due = self.serve(ticket, wire_bits, start);
        let ended = self.train.as_mut().and_then(|train| train.join(due));
        let last = self.train.take_if(|train| train.is_served()).and_then(Train::finish);
        for Departing { due, segments, packet } in ended.into_iter().chain(last) {
            self.propagation.launch(due, segments, packet);
        }
    }

    /// Serves a segment whose turn has come; returns when it is due.
    fn serve(&mut self, ticket: Ticket, wire_bits: u64, start: Nanos) -> Nanos {
        let finish = self.transmitter.serve(wire_bits, start, ticket.arrived);
        let queueing = finish.saturating_sub(ticket.arrived);
        self.counters.queueing_max = self.counters.queueing_max.max(queueing);
        self.propagation.due(ticket.index, ticket.copy, ticket.held_back, finish)
    }

    /// Due time of the next known departure.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.propagation.next_due()
    }

    /// Lower bound of the next departure on a wire of its own.
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        let known = self.propagation.next_due();
        let waits = || (self.transmitter.len() > 0).then(|| self.earliest(self.transmitter.free()));
        if self.propagation.keeps_order() {
            return known.or_else(|| self.train.as_ref().and_then(Train::due)).or_else(waits);
        }
        [known, waits()].into_iter().flatten().min()
    }

    /// Lower bound of the next departure of what is served from `start` on.
    pub(crate) fn earliest(&self, start: Nanos) -> Nanos {
        start + self.propagation.least
    }

    /// Upcoming departures on a wire of its own, where packets keep their order: the packet, and a lower bound of its
    /// departure. Whatever departs later than one of these does so after the time of the next.
    pub(crate) fn upcoming(&self) -> impl Iterator<Item = (Nanos, &Packet)> {
        let train = self.train.as_ref().map(|train| {
            let due = train.due().unwrap_or_else(|| self.propagation.soonest(self.transmitter.free()));
            (due, train.packet())
        });
        let waiting = self.transmitter.upcoming().map(|(at, packet)| (self.propagation.soonest(at), packet));
        self.propagation.in_order().chain(train).chain(waiting)
    }

    /// Lower bound of the departure of a packet that enters at `now` or later, on a wire of its own.
    pub(crate) fn soonest(&self, packet: &Packet, now: Nanos) -> Nanos {
        let segments = Segments::of(packet);
        let least = segments.len_bytes(0).min(segments.len_bytes(segments.count() - 1));
        self.propagation.soonest(self.transmitter.soonest(self.wire_bits(least), now))
    }

    /// Shortest time in the direction for a packet no shorter than this one, whenever it enters.
    pub(crate) fn least(&self, packet: &Packet) -> Nanos {
        let segments = Segments::of(packet);
        let least = segments.len_bytes(0).min(segments.len_bytes(segments.count() - 1));
        self.transmitter.least(self.wire_bits(least)) + self.propagation.least
    }

    /// Takes the next due departure: when, how many wire segments, their IP bytes, and the packet.
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

    /// Wire segments inside.
    pub(crate) fn len(&self) -> u64 {
        self.transmitter.len() + self.train.as_ref().map_or(0, Train::len) + self.propagation.len()
    }

    /// Counts an entering packet of this length, and decides its fate before the policer.
    fn decide(&mut self, ip_bytes: u64, now: Nanos) -> Result<Passage, DropCause> {
        self.counters.packets_in += 1;
        self.counters.bytes_in += ip_bytes;
        self.entry.decide(ip_bytes, now)
    }

    /// Applies the decision to a packet of one segment, and takes it and its copy through policer and queue.
    fn enqueue_passed(&mut self, mut packet: Packet, passage: Passage, now: Nanos) -> Verdict {
        let corrupted = passage.corrupt.is_some_and(|choice| corruption::invert(&mut packet, choice));
        self.counters.corrupted += u64::from(corrupted);
        self.counters.duplicated += u64::from(passage.duplicate);
        let copy = passage.duplicate.then(|| packet.clone());
        Verdict {
            corrupted,
            fate: self.offer(packet, passage.index, Copy::Original, now),
            copy: copy.map(|packet| self.offer(packet, passage.index, Copy::Duplicate, now)),
        }
    }

    fn offer(&mut self, mut packet: Packet, index: u64, copy: Copy, now: Nanos) -> Fate {
        let mut arrivals = self.transmitter.arrivals(now);
        let congested = match self.admit(&mut arrivals, packet.len_bytes(), now) {
            Ok(congested) => congested,
            Err(cause) => return self.dropped(cause).fate,
        };
        let marked = congested && ecn::mark(&mut packet);
        let held_back = self.propagation.holds_back(index, copy);
        let wire_bits = self.wire_bits(packet.len_bytes());
        let ticket = Ticket { index, copy, held_back, arrived: now };
        let waiting = Waiting { packet, ticket, segments: 1, wire_bits, last_wire_bits: wire_bits };
        if !self.transmitter.is_managed() {
            self.push(waiting);
            return self.queued(marked, held_back).fate;
        }
        let fate = self.transmitter.offer(waiting, &mut self.effects);
        self.settle();
        if !self.transmitter.is_shared() {
            self.transmit(now);
        }
        match fate {
            Ok(marked) => self.queued(marked, held_back).fate,
            Err(cause) => self.dropped(cause).fate,
        }
    }

    /// Admits a segment through policer and queue; returns whether it met congestion.
    fn admit(&mut self, arrivals: &mut Arrivals, ip_bytes: u64, now: Nanos) -> Result<bool, DropCause> {
        if !self.policer.as_mut().is_none_or(|policer| policer.passes(ip_bytes, now)) {
            return Err(DropCause::Policer);
        }
        self.transmitter.admits(arrivals, self.wire_bits(ip_bytes)).ok_or(DropCause::Queue)
    }

    fn push_cut(&mut self, stretch: Stretch, packet: &Packet, segments: &Segments, now: Nanos) {
        let cut = segments.cut(packet, stretch.begin..stretch.end);
        self.push_stretch(stretch, cut, segments, now);
    }

    /// Queues a stretch that was cut out of a packet of these segments.
    fn push_stretch(&mut self, stretch: Stretch, mut packet: Packet, segments: &Segments, now: Nanos) {
        if stretch.marked {
            ecn::mark(&mut packet);
        }
        self.push(Waiting {
            packet,
            ticket: Ticket { index: stretch.index, copy: Copy::Original, held_back: false, arrived: now },
            segments: stretch.end - stretch.begin,
            wire_bits: self.wire_bits(segments.len_bytes(stretch.begin)),
            last_wire_bits: self.wire_bits(segments.len_bytes(stretch.end - 1)),
        });
    }

    fn push(&mut self, waiting: Waiting) {
        let now = waiting.ticket.arrived;
        if self.transmitter.is_idle(now) {
            // Its turn has come already: it bypasses the queue.
            self.transmitter.count(&waiting);
            self.begin(waiting, now);
        } else {
            self.transmitter.push(waiting);
        }
        if !self.transmitter.is_shared() {
            self.transmit(now);
        }
    }

    fn queued(&mut self, marked: bool, held_back: bool) -> Verdict {
        let fate = Fate::Queued { marked, held_back };
        self.counters.note(fate);
        Verdict { fate, ..Verdict::QUEUED }
    }

    fn dropped(&mut self, cause: DropCause) -> Verdict {
        self.counters.note(Fate::Dropped(cause));
        Verdict::dropped(cause)
    }

    fn wire_bits(&self, ip_bytes: u64) -> u64 {
        ip_bytes.saturating_add(self.overhead_bytes).saturating_mul(8)
    }
}

/// Neighbouring segments of a super-packet that wait with the same properties.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    begin: u32,
    end: u32,
    marked: bool,
    /// Index of the first one in the direction.
    index: u64,
}
