//! Counts of what one end of a connection sent.

use crate::decode::{Packet, Segment};

use super::outstanding::Outstanding;
use super::sequence::{Ack, Sent, SequenceSpace};

/// Segments searched for a copy.
const COPIES: usize = 8;

/// Windows advertised.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Windows {
    pub max: u64,
    /// Smallest window that was not closed.
    pub min: u64,
    sum: u64,
    count: u64,
    is_scaled: bool,
    /// Whether a scaled window was not closed.
    is_open: bool,
    /// Last window.
    pub last: Option<u64>,
}

impl Windows {
    fn add(&mut self, window: u64, is_scaled: bool) {
        // The window of a SYN is not scaled, so the figures restart when scaling begins.
        if is_scaled && !self.is_scaled {
            (self.is_scaled, self.sum, self.count) = (true, 0, 0);
        }
        if window > 0 {
            if is_scaled && !self.is_open {
                (self.is_open, self.max, self.min) = (true, 0, window);
            }
            self.max = self.max.max(window);
            self.min = if self.min == 0 { window } else { self.min.min(window) };
        }
        self.sum += window;
        self.count += 1;
        self.last = Some(window);
    }

    pub fn mean(&self) -> u64 {
        self.sum.checked_div(self.count).unwrap_or(0)
    }
}

/// One direction of a connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Direction {
    pub packets: u64,
    pub resets: u64,
    pub acks: u64,
    pub pure_acks: u64,
    pub sack_packets: u64,
    pub dsack_packets: u64,
    pub sack_blocks_most: usize,
    pub unique_bytes: u64,
    pub data_packets: u64,
    pub data_bytes: u64,
    pub again_packets: u64,
    pub again_bytes: u64,
    pub probe_packets: u64,
    pub probe_bytes: u64,
    pub out_of_order: u64,
    pub pushed: u64,
    pub syns: u64,
    pub fins: u64,
    pub window_scale: Option<u8>,
    pub timestamps: bool,
    pub sack_permitted: bool,
    pub sacks: u64,
    pub urgent_packets: u64,
    pub urgent_bytes: u64,
    pub mss: u16,
    pub largest: u32,
    pub smallest: u32,
    pub windows: Windows,
    pub zero_windows: u64,
    pub outstanding: Outstanding,
    pub initial_bytes: u64,
    pub initial_packets: u64,
    /// Whether anything beyond the SYN was acknowledged.
    is_acked: bool,
    /// Sequence number of its SYN, as sent.
    pub syn_number: Option<u32>,
    syn_at: Option<u64>,
    fin_at: Option<u64>,
    pub truncated_bytes: u64,
    pub truncated_packets: u64,
    pub data_us: Option<(u64, u64)>,
    pub last_us: Option<u64>,
    pub idle_most_us: u64,
    pub copies: u64,
    recent: [Option<(u32, u32)>; COPIES],
    next: usize,
    pub sequence: SequenceSpace,
    last_ack: Option<u32>,
}

impl Direction {
    /// Returns the stream's length by SYN and FIN; `None` if one is missing.
    pub fn stream_length(&self) -> Option<u64> {
        let (syn, fin) = (self.syn_at?, self.fin_at?);
        Some(fin.saturating_sub(syn).saturating_sub(1))
    }

    /// Records that nothing was sent until now.
    pub fn idle_until(&mut self, now_us: u64) {
        if let Some(last) = self.last_us {
            self.idle_most_us = self.idle_most_us.max(now_us.saturating_sub(last));
        }
    }

    /// Adds one of its segments.
    pub fn segment(&mut self, now_us: u64, other: &mut Self, packet: &Packet, segment: &Segment) {
        let flags = segment.flags;
        self.idle_until(now_us);
        self.last_us = Some(now_us);
        self.packets += 1;
        self.resets += u64::from(flags.rst());
        self.acks += u64::from(flags.ack());
        self.options(segment);
        self.payload(now_us, segment);
        self.copies += u64::from(self.is_copy(packet, segment));
        let window = self.window(other, segment);
        let (sent, end) = self.send(now_us, other, segment);
        if flags.ack() {
            self.acknowledge(now_us, other, segment, window);
        }
        if flags.rst() {
            return;
        }
        if let Some((window, is_scaled)) = window {
            self.windows.add(window, is_scaled);
            self.zero_windows += u64::from(flags.ack() && window == 0);
        }
        if segment.payload > 0 && !self.is_acked && sent.again == 0 {
            self.initial_bytes += u64::from(segment.payload);
            self.initial_packets += 1;
        }
        if !flags.syn() && !sent.is_out_of_order && sent.again == 0 {
            self.outstanding.sample(end, u64::from(segment.payload));
        }
    }

    fn options(&mut self, segment: &Segment) {
        let options = &segment.options;
        self.mss = options.mss.unwrap_or(self.mss);
        self.window_scale = options.window_scale.or(self.window_scale);
        self.timestamps |= options.timestamps.is_some();
        self.sack_permitted |= options.sack_permitted;
        self.sacks += u64::from(!options.sack.as_slice().is_empty());
    }

