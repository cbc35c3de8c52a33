//! The sending side of a direction: the waiting packets and the wire.
//!
//! A packet's service begins when its turn has come, by the queue at that time. So its departure is known from then on and not on arrival.

use bdp_model::link::queue::QueueReading;
use bdp_model::link::{DirectionConfig, LinkConfig, Medium};
use bdp_model::units::Nanos;

use crate::discipline::{Backlog, Discipline, Effects, OnWire, Waiting};
use crate::end::End;
use crate::occupancy::Occupancy;
use crate::packet::Packet;
use crate::service::{Finish, Service, work, work_of_bytes};
use crate::verdict::DropCause;

/// Queue and wire of one direction.
#[derive(Debug, Clone)]
pub(crate) struct Transmitter {
    discipline: Discipline,
    service: Service,
    /// Whether the other direction sends on the same medium.
    shared: bool,
    /// When the last started segment is finished.
    free: Finish,
    /// Work of the last started segment.
    begun: u128,
    /// IP bytes of the last started segment, if the discipline is managed.
    begun_bytes: u64,
    /// When the last segment arrived.
    last_arrival: Nanos,
    /// When the last started segment had arrived, and when it was started.
    began: (Nanos, Nanos),
    /// Queue occupancy over time, if requested.
    occupancy: Option<Box<Occupancy>>,
    /// Waiting segments and their work, including those of a started train.
    waiting: Backlog,
}

/// The backlog for segments that arrive at one instant, including the earlier of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrivals {
    backlog: Backlog,
    /// Work that can still be finished within the clock's range.
    room: u128,
    /// Work that is finished within the nanosecond of the arrival.
    at_once: u128,
}

impl Transmitter {
    pub(crate) fn new(link: &LinkConfig, direction: &DirectionConfig, seed: u64, from: End) -> Self {
        let shared = matches!(link.medium, Medium::HalfDuplex(_));
        Self {
            // The next sender on a shared medium depends on the next packet, so queues there are drop-tail.
            discipline: match shared {
                true => Discipline::drop_tail(direction),
                false => Discipline::new(direction, seed, from),
            },
            service: Service::of(direction),
            shared,
            free: Finish { at: Nanos::ZERO, left: 0 },
            begun: 0,
            begun_bytes: 0,
            last_arrival: Nanos::ZERO,
            began: (Nanos::ZERO, Nanos::ZERO),
            occupancy: direction.queue_samples.map(|interval| Box::new(Occupancy::new(interval))),
            waiting: Backlog { packets: 0, work: 0 },
        }
    }

    pub(crate) fn set_service(&mut self, service: Service) {
        self.service = service;
    }

    /// Sets time zero of a service that changes.
    pub(crate) fn start_clock(&mut self, at: Nanos) {
        self.service.start_clock(at);
        if let Some(occupancy) = &mut self.occupancy {
            occupancy.start_clock(at);
        }
    }

    /// Records the occupancy up to now, if requested; must be called before it changes.
    fn note_occupancy(&mut self, now: Nanos) {
        let Some(occupancy) = &mut self.occupancy else { return };
        let (free, waiting, (arrived, begun)) = (self.free.at, self.waiting, self.began);
        occupancy.read(now, |at| QueueReading {
            packets: waiting.packets,
            bytes: u64::try_from(waiting.work / work_of_bytes(1)).unwrap_or(u64::MAX),
            delay_ns: if at < free { begun.saturating_sub(arrived).as_ns() } else { 0 },
        });
    }

    /// Queue occupancy, from time zero to its last change.
    pub(crate) fn occupancy(&self) -> Option<(Nanos, &[QueueReading])> {
        self.occupancy.as_ref().map(|occupancy| occupancy.readings())
    }

    /// Shortest time on the wire for a segment of this many bits, whenever it arrives.
    pub(crate) fn least(&self, wire_bits: u64) -> Nanos {
        self.service.least(work(wire_bits))
    }

    /// The backlog at `now`. All services due by then must have started.
    pub(crate) fn arrivals(&self, now: Nanos) -> Arrivals {
        let Finish { at: free, left } = self.free;
        if self.takes_no_time() {
            return Arrivals { backlog: self.waiting, room: u128::MAX, at_once: u128::MAX };
        }
        // At now == free the wire is busy for the remainder of that nanosecond.
        let remaining = match &self.service {
            Service::Unlimited => 0,
            service if now <= free => service.capacity(now, free).saturating_add(u128::from(left)),
            _ => 0,
        };
        let on_wire = match self.shared {
            // It may have to wait for the medium before it is served.
            true if now < free => remaining.min(self.begun),
            true => 0,
            false => remaining,
        };
        Arrivals {
            backlog: Backlog {
                packets: self.waiting.packets + u64::from(now < free),
                work: self.waiting.work.saturating_add(on_wire),
            },
            room: self
                .service
                .room(now.max(free))
                .saturating_sub(self.waiting.work)
                .saturating_sub(if now <= free { u128::from(left) } else { 0 }),
            at_once: self.service.capacity(now, now + Nanos(1)),
        }
    }

    /// Whether one more segment of this many bits fits, and if so whether an ECN-capable one is marked.
    pub(crate) fn admits(&self, arrivals: &mut Arrivals, wire_bits: u64) -> Option<bool> {
        // Nothing ever waits for its own wire that takes no time, so neither limit nor threshold is reached.
        if self.takes_no_time() {
            return Some(false);
        }
        let work = work(wire_bits);
        arrivals.room = arrivals.room.checked_sub(work)?;
        let congested = self.discipline.admits(&arrivals.backlog, work)?;
        let backlog = &mut arrivals.backlog;
        backlog.work = backlog.work.saturating_add(work);
        backlog.packets += u64::from(backlog.packets > 0 || backlog.work >= arrivals.at_once);
        Some(congested)
    }

