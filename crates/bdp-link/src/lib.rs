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
//! 2. **Drop by size.** Longer IP packets than the link lets pass vanish.
//! 3. **Loss.** Packets of a direction are indexed from 0 in order of entry. Whether packet `k` is lost depends on
//!    the seed, the direction, the impairment and `k`, never on time, on sizes or on the other direction. The same
//!    holds for everything that is drawn below.
//! 4. **Corruption.** One bit behind the IP header is inverted; the checksum there stays as it was.
//! 5. **Duplication.** A copy follows right behind. It meets all that comes now by itself.
//! 6. **Policer.** A token bucket of IP bytes, full at first; what finds too little in it is dropped.
//! 7. **Queue limit**, drop-tail. What counts are the packets whose serialisation has not ended, the one on the
//!    wire included. In packets: admitted if no more than `limit - 1` are there. In bytes: admitted if the packet
//!    will be off the wire within `limit x 8 / rate` of its arrival, which is to say that the packet on the wire
//!    counts by the bits that remain.
//! 8. **ECN mark**, if the packet is ECN-capable and what it finds before it is the threshold or more, counted as
//!    for the limit but without the packet itself.
//! 9. **Serialisation**, `(IP bytes + overhead) x 8 / rate`, one packet at a time. The fraction of a nanosecond
//!    that is left over is carried to the next packet while the wire stays busy: after n packets of b bits back to
//!    back the wire is free at floor(n x b x 10^9 / rate), without drift. On a half-duplex medium the other end's
//!    packets and the guard time come between, and the limit in bytes bounds bytes only.
//! 10. **Propagation**: the delay and its jitter, and for some packets a time for which they are held back. Without
//!     either, packets leave in the order in which they entered.
//!
//! Without a rate a packet is serialised in no time, so on a wire of its own nothing is ever in the queue, no limit
//! binds and nothing is marked.
//! netem differs: its `limit` counts every packet inside, the ones that merely propagate too.
//!
//! # Super-packets
//!
//! A packet may stand for many wire segments ([`Offload`]). All of the above is then decided segment by segment, as if
//! each had entered by itself at that instant; what comes out together is the longest run of neighbours that nothing
//! tells apart and whose departures lie within 50 us, when the last of them is due.
//!
//! The link's MTU is for the devices at its ends to enforce; packets of any size pass here.

#![forbid(unsafe_code)]

mod checksum;
mod corruption;
mod counters;
mod direction;
mod duplication;
mod ecn;
mod entry;
mod half_duplex;
mod jitter;
mod loss;
mod normal;
mod packet;
mod policer;
mod propagation;
mod queue;
mod random;
mod reordering;
mod rewrite;
mod runs;
mod segments;
mod serialiser;
mod tcp;
mod verdict;
mod wire;

use bdp_model::link::{LinkConfig, Medium as MediumConfig};
use bdp_model::units::Nanos;

pub use crate::counters::Counters;
pub use crate::packet::{Offload, Packet, PartialChecksum, Segmentation, Transport};
pub use crate::segments::Segments;
pub use crate::verdict::{DropCause, Fate, Verdict};

use crate::direction::{Direction, Entered};
use crate::half_duplex::{Channel, Transmission, Waiting};
use crate::propagation::Copy;
use crate::runs::Run;
use crate::wire::{Admission, Wire};

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
    /// Wire segments that it is: the last of them is due at `due`, the first at most 50 us before.
    pub segments: u32,
    /// Their IP bytes, each with its own headers.
    pub ip_bytes: u64,
}

/// A link between two ends. Every call takes constant time, amortised (logarithmic where packets overtake each
/// other), and allocates nothing per packet but the copies of those that are duplicated.
///
/// `now` may be equal in successive calls, but must not go backwards. Where it does, nothing panics and packets that
/// keep their order still leave in it: a packet never finds the wire free before the previous one found it so.
#[derive(Debug, Clone)]
pub struct Link {
    forward: Direction,
    reverse: Direction,
    medium: Medium,
    /// Runs of the super-packet that is being taken in.
    runs: Vec<Run>,
    /// Those that were cut out of it.
    cut: Vec<Packet>,
}

/// What carries the directions.
#[derive(Debug, Clone)]
enum Medium {
    FullDuplex { forward: Wire, reverse: Wire },
    HalfDuplex(Box<Channel>),
}

impl Link {
    /// An empty link. End A is the first host; what enters at A meets `config.forward`.
    ///
    /// Links that are to behave independently of each other need different seeds.
    pub fn new(config: &LinkConfig, seed: u64) -> Self {
        Self {
            forward: Direction::new(&config.forward, seed, End::A),
            reverse: Direction::new(&config.reverse, seed, End::B),
            medium: match config.medium {
                MediumConfig::FullDuplex => Medium::FullDuplex {
                    forward: Wire::new(&config.forward),
                    reverse: Wire::new(&config.reverse),
                },
                MediumConfig::HalfDuplex(turns) => Medium::HalfDuplex(Box::new(Channel::new(config, turns))),
            },
            runs: Vec::new(),
            cut: Vec::new(),
        }
    }

    /// Takes a packet that enters at `from`. Of a super-packet, what is said is what became of its first segment.
    pub fn enqueue(&mut self, from: End, packet: Packet, now: Nanos) -> Verdict {
        let mut first = None;
        self.enqueue_each(from, packet, now, &mut |verdict| {
            first.get_or_insert(verdict);
        });
        first.unwrap_or(Verdict::QUEUED)
    }

