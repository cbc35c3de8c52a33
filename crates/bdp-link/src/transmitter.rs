//! The sending side of a direction: what waits for the wire, and the wire itself.
//!
//! A packet's service begins when its turn has come, by the queue as it then is. So its departure is known from then on and
//! not on arrival.

use bdp_model::link::{DirectionConfig, LinkConfig, Medium};
use bdp_model::queue::QueueReading;
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
    /// When what was begun last is finished.
    free: Finish,
    /// Its own work.
    begun: u128,
    /// The IP bytes of it, where the discipline manages itself.
    begun_bytes: u64,
    /// When a segment came last.
    last_arrival: Nanos,
    /// When the segment that was begun last had arrived, and when it was begun.
    began: (Nanos, Nanos),
    /// How full the queue is over time, where that is asked for.
    occupancy: Option<Box<Occupancy>>,
    /// Segments that wait, and their work; those of a train that has begun included.
    waiting: Backlog,
}

/// What segments find that arrive at one instant, the earlier of them included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrivals {
    backlog: Backlog,
    /// Work that would still be finished within the clock's range.
    room: u128,
    /// Work that is finished within the nanosecond of the arrival.
    at_once: u128,
}

impl Transmitter {
    pub(crate) fn new(link: &LinkConfig, direction: &DirectionConfig, seed: u64, from: End) -> Self {
        let shared = matches!(link.medium, Medium::HalfDuplex(_));
        Self {
            // Who sends next on a shared medium goes by the packet that is next, so queues there are drop-tail.
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

    /// Says when time zero is of a service that changes.
    pub(crate) fn start_clock(&mut self, at: Nanos) {
        self.service.start_clock(at);
        if let Some(occupancy) = &mut self.occupancy {
            occupancy.start_clock(at);
        }
    }

    /// Notes how full the queue has been up to now, where that is asked for: to be called before it changes.
    fn note_occupancy(&mut self, now: Nanos) {
        let Some(occupancy) = &mut self.occupancy else { return };
        let (free, waiting, (arrived, begun)) = (self.free.at, self.waiting, self.began);
        occupancy.read(now, |at| QueueReading {
            packets: waiting.packets,
            bytes: u64::try_from(waiting.work / work_of_bytes(1)).unwrap_or(u64::MAX),
            delay_ns: if at < free { begun.saturating_sub(arrived).as_ns() } else { 0 },
        });
    }

    /// How full the queue was, from time zero on up to its last change.
    pub(crate) fn occupancy(&self) -> Option<(Nanos, &[QueueReading])> {
        self.occupancy.as_ref().map(|occupancy| occupancy.readings())
    }

    /// What a segment of so many bits takes on the wire at the least, whenever it comes.
    pub(crate) fn least(&self, wire_bits: u64) -> Nanos {
        self.service.least(work(wire_bits))
    }

    /// What an arrival at `now` finds. All that begins by then must have begun.
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

    /// Whether one more segment of so many bits finds room, and if so whether an ECN-capable one is marked.
    pub(crate) fn admits(&self, arrivals: &mut Arrivals, wire_bits: u64) -> Option<bool> {
        // Nothing ever waits for a wire of its own that takes no time, so neither limit nor threshold is reached.
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

    /// Takes a packet all of whose segments were admitted.
    pub(crate) fn push(&mut self, waiting: Waiting) {
        self.count(&waiting);
        self.discipline.push(waiting);
    }

    /// Whether the queue decides when a packet's turn comes, too, so that what is next is not known before.
    pub(crate) fn is_managed(&self) -> bool {
        self.discipline.is_managed()
    }

    /// Offers a segment to a queue that manages itself: whether it was marked, or why it was dropped. All whose turn has come must have
    /// begun; what the queue dropped instead is in `effects`, and still counts.
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

    /// The next segment of a queue that manages itself, when the wire is free for it.
    pub(crate) fn take(&mut self, effects: &mut Effects) -> Option<Waiting> {
        let turn = self.free.at.max(self.last_arrival);
        self.note_occupancy(turn);
        let waiting = self.discipline.take(turn, effects)?;
        self.begun_bytes = waiting.packet.len_bytes();
        Some(waiting)
    }

    /// No longer counts what the queue dropped after it had been admitted.
    pub(crate) fn forget(&mut self, waiting: &Waiting) {
        self.discount(u64::from(waiting.segments), work_of(waiting));
    }

    fn discount(&mut self, packets: u64, work: u128) {
        self.waiting.packets -= packets;
        self.waiting.work = self.waiting.work.saturating_sub(work);
    }

    /// Whether what arrives now is served at once: nothing waits, on a wire of its own that is free.
    pub(crate) fn is_idle(&self, now: Nanos) -> bool {
        !self.shared && self.waiting.packets == 0 && self.free.at <= now
    }

    /// Counts what waits now, be it for no time.
    pub(crate) fn count(&mut self, waiting: &Waiting) {
        self.note_occupancy(waiting.ticket.arrived);
        self.waiting.packets += u64::from(waiting.segments);
        self.waiting.work = self.waiting.work.saturating_add(work_of(waiting));
    }

    /// What waits for a wire of its own, the next first: before when no segment of it is off the wire.
    pub(crate) fn upcoming(&self) -> impl Iterator<Item = (Nanos, &Packet)> {
        let mut before = 0u128;
        self.discipline.iter().map(move |waiting| {
            let first = before.saturating_add(work(waiting.wire_bits.min(waiting.last_wire_bits)));
            before = before.saturating_add(work_of(waiting));
            (self.finish(self.free.at, first), &waiting.packet)
        })
    }

    /// Before then a segment of so many bits is not off a wire of its own that arrives at `now` and is admitted.
    pub(crate) fn soonest(&self, wire_bits: u64, now: Nanos) -> Nanos {
        self.finish(now.max(self.free.at), work(wire_bits))
    }

    fn finish(&self, start: Nanos, work: u128) -> Nanos {
        self.service.finish(start, work).map_or(Nanos(u64::MAX), |finish| finish.at)
    }

    pub(crate) fn head(&self) -> Option<&Waiting> {
        self.discipline.head()
    }

    /// Serves a segment that waited, from `start` on or when the wire is free; gives the end of its serialisation, at
    /// the end of the clock where it would be beyond.
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

    /// When the wire is free, cut to whole nanoseconds.
    pub(crate) fn free(&self) -> Nanos {
        self.free.at
    }

    /// The first whole nanosecond at which the wire is free to the last fraction.
    pub(crate) fn clear(&self) -> Nanos {
        self.free.at + Nanos(u64::from(self.free.left > 0))
    }

    /// Segments that wait.
    pub(crate) fn len(&self) -> u64 {
        self.waiting.packets
    }
}

/// The work of all segments of what waits.
fn work_of(waiting: &Waiting) -> u128 {
    u128::from(waiting.segments - 1) * work(waiting.wire_bits) + work(waiting.last_wire_bits)
}
