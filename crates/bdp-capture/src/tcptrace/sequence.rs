//! Sequence space of a direction: retransmissions, acknowledgements, and their round trips.

use std::collections::VecDeque;

use super::times::Times;

/// Most ranges kept. If there are more, the two lowest are merged, including any gap between them.
const MOST: usize = 1 << 15;
/// Most acknowledged ranges kept; there are several only if packets are missing.
const MOST_ACKED: usize = 256;
/// Duplicate acknowledgements that a sender takes for a loss (RFC 5681, section 3.2).
const TRIPLE: u32 = 3;

/// A range sent at once, or everything acknowledged up to a gap.
#[derive(Debug, Clone, Copy)]
struct Piece {
    from: u64,
    to: u64,
    /// Time of the last transmission.
    at_us: u64,
    /// Number of retransmissions, including partial ones.
    again: u32,
    is_acked: bool,
    /// Sequence numbers taken by SYN and FIN.
    controls: u8,
    is_syn: bool,
}

/// Result of adding a segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sent {
    /// Sequence numbers that were sent before.
    pub again: u64,
    /// Whether it fills a gap below earlier data.
    pub is_out_of_order: bool,
}

/// An acknowledgement of a direction, with what identifies duplicates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ack {
    pub number: u32,
    /// Whether it repeats the last one without data, window change, SYN, FIN or RST (RFC 5681, section 2).
    pub repeats: bool,
}

/// Sequence space of a direction.
#[derive(Debug, Clone, Default)]
pub(super) struct SequenceSpace {
    pieces: VecDeque<Piece>,
    /// End of the highest number seen; others are assumed to be near it.
    near: Option<u64>,
    pub rtt: Times,
    /// Round trips of the segments with the most data.
    pub rtt_full: Times,
    full: u64,
    /// Round trips of retransmitted data, from the last transmission.
    pub rtt_again: Times,
    pub rtt_handshake_us: u64,
    /// Acknowledged exactly, but something below was sent later.
    pub post_loss: u64,
    /// Ranges acknowledged only together with a higher one.
    pub cumulative: u64,
    /// Duplicate acknowledgements while data was outstanding (RFC 5681, section 2).
    pub duplicates: u64,
    /// Consecutive duplicate acknowledgements.
    in_a_row: u32,
    pub triples: u64,
    /// Most retransmissions of a range before its acknowledgement.
    pub most_again: u32,
    /// Times between transmissions of the same range.
    pub again: Times,
}

impl SequenceSpace {
    /// Returns a sequence number without wraps: the one nearest to the highest.
    pub fn unwrapped(&mut self, number: u32) -> u64 {
        let near = *self.near.get_or_insert((1 << 32) | u64::from(number));
        near.saturating_add_signed(i64::from(number.wrapping_sub(near as u32) as i32))
    }

    /// Returns the end of the highest data, SYN or FIN sent.
    fn end(&self) -> Option<u64> {
        self.pieces.back().map(|piece| piece.to)
    }

    /// Adds a segment with these sequence numbers, some of them taken by SYN and FIN.
    pub fn send(&mut self, now_us: u64, from: u64, length: u64, controls: u8, is_syn: bool) -> Sent {
        let to = from.saturating_add(length);
        self.near = Some(self.near.map_or(to, |near| near.max(to)));
        let piece = |from, to| Piece { from, to, at_us: now_us, again: 0, is_acked: false, controls, is_syn };
        let mut sent = Sent::default();
        let mut at = from;
        let mut is_rest = false;
        let mut index = self.pieces.partition_point(|piece| piece.to <= from);
        while at < to {
            let Some(next) = self.pieces.get_mut(index) else {
                self.pieces.push_back(piece(at, to));
                break;
            };
            if at < next.from {
                sent.is_out_of_order |= to < next.to;
                let end = to.min(next.from);
                self.pieces.insert(index, piece(at, end));
                at = end;
            } else {
                next.again = next.again.saturating_add(1);
                if !is_rest && !next.is_acked {
                    self.again.add(now_us.saturating_sub(next.at_us));
                    self.most_again = self.most_again.max(next.again);
                }
                next.at_us = now_us;
                is_rest = true;
                let end = to.min(next.to);
                sent.again += end - at;
                at = end;
            }
            index += 1;
        }
        while self.pieces.len() > MOST {
            self.merge_lowest();
        }
        sent
    }

    /// Processes an acknowledgement of the other end.
    pub fn acknowledge(&mut self, now_us: u64, ack: Ack) {
        if self.near.is_none() {
            return;
        }
        let number = self.unwrapped(ack.number);
        let count = self.pieces.partition_point(|piece| piece.from < number);
        if ack.repeats && self.end().is_some_and(|end| end > number) {
            self.duplicates += 1;
            self.in_a_row = self.in_a_row.saturating_add(1);
            self.triples += u64::from(self.in_a_row == TRIPLE);
        } else {
            self.in_a_row = 0;
        }
        let mut latest_us = 0;
        let mut is_news = false;
        for index in 0..count {
            let piece = &mut self.pieces[index];
            latest_us = latest_us.max(piece.at_us);
            if piece.is_acked {
                continue;
            }
            piece.is_acked = true;
            is_news = true;
            if piece.to == number {
                let piece = *piece;
                self.measure(now_us, &piece, latest_us);
            } else {
                self.cumulative += 1;
            }
        }
        if is_news {
            self.merge_acknowledged(count);
        }
    }