    fn payload(&mut self, now_us: u64, segment: &Segment) {
        let payload = segment.payload;
        if payload == 0 {
            return;
        }
        self.data_packets += 1;
        self.data_bytes += u64::from(payload);
        self.pushed += u64::from(segment.flags.psh());
        if segment.flags.urg() {
            self.urgent_packets += 1;
            self.urgent_bytes += u64::from(segment.urgent);
        }
        self.largest = self.largest.max(payload);
        self.smallest = if self.smallest == 0 { payload } else { self.smallest.min(payload) };
        self.data_us = Some((self.data_us.map_or(now_us, |(first, _)| first), now_us));
        let missing = payload.saturating_sub(segment.kept);
        self.truncated_bytes += u64::from(missing);
        self.truncated_packets += u64::from(missing > 0);
    }

    /// Whether the same packet passed a moment ago: by sequence number and IPv4 identification.
    fn is_copy(&mut self, packet: &Packet, segment: &Segment) -> bool {
        let Some(identification) = packet.identification.filter(|&id| id != 0 && packet.source.is_ipv4())
        else {
            return false;
        };
        let this = Some((segment.seq, identification));
        if self.recent.contains(&this) {
            return true;
        }
        self.recent[self.next] = this;
        self.next = (self.next + 1) % COPIES;
        false
    }

    /// Returns the window that a segment advertises, and whether it was scaled.
    fn window(&self, other: &Self, segment: &Segment) -> Option<(u64, bool)> {
        if !segment.flags.ack() && !segment.flags.syn() {
            return None;
        }
        let scale = self.window_scale.filter(|_| other.window_scale.is_some() && !segment.flags.syn());
        Some((u64::from(segment.window) << scale.unwrap_or(0), scale.is_some()))
    }

    /// Records a segment that consumes sequence space; returns what was sent before it and the end of its data.
    fn send(&mut self, now_us: u64, other: &Self, segment: &Segment) -> (Sent, u64) {
        let (syn, fin) = (segment.flags.syn(), segment.flags.fin());
        let payload = u64::from(segment.payload);
        let controls = u8::from(syn) + u8::from(fin);
        let length = payload + u64::from(controls);
        if length == 0 {
            let from = self.sequence.unwrapped(segment.seq);
            return (Sent::default(), from);
        }
        let from = self.sequence.unwrapped(segment.seq);
        let end = from + payload + u64::from(syn);
        if syn {
            self.syns += 1;
            self.syn_number = Some(segment.seq);
            self.syn_at = Some(from);
        }
        if fin {
            self.fins += 1;
            self.fin_at = Some(end);
        }
        if other.windows.last == Some(0) {
            self.probe_packets += 1;
            self.probe_bytes += payload;
            return (Sent::default(), end);
        }
        let sent = self.sequence.send(now_us, from, length, controls, syn);
        self.outstanding.send(now_us, end);
        self.out_of_order += u64::from(sent.is_out_of_order);
        // SYN and FIN are not data.
        let repeated = u64::from(syn && self.syns > 1) + u64::from(fin && self.fins > 1);
        let again = sent.again.saturating_sub(repeated).min(payload);
        self.unique_bytes += payload - again;
        self.again_packets += u64::from(sent.again > 0);
        self.again_bytes += again;
        (sent, end)
    }

    /// Processes a segment's acknowledgement of the other end's data.
    fn acknowledge(&mut self, now_us: u64, other: &mut Self, segment: &Segment, window: Option<(u64, bool)>) {
        let flags = segment.flags;
        let is_bare = segment.payload == 0 && !flags.syn() && !flags.fin() && !flags.rst();
        let repeats = is_bare
            && self.last_ack == Some(segment.ack)
            && self.windows.last.is_some()
            && self.windows.last == window.map(|(window, _)| window);
        other.sequence.acknowledge(now_us, Ack { number: segment.ack, repeats });
        self.pure_acks += u64::from(is_bare);
        if flags.rst() {
            return;
        }
        let number = other.sequence.unwrapped(segment.ack);
        other.outstanding.acknowledge(now_us, number);
        other.is_acked |= other.syn_number.map(|syn| syn.wrapping_add(1)) != Some(segment.ack);
        self.last_ack = Some(segment.ack);
        let blocks = segment.options.sack.as_slice();
        if !blocks.is_empty() {
            self.sack_packets += 1;
            self.sack_blocks_most = self.sack_blocks_most.max(blocks.len());
            self.dsack_packets += u64::from(is_dsack(segment.ack, blocks));
        }
    }
}

/// Whether the first block reports a duplicate (RFC 2883): it is already acknowledged, or overlaps the next one.
fn is_dsack(ack: u32, blocks: &[(u32, u32)]) -> bool {
    let is_before = |a: u32, b: u32| (a.wrapping_sub(b) as i32) < 0;
    match *blocks {
        [(_, to), ..] if !is_before(ack, to) => true,
        [(from, to), (next_from, next_to), ..] => is_before(from, next_to) && is_before(next_from, to),
        _ => false,
    }
}
