//! One direction of a connection, from the place it passes first to the other.

use super::log::{Passed, SegmentLog};
use super::matching::Matched;
use super::numbered::Numbered;

/// One direction: its segments at both places, and their matches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Direction<'a> {
    pub logs: [&'a SegmentLog; 2],
    /// Segments of this direction in each log.
    pub numbered: [&'a [Numbered]; 2],
    pub matched: &'a Matched,
    /// The place passed first: 0 or 1 of the logs.
    pub near: usize,
    /// Payload of a full segment.
    pub full: u32,
}

impl<'a> Direction<'a> {
    pub fn near_log(&self) -> &'a SegmentLog {
        self.logs[self.near]
    }

    pub fn far_log(&self) -> &'a SegmentLog {
        self.logs[1 - self.near]
    }

    pub fn near(&self, index: u32) -> &'a Passed {
        &self.near_log().passed[index as usize]
    }

    pub fn far(&self, index: u32) -> &'a Passed {
        &self.far_log().passed[index as usize]
    }

    /// Whether it is a super-packet: not yet split, or already merged, by a network card.
    pub fn is_super(&self, passed: &Passed) -> bool {
        passed.payload > self.full
    }

    /// Returns the number of segments in a packet or part of it; one without payload.
    pub fn segments_of(&self, bytes: u64) -> u64 {
        bytes.div_ceil(u64::from(self.full)).max(1)
    }

    /// Returns each packet of the near place that reached the far one, with the far packet that has its first part, in the order of the near place.
    pub fn packets(&self) -> Vec<(u32, u32)> {
        let (near, far) = (self.near, 1 - self.near);
        let mut all: Vec<(u32, u32)> =
            self.matched.both.iter().map(|both| (both.at[near], both.at[far])).collect();
        all.sort_unstable();
        all.dedup_by_key(|pair| pair.0);
        all
    }

    /// Returns these pairs in the order of the far place, with each packet there.
    pub fn arrivals(&self) -> Vec<(u32, u32)> {
        let (near, far) = (self.near, 1 - self.near);
        let mut all: Vec<(u32, u32)> =
            self.matched.both.iter().map(|both| (both.at[far], both.at[near])).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
