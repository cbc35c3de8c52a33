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
//!    counts by the bits that remain. A queue that manages itself ([`bdp_model::queue`]) decides here and again when the packet's turn
//!    comes: it may drop or mark then, and serve flows out of their order. Its segments are decided one by one, and what it drops late is
//!    counted when it does ([`Link::take_removed`]).
//! 8. **ECN mark**, if the packet is ECN-capable and what it finds before it is the threshold or more, counted as
//!    for the limit but without the packet itself.
//! 9. **Serialisation**, `(IP bytes + overhead) x 8 / rate`, one packet at a time. Which packet is next, and when it is
//!    finished, is decided when the wire is free for it: by the queue as it then is, and by the wire's rate from then
//!    on, which may change ([`Service`]). The fraction of a nanosecond
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
//! distinguishes and whose departures lie within 50 us, when the last of them is due.
//!
//! The link's MTU is for the devices at its ends to enforce; packets of any size pass here.

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
