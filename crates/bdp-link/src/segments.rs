//! A super-packet as the wire segments that it stands for, and cutting runs of them out of it.
//!
//! A stack that leaves segmentation to its device sends up to 64 KiB of TCP payload, or many UDP datagrams,
//! behind one set of headers. The segments on the wire follow from those and from the segment size (virtio 1.2,
//! section 5.1.6; the kernel's `tcp_gso_segment` and `__udp_gso_segment` do the same).

use std::ops::Range;

use crate::packet::{Packet, Segmentation, Transport};
use bdp_model::link::checksum;

/// How a packet splits into wire segments. All but the last are of one length.
///
/// A packet that is no super-packet is its own only segment; so is a malformed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segments {
    count: u32,
    /// IP bytes of all headers, which every segment repeats.
    headers: usize,
    /// Payload bytes of each segment but the last.
    size: usize,
    /// IP bytes of the last segment.
    last: usize,
    cut: Option<Cut>,
}

/// Facts needed to cut, if there is something to cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    transport: Transport,
    /// Offset of the transport header.
    start: usize,
}

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

impl Segments {
    /// Returns the segments of a packet.
    pub fn of(packet: &Packet) -> Self {
        let length = packet.data.len();
        let whole = Self { count: 1, headers: 0, size: length, last: length, cut: None };
        Self::of_super(packet).unwrap_or(whole)
    }

    /// `None` for a packet that is no super-packet, holds a single segment, or is malformed.
    fn of_super(packet: &Packet) -> Option<Self> {
        let Segmentation { transport, size } = packet.offload.segmentation?;
        // The checksum of a super-packet is always partial (virtio 1.2, section 5.1.6.2).
        let start = usize::from(packet.offload.checksum?.start);
        let data = packet.data.as_slice();
        let well_formed = match data.first()? >> 4 {
            4 => start == usize::from(data[0] & 0x0f) * 4 && start >= 20 && word(data, 2)? == data.len(),
            6 => start >= 40 && word(data, 4)? + 40 == data.len(),
            _ => false,
        };
        let transport_bytes = match transport {
            Transport::Tcp => usize::from(*data.get(start + 12)? >> 4) * 4,
            Transport::Udp => 8,
        };
        let headers = start + transport_bytes;
        let payload = data.len().checked_sub(headers)?;
        let size = usize::from(size);
        if !well_formed
            || (transport == Transport::Tcp && transport_bytes < 20)
            || size == 0
            || payload <= size
        {
            return None;
        }
        let count = payload.div_ceil(size);
        Some(Self {
            // A packet has at most 65,575 bytes, and a segment at least one.
            count: count as u32,
            headers,
            size,
            last: headers + payload - (count - 1) * size,
            cut: Some(Cut { transport, start }),
        })
    }

    /// Number of segments, at least one.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// IP bytes of segment `index`, from zero.
    pub fn len_bytes(&self, index: u32) -> u64 {
        if index + 1 < self.count { (self.headers + self.size) as u64 } else { self.last as u64 }
    }

    /// IP bytes of a run of segments, each with its own headers.
    pub fn run_bytes(&self, run: Range<u32>) -> u64 {
        let ends = run.end == self.count && !run.is_empty();
        let full = u64::from(run.end.saturating_sub(run.start)) - u64::from(ends);
        full * (self.headers + self.size) as u64 + if ends { self.last as u64 } else { 0 }
    }

    /// Cuts a run of neighbouring segments into a packet of its own: again a super-packet if there is more than one.
    ///
    /// Lengths, IPv4 identification (counted on from the first), TCP sequence number, and the IPv4 header checksum
    /// are the run's own. FIN and PSH are on the super-packet's last segment alone, CWR on its first (RFC 3168,
    /// section 6.1.2). The transport checksum stays partial, its pseudo-header sum over the new length.
    pub fn cut(&self, packet: &Packet, run: Range<u32>) -> Packet {
        let Some(cut) = self.cut.filter(|_| run != (0..self.count)) else { return packet.clone() };
        let payload = run.start as usize * self.size..run.end as usize * self.size;
        let from = (self.headers + payload.start).min(packet.data.len());
        let to = (self.headers + payload.end).clamp(from, packet.data.len());
        let mut data = Vec::with_capacity(self.headers + to - from);
        data.extend_from_slice(&packet.data[..self.headers]);
        data.extend_from_slice(&packet.data[from..to]);
        self.adapt(cut, Packet { data, offload: packet.offload }, &run, packet.data.len())
    }

    /// The packet without the segments from `end` on: equals `cut(&packet, 0..end)`, in the same buffer.
    pub fn keep_front(&self, mut packet: Packet, end: u32) -> Packet {
        let Some(cut) = self.cut.filter(|_| end < self.count) else { return packet };
        let length = packet.data.len();
        packet.data.truncate(self.headers + end as usize * self.size);
        self.adapt(cut, packet, &(0..end), length)
    }

    /// Adapts the headers of a run's packet; the super-packet had `length` IP bytes.
    fn adapt(&self, cut: Cut, mut packet: Packet, run: &Range<u32>, length: usize) -> Packet {
        let Cut { transport, start } = cut;
        let data = &mut packet.data;
        self.number(data, run);
        let lengths = [length - start, data.len() - start].map(|length| length as u16);
        match transport {
            Transport::Tcp => self.adapt_tcp(&mut data[start..], run),
            Transport::Udp => data[start + 4..start + 6].copy_from_slice(&lengths[1].to_be_bytes()),
        }
        if let Some(partial) = packet.offload.checksum {
            partial.replace_length(data, lengths);
        }
        if run.len() == 1 {
            packet.offload.segmentation = None;
        }
        packet
    }

    /// Adapts the IP header of a run.
    fn number(&self, data: &mut [u8], run: &Range<u32>) {
        let length = data.len();
        if data[0] >> 4 == 6 {
            data[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes());
            return;
        }
        let id = u16::from_be_bytes([data[4], data[5]]).wrapping_add(run.start as u16);
        data[2..4].copy_from_slice(&(length as u16).to_be_bytes());
        data[4..6].copy_from_slice(&id.to_be_bytes());
        data[10..12].fill(0);
        let header = usize::from(data[0] & 0x0f) * 4;
        let sum = checksum::of(&data[..header]);
        data[10..12].copy_from_slice(&sum.to_be_bytes());
    }

    fn adapt_tcp(&self, segment: &mut [u8], run: &Range<u32>) {
        let sequence = u32::from_be_bytes([segment[4], segment[5], segment[6], segment[7]]);
        let sequence = sequence.wrapping_add(run.start * self.size as u32);
        segment[4..8].copy_from_slice(&sequence.to_be_bytes());
        if run.end < self.count {
            segment[13] &= !(FIN | PSH);
        }
        if run.start > 0 {
            segment[13] &= !CWR;
        }
    }
}

impl Packet {
    /// Completes a partial checksum, as the device would have. That of a super-packet can't be completed before it is cut, and stays as it is.
    pub fn complete_checksum(&mut self) {
        if Segments::of(self).count() == 1
            && let Some(partial) = std::mem::take(&mut self.offload).checksum
        {
            partial.complete(&mut self.data);
        }
    }
}

fn word(data: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_be_bytes([*data.get(at)?, *data.get(at + 1)?])))
}
