//! Propagation: the delay, its variation, and the packets in flight.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use bdp_model::link::DirectionConfig;
use bdp_model::link::over_time::DelayOverTime;
use bdp_model::units::Nanos;

use crate::duplication::Copy;
use crate::end::End;
use crate::jitter::Jitter;
use crate::packet::Packet;
use crate::reordering::Reordering;

/// The propagation of one direction.
#[derive(Debug, Clone)]
pub(crate) struct Propagation {
    delay: Nanos,
    /// Changes over time, if any.
    over_time: Option<Box<DelayOverTime>>,
    /// Time zero, once known.
    zero: Nanos,
    /// Lower bound of every packet's propagation.
    pub least: Nanos,
    jitter: Option<Jitter>,
    reordering: Option<Reordering>,
    /// Whether jitter lets a packet overtake another.
    overtaking: bool,
    /// Last due time of the packets that keep their order.
    last_due: Nanos,
    lane: Lane,
    /// Wire segments in the lane.
    segments: u64,
}

/// The packets in flight: a queue if all leave in the order of the wire, otherwise sorted by due time.
#[derive(Debug, Clone)]
enum Lane {
    InOrder(VecDeque<Flight>),
    ByDue { heap: BinaryHeap<Reverse<Flight>>, launched: u64 },
}

/// A packet in flight. At equal due times the one that left the wire first leaves first.
#[derive(Debug, Clone)]
struct Flight {
    due: Nanos,
    /// Its rank in leaving the wire; zero if the lane keeps the order.
    place: u64,
    /// Number of wire segments.
    segments: u32,
    packet: Packet,
}

impl Propagation {
    pub(crate) fn new(config: &DirectionConfig, seed: u64, from: End) -> Self {
        let reordering = config.reorder.and_then(|reorder| Reordering::new(reorder, seed, from));
        let over_time = config.delay_over_time.as_ref();
        let overtaking = config.jitter.as_ref().is_some_and(|jitter| jitter.reorder)
            || over_time.is_some_and(|delay| delay.reorder);
        let least = over_time.map_or(config.delay, |delay| delay.least().min(config.delay));
        let jitter = config.jitter.as_ref().map(|jitter| Jitter::new(jitter, seed, from));
        Self {
            delay: config.delay,
            over_time: over_time.map(|delay| Box::new(delay.clone())),
            zero: Nanos(u64::MAX),
            least: transit(least, jitter.as_ref().map_or(0, Jitter::least_ns)),
            jitter,
            overtaking,
            last_due: Nanos::ZERO,
            lane: if overtaking || reordering.is_some() {
                Lane::ByDue { heap: BinaryHeap::new(), launched: 0 }
            } else {
                Lane::InOrder(VecDeque::new())
            },
            reordering,
            segments: 0,
        }
    }

    /// Sets time zero.
    pub(crate) fn start_clock(&mut self, at: Nanos) {
        self.zero = at;
    }

    /// Whether packets leave in the order in which they left the wire.
    pub(crate) fn keeps_order(&self) -> bool {
        matches!(self.lane, Lane::InOrder(_))
    }

    /// Whether packet `index` or its copy is held back.
    pub(crate) fn holds_back(&mut self, index: u64, copy: Copy) -> bool {
        self.reordering.as_mut().is_some_and(|r| r.holds_back(index, copy))
    }

    /// When packet `index` or its copy, which leaves the wire at `finish`, is due. Must be called in the order of the wire.
    pub(crate) fn due(&mut self, index: u64, copy: Copy, held_back: bool, finish: Nanos) -> Nanos {
        let since = finish.saturating_sub(self.zero);
        let offset_ns = self.jitter.as_mut().map_or(0, |jitter| jitter.offset_ns(index, copy, since));
        let delay = self.over_time.as_ref().map_or(self.delay, |delay| delay.at(since));
        let varied = finish + transit(delay, offset_ns);
        if held_back {
            // It neither keeps its place nor delays later packets.
            return varied + self.reordering.as_ref().map_or(Nanos::ZERO, Reordering::by);
        }
        if self.overtaking {
            return varied;
        }
        self.last_due = self.last_due.max(varied);
        self.last_due
    }

    /// Puts a packet of this many wire segments in flight.
    pub(crate) fn launch(&mut self, due: Nanos, segments: u32, packet: Packet) {
        self.segments += u64::from(segments);
        match &mut self.lane {
            Lane::InOrder(queue) => queue.push_back(Flight { due, place: 0, segments, packet }),
            Lane::ByDue { heap, launched } => {
                heap.push(Reverse(Flight { due, place: *launched, segments, packet }));
                *launched += 1;
            }
        }
    }

    /// When the next packet is due.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        match &self.lane {
            Lane::InOrder(queue) => queue.front().map(|flight| flight.due),
            Lane::ByDue { heap, .. } => heap.peek().map(|Reverse(flight)| flight.due),
        }
    }

    /// Packets in flight that keep their order, the next first: due time and packet.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (Nanos, &Packet)> {
        let queue = match &self.lane {
            Lane::InOrder(queue) => Some(queue),
            Lane::ByDue { .. } => None,
        };
        queue.into_iter().flatten().map(|flight| (flight.due, &flight.packet))
    }

    /// Lower bound of the due time of what leaves the wire at `finish` or later and keeps its order.
    pub(crate) fn soonest(&self, finish: Nanos) -> Nanos {
        if self.keeps_order() { (finish + self.least).max(self.last_due) } else { finish + self.least }
    }

    /// Takes the next packet if it is due at `now` or before: due time, wire segments and packet.
    pub(crate) fn pop(&mut self, now: Nanos) -> Option<(Nanos, u32, Packet)> {
        self.next_due().filter(|due| *due <= now)?;
        let Flight { due, segments, packet, .. } = match &mut self.lane {
            Lane::InOrder(queue) => queue.pop_front()?,
            Lane::ByDue { heap, .. } => heap.pop()?.0,
        };
        self.segments -= u64::from(segments);
        Some((due, segments, packet))
    }

    /// Wire segments in flight.
    pub(crate) fn len(&self) -> u64 {
        self.segments
    }
}

/// Sum of delay and offset, at least zero.
fn transit(delay: Nanos, offset_ns: i64) -> Nanos {
    let offset = Nanos(offset_ns.unsigned_abs());
    if offset_ns < 0 { delay.saturating_sub(offset) } else { delay + offset }
}

impl PartialEq for Flight {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Flight {}

impl PartialOrd for Flight {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Flight {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.due, self.place).cmp(&(other.due, other.place))
    }
}
