//! Assigns packets to flows.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use bdp_model::capture::{CaptureSummary, FlowProtocol, UnreadPackets, WhyUnread};

use crate::attempts::{self, Target, Targets};
use crate::brief::Brief;
use crate::decode::{self, About, Carries, Packet, Unread};
use crate::filter::Filter;
pub use crate::flow::Found;
use crate::flow::{End, Flow, Identity, Moment};
use crate::notes::Notes;
use crate::slot::Slot;

/// Part of the memory reserved for flows that are already known: 1/8.
const RESERVED: u64 = 8;
/// Longest capture, 18 years, including merged ones; later times are corrupt, and sums of a few such times still fit.
const LONGEST_NS: u64 = 1 << 59;
/// Memory per flow for finding it by its ends, bytes.
const PLACE_BYTES: u64 = 48;

/// A captured packet, as stored in the file.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Time since 1970, nanoseconds; `None` if the capture has no times.
    pub at_ns: Option<u64>,
    /// Link type, as numbered in captures.
    pub link_type: u16,
    /// Original length, before truncation, bytes.
    pub length: u32,
    /// Bytes captured.
    pub data: &'a [u8],
}

/// Key of a flow: its two ends in order, and the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    low: End,
    high: End,
    protocol: u8,
}

/// Analysis of all packets of a capture.
#[derive(Debug, Default)]
pub struct Analysis {
    /// Flow numbers by the digest of their key, or the next free digest.
    numbers: HashMap<u64, u32>,
    slots: Vec<Slot>,
    /// Flow of the previous packet, which is usually that of the next too.
    last: Option<(Key, u32)>,
    most_flows: Option<usize>,
    most_bytes: Option<u64>,
    /// Memory of all flows, bytes.
    held_bytes: u64,
    is_full: bool,
    /// Destinations of packets that were not followed.
    further: Targets,
    /// Number of flows so far, by protocol.
    streams: HashMap<FlowProtocol, u32>,
    began_ns: Option<u64>,
    now_ns: u64,
    unread: HashMap<(WhyUnread, Option<u16>), u64>,
    filter: Option<Filter>,
    /// Number of segments that logs may still keep.
    room: Option<u64>,
    /// Index of the part of the flows followed here, and the number of parts.
    part: Option<(u64, u64)>,
    summary: CaptureSummary,
}

/// Result of an analysis or one part of it; [`together`] merges the parts.
#[derive(Debug)]
pub struct Part {
    summary: CaptureSummary,
    slots: Vec<Slot>,
    further: Targets,
    room: Option<u64>,
}

impl Analysis {
    /// Returns an analysis that follows at most `flows` flows.
    pub fn of_at_most(flows: usize) -> Self {
        Self { most_flows: Some(flows), ..Self::default() }
    }

    /// Returns an analysis whose flows, including their reports, use about `bytes` of memory. Beyond that, packets and bytes are only
    /// counted.
    pub fn within(bytes: u64) -> Self {
        Self { most_bytes: Some(bytes), ..Self::default() }
    }

    /// Restricts the analysis to packets that match a filter.
    pub fn filtered(self, filter: Filter) -> Self {
        Self { filter: Some(filter).filter(|filter| !filter.is_all()), ..self }
    }

    /// Keeps up to `segments` segments for comparison with another capture.
    pub fn logged(self, segments: u64) -> Self {
        Self { room: Some(segments), ..self }
    }

    /// Restricts the analysis to one part of the flows. Analyses of all parts, given the same frames and run on a thread each, together find
    /// the same as a single one ([`together`]).
    pub fn part(self, index: u64, of: u64) -> Self {
        let room = self.room.map(|room| room / of);
        let most_flows = self.most_flows.map(|most| most / of as usize);
        let most_bytes = self.most_bytes.map(|most| most / of);
        Self { part: Some((index, of)), room, most_flows, most_bytes, ..self }
    }

