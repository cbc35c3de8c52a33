//! The link emulator of bdp, without I/O, in integer nanoseconds.
//!
//! A [`Link`] joins two ends by two one-way directions that share nothing. The caller brings packets and the
//! time; the link says what became of each packet and when it comes out. It asks neither a clock nor the
//! operating system for anything, so the same seed and the same arrivals give the same departures to the
//! nanosecond, in real time and in virtual time.
//!
//! # What a packet meets, in this order
//!
//! 1. **Rewrite.** A middlebox may change TCP headers; checksums stay as right or as wrong as they were.
//! 2. **Loss.** Packets of a direction are indexed from 0 in order of entry. Whether packet `k` is lost depends on
//!    the seed, the direction, the impairment and `k`, never on time, on sizes or on the other direction.
//! 3. **Queue limit**, drop-tail. What counts are the packets whose serialisation has not ended, the one on the
//!    wire included. In packets: admitted if no more than `limit - 1` are there. In bytes: admitted if the packet
//!    will be off the wire within `limit x 8 / rate` of its arrival, which is to say that the packet on the wire
//!    counts by the bits that remain.
//! 4. **Serialisation**, `(IP bytes + overhead) x 8 / rate`, one packet at a time. The fraction of a nanosecond
//!    that is left over is carried to the next packet while the wire stays busy: after n packets of b bits back to
//!    back the wire is free at floor(n x b x 10^9 / rate), without drift.
//! 5. **Propagation**, a constant. Packets leave in the order in which they entered.
//!
//! Without a rate a packet is serialised in no time, so nothing is ever in the queue and no limit binds.
//! netem differs: its `limit` counts every packet inside, the ones that merely propagate too.
//!
//! The link's MTU is for the devices at its ends to enforce; packets of any size pass here.

#![forbid(unsafe_code)]

mod busy;
mod checksum;
mod counters;
mod direction;
mod loss;
mod packet;
mod queue;
mod random;
mod rewrite;
mod segments;
mod serialiser;
mod tcp;

use bdp_model::link::LinkConfig;
use bdp_model::units::Nanos;

pub use crate::counters::Counters;
pub use crate::packet::{Offload, Packet, PartialChecksum, Segmentation, Transport};
pub use crate::segments::Segments;

use crate::direction::Direction;

/// One of a link's two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// The first host that the link names.
    A,
    /// The second.
    B,
}

impl End {
    /// The opposite end.
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// A packet that has come out of the link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departure {
    /// The end at which it comes out.
    pub to: End,
    /// When it comes out by the link's own arithmetic: end of serialisation + delay.
    pub due: Nanos,
    /// The packet, rewritten where the link rewrites.
    pub packet: Packet,
}

/// What became of a packet on entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is inside and will depart.
    Queued,
    /// It is gone.
    Dropped(DropCause),
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropCause {
    /// By the loss model.
    Loss,
    /// The queue had no room, or the wire would not be done with it within the 584 years that the clock counts,
    /// as on a link of rate zero.
    Queue,
}

impl DropCause {
    /// The name in records: `loss`, `queue`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Queue => "queue",
        }
    }
}

/// A link between two ends. Every call takes constant time, amortised, and allocates nothing per packet.
///
/// `now` may be equal in successive calls, but must not go backwards. Where it does, nothing panics and packets
/// still leave in order: a packet never finds the wire free before the previous one found it so.
#[derive(Debug, Clone)]
pub struct Link {
    forward: Direction,
    reverse: Direction,
}

impl Link {
    /// An empty link. End A is the first host; what enters at A meets `config.forward`.
    ///
    /// Links that are to behave independently of each other need different seeds.
    pub fn new(config: &LinkConfig, seed: u64) -> Self {
        Self {
            forward: Direction::new(&config.forward, seed, End::A),
            reverse: Direction::new(&config.reverse, seed, End::B),
        }
    }

    /// Takes a packet that enters at `from`.
    pub fn enqueue(&mut self, from: End, packet: Packet, now: Nanos) -> Verdict {
        self.direction_mut(from).enqueue(packet, now)
    }

    /// The earliest due departure of both directions; `None` while the link is empty.
    pub fn next_event(&self) -> Option<Nanos> {
        match (self.forward.next_due(), self.reverse.next_due()) {
            (Some(forward), Some(reverse)) => Some(forward.min(reverse)),
            (forward, reverse) => forward.or(reverse),
        }
    }

    /// The earliest departure that is due at `now` or before; of two at the same nanosecond the one that entered at A.
    ///
    /// `now` counts as the instant of release for [`Link::busy_rate_bps`].
    pub fn pop(&mut self, now: Nanos) -> Option<Departure> {
        let from = match (self.forward.next_due(), self.reverse.next_due()) {
            (Some(forward), Some(reverse)) if reverse < forward => End::B,
            (Some(_), _) => End::A,
            (None, _) => End::B,
        };
        let (due, packet) = self.direction_mut(from).pop(now)?;
        Some(Departure { to: from.other(), due, packet })
    }

    /// What has passed the direction that begins at `from`.
    pub fn counters(&self, from: End) -> &Counters {
        self.direction(from).counters()
    }

    /// Packets inside the direction that begins at `from`: waiting, on the wire, propagating, or due and not popped.
    pub fn queued(&self, from: End) -> u64 {
        self.direction(from).queued()
    }

    /// The wire rate that the direction from `from` achieved, bit/s, over its longest stretch without an idle wire.
    ///
    /// Wire bits of all packets of the stretch but the first / time between the *releases* of its first and last
    /// packet, so that a driver that releases late is seen here. `None` where no stretch lasted 100 ms, and on
    /// links without a rate.
    pub fn busy_rate_bps(&self, from: End) -> Option<f64> {
        self.direction(from).busy_rate_bps()
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
