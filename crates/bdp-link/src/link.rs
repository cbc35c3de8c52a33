//! A link: its two directions, and the medium if they share one.

use bdp_model::link::queue::QueueSamples;
use bdp_model::link::{LinkConfig, Medium};
use bdp_model::units::Nanos;

use crate::counters::Counters;
use crate::direction::Direction;
use crate::end::End;
use crate::half_duplex::Channel;
use crate::loss::Expected;
use crate::packet::Packet;
use crate::segments::Segments;
use crate::service::Service;
use crate::verdict::{DropCause, Verdict};

/// A packet that leaves the link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departure {
    /// The end at which it leaves.
    pub to: End,
    /// Departure time by the link's own arithmetic: end of serialisation + delay.
    pub due: Nanos,
    /// The packet, rewritten if the link rewrites.
    pub packet: Packet,
    /// Number of wire segments: the last of them is due at `due`, the first at most 50 us before.
    pub segments: u32,
    /// IP bytes of the segments, each with its own headers.
    pub ip_bytes: u64,
}

/// A link between two ends. Every call takes constant time, amortised (logarithmic if packets overtake each
/// other), and allocates nothing per packet except for duplicates.
///
/// `now` may be equal in successive calls, but must not go backwards. If it does, nothing panics and packets that
/// keep their order still leave in it: a packet never finds the wire free before the previous one found it so.
#[derive(Debug, Clone)]
pub struct Link {
    forward: Direction,
    reverse: Direction,
    /// The shared medium; `None` if each direction has its own wire.
    shared: Option<Channel>,
}

impl Link {
    /// Creates an empty link. End A is the first host; packets that enter at A pass `config.forward`.
    ///
    /// Links that must be independent of each other need different seeds.
    pub fn new(config: &LinkConfig, seed: u64) -> Self {
        let shared = match config.medium {
            Medium::FullDuplex => None,
            Medium::HalfDuplex(turns) => Some(Channel::new(turns)),
        };
        let [forward, reverse] = [End::A, End::B].map(|from| Direction::new(config, seed, from));
        Self { forward, reverse, shared }
    }

    /// Returns the link, still empty, with this service instead of its configured rate in the direction that begins at `from`.
    pub fn with_service(mut self, from: End, service: Service) -> Self {
        self.direction_mut(from).transmitter.set_service(service);
        self
    }

    /// Sets time zero of everything that changes over time; before, the values of time zero apply. Transmissions already started are unaffected.
    pub fn start_clock(&mut self, at: Nanos) {
        self.transmit(at);
        self.forward.start_clock(at);
        self.reverse.start_clock(at);
    }

    /// Takes a packet that enters at `from`. For a super-packet, the verdict is that of its first segment.
    pub fn enqueue(&mut self, from: End, packet: Packet, now: Nanos) -> Verdict {
        let mut first = None;
        self.enqueue_each(from, packet, now, &mut |verdict| {
            first.get_or_insert(verdict);
        });
        first.unwrap_or(Verdict::QUEUED)
    }

    /// Takes a packet as [`Self::enqueue`] does; `report` receives the verdict of each of its wire segments, in order.
    pub fn enqueue_each(&mut self, from: End, packet: Packet, now: Nanos, report: &mut dyn FnMut(Verdict)) {
        let segments = Segments::of(&packet);
        if segments.count() == 1 {
            report(self.enqueue_segment(from, packet, now));
        } else if self.shared.is_none() && self.direction(from).keeps_order() {
            let direction = self.direction_mut(from);
            direction.transmit(now);
            direction.enqueue_super(packet, &segments, now, report);
        } else {
            let each = 0..segments.count();
            each.for_each(|i| report(self.enqueue_segment(from, segments.cut(&packet, i..i + 1), now)));
        }
    }

    fn enqueue_segment(&mut self, from: End, packet: Packet, now: Nanos) -> Verdict {
        self.transmit(now);
        self.direction_mut(from).enqueue(packet, now)
    }

    /// When the next event happens: no departure of either direction is due sooner. `None` while the link is empty.
    pub fn next_event(&self) -> Option<Nanos> {
        let Some(channel) = &self.shared else {
            return earlier(self.forward.next_event(), self.reverse.next_event());
        };
        let (a, b) = (&self.forward, &self.reverse);
        let decided = channel.next_decision(a, b).map(|at| a.earliest(at).min(b.earliest(at)));
        earlier(decided, earlier(a.next_due(), b.next_due()))
    }