    /// The same, and `tell` hears what became of each of its wire segments, in their order.
    pub fn enqueue_each(&mut self, from: End, packet: Packet, now: Nanos, tell: &mut dyn FnMut(Verdict)) {
        let segments = Segments::of(&packet);
        if segments.count() > 1 {
            self.enqueue_super(from, packet, &segments, now, tell);
        } else {
            tell(self.enqueue_segment(from, packet, now));
        }
    }

    fn enqueue_segment(&mut self, from: End, packet: Packet, now: Nanos) -> Verdict {
        self.transmit(now);
        let entered = match self.direction_mut(from).enter(packet) {
            Ok(entered) => entered,
            Err(cause) => {
                self.direction_mut(from).counters.note(Fate::Dropped(cause));
                return Verdict::dropped(cause);
            }
        };
        self.enqueue_entered(from, entered, now)
    }

    fn enqueue_entered(&mut self, from: End, entered: Entered, now: Nanos) -> Verdict {
        let copy = entered.duplicate.then(|| entered.packet.clone());
        let index = entered.index;
        Verdict {
            corrupted: entered.corrupted,
            fate: self.admit(from, index, Copy::Original, entered.packet, now),
            copy: copy.map(|packet| self.admit(from, index, Copy::Duplicate, packet, now)),
        }
    }

    /// When something happens next: the earliest due departure of both directions or, on a half-duplex medium, the
    /// next change of who sends, if that is sooner. `None` while the link is empty.
    pub fn next_event(&self) -> Option<Nanos> {
        let decision = match &self.medium {
            Medium::FullDuplex { .. } => None,
            Medium::HalfDuplex(channel) => channel.next_decision(),
        };
        [self.forward.propagation.next_due(), self.reverse.propagation.next_due(), decision]
            .into_iter()
            .flatten()
            .min()
    }

    /// The earliest departure that is due at `now` or before; of two at the same nanosecond the one that entered at A.
    ///
    /// `None` where there is none. On a half-duplex medium that can be so although [`Link::next_event`] had come:
    /// what happened then is over, and the next event is later than `now`.
    pub fn pop(&mut self, now: Nanos) -> Option<Departure> {
        self.transmit(now);
        let from = match (self.forward.propagation.next_due(), self.reverse.propagation.next_due()) {
            (Some(forward), Some(reverse)) if reverse < forward => End::B,
            (Some(_), _) => End::A,
            (None, _) => End::B,
        };
        let (due, segments, ip_bytes, packet) = self.direction_mut(from).pop(now)?;
        Some(Departure { to: from.other(), due, packet, segments, ip_bytes })
    }

    /// What has passed the direction that begins at `from`.
    pub fn counters(&self, from: End) -> &Counters {
        &self.direction(from).counters
    }

    /// Wire segments inside the direction that begins at `from`: waiting, on the wire, propagating, or due and not popped.
    pub fn queued(&self, from: End) -> u64 {
        let waiting = match &self.medium {
            Medium::FullDuplex { .. } => 0,
            Medium::HalfDuplex(channel) => channel.waiting(from),
        };
        waiting + self.direction(from).propagation.len()
    }

    /// Brings a packet or its copy past policer and queue, and counts what became of it.
    fn admit(&mut self, from: End, index: u64, copy: Copy, packet: Packet, now: Nanos) -> Fate {
        let fate = match self.offer(from, index, copy, packet, now) {
            Ok((marked, held_back)) => Fate::Queued { marked, held_back },
            Err(cause) => Fate::Dropped(cause),
        };
        self.direction_mut(from).counters.note(fate);
        fate
    }

    /// Whether the packet was marked and is held back.
    fn offer(
        &mut self,
        from: End,
        index: u64,
        copy: Copy,
        mut packet: Packet,
        now: Nanos,
    ) -> Result<(bool, bool), DropCause> {
        let direction = match from {
            End::A => &mut self.forward,
            End::B => &mut self.reverse,
        };
        if !direction.passes_policer(packet.len_bytes(), now) {
            return Err(DropCause::Policer);
        }
        let wire_bits = direction.wire_bits(packet.len_bytes());
        let mut dress = |packet: &mut Packet, congested| {
            (congested && ecn::mark(packet), direction.propagation.draw(index, copy))
        };
        match (&mut self.medium, from) {
            (Medium::FullDuplex { forward: wire, .. }, End::A)
            | (Medium::FullDuplex { reverse: wire, .. }, End::B) => {
                let Admission { congested, finish } = wire.admit(wire_bits, now).ok_or(DropCause::Queue)?;
                let (marked, course) = dress(&mut packet, congested);
                direction.launch(packet, course, now, finish);
                Ok((marked, course.held_back))
            }
            (Medium::HalfDuplex(channel), _) => {
                let congested = channel.admits(from, wire_bits, now).ok_or(DropCause::Queue)?;
                let (marked, course) = dress(&mut packet, congested);
                channel.push(from, Waiting { packet, course, wire_bits, arrived: now });
                Ok((marked, course.held_back))
            }
        }
    }

    /// Begins on a half-duplex medium all transmissions whose turn has come by `now`.
    fn transmit(&mut self, now: Nanos) {
        let Medium::HalfDuplex(channel) = &mut self.medium else { return };
        while let Some(Transmission { from, waiting, finish }) = channel.transmit(now) {
            let direction = match from {
                End::A => &mut self.forward,
                End::B => &mut self.reverse,
            };
            direction.launch(waiting.packet, waiting.course, waiting.arrived, finish);
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
