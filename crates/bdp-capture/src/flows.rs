//! Packets to the flows that they belong to.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

use bdp_model::capture::{
    CaptureSummary, CapturedDirection, CapturedFlow, FlowProtocol, UnreadPackets, WhyUnread,
};
use bdp_model::facts::Facts;

use crate::between::SegmentLog;
use crate::datagrams::Datagrams;
use crate::decode::{self, Carries, Packet, Unread};
use crate::filter::Filter;
use crate::notes::Notes;
use crate::tcp::{self, Connection};

/// A packet of a capture, as its file has it.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Since 1970, nanoseconds; `None` where the capture does not say.
    pub at_ns: Option<u64>,
    /// Link layer, by its number in captures.
    pub link_type: u16,
    /// Length before it was cut, bytes.
    pub length: u32,
    /// What was kept.
    pub data: &'a [u8],
}

/// What a flow is known by: its two ends in order, and what it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    low: (IpAddr, u16),
    high: (IpAddr, u16),
    protocol: u8,
}

/// A flow that goes on.
#[derive(Debug)]
struct Flow {
    protocol: FlowProtocol,
    /// Its number among those of the protocol.
    stream: u32,
    ends: [SocketAddr; 2],
    from_ns: u64,
    to_ns: u64,
    packets: [u64; 2],
    bytes: [u64; 2],
    payload: [u64; 2],
    times: [(u64, u64); 2],
    tcp: Option<Box<Connection>>,
    log: Option<Box<SegmentLog>>,
    /// Of UDP and ICMP.
    datagrams: Option<Box<Datagrams>>,
}

/// What was found out about a flow.
#[derive(Debug)]
pub struct Found {
    /// What was seen of it.
    pub flow: CapturedFlow,
    /// For the rules, the facts of each way that carried enough.
    pub facts: [Option<Box<Facts>>; 2],
    /// Of TCP its segments one by one, where they are kept ([`Analysis::logged`]).
    pub log: Option<Box<SegmentLog>>,
}

/// Everything that the packets of a capture say.
#[derive(Debug, Default)]
pub struct Analysis {
    numbers: HashMap<Key, u32>,
    flows: Vec<Flow>,
    /// The flow of the packet before, which mostly is that of the next.
    last: Option<(Key, u32)>,
    most_flows: Option<usize>,
    /// Flows of each protocol so far.
    streams: HashMap<FlowProtocol, u32>,
    began_ns: Option<u64>,
    now_ns: u64,
    unread: HashMap<(WhyUnread, Option<u16>), u64>,
    filter: Option<Filter>,
    /// How many further segments are kept one by one.
    room: Option<u64>,
    /// Which part of the flows this follows, and of how many.
    part: Option<(u64, u64)>,
    summary: CaptureSummary,
}

impl Analysis {
    /// One that follows no more flows than this.
    pub fn of_at_most(flows: usize) -> Self {
        Self { most_flows: Some(flows), ..Self::default() }
    }

    /// The same of the packets that meet a filter.
    pub fn filtered(self, filter: Filter) -> Self {
        Self { filter: Some(filter).filter(|filter| !filter.is_all()), ..self }
    }

    /// The same, which keeps what it takes to compare segments with those of another capture: of so many at the most.
    pub fn logged(self, segments: u64) -> Self {
        Self { room: Some(segments), ..self }
    }

    /// The same, which follows only one part of the flows, of so many: several that are given the same frames, each by a thread of its own, find together
    /// what one would ([`together`]).
    pub fn part(self, index: u64, of: u64) -> Self {
        let room = self.room.map(|room| room / of);
        let most_flows = self.most_flows.map(|most| most / of as usize);
        Self { part: Some((index, of)), room, most_flows, ..self }
    }