    /// Upcoming departures at `to` by what has entered, soonest first: a lower bound of the time, and the packet if
    /// known. Whatever departs later than one of these departs after the time of the next.
    pub fn upcoming(&self, to: End) -> impl Iterator<Item = (Nanos, Option<&Packet>)> {
        let direction = self.direction(to.other());
        let known = (self.shared.is_none() && direction.keeps_order()).then(|| direction.upcoming());
        let unknown = match (&known, &self.shared) {
            (Some(_), _) => None,
            (None, None) => direction.next_event(),
            (None, Some(_)) => self.next_event(),
        };
        let known = known.into_iter().flatten().map(|(at, packet)| (at, Some(packet)));
        known.chain(unknown.map(|at| (at, None)))
    }

    /// Lower bound of the departure of a packet that enters at `from` at `now` or later, whatever enters before it.
    pub fn soonest(&self, from: End, packet: &Packet, now: Nanos) -> Nanos {
        if self.shared.is_some() { now } else { self.direction(from).soonest(packet, now) }
    }

    /// Shortest transit of a packet that enters at `from` and is no shorter than this one, whenever it enters.
    pub fn least(&self, from: End, packet: &Packet) -> Nanos {
        if self.shared.is_some() { Nanos::ZERO } else { self.direction(from).least(packet) }
    }

    /// Takes the earliest departure due at `now` or before; at equal times the one that entered at A.
    ///
    /// `None` if there is none. That can happen although [`Link::next_event`] had come, if the next sender had still
    /// to be chosen, if packets overtake each other, or if a run of segments grew: the next event is then later than
    /// `now`.
    pub fn pop(&mut self, now: Nanos) -> Option<Departure> {
        self.transmit(now);
        let from = match (self.forward.next_due(), self.reverse.next_due()) {
            (Some(forward), Some(reverse)) if reverse < forward => End::B,
            (Some(_), _) => End::A,
            (None, _) => End::B,
        };
        let (due, segments, ip_bytes, packet) = self.direction_mut(from).pop(now)?;
        Some(Departure { to: from.other(), due, packet, segments, ip_bytes })
    }

    /// Keeps, from now on, packets that queues drop after admission: see [`Self::take_removed`].
    pub fn keep_removed(&mut self) {
        self.forward.keep_removed();
        self.reverse.keep_removed();
    }

    /// Takes the packets that the queue of the direction that begins at `from` dropped after admission, since the
    /// last call: when, why, and the packet. Empty unless [`Self::keep_removed`] was called.
    pub fn take_removed(&mut self, from: End) -> impl Iterator<Item = (Nanos, DropCause, Packet)> {
        let removed = self.direction_mut(from).take_removed().into_iter();
        removed.map(|removed| (removed.at, removed.cause, removed.waiting.packet))
    }

    /// Samples of the queue of the direction that begins at `from`, from time zero to its last change; `None` unless the configuration requests them.
    pub fn queue_samples(&self, from: End) -> Option<QueueSamples> {
        let (interval, readings) = self.direction(from).transmitter.occupancy()?;
        Some(QueueSamples::new(interval, readings))
    }

    /// Counters of the direction that begins at `from`.
    pub fn counters(&self, from: End) -> &Counters {
        &self.direction(from).counters
    }

    /// Expected losses among the packets that entered at `from`, if the loss changes over time.
    pub fn loss_expected(&self, from: End) -> Option<Expected> {
        self.direction(from).loss_expected()
    }

    /// Wire segments inside the direction that begins at `from`: waiting, on the wire, propagating, or due and not popped.
    pub fn queued(&self, from: End) -> u64 {
        self.direction(from).len()
    }

    /// Starts all transmissions whose turn has come by `now`.
    fn transmit(&mut self, now: Nanos) {
        match &mut self.shared {
            None => {
                self.forward.transmit(now);
                self.reverse.transmit(now);
            }
            Some(channel) => channel.transmit(&mut self.forward, &mut self.reverse, now),
        }
    }

    fn direction(&self, from: End) -> &Direction {
        match from {
            End::A => &self.forward,
            End::B => &self.reverse,
        }
    }

    fn direction_mut(&mut self, from: End) -> &mut Direction {
        match from {
            End::A => &mut self.forward,
            End::B => &mut self.reverse,
        }
    }
}

fn earlier(a: Option<Nanos>, b: Option<Nanos>) -> Option<Nanos> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
