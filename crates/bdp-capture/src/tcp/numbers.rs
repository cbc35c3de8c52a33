//! Packets sent but not captured, by the IPv4 identification, which Linux increments per connection.

use crate::decode::{Packet, Segment};

/// Consecutive packets with the expected identification from which a sender is known to increment it.
const REGULAR: u8 = 16;
/// Largest gap; a larger one is a change of the identification.
const MOST: u16 = 1024;
/// Initial hop limit of Linux. Others count for all connections together.
const HOPS: u8 = 64;

/// Identifications of a sender's packets.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Numbers {
    next: u16,
    regular: u8,
}

impl Numbers {
    /// Adds a packet of so many segments; returns how many packets before it, since the last captured one, are missing.
    pub fn packet(&mut self, packet: &Packet, segments: u64) -> u64 {
        let Some(number) = packet.identification.map(|number| number as u16) else { return 0 };
        let skipped = number.wrapping_sub(self.next);
        if skipped > u16::MAX / 2 {
            // A copy, or a late packet.
            return 0;
        }
        self.next = number.wrapping_add(segments.max(1) as u16);
        if skipped == 0 {
            self.regular = self.regular.saturating_add(1);
            return 0;
        }
        let is_counting = self.regular >= REGULAR && skipped <= MOST && packet.hop_limit <= HOPS;
        self.regular = if is_counting { self.regular } else { 0 };
        if is_counting { u64::from(skipped) } else { 0 }
    }
}

/// Whether a segment may be triggered by a timer: of full size, like the one before it.
pub(super) const fn is_of_a_timer(segment: &Segment, mss: u64, last_is_short: bool) -> bool {
    segment.payload as u64 >= mss && !last_is_short
}

/// Clock of a sender, from the timestamps of its data (RFC 7323).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stamps {
    first: Option<(u32, u64)>,
    last: (u32, u64),
}

impl Stamps {
    /// Adds data with this timestamp; returns how long it was delayed on its way, from the time since the previous data.
    pub fn data(&mut self, now: u64, stamp: u32) -> u64 {
        /// Slowest tick assumed while the rate of the clock is unknown.
        const SLOWEST_NS: u64 = 10_000_000;
        /// Time after which the rate is known.
        const KNOWN_NS: u64 = 500_000_000;
        let Some((first, began)) = self.first else {
            (self.first, self.last) = (Some((stamp, now)), (stamp, now));
            return 0;
        };
        let (last, at) = self.last;
        let ticks = stamp.wrapping_sub(last);
        if ticks > u32::MAX / 2 {
            return 0;
        }
        let (counted, took) = (u64::from(last.wrapping_sub(first)), at.saturating_sub(began));
        let tick = if took >= KNOWN_NS && counted > 0 { took / counted } else { SLOWEST_NS };
        let later = (u64::from(ticks) + 1).saturating_mul(tick);
        self.last = (stamp, now);
        now.saturating_sub(at).saturating_sub(later)
    }
}