    /// Adds a frame of the capture. If it belongs to a flow, returns the flow's number among those of its protocol, in order of their
    /// start, and the findings about the packet.
    pub fn frame(&mut self, frame: &Frame<'_>) -> Option<(u32, Notes)> {
        self.summary.packets += 1;
        self.summary.bytes += u64::from(frame.length);
        if (frame.data.len() as u64) < u64::from(frame.length) {
            self.summary.cut += 1;
        }
        if let Some(at) = frame.at_ns {
            let began = *self.began_ns.get_or_insert(at);
            if at < began || at - began < self.now_ns {
                self.summary.out_of_time += 1;
            }
            // Packets keep their captured order, which with several CPUs may differ slightly from the order of their times.
            self.now_ns = self.now_ns.max(at.saturating_sub(began).min(LONGEST_NS));
        }
        match decode::packet(frame.link_type, frame.data, frame.length) {
            Ok(packet) if self.filter.as_ref().is_none_or(|filter| filter.meets(&packet, self.now_ns)) => {
                self.packet(&packet, frame.data)
            }
            Ok(_) => {
                self.summary.filtered += 1;
                None
            }
            Err(unread) => {
                let (why, number) = match unread {
                    Unread::LinkType(number) => (WhyUnread::LinkType, Some(number)),
                    Unread::NotIp(number) => (WhyUnread::NotIp, Some(number)),
                    Unread::Llc(number) => (WhyUnread::Llc, Some(u16::from(number))),
                    Unread::Control => (WhyUnread::LinkControl, None),
                    Unread::Encrypted => (WhyUnread::Encrypted, None),
                    Unread::Damaged => (WhyUnread::Damaged, None),
                    Unread::Fragment => (WhyUnread::Fragment, None),
                    Unread::Cut => (WhyUnread::Cut, None),
                    Unread::Malformed => (WhyUnread::Malformed, None),
                };
                *self.unread.entry((why, number)).or_default() += 1;
                None
            }
        }
    }

    fn packet(&mut self, packet: &Packet, frame: &[u8]) -> Option<(u32, Notes)> {
        let (protocol, source, destination) = match packet.carries {
            Carries::Tcp(segment) => (6, segment.source, segment.destination),
            Carries::Udp { source, destination, .. } => (17, source, destination),
            Carries::Icmp { .. } => (1, 0, 0),
            Carries::Fragment(_) => {
                *self.unread.entry((WhyUnread::Fragment, None)).or_default() += 1;
                return None;
            }
            Carries::Other(protocol) => (protocol, 0, 0),
        };
        let (from, to) = ((packet.source, source), (packet.destination, destination));
        let key = Key { low: from.min(to), high: from.max(to), protocol };
        let digest = digest(&key);
        if let Carries::Icmp { about: Some(about), .. } = &packet.carries {
            self.unreachable(about);
        }
        if self.part.is_some_and(|(index, of)| digest % of != index) {
            return None;
        }
        let moment = Moment { now_ns: self.now_ns, is_known: self.began_ns.is_some() };
        let place = self.place_of(&key, digest, from, packet);
        let Some(number) = place.known else {
            return self.begin(key, place.digest, [from, to], moment, packet, frame);
        };
        self.last = Some((key, number));
        let logged = self.room.is_some();
        let slot = &mut self.slots[number as usize];
        if let Slot::Brief(brief) = slot {
            let before = brief.held_bytes();
            let has_room = self.most_bytes.is_none_or(|most| self.held_bytes + Brief::SEGMENT_BYTES <= most);
            if let Some(notes) = brief.take(moment, from, packet, frame, logged, has_room) {
                self.held_bytes += brief.held_bytes() - before;
                return Some((brief.identity.stream, notes));
            }
            if self.most_bytes.is_some_and(|most| self.held_bytes + Flow::least_bytes() > most) {
                brief.is_cut = true;
                self.is_full = true;
                self.summary.flows_left_out += 1;
                return None;
            }
            let flow = Box::new(brief.followed(logged, &mut self.room));
            self.held_bytes = self.held_bytes.saturating_sub(before);
            *slot = Slot::Followed(flow);
        }
        let Slot::Followed(flow) = slot else { return None };
        let notes = flow.packet(moment, from, packet, frame, &mut self.room);
        if flow.is_to_be_counted() || flow.counted_bytes == 0 {
            let held = flow.held_bytes();
            self.held_bytes = (self.held_bytes + held).saturating_sub(flow.counted_bytes);
            flow.counted_bytes = held;
            if self.most_bytes.is_some_and(|most| self.held_bytes > most) {
                flow.is_counted_alone = true;
                self.is_full = true;
            }
        }
        Some((flow.identity.stream, notes))
    }