    /// A frame of the capture. Returns, where it belongs to a flow, the number of that among those of its protocol in the order in which they
    /// began, and what was found about the packet.
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
            // Packets keep the order in which they were captured: of several processors that may not be quite that of their times.
            self.now_ns = self.now_ns.max(at.saturating_sub(began));
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
        if self.part.is_some_and(|(index, of)| digest(&key) % of != index) {
            return None;
        }
        let number = self.number_of(key, from, to, packet)?;
        let now = self.now_ns;
        let at = self.began_ns.map(|_| now);
        let flow = &mut self.flows[number as usize];
        let is_back = flow.is_back(from);
        let side = usize::from(is_back);
        flow.to_ns = now;
        if flow.packets[side] == 0 {
            flow.times[side].0 = now;
        }
        flow.times[side].1 = now;
        flow.packets[side] += 1;
        flow.bytes[side] += u64::from(packet.length);
        if let (Some(log), Some(room), Carries::Tcp(segment)) =
            (&mut flow.log, &mut self.room, &packet.carries)
        {
            log.note(room, now, is_back, packet, segment);
        }
        let notes = match (&mut flow.tcp, &packet.carries) {
            // A moment of 0 is one that has not been.
            (Some(tcp), Carries::Tcp(segment)) => tcp.segment(now + 1, is_back, packet, segment),
            (_, Carries::Udp { payload, kept, .. }) => {
                flow.payload[side] += u64::from(*payload);
                if let Some(datagrams) = &mut flow.datagrams {
                    datagrams.udp(at, side, kept.of(frame), *payload);
                }
                Notes::default()
            }
            (_, Carries::Icmp { echo: Some(echo), .. }) => {
                if let Some(datagrams) = &mut flow.datagrams {
                    datagrams.icmp(at, side, echo);
                }
                Notes::default()
            }
            _ => Notes::default(),
        };
        Some((flow.stream, notes))
    }

    /// The number of a packet's flow, which may begin with it.
    fn number_of(
        &mut self,
        key: Key,
        from: (IpAddr, u16),
        to: (IpAddr, u16),
        packet: &Packet,
    ) -> Option<u32> {
        let known = match self.last {
            Some((last, number)) if last == key => Some(number),
            _ => self.numbers.get(&key).copied(),
        };
        if let Some(number) = known {
            let flow = &self.flows[number as usize];
            let is_another = match (&flow.tcp, &packet.carries) {
                (Some(tcp), Carries::Tcp(segment)) => tcp.is_another(flow.is_back(from), segment),
                _ => false,
            };
            if !is_another {
                self.last = Some((key, number));
                return Some(number);
            }
        }
        if self.most_flows.is_some_and(|most| self.flows.len() >= most) {
            self.summary.flows_left_out += 1;
            return None;
        }
        let number = self.flows.len() as u32;
        let is_answer =
            matches!(packet.carries, Carries::Tcp(segment) if segment.flags.syn() && segment.flags.ack());
        let (a, b) = if is_answer { (to, from) } else { (from, to) };
        let protocol = match packet.carries {
            Carries::Tcp(_) => FlowProtocol::Tcp,
            Carries::Udp { .. } => FlowProtocol::Udp,
            Carries::Icmp { .. } => FlowProtocol::Icmp,
            Carries::Fragment(_) | Carries::Other(_) => FlowProtocol::Other,
        };
        let so_far = self.streams.entry(protocol).or_default();
        let stream = *so_far;
        *so_far += 1;
        self.flows.push(Flow {
            protocol,
            stream,
            ends: [a, b].map(|(address, port)| SocketAddr::new(address, port)),
            from_ns: self.now_ns,
            to_ns: self.now_ns,
            packets: [0; 2],
            bytes: [0; 2],
            payload: [0; 2],
            times: [(0, 0); 2],
            tcp: (protocol == FlowProtocol::Tcp).then(Box::default),
            log: (protocol == FlowProtocol::Tcp && self.room.is_some()).then(Box::default),
            datagrams: matches!(protocol, FlowProtocol::Udp | FlowProtocol::Icmp).then(Box::default),
        });
        self.numbers.insert(key, number);
        self.last = Some((key, number));
        Some(number)
    }

    /// Packets that a program says it dropped while it captured.
    pub fn dropped(&mut self, packets: u64) {
        self.summary.dropped = packets;
    }

    /// What all of it comes to: the capture as a whole, and the flows, those that can be explained first, and the
    /// one with the most bytes.
    pub fn finish(mut self) -> (CaptureSummary, Vec<Found>) {
        let mut unread: Vec<UnreadPackets> = self
            .unread
            .into_iter()
            .map(|((why, number), packets)| UnreadPackets { why, number, packets })
            .collect();
        unread.sort_by_key(|u| (std::cmp::Reverse(u.packets), u.why, u.number));
        let summary = CaptureSummary {
            duration_ns: self.now_ns,
            began_at_ns: self.began_ns,
            unread,
            ..std::mem::take(&mut self.summary)
        };
        let mut found: Vec<Found> = self.flows.into_iter().map(Flow::finish).collect();
        sort(&mut found);
        (summary, found)
    }
}

