//! The link emulator of bdp, without I/O, in integer nanoseconds.
//!
//! A [`Link`] joins two ends by two one-way directions that share nothing. The caller passes packets and the
//! time; the link returns the fate of each packet and when it departs. It reads neither a clock nor anything else
//! of the operating system, so the same seed and the same arrivals give the same departures to the nanosecond, in
//! real time and in virtual time.
//!
//! # What a packet passes, in this order
//!
//! 1. **Rewrite.** A middlebox may change TCP headers; checksums stay as right or as wrong as they were.
//! 2. **Drop by size.** IP packets that exceed the link's size limit are dropped.
//! 3. **Loss.** Packets of a direction are indexed from 0 in order of entry. Whether packet `k` is lost depends
//!    on the seed, the direction, the impairment and `k`, never on time, on sizes or on the other direction. This
//!    applies to all random draws below.
//! 4. **Corruption.** One bit behind the IP header is inverted; the checksum there stays unchanged.
//! 5. **Duplication.** A copy follows directly. It passes everything below by itself.
//! 6. **Policer.** A token bucket of IP bytes, full at first; packets without enough tokens are dropped.
//! 7. **Queue limit**, drop-tail. It counts the packets whose serialisation has not ended, including the one on
//!    the wire. In packets: admitted if no more than `limit - 1` are there. In bytes: admitted if the packet will
//!    be off the wire within `limit x 8 / rate` of its arrival, so the packet on the wire counts by its remaining
//!    bits. Active queue management ([`bdp_model::link::queue`]) decides here and again when the packet's turn comes:
//!    it may drop or mark then, and serve flows out of order. Its segments are decided one by one, and late drops
//!    are counted when they happen ([`Link::take_removed`]).
//! 8. **ECN mark**, if the packet is ECN-capable and the backlog before it reaches the threshold, counted as for
//!    the limit but without the packet itself.
//! 9. **Serialisation**, `(IP bytes + overhead) x 8 / rate`, one packet at a time. Which packet is next, and when
//!    it is finished, is decided when the wire is free for it: by the queue at that time, and by the wire's rate
//!    from then on, which may change ([`Service`]). The remaining fraction of a nanosecond is carried to the next
//!    packet while the wire stays busy: after n packets of b bits back to back the wire is free at floor(n x b x
//!    10^9 / rate), without drift. On a half-duplex medium the other end's packets and the guard time come
//!    between, and the limit in bytes bounds bytes only.
//! 10. **Propagation**: the delay and its jitter, and for some packets a time for which they are held back.
//!     Without either, packets leave in order of entry.
//!
//! Without a rate serialisation takes no time, so on a wire of its own nothing is ever in the queue, no limit
//! applies and nothing is marked. netem differs: its `limit` counts every packet inside, including those that
//! only propagate.
//!
//! # Super-packets
//!
//! A packet may stand for many wire segments ([`Offload`]). Everything above is then decided segment by segment,
//! as if each had entered by itself at that instant; they depart together in the longest runs of equally treated
//! neighbours whose departures lie within 50 us, when the last of them is due.
//!
//! The devices at the link's ends enforce its MTU; packets of any size pass here.

#![forbid(unsafe_code)]

mod corruption;
mod counters;
mod direction;
mod discipline;
mod duplication;
mod ecn;
mod end;
mod entry;
mod half_duplex;
mod jitter;
mod link;
mod loss;
mod normal;
mod occupancy;
mod packet;
mod policer;
mod propagation;
mod random;
mod reordering;
mod rewrite;
mod segments;
mod service;
mod tcp;
mod train;
mod transmitter;
mod verdict;

pub use crate::counters::Counters;
pub use crate::end::End;
pub use crate::link::{Departure, Link};
pub use crate::loss::Expected as ExpectedLoss;
pub use crate::packet::{Offload, Packet, PartialChecksum, Segmentation, Transport};
pub use crate::segments::Segments;
pub use crate::service::{Service, Steps, Timed};
pub use crate::verdict::{DropCause, Fate, Verdict};
