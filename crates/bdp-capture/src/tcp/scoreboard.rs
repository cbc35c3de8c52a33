//! The bytes of one way that are neither acknowledged nor forgotten, as segments in order of their sequence numbers.

use std::collections::VecDeque;

/// More are never remembered: of a capture without acknowledgements the oldest are forgotten.
const MOST: usize = 1 << 16;

/// Bytes of one segment, or such as were never seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeqRange {
    /// First byte.
    pub from: u64,
    /// The byte behind the last.
    pub to: u64,
    /// When they were last seen; of missing ones when that was noticed.
    pub at: u64,
    /// How often they were seen: 0 of missing ones.
    pub times: u16,
    /// The receiver has them (RFC 2018).
    pub is_sacked: bool,
    /// Timestamp of the segment, or of the one that jumped over them.
    pub stamp: u32,
    /// Identification of that packet.
    pub identification: u32,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Scoreboard {
    pieces: VecDeque<SeqRange>,
    sacked: u64,
}

impl Scoreboard {
    /// Memory that it has beside its own place.
    pub fn held_bytes(&self) -> usize {
        self.pieces.capacity() * size_of::<SeqRange>()
    }

    /// Adds what comes behind all others.
    pub fn push(&mut self, piece: SeqRange) {
        debug_assert!(self.pieces.back().is_none_or(|last| last.to <= piece.from));
        if self.pieces.len() >= MOST {
            self.pop();
        }
        self.pieces.push_back(piece);
    }

    fn pop(&mut self) -> Option<SeqRange> {
        let piece = self.pieces.pop_front()?;
        if piece.is_sacked {
            self.sacked -= piece.to - piece.from;
        }
        Some(piece)
    }

    /// Bytes that the receiver has beyond what it acknowledges.
    pub const fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Takes out what is acknowledged.
    pub fn acknowledge(&mut self, ack: u64, mut each: impl FnMut(SeqRange)) {
        while let Some(first) = self.pieces.front_mut() {
            if first.to <= ack {
                if let Some(piece) = self.pop() {
                    each(piece);
                }
                continue;
            }
            if first.from < ack {
                if first.is_sacked {
                    self.sacked -= ack - first.from;
                }
                let head = SeqRange { to: ack, ..*first };
                first.from = ack;
                each(head);
            }
            return;
        }
    }

    /// Index of the first piece that ends behind this byte.
    fn place(&self, byte: u64) -> usize {
        self.pieces.partition_point(|piece| piece.to <= byte)
    }

    /// Notes that the receiver has these bytes. Returns how many are new.
    pub fn sack(&mut self, from: u64, to: u64) -> u64 {
        let mut news = 0;
        let mut i = self.place(from);
        while let Some(piece) = self.pieces.get(i).copied().filter(|piece| piece.from < to) {
            if !piece.is_sacked {
                self.split(i, from.max(piece.from), to.min(piece.to));
                // What was before the block is a piece of its own now.
                let at = if piece.from < from { i + 1 } else { i };
                let own = &mut self.pieces[at];
                own.is_sacked = true;
                news += own.to - own.from;
                i = self.join(at);
            }
            i += 1;
        }
        self.sacked += news;
        news
    }

    /// Makes a piece that the receiver has part of the one before it, where it has that, too: long runs are looked through for each block.
    /// Returns the index of what holds it.
    fn join(&mut self, i: usize) -> usize {
        let Some(before) = i.checked_sub(1).filter(|&before| self.pieces[before].is_sacked) else { return i };
        let Some(piece) = self.pieces.remove(i) else { return i };
        self.pieces[before].to = piece.to;
        before
    }

    /// Makes these bytes of a piece one of their own.
    fn split(&mut self, i: usize, from: u64, to: u64) {
        let whole = self.pieces[i];
        if to < whole.to {
            self.pieces[i].to = to;
            self.pieces.insert(i + 1, SeqRange { from: to, ..whole });
        }
        if from > whole.from {
            self.pieces[i].to = from;
            self.pieces.insert(i + 1, SeqRange { from, to: to.min(whole.to), ..whole });
        }
    }

    /// The pieces of which these bytes have a part.
    pub fn of(&self, from: u64, to: u64) -> impl Iterator<Item = &SeqRange> {
        self.pieces.range(self.place(from)..).take_while(move |piece| piece.from < to)
    }

    /// Notes that these bytes were seen, once more or at last.
    pub fn seen(&mut self, from: u64, to: u64, at: u64, stamp: u32, identification: u32) {
        let mut i = self.place(from);
        while let Some(piece) = self.pieces.get(i).copied().filter(|piece| piece.from < to) {
            self.split(i, from.max(piece.from), to.min(piece.to));
            let own = if piece.from < from { i + 1 } else { i };
            let piece = &mut self.pieces[own];
            piece.times = piece.times.saturating_add(1);
            (piece.at, piece.stamp, piece.identification) = (at, stamp, identification);
            i = own + 1;
        }
    }

    /// Whether the receiver has bytes behind this one.
    pub fn is_sacked_behind(&self, byte: u64) -> bool {
        self.sacked > 0 && self.pieces.range(self.place(byte)..).any(|piece| piece.is_sacked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn piece(from: u64, to: u64) -> SeqRange {
        SeqRange { from, to, at: 0, times: 1, is_sacked: false, stamp: 0, identification: 0 }
    }

    #[test]
    fn blocks_and_acknowledgements_cut_pieces() {
        let mut scoreboard = Scoreboard::default();
        (0..4).for_each(|i| scoreboard.push(piece(i * 100, i * 100 + 100)));
        assert_eq!(scoreboard.sack(150, 250), 100);
        assert_eq!((scoreboard.sack(150, 250), scoreboard.sacked()), (0, 100));
        assert!(scoreboard.is_sacked_behind(100) && !scoreboard.is_sacked_behind(250));
        let mut gone = Vec::new();
        scoreboard.acknowledge(180, |p| gone.push((p.from, p.to, p.is_sacked)));
        assert_eq!(gone, [(0, 100, false), (100, 150, false), (150, 180, true)]);
        assert_eq!(scoreboard.sacked(), 70);
        scoreboard.seen(260, 320, 7, 0, 0);
        let again: Vec<(u64, u64)> =
            scoreboard.of(0, 400).filter(|p| p.times == 2).map(|p| (p.from, p.to)).collect();
        assert_eq!(again, [(260, 300), (300, 320)]);
    }

    proptest! {
        /// Whatever is sacked, seen and acknowledged: the pieces stay in order, without gaps, and the count of sacked bytes is theirs.
        #[test]
        fn pieces_stay_in_order(steps in prop::collection::vec((0..3_u8, 0..1000_u64, 1..300_u64), 1..80)) {
            let mut scoreboard = Scoreboard::default();
            (0..10).for_each(|i| scoreboard.push(piece(i * 100, i * 100 + 100)));
            for (what, from, length) in steps {
                match what {
                    0 => { scoreboard.sack(from, from + length); }
                    1 => scoreboard.seen(from, from + length, 1, 0, 0),
                    _ => scoreboard.acknowledge(from / 4, |_| {}),
                }
                let all: Vec<SeqRange> = scoreboard.pieces.iter().copied().collect();
                prop_assert!(all.iter().all(|p| p.from < p.to), "{all:?}");
                prop_assert!(all.windows(2).all(|pair| pair[0].to == pair[1].from), "{all:?}");
                let sacked: u64 = all.iter().filter(|p| p.is_sacked).map(|p| p.to - p.from).sum();
                prop_assert_eq!(sacked, scoreboard.sacked());
            }
        }
    }
}