    /// Queues a packet all of whose segments were admitted.
    pub(crate) fn push(&mut self, waiting: Waiting) {
        self.count(&waiting);
        self.discipline.push(waiting);
    }

    /// Whether the queue also decides when a packet's turn comes, so that the next one is not known before.
    pub(crate) fn is_managed(&self) -> bool {
        self.discipline.is_managed()
    }

    /// Offers a segment to a managed queue; returns whether it was marked, or why it was dropped. All services due
    /// must have started; packets dropped instead are in `effects`, and still counted.
    pub(crate) fn offer(&mut self, waiting: Waiting, effects: &mut Effects) -> Result<bool, DropCause> {
        let now = waiting.ticket.arrived;
        let own = work_of(&waiting);
        if self.service.room(now.max(self.free.at)).saturating_sub(self.waiting.work) < own {
            return Err(DropCause::Queue);
        }
        if self.waiting.packets == 0 && self.free.at <= now {
            self.discipline.went_idle(self.free.at);
        }
        self.last_arrival = now;
        let on_wire = match now < self.free.at {
            true => OnWire { packets: 1, bytes: self.begun_bytes },
            false => OnWire::default(),
        };
        self.count(&waiting);
        let fate = self.discipline.offer(waiting, on_wire, effects);
        if fate.is_err() {
            self.discount(1, own);
        }
        fate
    }

    /// Takes the next segment of a managed queue, when the wire is free for it.
    pub(crate) fn take(&mut self, effects: &mut Effects) -> Option<Waiting> {
        let turn = self.free.at.max(self.last_arrival);
        self.note_occupancy(turn);
        let waiting = self.discipline.take(turn, effects)?;
        self.begun_bytes = waiting.packet.len_bytes();
        Some(waiting)
    }

    /// Stops counting a packet that the queue dropped after admission.
    pub(crate) fn forget(&mut self, waiting: &Waiting) {
        self.discount(u64::from(waiting.segments), work_of(waiting));
    }

    fn discount(&mut self, packets: u64, work: u128) {
        self.waiting.packets -= packets;
        self.waiting.work = self.waiting.work.saturating_sub(work);
    }

    /// Whether an arrival now is served at once: nothing waits, and its own wire is free.
    pub(crate) fn is_idle(&self, now: Nanos) -> bool {
        !self.shared && self.waiting.packets == 0 && self.free.at <= now
    }

    /// Counts a packet that waits now, even for no time.
    pub(crate) fn count(&mut self, waiting: &Waiting) {
        self.note_occupancy(waiting.ticket.arrived);
        self.waiting.packets += u64::from(waiting.segments);
        self.waiting.work = self.waiting.work.saturating_add(work_of(waiting));
    }

    /// Packets waiting for their own wire, the next first, each with a lower bound of when a segment of it leaves the wire.
    pub(crate) fn upcoming(&self) -> impl Iterator<Item = (Nanos, &Packet)> {
        let mut before = 0u128;
        self.discipline.iter().map(move |waiting| {
            let first = before.saturating_add(work(waiting.wire_bits.min(waiting.last_wire_bits)));
            before = before.saturating_add(work_of(waiting));
            (self.finish(self.free.at, first), &waiting.packet)
        })
    }

    /// Lower bound of when a segment of this many bits, which arrives at `now` and is admitted, leaves its own wire.
    pub(crate) fn soonest(&self, wire_bits: u64, now: Nanos) -> Nanos {
        self.finish(now.max(self.free.at), work(wire_bits))
    }

    fn finish(&self, start: Nanos, work: u128) -> Nanos {
        self.service.finish(start, work).map_or(Nanos(u64::MAX), |finish| finish.at)
    }

    pub(crate) fn head(&self) -> Option<&Waiting> {
        self.discipline.head()
    }

    /// Serves a waiting segment, from `start` on or when the wire is free; returns the end of its serialisation, at most the end of the clock.
    pub(crate) fn serve(&mut self, wire_bits: u64, start: Nanos, arrived: Nanos) -> Nanos {
        let start = start.max(arrived);
        let own = work(wire_bits);
        let carried = if start <= self.free.at { self.free.left } else { 0 };
        let start = start.max(self.free.at);
        self.note_occupancy(start);
        self.began = (arrived, start);
        let never = Finish { at: Nanos(u64::MAX), left: 0 };
        self.free = self.service.finish(start, own + u128::from(carried)).unwrap_or(never);
        self.begun = own;
        self.discount(1, own);
        self.free.at
    }

    /// Whether the other direction sends on the same medium.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }

    fn takes_no_time(&self) -> bool {
        matches!(self.service, Service::Unlimited) && !self.shared
    }

    /// When the wire is free, rounded down to whole nanoseconds.
    pub(crate) fn free(&self) -> Nanos {
        self.free.at
    }

    /// The first whole nanosecond at which the wire is free to the last fraction.
    pub(crate) fn clear(&self) -> Nanos {
        self.free.at + Nanos(u64::from(self.free.left > 0))
    }

    /// Number of waiting segments.
    pub(crate) fn len(&self) -> u64 {
        self.waiting.packets
    }
}

/// Work of all segments of a waiting packet.
fn work_of(waiting: &Waiting) -> u128 {
    u128::from(waiting.segments - 1) * work(waiting.wire_bits) + work(waiting.last_wire_bits)
}
