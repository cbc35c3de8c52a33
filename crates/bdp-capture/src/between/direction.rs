//! One direction of a connection, from the place that it passes first to the other.

use super::log::{Passed, SegmentLog};
use super::matching::Matched;
use super::numbered::Numbered;

/// One direction: its segments at both places, and which of them are the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct Direction<'a> {
    pub logs: [&'a SegmentLog; 2],
    /// The segments of this direction in each log.
    pub numbered: [&'a [Numbered]; 2],
    pub matched: &'a Matched,
    /// The place that it passes first: 0 or 1 of the logs.
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

    /// More than one segment, before a network card cuts it or after it joined them.
    pub fn is_super(&self, passed: &Passed) -> bool {
        passed.payload > self.full
    }

    /// Segments in a packet or a part of it; one where it has no payload.
    pub fn segments_of(&self, bytes: u64) -> u64 {
        bytes.div_ceil(u64::from(self.full)).max(1)
    }

    /// Each packet of the near place that came to the far one, with the packet there that has its first part: in the order of the near place.
    pub fn packets(&self) -> Vec<(u32, u32)> {
        let (near, far) = (self.near, 1 - self.near);
        let mut all: Vec<(u32, u32)> =
            self.matched.both.iter().map(|both| (both.at[near], both.at[far])).collect();
        all.sort_unstable();
        all.dedup_by_key(|pair| pair.0);
        all
    }

    /// The same in the order of the far place, with each packet there.
    pub fn arrivals(&self) -> Vec<(u32, u32)> {
        let (near, far) = (self.near, 1 - self.near);
        let mut all: Vec<(u32, u32)> =
            self.matched.both.iter().map(|both| (both.at[far], both.at[near])).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