    /// Measures the round trip of a range acknowledged by itself.
    fn measure(&mut self, now_us: u64, piece: &Piece, latest_us: u64) {
        let took = now_us.saturating_sub(piece.at_us);
        if latest_us > piece.at_us {
            self.post_loss += 1;
        } else if piece.again > 0 {
            self.rtt_again.add(took);
        } else {
            self.rtt.add(took);
            if piece.is_syn {
                self.rtt_handshake_us = took;
            }
            let payload = (piece.to - piece.from).saturating_sub(u64::from(piece.controls));
            if payload > self.full {
                (self.full, self.rtt_full) = (payload, Times::default());
            }
            if payload > 0 && payload == self.full {
                self.rtt_full.add(took);
            }
        }
    }

    /// Merges adjoining acknowledged ranges among the lowest `count`.
    fn merge_acknowledged(&mut self, count: usize) {
        let mut merged: Vec<Piece> = Vec::new();
        for piece in self.pieces.drain(..count) {
            match merged.last_mut() {
                Some(last) if last.to == piece.from => *last = joined(last, &piece),
                _ => merged.push(piece),
            }
        }
        let too_many = merged.len().saturating_sub(MOST_ACKED);
        merged.into_iter().rev().for_each(|piece| self.pieces.push_front(piece));
        (0..too_many).for_each(|_| self.merge_lowest());
    }

    fn merge_lowest(&mut self) {
        let Some(low) = self.pieces.pop_front() else { return };
        if let Some(next) = self.pieces.front_mut() {
            *next = Piece { is_acked: true, ..joined(&low, next) };
        }
    }
}

fn joined(low: &Piece, high: &Piece) -> Piece {
    Piece { from: low.from, at_us: low.at_us.max(high.at_us), ..*high }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(number: u32) -> Ack {
        Ack { number, repeats: true }
    }

    fn of(numbers: &[(u64, u64, u64)]) -> SequenceSpace {
        let mut space = SequenceSpace::default();
        for &(at, from, length) in numbers {
            let from = space.unwrapped(from as u32);
            space.send(at, from, length, 0, false);
        }
        space
    }

    #[test]
    fn what_was_sent_before_counts_as_sent_again_by_its_bytes() {
        let mut space = of(&[(0, 1000, 100), (10, 1100, 100), (20, 1300, 100)]);
        let base = 1 << 32;
        let sent = |again, is_out_of_order| Sent { again, is_out_of_order };
        assert_eq!(space.send(30, base + 1050, 100, 0, false), sent(100, false));
        assert_eq!(space.send(40, base + 1200, 50, 0, false), sent(0, true));
        assert_eq!(space.send(50, base + 1250, 200, 0, false), sent(100, false));
        assert_eq!((space.again.count, space.most_again), (2, 1));
        assert_eq!(space.again.max(), 0.03);
    }

    #[test]
    fn only_the_piece_that_ends_at_the_number_gives_a_sample() {
        let mut space = of(&[(0, 1000, 100), (10_000, 1100, 200), (20_000, 1300, 200)]);
        space.acknowledge(30_000, ack(1300));
        assert_eq!((space.rtt.count, space.cumulative, space.rtt.min()), (1, 1, 20.0));
        space.acknowledge(50_000, ack(1500));
        assert_eq!((space.rtt.count, space.rtt_full.count, space.rtt_full.max()), (2, 2, 30.0));
        assert_eq!(space.pieces.len(), 1);
    }

    #[test]
    fn after_a_loss_there_is_no_sample_and_of_what_was_repaired_an_ambiguous_one() {
        let mut space = of(&[(0, 1000, 100), (1, 1100, 100), (2, 1200, 100), (90, 1000, 100)]);
        space.acknowledge(100, ack(1100));
        assert_eq!((space.rtt_again.count, space.rtt_again.max()), (1, 0.01));
        space.acknowledge(101, ack(1300));
        assert_eq!((space.post_loss, space.cumulative, space.rtt.count), (1, 1, 0));
    }

    #[test]
    fn the_third_duplicate_in_a_row_is_a_triple_while_something_is_outstanding() {
        let mut space = of(&[(0, 1000, 100), (1, 1100, 100)]);
        let first = |number| Ack { number, repeats: false };
        space.acknowledge(10, first(1100));
        (0..4).for_each(|i| space.acknowledge(11 + i, ack(1100)));
        assert_eq!((space.duplicates, space.triples), (4, 1));
        space.acknowledge(20, first(1100));
        (0..3).for_each(|i| space.acknowledge(30 + i, ack(1100)));
        assert_eq!((space.duplicates, space.triples), (7, 2));
        (0..3).for_each(|i| space.acknowledge(40 + i, ack(1200)));
        assert_eq!((space.duplicates, space.triples), (7, 2));
    }

    #[test]
    fn numbers_that_wrap_go_on() {
        let mut space = of(&[(0, 0xffff_ff00, 0x100), (1, 0, 0x100), (2, 0x100, 0x100)]);
        space.acknowledge(10, ack(0));
        space.acknowledge(11, ack(0x200));
        assert_eq!((space.rtt.count, space.cumulative), (2, 1));
        let from = space.unwrapped(0xffff_ff80);
        assert_eq!(space.send(20, from, 0x100, 0, false).again, 0x100);
    }

    #[test]
    fn pieces_stay_few_whatever_is_missing() {
        let mut space = SequenceSpace::default();
        for i in 0..100_000_u64 {
            let from = space.unwrapped((i * 200) as u32);
            space.send(i, from, 100, 0, false);
        }
        assert_eq!(space.pieces.len(), MOST);
        space.acknowledge(1, ack(100_000 * 200));
        assert_eq!(space.pieces.len(), MOST_ACKED);
    }
}
