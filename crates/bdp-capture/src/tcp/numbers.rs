//! Packets that were sent and never passed here, by the identification of IPv4, which Linux counts up for each connection.

use crate::decode::{Packet, Segment};

/// Packets in a row with the numbers that are expected, from which on a sender is known to count so.
const REGULAR: u8 = 16;
/// More are not missing: the number is another one.
const MOST: u16 = 1024;
/// Linux begins at this hop limit. Others count for all connections together.
const HOPS: u8 = 64;

/// The numbers of a sender.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Numbers {
    next: u16,
    regular: u8,
}

impl Numbers {
    /// A packet passes, of so many segments: how many were sent before it, since the one that passed last, that did not pass.
    pub fn packet(&mut self, packet: &Packet, segments: u64) -> u64 {
        let Some(number) = packet.identification.map(|number| number as u16) else { return 0 };
        let skipped = number.wrapping_sub(self.next);
        if skipped > u16::MAX / 2 {
            // A copy, or one that is late.
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

/// Whether a segment is one that a timer sets off: of full size, where the last one before was, too.
pub(super) const fn is_of_a_timer(segment: &Segment, mss: u64, last_is_short: bool) -> bool {
    segment.payload as u64 >= mss && !last_is_short
}

/// The clock of a sender, by the timestamps of its data (RFC 7323).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stamps {
    first: Option<(u32, u64)>,
    last: (u32, u64),
}

impl Stamps {
    /// Data passes with this timestamp: for how long it was on its way in the time since the last one passed, as it had been sent earlier.
    pub fn data(&mut self, now: u64, stamp: u32) -> u64 {
        /// No stack's clock ticks slower, where its rate is not yet known.
        const SLOWEST_NS: u64 = 10_000_000;
        /// By then it is.
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
