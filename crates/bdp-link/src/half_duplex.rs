//! One wire for both directions: each end waits for its turn, and every change of the sending end costs silence.
//!
//! Who sends next is decided whenever the medium becomes free, by what had arrived *before* that instant, and at once
//! when a packet arrives at an idle medium. So all follows from the stamps of the arrivals, never from when events
//! were looked for.

use std::collections::VecDeque;

use bdp_model::link::{DirectionConfig, LinkConfig, QueueLimit, Turns};
use bdp_model::units::Nanos;

use crate::End;
use crate::ecn;
use crate::packet::Packet;
use crate::propagation::Course;
use crate::queue::DropTail;
use crate::serialiser::{Serialiser, WORK_PER_BIT};

/// The shared medium, with what waits for it at either end.
#[derive(Debug, Clone)]
pub(crate) struct Channel {
    turns: Turns,
    a: Station,
    b: Station,
    /// Who sent last, and since when it has had the medium.
    holder: Option<(End, Nanos)>,
    /// When the last transmission that was begun ends, cut to whole nanoseconds.
    free: Nanos,
    /// The same rounded up: no sooner may the other end begin.
    clear: Nanos,
}

/// One end's side of the medium.
#[derive(Debug, Clone)]
struct Station {
    queue: DropTail,
    threshold: Option<QueueLimit>,
    serialiser: Serialiser,
    waiting: VecDeque<Waiting>,
    /// Of what waits, in units of 1/rate ns. The packet on the wire is not in it.
    waiting_work: u128,
    /// Of the packet that was begun last.
    begun_work: u128,
}

/// A packet that waits for the medium.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub packet: Packet,
    pub course: Course,
    pub wire_bits: u64,
    pub arrived: Nanos,
}

/// A packet that was given the medium.
#[derive(Debug, Clone)]
pub(crate) struct Transmission {
    pub from: End,
    pub waiting: Waiting,
    /// End of serialisation.
    pub finish: Nanos,
}

impl Channel {
    pub(crate) fn new(config: &LinkConfig, turns: Turns) -> Self {
        Self {
            turns,
            a: Station::new(&config.forward),
            b: Station::new(&config.reverse),
            holder: None,
            free: Nanos::ZERO,
            clear: Nanos::ZERO,
        }
    }

    /// Whether a packet of so many bits that arrives at `from` finds room, and if so whether so much waits that an
    /// ECN-capable one is marked. All transmissions that are begun by `now` must have been taken out.
    pub(crate) fn admits(&self, from: End, wire_bits: u64, now: Nanos) -> Option<bool> {
        let station = self.station(from);
        // What would never end finds no room.
        station.serialiser.plan(wire_bits, now)?;
        let on_wire = station.serialiser.remaining(now).min(station.begun_work);
        let packets = station.waiting.len() as u64 + u64::from(!station.serialiser.is_free(now));
        let ahead = station.waiting_work.saturating_add(on_wire);
        if !station.queue.admits(packets, ahead.saturating_add(work(wire_bits))) {
            return None;
        }
        Some(station.threshold.is_some_and(|threshold| ecn::reaches(threshold, packets, ahead)))
    }

    /// Takes a packet that was admitted.
    pub(crate) fn push(&mut self, from: End, waiting: Waiting) {
        let station = self.station_mut(from);
        station.waiting_work = station.waiting_work.saturating_add(work(waiting.wire_bits));
        station.waiting.push_back(waiting);
    }

    /// When it is next decided who sends; `None` while nothing waits.
    pub(crate) fn next_decision(&self) -> Option<Nanos> {
        let arrived = |station: &Station| station.waiting.front().map(|w| w.arrived);
        let first = match (arrived(&self.a), arrived(&self.b)) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        Some(first.max(self.free))
    }

    /// The next transmission that is decided at `now` or before.
    pub(crate) fn transmit(&mut self, now: Nanos) -> Option<Transmission> {
        let at = self.next_decision().filter(|at| *at <= now)?;
        let from = self.next_sender(at)?;
        let mut start = at;
        match self.holder {
            Some((holder, _)) if holder == from => {}
            Some(_) => {
                start = start.max(self.clear + self.turns.guard);
                self.holder = Some((from, start));
            }
            None => self.holder = Some((from, start)),
        }
        let station = self.station_mut(from);
        let waiting = station.waiting.pop_front()?;
        station.begun_work = work(waiting.wire_bits);
        station.waiting_work = station.waiting_work.saturating_sub(station.begun_work);
        let finish = station.serialiser.send(waiting.wire_bits, start);
        let clear = station.serialiser.ready();
        (self.free, self.clear) = (finish, clear);
        Some(Transmission { from, waiting, finish })
    }

    pub(crate) fn waiting(&self, from: End) -> u64 {
        self.station(from).waiting.len() as u64
    }

    /// Of two that have something to send: who has the medium keeps it until the other has waited for a turn.
    fn next_sender(&self, at: Nanos) -> Option<End> {
        let (a, b) = (self.a.waiting.front(), self.b.waiting.front());
        let Some((holder, since)) = self.holder else {
            return match (a, b) {
                (Some(a), Some(b)) if b.arrived < a.arrived => Some(End::B),
                (Some(_), _) => Some(End::A),
                (None, _) => b.map(|_| End::B),
            };
        };
        let (own, others) = if holder == End::A { (a, b) } else { (b, a) };
        match (own, others) {
            (None, None) => None,
            (Some(_), None) => Some(holder),
            (None, Some(_)) => Some(holder.other()),
            (Some(_), Some(head)) if at < since.max(head.arrived) + self.turns.turn => Some(holder),
            (Some(_), Some(_)) => Some(holder.other()),
        }
    }

    fn station(&self, end: End) -> &Station {
        match end {
            End::A => &self.a,
            End::B => &self.b,
        }
    }

    fn station_mut(&mut self, end: End) -> &mut Station {
        match end {
            End::A => &mut self.a,
            End::B => &mut self.b,
        }
    }
}

impl Station {
    fn new(config: &DirectionConfig) -> Self {
        Self {
            queue: DropTail::new(config.limit),
            threshold: config.ecn_threshold,
            serialiser: Serialiser::new(config.rate),
            waiting: VecDeque::new(),
            waiting_work: 0,
            begun_work: 0,
        }
    }
}

fn work(wire_bits: u64) -> u128 {
    u128::from(wire_bits) * WORK_PER_BIT
}
