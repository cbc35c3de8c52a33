//! Sequence numbers of a stream: losses, late arrivals, duplicates and restarts (RFC 3550, A.1 and A.3).

use bdp_model::statistics::arrivals::{Arrival, Arrivals};

/// Numbers kept: one that is later than this can't be distinguished from a duplicate.
const REMEMBERED: u64 = 8192;
/// Most numbers that may arrive late before the first one seen.
const BEFORE: u64 = 64;
/// Largest jump ahead within a stream (RFC 3550, A.1).
pub(super) const MAX_DROPOUT: u64 = 3000;
/// Largest jump back within a stream.
const MAX_MISORDER: u64 = 100;

/// Relation of a number to earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Counted: the next one, one after a gap, or a late one.
    Counts,
    /// Duplicate.
    Copy,
    /// Out of range.
    Stale,
    /// Restart of the numbers.
    Anew,
}

/// Numbers of one stream.
#[derive(Debug)]
pub(super) struct Numbers {
    arrivals: Arrivals,
    /// Number at position 0 of `arrivals`.
    origin: u64,
    /// Lowest number that counts, and the number of datagrams sent according to the sender, both from the origin.
    lowest: u64,
    total: u64,
    /// Number after an implausible jump, which is accepted if the next one follows it.
    odd: Option<u64>,
    /// Whether jumps ahead of any length are accepted.
    trusts_jumps: bool,
    before: Counts,
}

/// Totals of the numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub expected: u64,
    pub lost: u64,
    pub reordered: u64,
    pub duplicates: u64,
    pub stale: u64,
    pub restarts: u64,
}

impl Numbers {
    /// Returns the numbers of a stream first seen with `first`; `began` is its first number, if known.
    pub(super) fn starting(first: u64, began: Option<u64>, trusts_jumps: bool) -> Self {
        let began = began.filter(|&began| began <= first && first - began < REMEMBERED / 2);
        let origin = began.unwrap_or(first.saturating_sub(BEFORE));
        let lowest = if began.is_some() { 0 } else { first - origin };
        let mut numbers = Self {
            arrivals: Arrivals::remembering(REMEMBERED),
            origin,
            lowest,
            total: 0,
            odd: None,
            trusts_jumps,
            before: Counts::default(),
        };
        numbers.arrivals.note(first - origin);
        numbers
    }

    /// Adds a datagram with this number.
    pub(super) fn note(&mut self, number: u64) -> Place {
        let place = number.checked_sub(self.origin);
        let fits = place.is_some_and(|place| {
            let next = self.arrivals.next();
            if place >= next {
                self.trusts_jumps || place - next < MAX_DROPOUT
            } else {
                next - place <= MAX_MISORDER || (self.trusts_jumps && next - place <= REMEMBERED)
            }
        });
        match place.filter(|_| fits) {
            Some(place) => {
                self.odd = None;
                self.lowest = self.lowest.min(place);
                match self.arrivals.note(place) {
                    Arrival::New { .. } | Arrival::Reordered => Place::Counts,
                    Arrival::Duplicate => Place::Copy,
                    Arrival::Stale => Place::Stale,
                }
            }
            // Two consecutive numbers after a jump are a restart.
            None if self.odd == Some(number) => {
                self.before = self.counts();
                self.before.restarts += 1;
                self.before.stale = self.before.stale.saturating_sub(1);
                let before = self.before;
                *self = Self { before, ..Self::starting(number.saturating_sub(1), None, self.trusts_jumps) };
                self.note(number);
                Place::Anew
            }
            None => {
                self.odd = number.checked_add(1);
                self.before.stale += 1;
                Place::Stale
            }
        }
    }

    /// Records the sender's end mark: the first number that it did not send.
    pub(super) fn end(&mut self, number: u64) {
        let total = number.saturating_sub(self.origin);
        // So many can't have been sent since.
        if total < self.arrivals.next().saturating_add(REMEMBERED) {
            self.total = self.total.max(total);
        }
    }

    /// Returns the highest number received.
    pub(super) fn highest(&self) -> u64 {
        self.origin + self.arrivals.next() - 1
    }

    pub(super) fn counts(&self) -> Counts {
        let counts = self.arrivals.counts();
        let expected = self.arrivals.next().max(self.total).saturating_sub(self.lowest);
        Counts {
            expected: self.before.expected + expected,
            lost: self.before.lost + expected.saturating_sub(counts.received),
            reordered: self.before.reordered + counts.reordered,
            duplicates: self.before.duplicates + counts.duplicated,
            stale: self.before.stale + counts.stale,
            restarts: self.before.restarts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: &[u64]) -> Numbers {
        let mut numbers = Numbers::starting(all[0], None, false);
        all[1..].iter().for_each(|&n| {
            numbers.note(n);
        });
        numbers
    }

    #[test]
    fn lost_late_and_double_numbers_are_told_apart() {
        let counts = of(&[100, 101, 104, 103, 103, 106, 99]).counts();
        let expected = Counts { expected: 8, lost: 2, reordered: 2, duplicates: 1, ..Counts::default() };
        assert_eq!(counts, expected);
    }

    #[test]
    fn a_jump_counts_only_where_the_next_follows_it() {
        let once = of(&[10, 11, 20_000, 12, 13]).counts();
        assert_eq!((once.expected, once.lost, once.stale, once.restarts), (4, 0, 1, 0));
        let anew = of(&[10, 11, 20_000, 20_001, 20_003]).counts();
        assert_eq!((anew.expected, anew.lost, anew.stale, anew.restarts), (6, 1, 0, 1));
        let back = of(&[50_000, 50_001, 7, 8]).counts();
        assert_eq!((back.expected, back.lost, back.restarts), (4, 0, 1));
    }

    #[test]
    fn what_was_lost_at_either_end_counts_where_the_ends_are_known() {
        let mut numbers = Numbers::starting(3, Some(0), true);
        numbers.note(4);
        numbers.end(7);
        assert_eq!((numbers.counts().expected, numbers.counts().lost), (7, 5));
        let mut unknown = Numbers::starting(3, None, true);
        unknown.note(4);
        unknown.end(1 << 60);
        assert_eq!((unknown.counts().expected, unknown.counts().lost), (2, 0));
    }

    #[test]
    fn the_largest_numbers_overflow_nothing() {
        let counts = of(&[u64::MAX, u64::MAX - 1, 0, 1, u64::MAX, u64::MAX]).counts();
        assert!(counts.lost <= counts.expected);
        let mut numbers = Numbers::starting(0, None, true);
        numbers.note(u64::MAX);
        numbers.end(u64::MAX);
        assert!(numbers.counts().expected < 1 << 20);
    }
}