    /// Records an ICMP message that a packet of a connection could not be delivered.
    fn unreachable(&mut self, about: &About) {
        const MOST: usize = 10_000;
        let (from, to) = (about.source, about.destination);
        let key = Key { low: from.min(to), high: from.max(to), protocol: about.protocol };
        let digest = digest(&key);
        if about.protocol != 6 || self.part.is_some_and(|(index, of)| digest % of != index) {
            return;
        }
        let Some(&number) = self.numbers.get(&digest) else { return };
        let logged = self.room.is_some();
        let slot = &mut self.slots[number as usize];
        let Identity { ends: [a, b], .. } = *slot.identity();
        // The outcomes of a flood are counted together.
        if (a.min(b), a.max(b)) != (key.low, key.high) || number as usize >= MOST {
            return;
        }
        if let Slot::Brief(brief) = slot {
            if self.most_bytes.is_some_and(|most| self.held_bytes + Flow::least_bytes() > most) {
                return;
            }
            let flow = Box::new(brief.followed(logged, &mut self.room));
            self.held_bytes += Flow::least_bytes();
            *slot = Slot::Followed(flow);
        }
        if let Slot::Followed(flow) = slot {
            flow.unreachable();
        }
    }

    /// Returns the position of the flow with these ends, or where to insert it.
    fn place_of(&self, key: &Key, digest: u64, from: End, packet: &Packet) -> Place {
        let is_this = |number: u32| {
            let Identity { number, ends: [a, b], .. } = *self.slots[number as usize].identity();
            number == key.protocol && (a.min(b), a.max(b)) == (key.low, key.high)
        };
        let mut place = Place { digest, known: self.last.filter(|(last, _)| last == key).map(|(_, n)| n) };
        while place.known.is_none() {
            match self.numbers.get(&place.digest) {
                None => return place,
                Some(&number) if is_this(number) => place.known = Some(number),
                // Digest collision of two keys.
                Some(_) => place.digest = place.digest.wrapping_add(1),
            }
        }
        let is_another = match (place.known, &packet.carries) {
            (Some(number), Carries::Tcp(segment)) if segment.flags.syn() && !segment.flags.ack() => {
                self.slots[number as usize].is_another(from, segment)
            }
            _ => false,
        };
        if is_another {
            // For earlier flows only this position is known by the digest alone.
            while self.numbers.get(&place.digest).is_some_and(|&number| !is_this(number)) {
                place.digest = place.digest.wrapping_add(1);
            }
            place.known = None;
        }
        place
    }

