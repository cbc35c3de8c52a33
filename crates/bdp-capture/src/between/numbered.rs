//! Segments of one direction at both places, with sequence numbers that start at the same byte and do not wrap.

use std::collections::HashMap;

use super::log::{Passed, SegmentLog};

/// Data segments from which the sequence number offset is inferred without a SYN.
const TRIED: usize = 4096;
/// Fewest segments that must agree.
const VOTES_MIN: usize = 8;

/// A segment of a direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbered {
    /// Index in the log.
    pub index: u32,
    /// First byte and acknowledgement number, both relative to the first byte of their direction; 0 if it acknowledges nothing.
    pub from: i64,
    pub ack: i64,
}

/// Returns the sequence number offset of each direction between the logs: second - first.
pub(super) fn offsets(logs: [&SegmentLog; 2], swapped: bool) -> [u32; 2] {
    [0, 1].map(|side| {
        let other = side ^ usize::from(swapped);
        match (logs[0].syn(side), logs[1].syn(other)) {
            (Some((a, _)), Some((b, _))) => b.seq.wrapping_sub(a.seq),
            _ => voted(logs, [side, other]).unwrap_or(0),
        }
    })
}

/// Returns the offset on which segments with equal timestamps and payload agree.
fn voted(logs: [&SegmentLog; 2], sides: [usize; 2]) -> Option<u32> {
    let own = |which: usize| {
        let data = logs[which].passed.iter().filter(move |passed| passed.side() == sides[which]);
        data.filter_map(|passed| Some((passed.stamps()?, passed)).filter(|_| passed.payload > 0)).take(TRIED)
    };
    let mut numbers: HashMap<((u32, u32), u32), Option<u32>> = HashMap::new();
    for (stamps, passed) in own(0) {
        numbers.entry((stamps, passed.payload)).and_modify(|known| *known = None).or_insert(Some(passed.seq));
    }
    let mut votes: HashMap<u32, usize> = HashMap::new();
    for (stamps, passed) in own(1) {
        if let Some(&Some(seq)) = numbers.get(&(stamps, passed.payload)) {
            *votes.entry(passed.seq.wrapping_sub(seq)).or_default() += 1;
        }
    }
    let all: usize = votes.values().sum();
    let (offset, most) = votes.into_iter().max_by_key(|&(offset, votes)| (votes, offset))?;
    (most >= VOTES_MIN && most * 5 >= all * 4).then_some(offset)
}

/// Returns the first sequence number of each direction: that of its SYN, or else of the first segment.
pub(super) fn bases(log: &SegmentLog) -> [Option<u32>; 2] {
    [0, 1].map(|side| {
        let first = || log.passed.iter().find(|passed| passed.side() == side).map(|passed| passed.seq);
        log.syn(side).map(|(syn, _)| syn.seq).or_else(first)
    })
}

/// Returns the segments of one side, numbered from the first sequence number of both sides.
pub(super) fn numbered(log: &SegmentLog, side: usize, base: u32, other: Option<u32>) -> Vec<Numbered> {
    let (mut sent, mut acked) = (Count::new(base), other.map(Count::new));
    let own = log.passed.iter().enumerate().filter(|(_, passed)| passed.side() == side);
    own.map(|(index, passed)| Numbered {
        index: index as u32,
        from: sent.unwrapped(passed.seq),
        ack: acked.as_mut().filter(|_| acks(passed)).map_or(0, |acked| acked.unwrapped(passed.ack)),
    })
    .collect()
}

pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;
const ACK: u8 = 16;

pub(super) fn acks(passed: &Passed) -> bool {
    passed.flags & ACK != 0
}

/// Unwraps sequence numbers.
struct Count {
    base: u32,
    /// Last number; the next one is near it.
    last: i64,
}

impl Count {
    fn new(base: u32) -> Self {
        Self { base, last: 0 }
    }

    fn unwrapped(&mut self, number: u32) -> i64 {
        let step = number.wrapping_sub(self.base).wrapping_sub(self.last as u32) as i32;
        self.last += i64::from(step);
        self.last
    }
}
