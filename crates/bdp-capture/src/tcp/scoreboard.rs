//! Unacknowledged bytes of one direction, as segments in order of their sequence numbers.

use std::collections::VecDeque;

/// Most ranges kept; in a capture without acknowledgements the oldest are dropped.
const MOST: usize = 1 << 16;

/// Bytes of one segment, or a range never captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeqRange {
    /// First byte.
    pub from: u64,
    /// End, exclusive.
    pub to: u64,
    /// Time at which they were last seen; for missing bytes, when the gap was noticed.
    pub at: u64,
    /// Number of times seen; 0 for missing bytes.
    pub times: u16,
    /// Whether the receiver reported them (SACK, RFC 2018).
    pub is_sacked: bool,
    /// Timestamp of the segment, or of the one that skipped them.
    pub stamp: u32,
    /// IP identification of that packet.
    pub identification: u32,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Scoreboard {
    pieces: VecDeque<SeqRange>,
    sacked: u64,
}

impl Scoreboard {
    /// Heap memory in use, bytes.
    pub fn held_bytes(&self) -> usize {
        self.pieces.capacity() * size_of::<SeqRange>()
    }

    /// Appends a range after all others.
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

    /// Number of bytes selectively acknowledged.
    pub const fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Removes acknowledged bytes.
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

    /// Returns the index of the first range that ends after this byte.
    fn place(&self, byte: u64) -> usize {
        self.pieces.partition_point(|piece| piece.to <= byte)
    }

    /// Marks bytes as selectively acknowledged. Returns how many are new.
    pub fn sack(&mut self, from: u64, to: u64) -> u64 {
        let mut news = 0;
        let mut i = self.place(from);
        while let Some(piece) = self.pieces.get(i).copied().filter(|piece| piece.from < to) {
            if !piece.is_sacked {
                self.split(i, from.max(piece.from), to.min(piece.to));
                // The part before the block is now a separate range.
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

    /// Merges a selectively acknowledged range with the previous one if that is too, because each block searches long runs.
    /// Returns the index of the merged range.
    fn join(&mut self, i: usize) -> usize {
        let Some(before) = i.checked_sub(1).filter(|&before| self.pieces[before].is_sacked) else { return i };
        let Some(piece) = self.pieces.remove(i) else { return i };
        self.pieces[before].to = piece.to;
        before
    }

    /// Splits these bytes off a range.
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

    /// Returns the ranges that overlap these bytes.
    pub fn of(&self, from: u64, to: u64) -> impl Iterator<Item = &SeqRange> {
        self.pieces.range(self.place(from)..).take_while(move |piece| piece.from < to)
    }

    /// Records that these bytes were seen, again or for the first time.
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

    /// Whether any byte after this one was selectively acknowledged.
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
        /// In any sequence of operations, ranges stay in order without gaps, and the count of selectively acknowledged bytes is correct.
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