/// What all parts of an analysis come to ([`Analysis::part`]), the first part first.
pub fn together(parts: Vec<(CaptureSummary, Vec<Found>)>) -> (CaptureSummary, Vec<Found>) {
    let left_out = parts.iter().map(|(summary, _)| summary.flows_left_out).sum();
    let mut parts = parts.into_iter();
    // Every part counts all packets.
    let (summary, mut found) = parts.next().unwrap_or_default();
    found.extend(parts.flat_map(|(_, found)| found));
    sort(&mut found);
    (CaptureSummary { flows_left_out: left_out, ..summary }, found)
}

/// What can be explained is what is looked for; then the flow with the most bytes.
fn sort(found: &mut [Found]) {
    let is_left = |found: &Found| found.facts.iter().all(Option::is_none);
    found.sort_by_key(|found| {
        let flow = &found.flow;
        (is_left(found), std::cmp::Reverse(flow.bytes()), flow.from_ns, flow.protocol, flow.a, flow.b)
    });
}

/// The same of both ways of a flow, and in every part.
fn digest(key: &Key) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

impl Flow {
    /// Whether what comes from here goes from the second end to the first.
    fn is_back(&self, from: (IpAddr, u16)) -> bool {
        (self.ends[0].ip(), self.ends[0].port()) != from
    }

    fn finish(mut self) -> Found {
        if let Some(tcp) = &mut self.tcp {
            tcp.finish();
        }
        let direction = |side: usize| {
            let (from, to) = self.times[side];
            let (payload_bytes, goodput_bps) = match &self.tcp {
                Some(tcp) => tcp.goodput(side),
                None => {
                    let took = to.saturating_sub(from);
                    let payload = self.payload[side];
                    (payload, (took > 0 && payload > 0).then(|| payload as f64 * 8e9 / took as f64))
                }
            };
            CapturedDirection {
                packets: self.packets[side],
                bytes: self.bytes[side],
                payload_bytes,
                goodput_bps,
                tcp: self.tcp.as_ref().and_then(|tcp| tcp.data(side)).map(Box::new),
                datagrams: self.datagrams.as_ref().map(|datagrams| Box::new(datagrams.report(side))),
            }
        };
        let facts = |side| {
            let connection = self.tcp.as_ref()?;
            tcp::facts(connection, side, self.ends).map(Box::new)
        };
        Found {
            facts: [facts(0), facts(1)],
            log: self.log.take(),
            flow: CapturedFlow {
                protocol: self.protocol,
                a: self.ends[0],
                b: self.ends[1],
                from_ns: self.from_ns,
                to_ns: self.to_ns,
                directions: [direction(0), direction(1)],
                tcp: self.tcp.as_ref().map(|tcp| tcp.report()),
                quic: self.datagrams.as_ref().and_then(|all| all.quic_report()).map(Box::new),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of raw IPv4 with TCP, of the connection with this number, there or back.
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

    fn read(mut analysis: Analysis) -> (CaptureSummary, Vec<Found>) {
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
        // Of no flow.
        analysis.frame(&Frame { at_ns: Some(at_ns), link_type: 9_999, length: 4, data: &[0; 4] });
        analysis.finish()
    }

    #[test]
    fn parts_find_together_what_one_analysis_finds() {
        let (summary, found) = read(Analysis::of_at_most(1000));
        assert_eq!((found.len(), summary.packets), (100, 501));
        for of in [2, 3, 8] {
            let parts: Vec<_> =
                (0..of).map(|index| read(Analysis::of_at_most(1000).part(index, of))).collect();
            assert!(parts.iter().all(|(_, found)| !found.is_empty()), "a part of {of} has nothing to do");
            let (of_parts, all) = together(parts);
            assert_eq!(of_parts, summary);
            let flows = |found: &[Found]| found.iter().map(|one| one.flow.clone()).collect::<Vec<_>>();
            assert_eq!(flows(&all), flows(&found));
        }
        let parts = (0..2).map(|index| read(Analysis::of_at_most(30).part(index, 2))).collect();
        let (summary, found) = together(parts);
        // All parts share the room; each step of the 70 others was left out.
        assert_eq!((found.len(), summary.flows_left_out), (30, 5 * 70));
    }
}