    /// Begins a flow with this packet.
    fn begin(
        &mut self,
        key: Key,
        digest: u64,
        [from, to]: [End; 2],
        moment: Moment,
        packet: &Packet,
        frame: &[u8],
    ) -> Option<(u32, Notes)> {
        let is_answer =
            matches!(packet.carries, Carries::Tcp(segment) if segment.flags.syn() && segment.flags.ack());
        let (a, b) = if is_answer { (to, from) } else { (from, to) };
        let protocol = match packet.carries {
            Carries::Tcp(_) => FlowProtocol::Tcp,
            Carries::Udp { .. } => FlowProtocol::Udp,
            Carries::Icmp { .. } => FlowProtocol::Icmp,
            Carries::Fragment(_) | Carries::Other(_) => FlowProtocol::Other,
        };
        let most_bytes = self.most_bytes.map(|most| most - most / RESERVED);
        if most_bytes.is_some_and(|most| self.held_bytes + Flow::least_bytes() > most) {
            self.is_full = true;
            self.further.add(Target { protocol, to: b.0, port: b.1 });
            self.summary.flows_left_out += 1;
            return None;
        }
        if self.most_flows.is_some_and(|most| self.slots.len() >= most) {
            self.summary.flows_left_out += 1;
            return None;
        }
        let number = self.slots.len() as u32;
        let so_far = self.streams.entry(protocol).or_default();
        let stream = *so_far;
        *so_far += 1;
        let identity = Identity { protocol, number: key.protocol, stream, ends: [a, b] };
        let (slot, notes) = match Brief::beginning(identity, moment, from, packet, frame) {
            Some((brief, notes)) => (Slot::Brief(brief), notes),
            None => {
                let logged = self.room.is_some();
                let mut flow = Flow::new(identity, logged, moment.now_ns);
                let notes = flow.packet(moment, from, packet, frame, &mut self.room);
                flow.counted_bytes = flow.held_bytes();
                self.held_bytes += flow.counted_bytes;
                (Slot::Followed(Box::new(flow)), notes)
            }
        };
        self.held_bytes += size_of::<Slot>() as u64 + PLACE_BYTES;
        self.slots.push(slot);
        self.numbers.insert(digest, number);
        self.last = Some((key, number));
        Some((stream, notes))
    }

    /// Adds packets reported as dropped by the capturing program.
    pub fn dropped(&mut self, packets: u64) {
        self.summary.dropped = packets;
    }

    /// Ends the analysis and returns its part.
    pub fn end(mut self) -> Part {
        let mut unread: Vec<UnreadPackets> = self
            .unread
            .into_iter()
            .map(|((why, number), packets)| UnreadPackets { why, number, packets })
            .collect();
        unread.sort_by_key(|u| (std::cmp::Reverse(u.packets), u.why, u.number));
        // The flows use most of the memory, so the index is freed first.
        drop(self.numbers);
        let slots = self.slots;
        let summary = CaptureSummary {
            duration_ns: self.now_ns,
            began_at_ns: self.began_ns,
            unread,
            flows_followed_in_part: slots.iter().filter(|slot| slot.is_cut()).count() as u64,
            memory_limit_reached_bytes: self.most_bytes.filter(|_| self.is_full),
            ..std::mem::take(&mut self.summary)
        };
        Part { summary, slots, further: self.further, room: self.room }
    }

    /// Returns the summary of the capture and its flows: explainable ones first, then by
    /// bytes in descending order.
    pub fn finish(self) -> (CaptureSummary, Vec<Found>) {
        together(vec![self.end()])
    }
}

/// Position of a flow, or where to insert it.
struct Place {
    digest: u64,
    known: Option<u32>,
}

/// Merges the parts of an analysis ([`Analysis::part`]), first part first; returns the summary of the capture and its flows: explainable ones
/// first, then by bytes in descending order.
pub fn together(mut parts: Vec<Part>) -> (CaptureSummary, Vec<Found>) {
    let sum = |of: fn(&CaptureSummary) -> u64| parts.iter().map(|part| of(&part.summary)).sum();
    let flows_left_out = sum(|summary| summary.flows_left_out);
    let flows_followed_in_part = sum(|summary| summary.flows_followed_in_part);
    let limits: Vec<u64> = parts.iter().filter_map(|part| part.summary.memory_limit_reached_bytes).collect();
    // Each part has an equal share.
    let memory_limit_reached_bytes = limits.first().map(|limit| limit * parts.len() as u64);
    let mut further = Targets::default();
    parts.iter_mut().for_each(|part| further.join(std::mem::take(&mut part.further)));
    let mut slots: Vec<Vec<Slot>> = parts.iter_mut().map(|part| std::mem::take(&mut part.slots)).collect();
    let attempts = attempts::taken_out(&mut slots, &further);
    let mut rooms = parts.iter().map(|part| part.room);
    let mut found = Vec::new();
    for slots in slots {
        let mut room = rooms.next().flatten();
        found.extend(slots.into_iter().map(|slot| slot.finish(&mut room)));
    }
    sort(&mut found);
    // Every part counts all packets.
    let summary = parts.into_iter().next().map(|part| part.summary).unwrap_or_default();
    let summary = CaptureSummary {
        flows_left_out,
        flows_followed_in_part,
        memory_limit_reached_bytes,
        attempts,
        ..summary
    };
    (summary, found)
}

