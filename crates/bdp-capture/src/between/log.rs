//! Compact record of each segment, for comparing two captures.

use crate::decode::{Options, Packet, Segment};

/// Most segments kept per file, 40 bytes each: 80 MB.
pub const SEGMENTS_MOST: u64 = 2_000_000;
/// Most SYNs per direction whose options are kept.
const SYNS_MOST: usize = 8;

/// A segment as it passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Passed {
    /// Time since the first packet of the capture.
    pub at_ns: u64,
    pub seq: u32,
    pub ack: u32,
    pub payload: u32,
    /// Timestamp and its echo, if present.
    pub stamp: u32,
    pub echo: u32,
    pub window: u16,
    pub identification: u16,
    pub flags: u8,
    /// DSCP and ECN.
    pub class: u8,
    pub hop_limit: u8,
    about: u8,
}

const FROM_B: u8 = 1;
const STAMPED: u8 = 2;
const IDENTIFIED: u8 = 4;

impl Passed {
    pub fn side(&self) -> usize {
        usize::from(self.about & FROM_B)
    }

    pub fn stamps(&self) -> Option<(u32, u32)> {
        (self.about & STAMPED != 0).then_some((self.stamp, self.echo))
    }

    pub fn identification(&self) -> Option<u16> {
        (self.about & IDENTIFIED != 0).then_some(self.identification)
    }
}

/// Segments of a connection, in captured order.
#[derive(Debug, Clone, Default)]
pub struct SegmentLog {
    pub(super) passed: Vec<Passed>,
    /// Indices of the SYNs, with their options.
    pub(super) syns: Vec<(u32, Options)>,
    /// Segments for which there was no room.
    pub(super) left_out: u64,
}

impl SegmentLog {
    /// Heap memory in use, bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.passed.capacity() * size_of::<Passed>() + self.syns.capacity() * size_of::<(u32, Options)>()
    }

    /// Records a segment while there is room.
    pub(crate) fn note(
        &mut self,
        room: &mut u64,
        at_ns: u64,
        from_b: bool,
        packet: &Packet,
        segment: &Segment,
    ) {
        if *room == 0 {
            self.left_out += 1;
            return;
        }
        *room -= 1;
        let flag = |is: bool, bit: u8| if is { bit } else { 0 };
        let (stamp, echo) = segment.options.timestamps.unwrap_or_default();
        if segment.flags.syn() && self.syns.len() < 2 * SYNS_MOST {
            self.syns.push((self.passed.len() as u32, segment.options));
        }
        self.passed.push(Passed {
            at_ns,
            seq: segment.seq,
            ack: segment.ack,
            payload: segment.payload,
            stamp,
            echo,
            window: segment.window,
            identification: packet.identification.unwrap_or_default() as u16,
            flags: segment.flags.bits(),
            class: packet.dscp << 2 | packet.ecn,
            hop_limit: packet.hop_limit,
            about: flag(from_b, FROM_B)
                | flag(segment.options.timestamps.is_some(), STAMPED)
                | flag(packet.identification.is_some(), IDENTIFIED),
        });
    }

    /// Returns the first SYN of a direction: its sequence number and options.
    pub(super) fn syn(&self, side: usize) -> Option<(&Passed, &Options)> {
        let mut syns = self.syns.iter().map(|(at, options)| (&self.passed[*at as usize], options));
        syns.find(|(passed, _)| passed.side() == side)
    }

    /// Returns the options of the SYN at this index.
    pub(super) fn options_of(&self, index: u32) -> Option<&Options> {
        self.syns.iter().find(|(at, _)| *at == index).map(|(_, options)| options)
    }
}