/// Sorts explainable flows first, then by bytes in descending order.
fn sort(found: &mut [Found]) {
    let is_left = |found: &Found| found.facts.iter().all(Option::is_none);
    found.sort_by_key(|found| {
        let flow = &found.flow;
        (is_left(found), std::cmp::Reverse(flow.bytes()), flow.from_ns, flow.protocol, flow.a, flow.b)
    });
}

/// Returns a digest that is the same for both directions of a flow and in every part.
fn digest(key: &Key) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A raw IPv4 packet with TCP, of the connection with this number, in either direction.
    fn packet(connection: u8, is_back: bool, flags: u8, [seq, ack]: [u32; 2], payload: usize) -> Vec<u8> {
        let ends = [[10, 0, 0, connection], [198, 18, 0, 1]];
        let ports = [40_000 + u16::from(connection), 443];
        let (from, to) = if is_back { (1, 0) } else { (0, 1) };
        let mut all = vec![0x45, 0];
        all.extend((40 + payload as u16).to_be_bytes());
        all.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        all.extend(ends[from]);
        all.extend(ends[to]);
        all.extend(ports[from].to_be_bytes());
        all.extend(ports[to].to_be_bytes());
        all.extend(seq.to_be_bytes());
        all.extend(ack.to_be_bytes());
        all.extend([0x50, flags, 0xFF, 0xFF, 0, 0, 0, 0]);
        all.resize(40 + payload, 0);
        all
    }

    fn given(mut analysis: Analysis) -> Analysis {
        let mut at_ns = 1_000_000_000;
        let steps = [
            (false, 2, [1, 0], 0),
            (true, 18, [1, 2], 0),
            (false, 24, [2, 2], 200),
            (true, 24, [2, 202], 600),
            (false, 17, [202, 602], 0),
        ];
        for (is_back, flags, numbers, payload) in steps {
            for connection in 0..100 {
                at_ns += 10_000;
                let data = packet(connection, is_back, flags, numbers, payload);
                let frame =
                    Frame { at_ns: Some(at_ns), link_type: 101, length: data.len() as u32, data: &data };
                analysis.frame(&frame);
            }
        }
        // Belongs to no flow.
        analysis.frame(&Frame { at_ns: Some(at_ns), link_type: 9_999, length: 4, data: &[0; 4] });
        analysis
    }

    #[test]
    fn parts_find_together_what_one_analysis_finds() {
        let (summary, found) = given(Analysis::of_at_most(1000)).finish();
        assert_eq!((found.len(), summary.packets), (100, 501));
        for of in [2, 3, 8] {
            let parts: Vec<_> =
                (0..of).map(|index| given(Analysis::of_at_most(1000).part(index, of)).end()).collect();
            assert!(parts.iter().all(|part| !part.slots.is_empty()), "a part of {of} has nothing to do");
            let (of_parts, all) = together(parts);
            assert_eq!(of_parts, summary);
            let flows = |found: &[Found]| found.iter().map(|one| one.flow.clone()).collect::<Vec<_>>();
            assert_eq!(flows(&all), flows(&found));
        }
        let parts = (0..2).map(|index| given(Analysis::of_at_most(30).part(index, 2)).end()).collect();
        let (summary, found) = together(parts);
        // All parts share the limit; each of the 70 others was left out at each step.
        assert_eq!((found.len(), summary.flows_left_out), (30, 5 * 70));
    }

    /// A packet of IPv4 from one end to the other: of TCP with these flags, or a datagram.
    fn sent(from: ([u8; 4], u16), to: ([u8; 4], u16), flags: Option<u8>, seq: u32) -> Vec<u8> {
        let (protocol, length) = if flags.is_some() { (6, 40) } else { (17, 48u16) };
        let mut all = vec![0x45, 0, 0, length as u8, 0, 0, 0x40, 0, 64, protocol, 0, 0];
        all.extend([from.0, to.0].concat());
        all.extend(from.1.to_be_bytes());
        all.extend(to.1.to_be_bytes());
        match flags {
            Some(flags) => {
                let (seq, ack) = if flags & 16 != 0 { (900, seq + 1) } else { (seq, 0) };
                all.extend(seq.to_be_bytes());
                all.extend(ack.to_be_bytes());
                all.extend([0x50, flags, 0xFF, 0xFF, 0, 0, 0, 0]);
            }
            None => {
                all.extend([0, 28, 0, 0]);
                all.resize(48, 0x5A);
            }
        }
        all
    }

    fn give(analysis: &mut Analysis, number: u64, data: &[u8]) {
        let at_ns = Some(1_000_000_000 + number * 1000);
        analysis.frame(&Frame { at_ns, link_type: 101, length: data.len() as u32, data });
    }

    const SYN: u8 = 2;
    const SYN_ACK: u8 = 18;
    const RST: u8 = 4;
    const RST_ACK: u8 = 20;
    const FLOWS: u32 = 20_000;

    fn forged(number: u32) -> ([u8; 4], u16) {
        ((0x0B00_0000 + number * 77).to_be_bytes(), 1024 + (number % 60_000) as u16)
    }

    #[test]
    fn floods_and_scans_are_counted_together_in_little_memory() {
        use bdp_model::capture::AttemptOutcome as Is;
        let server = ([10, 255, 0, 1], 80);
        let scanner = |number: u32| ([10, 0, 0, 9], 40_000 + (number % 7) as u16);
        let host = |number: u32| ([10, 1, (number >> 8) as u8, number as u8], 443);
        let port = |number: u32| ([10, 255, 0, 1], 1 + number as u16);
        // Packets by flow number: whether each goes back, and its flags; without flags it is a datagram.
        type Kind<'a> = (
            Is,
            &'a [(bool, Option<u8>)],
            &'a dyn Fn(u32) -> ([u8; 4], u16),
            &'a dyn Fn(u32) -> ([u8; 4], u16),
            [u64; 3],
            u64,
        );
        let once = &[(false, Some(SYN))];
        let server = |_| server;
        let many = u64::from(FLOWS);
        let kinds: [Kind<'_>; 8] = [
            (Is::Unanswered, once, &forged, &server, [many, 1, 1], 260),
            (Is::Unanswered, &[(false, Some(SYN)); 4], &forged, &server, [many, 1, 1], 260),
            (Is::Refused, &[(false, Some(SYN)), (true, Some(RST_ACK))], &scanner, &port, [1, 1, many], 360),
            (Is::Unanswered, once, &scanner, &host, [1, many, 1], 260),
            (
                Is::HalfOpen,
                &[(false, Some(SYN)), (true, Some(SYN_ACK)), (true, Some(SYN_ACK)), (true, Some(SYN_ACK))],
                &forged,
                &server,
                [many, 1, 1],
                360,
            ),
            (
                Is::Abandoned,
                &[(false, Some(SYN)), (true, Some(SYN_ACK)), (false, Some(RST))],
                &scanner,
                &host,
                [1, many, 1],
                460,
            ),
            (Is::AnswerAlone, &[(true, Some(SYN_ACK))], &forged, &server, [many, 1, 1], 260),
            (Is::Unanswered, &[(false, None)], &forged, &server, [many, 1, 1], 260),
        ];
        for (index, (outcome, packets, from, to, different, most_bytes)) in kinds.into_iter().enumerate() {
            let given = |mut analysis: Analysis| {
                for (step, &(is_back, flags)) in packets.iter().enumerate() {
                    for flow in 0..FLOWS {
                        let (a, b) = if is_back { (to(flow), from(flow)) } else { (from(flow), to(flow)) };
                        give(&mut analysis, step as u64 * many + u64::from(flow), &sent(a, b, flags, flow));
                    }
                }
                analysis
            };
            let analysis = given(Analysis::default());
            let each = analysis.held_bytes / many;
            assert!(each <= most_bytes, "kind {index}: {each} bytes a flow");
            let (summary, found) = analysis.finish();
            assert_eq!((found.len(), summary.attempts.len()), (0, 1), "kind {index}: {:?}", summary.attempts);
            let all = &summary.attempts[0];
            assert_eq!((all.outcome, all.flows, all.packets), (outcome, many, many * packets.len() as u64));
            assert_eq!([all.sources, all.destinations, all.ports], different, "kind {index}");
            let parts = (0..3).map(|part| given(Analysis::default().part(part, 3)).end()).collect();
            assert_eq!(together(parts).0, summary, "kind {index}");
        }
    }

    #[test]
    fn few_flows_are_listed_and_a_connection_within_a_flood_is_followed() {
        let mut analysis = given(Analysis::default());
        for flow in 0..FLOWS {
            give(
                &mut analysis,
                500 + u64::from(flow),
                &sent(forged(flow), ([10, 255, 0, 1], 80), Some(SYN), 7),
            );
        }
        for flow in 0..5 {
            give(
                &mut analysis,
                90_000 + u64::from(flow),
                &sent(forged(flow), ([10, 9, 0, 1], 22), Some(SYN), 7),
            );
        }
        let (summary, found) = analysis.finish();
        assert_eq!(summary.attempts.len(), 1);
        assert_eq!(summary.attempts[0].flows, u64::from(FLOWS));
        // A hundred connections, and five that are too few to be counted together.
        assert_eq!(found.len(), 105);
        let (_, alone) = given(Analysis::default()).finish();
        let flows = |found: &[Found]| found.iter().take(100).map(|one| one.flow.clone()).collect::<Vec<_>>();
        assert_eq!(flows(&found), flows(&alone));
    }

    #[test]
    fn memory_has_a_bound_and_counters_go_on() {
        const MOST: u64 = 2 << 20;
        let mut analysis = given(Analysis::within(MOST));
        for flow in 0..FLOWS {
            give(
                &mut analysis,
                500 + u64::from(flow),
                &sent(forged(flow), ([10, 255, 0, 1], 80), Some(SYN), 7),
            );
        }
        assert!(analysis.held_bytes <= MOST, "{}", analysis.held_bytes);
        let (summary, found) = analysis.finish();
        assert_eq!(summary.memory_limit_reached_bytes, Some(MOST));
        assert_eq!(summary.packets, 501 + u64::from(FLOWS));
        let all = &summary.attempts[0];
        assert!(all.flows > 1000 && all.further_packets > 1000, "{all:?}");
        assert_eq!(all.flows + all.further_packets, u64::from(FLOWS));
        assert_eq!(summary.flows_left_out, all.further_packets);
        // Flows that began before are followed to their end.
        assert_eq!((found.len(), summary.flows_followed_in_part), (100, 0));
    }

    #[test]
    fn flow_that_finds_no_memory_any_more_is_counted_and_no_further_one_is_called_unanswered() {
        const MOST: u64 = 1 << 20;
        let mut analysis = Analysis::within(MOST);
        let mut number = 0;
        let mut send = |analysis: &mut Analysis, flow: u32, is_back: bool, flags: u8| {
            number += 1;
            let (a, b) = (forged(flow), ([10, 255, 0, 1], 80));
            let (from, to) = if is_back { (b, a) } else { (a, b) };
            give(analysis, number, &sent(from, to, Some(flags), 7));
        };
        for (is_back, flags) in [(false, SYN), (true, SYN_ACK), (false, 16), (true, 24), (false, 16)] {
            for flow in 0..4_000 {
                send(&mut analysis, flow, is_back, flags);
            }
        }
        let (summary, found) = analysis.finish();
        assert_eq!(summary.memory_limit_reached_bytes, Some(MOST));
        assert!(summary.flows_followed_in_part > 1000, "{summary:?}");
        assert!(summary.attempts.is_empty(), "{:?}", summary.attempts);
        assert!(found.len() as u64 >= summary.flows_followed_in_part);
        assert!(summary.flows_left_out > 0);
    }
}
