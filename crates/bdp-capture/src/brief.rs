//! A flow of few packets, stored as those packets: most flows of a flood or scan never have more. With the next packet it becomes a [`Flow`] that
//! replays the stored packets, so that the result is the same as if it had been followed from the start.

use bdp_model::capture::AttemptOutcome;

use crate::datagrams::Datagrams;
use crate::decode::{Carries, Echo, Flags, Multipath, Options, Packet, Record, Segment, Span};
use crate::flow::{Counts, End, Flow, Identity, Moment};
use crate::notes::Notes;

/// Bytes kept of a datagram: enough for all headers examined, except those of QUIC and of bdp itself.
const HEAD: usize = 32;

/// A flow of one datagram, or of up to three segments, each possibly repeated.
#[derive(Debug)]
pub(crate) struct Brief {
    pub identity: Identity,
    /// Whether packets were not recorded because memory had run out.
    pub is_cut: bool,
    seen: Seen,
}

#[derive(Debug)]
enum Seen {
    Segments(Noted, [Option<Box<Noted>>; 2]),
    Datagram(Head),
}

/// A segment, and how often it was repeated in a row.
#[derive(Debug, Clone, Copy)]
struct Noted {
    at_ns: u64,
    last_ns: u64,
    seq: u32,
    ack: u32,
    length: u32,
    payload: u32,
    kept: u32,
    identification: u32,
    stamp: u32,
    echo: u32,
    last_stamp: u32,
    times: u16,
    window: u16,
    urgent: u16,
    mss: u16,
    flags: u8,
    ecn: u8,
    dscp: u8,
    hop_limit: u8,
    tunnels: u8,
    window_scale: u8,
    options: u8,
    record: u8,
    about: u8,
}

const BACK: u8 = 1;
const IDENTIFIED: u8 = 2;
const STAMPED: u8 = 4;
const HAS_MSS: u8 = 8;
const HAS_SCALE: u8 = 16;
const SACK: u8 = 32;
/// Both bits together mean any other multipath TCP option.
const CAPABLE: u8 = 64;
const JOIN: u8 = 128;

/// Start of a datagram, or of a packet of another protocol, and its number of repetitions.
#[derive(Debug, Clone, Copy)]
struct Head {
    at_ns: u64,
    last_ns: u64,
    has_time: bool,
    length: u32,
    times: u16,
    kept: u8,
    bytes: [u8; HEAD],
    carries: Carried,
}

/// Content of the packet, without what the flow already has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carried {
    Udp { payload: u32 },
    Icmp { kind: u8, code: u8, echo: Option<Echo> },
    Other(u8),
}

impl Brief {
    /// Returns a flow that begins with this packet; `None` if it must be followed at once.
    pub fn beginning(
        identity: Identity,
        moment: Moment,
        from: End,
        packet: &Packet,
        frame: &[u8],
    ) -> Option<(Self, Notes)> {
        let seen = match &packet.carries {
            Carries::Tcp(segment) => Seen::Segments(
                Noted::of(moment.now_ns, identity.ends[0] != from, packet, segment)?,
                [None, None],
            ),
            _ => Seen::Datagram(Head::of(moment, packet, frame)?),
        };
        let notes = match packet.carries {
            // A SYN has no notes.
            Carries::Tcp(segment) if segment.flags.bits() != Flags::SYN => {
                Flow::new(identity, false, moment.now_ns).packet(moment, from, packet, frame, &mut None)
            }
            _ => Notes::default(),
        };
        Some((Self { identity, is_cut: false, seen }, notes))
    }

    /// Adds a packet and returns its notes; `None` if the flow must be followed from now on. `has_room` says whether there is memory
    /// for one more.
    pub fn take(
        &mut self,
        moment: Moment,
        from: End,
        packet: &Packet,
        frame: &[u8],
        logged: bool,
        has_room: bool,
    ) -> Option<Notes> {
        match &packet.carries {
            Carries::Tcp(segment) => {
                let noted = Noted::of(moment.now_ns, self.identity.ends[0] != from, packet, segment)?;
                let notes = self.notes(moment, from, packet);
                let Seen::Segments(first, more) = &mut self.seen else { return None };
                let last = more.iter_mut().rev().flatten().next().map_or(first, |last| last);
                // Each copy counts if segments are compared one by one.
                if logged || !last.repeat(&noted) {
                    if !has_room {
                        return None;
                    }
                    *more.iter_mut().find(|place| place.is_none())? = Some(Box::new(noted));
                }
                Some(notes)
            }
            _ => {
                let head = Head::of(moment, packet, frame).filter(|_| self.identity.ends[0] == from)?;
                let Seen::Datagram(before) = &mut self.seen else { return None };
                before.repeat(&head).then(Notes::default)
            }
        }
    }

    /// Returns the notes on the next packet.
    fn notes(&self, moment: Moment, from: End, packet: &Packet) -> Notes {
        match (&self.seen, &packet.carries) {
            // A repeated SYN has no notes.
            (Seen::Segments(..), Carries::Tcp(segment)) if segment.flags.bits() != Flags::SYN => {
                self.followed(false, &mut None).packet(moment, from, packet, &[], &mut None)
            }
            _ => Notes::default(),
        }
    }

    /// Whether this SYN begins another connection between the same ports.
    pub fn is_another(&self, from: End, segment: &Segment) -> bool {
        self.followed(false, &mut None).is_another(from, segment)
    }

    /// Returns the equivalent followed flow, with a log of its segments if logs are kept.
    pub fn followed(&self, logged: bool, room: &mut Option<u64>) -> Flow {
        let began_ns = match &self.seen {
            Seen::Segments(first, _) => first.at_ns,
            Seen::Datagram(head) => head.at_ns,
        };
        let mut flow = Flow::new(self.identity, logged, began_ns);
        match &self.seen {
            Seen::Segments(first, more) => {
                let all = std::iter::once(first).chain(more.iter().flatten().map(|noted| &**noted));
                all.for_each(|noted| noted.give(&self.identity.ends, &mut flow, room));
            }
            Seen::Datagram(head) => head.give(&self.identity.ends, &mut flow),
        }
        flow
    }

    /// Returns the outcome as far as observed; `None` if unrecorded packets exist.
    pub fn outcome(&self) -> Option<AttemptOutcome> {
        if self.is_cut {
            return None;
        }
        let Seen::Segments(first, more) = &self.seen else { return Some(AttemptOutcome::Unanswered) };
        let syn = |noted: &Noted| {
            let flags = Flags::new(noted.flags);
            flags.syn() && !flags.ack() && !flags.rst() && noted.about & BACK == 0
        };
        let answer = |noted: &Noted| {
            let flags = Flags::new(noted.flags);
            flags.syn() && flags.ack() && noted.about & BACK != 0
        };
        let reset = |noted: &Noted| Flags::new(noted.flags).rst();
        let is_back = |noted: &Noted| noted.about & BACK != 0;
        let [second, third] = [0, 1].map(|place| more[place].as_deref());
        Some(match (first, second, third) {
            (a, None, None) if syn(a) => AttemptOutcome::Unanswered,
            (a, Some(b), None) if syn(a) && syn(b) => AttemptOutcome::Unanswered,
            (a, Some(b), Some(c)) if syn(a) && syn(b) && syn(c) => AttemptOutcome::Unanswered,
            (a, Some(b), None) if syn(a) && reset(b) && is_back(b) => AttemptOutcome::Refused,
            (a, Some(b), None) if syn(a) && answer(b) => AttemptOutcome::HalfOpen,
            (a, Some(b), Some(c)) if syn(a) && answer(b) && (syn(c) || answer(c)) => AttemptOutcome::HalfOpen,
            (a, Some(b), Some(c)) if syn(a) && answer(b) && reset(c) && !is_back(c) => {
                AttemptOutcome::Abandoned
            }
            (a, None, None) if answer(a) => AttemptOutcome::AnswerAlone,
            (a, Some(b), None) if answer(a) && (answer(b) || reset(b)) => AttemptOutcome::AnswerAlone,
            (a, None, None) if reset(a) => AttemptOutcome::ResetAlone,
            _ => AttemptOutcome::Stray,
        })
    }

    /// Returns the counts.
    pub fn counts(&self) -> Counts {
        match &self.seen {
            Seen::Segments(first, more) => {
                let all = || std::iter::once(first).chain(more.iter().flatten().map(|noted| &**noted));
                Counts {
                    packets: all().map(|noted| u64::from(noted.times)).sum(),
                    bytes: all().map(|noted| u64::from(noted.times) * u64::from(noted.length)).sum(),
                    from_ns: first.at_ns,
                    to_ns: all().map(|noted| noted.last_ns).max().unwrap_or(first.at_ns),
                }
            }
            Seen::Datagram(head) => Counts {
                packets: u64::from(head.times),
                bytes: u64::from(head.times) * u64::from(head.length),
                from_ns: head.at_ns,
                to_ns: head.last_ns,
            },
        }
    }

    /// Memory of a further segment, including the allocator's overhead, bytes.
    pub const SEGMENT_BYTES: u64 = size_of::<Noted>() as u64 + 16;

    /// Heap memory in use, bytes.
    pub fn held_bytes(&self) -> u64 {
        match &self.seen {
            Seen::Segments(_, more) => more.iter().flatten().count() as u64 * Self::SEGMENT_BYTES,
            Seen::Datagram(_) => 0,
        }
    }
}

impl Noted {
    /// Returns `None` for a segment that does not fit the compact form.
    fn of(now_ns: u64, is_back: bool, packet: &Packet, segment: &Segment) -> Option<Self> {
        let Options { mss, window_scale, sack_permitted, timestamps, sack, multipath, .. } = segment.options;
        if !sack.as_slice().is_empty() {
            return None;
        }
        let bit = |is: bool, bit: u8| if is { bit } else { 0 };
        let (stamp, echo) = timestamps.unwrap_or_default();
        Some(Self {
            at_ns: now_ns,
            last_ns: now_ns,
            seq: segment.seq,
            ack: segment.ack,
            length: packet.length,
            payload: segment.payload,
            kept: segment.kept,
            identification: packet.identification.unwrap_or_default(),
            stamp,
            echo,
            last_stamp: stamp,
            times: 1,
            window: segment.window,
            urgent: segment.urgent,
            mss: mss.unwrap_or_default(),
            flags: segment.flags.bits(),
            ecn: packet.ecn,
            dscp: packet.dscp,
            hop_limit: packet.hop_limit,
            tunnels: packet.tunnels,
            window_scale: window_scale.unwrap_or_default(),
            options: segment.options.length() as u8,
            record: segment.record as u8,
            about: bit(is_back, BACK)
                | bit(packet.identification.is_some(), IDENTIFIED)
                | bit(timestamps.is_some(), STAMPED)
                | bit(mss.is_some(), HAS_MSS)
                | bit(window_scale.is_some(), HAS_SCALE)
                | bit(sack_permitted, SACK)
                | bit(matches!(multipath, Some(Multipath::Capable | Multipath::Other)), CAPABLE)
                | bit(matches!(multipath, Some(Multipath::Join | Multipath::Other)), JOIN),
        })
    }

    /// Counts a repetition of the same segment; false if it is another one or has data.
    fn repeat(&mut self, next: &Self) -> bool {
        let fields = |noted: &Self| {
            let Self { seq, ack, length, payload, echo, window, urgent, mss, .. } = *noted;
            let Self { flags, ecn, dscp, hop_limit, tunnels, window_scale, options, about, .. } = *noted;
            (
                (seq, ack, length, payload, echo, window, urgent, mss),
                (flags, ecn, dscp, hop_limit, tunnels, window_scale, options, about),
            )
        };
        if self.payload > 0 || self.times == u16::MAX || fields(self) != fields(next) {
            return false;
        }
        self.times += 1;
        (self.last_ns, self.last_stamp) = (next.at_ns, next.stamp);
        true
    }

    /// Replays the packet into a flow: the first copy at its time, all others at the time of the last.
    fn give(&self, ends: &[End; 2], flow: &mut Flow, room: &mut Option<u64>) {
        for copy in 0..self.times {
            let (now_ns, stamp) =
                if copy == 0 { (self.at_ns, self.stamp) } else { (self.last_ns, self.last_stamp) };
            let (from, packet) = self.packet(ends, stamp);
            flow.packet(Moment { now_ns, is_known: true }, from, &packet, &[], room);
        }
    }

    fn packet(&self, ends: &[End; 2], stamp: u32) -> (End, Packet) {
        let has = |bit: u8| self.about & bit != 0;
        let (from, to) = if has(BACK) { (ends[1], ends[0]) } else { (ends[0], ends[1]) };
        let mut options = Options::of_length(self.options);
        options.mss = has(HAS_MSS).then_some(self.mss);
        options.window_scale = has(HAS_SCALE).then_some(self.window_scale);
        options.sack_permitted = has(SACK);
        options.multipath = match (has(CAPABLE), has(JOIN)) {
            (true, false) => Some(Multipath::Capable),
            (false, true) => Some(Multipath::Join),
            (true, true) => Some(Multipath::Other),
            (false, false) => None,
        };
        options.timestamps = has(STAMPED).then_some((stamp, self.echo));
        let segment = Segment {
            source: from.1,
            destination: to.1,
            seq: self.seq,
            ack: self.ack,
            flags: Flags::new(self.flags),
            window: self.window,
            urgent: self.urgent,
            payload: self.payload,
            kept: self.kept,
            record: Record::numbered(self.record),
            options,
        };
        let packet = Packet {
            source: from.0,
            destination: to.0,
            length: self.length,
            identification: has(IDENTIFIED).then_some(self.identification),
            ecn: self.ecn,
            dscp: self.dscp,
            hop_limit: self.hop_limit,
            tunnels: self.tunnels,
            carries: Carries::Tcp(segment),
        };
        (from, packet)
    }
}

impl Head {
    /// Returns `None` for a datagram that can't be identified by its first bytes.
    fn of(moment: Moment, packet: &Packet, frame: &[u8]) -> Option<Self> {
        let (carries, kept) = match packet.carries {
            Carries::Udp { payload, kept, .. } => {
                let kept = kept.of(frame);
                if Datagrams::needs_whole(kept, payload) {
                    return None;
                }
                (Carried::Udp { payload }, kept)
            }
            Carries::Icmp { kind, code, echo, .. } => (Carried::Icmp { kind, code, echo }, &[][..]),
            Carries::Other(protocol) => (Carried::Other(protocol), &[][..]),
            Carries::Tcp(_) | Carries::Fragment(_) => return None,
        };
        let kept = &kept[..kept.len().min(HEAD)];
        let mut bytes = [0; HEAD];
        bytes[..kept.len()].copy_from_slice(kept);
        Some(Self {
            at_ns: moment.now_ns,
            last_ns: moment.now_ns,
            has_time: moment.is_known,
            length: packet.length,
            times: 1,
            kept: kept.len() as u8,
            bytes,
            carries,
        })
    }

    /// Counts a repetition of the same datagram; false if it is another one.
    fn repeat(&mut self, next: &Self) -> bool {
        let is_same = (self.length, self.kept, self.bytes, self.carries, self.has_time)
            == (next.length, next.kept, next.bytes, next.carries, next.has_time);
        if !is_same || self.times == u16::MAX {
            return false;
        }
        self.times += 1;
        self.last_ns = next.at_ns;
        true
    }

    fn give(&self, ends: &[End; 2], flow: &mut Flow) {
        let carries = match self.carries {
            Carried::Udp { payload } => Carries::Udp {
                source: ends[0].1,
                destination: ends[1].1,
                payload,
                kept: Span::new(0, usize::from(self.kept)),
            },
            Carried::Icmp { kind, code, echo } => Carries::Icmp { kind, code, echo, about: None },
            Carried::Other(protocol) => Carries::Other(protocol),
        };
        let packet = Packet {
            source: ends[0].0,
            destination: ends[1].0,
            length: self.length,
            identification: None,
            ecn: 0,
            dscp: 0,
            hop_limit: 0,
            tunnels: 0,
            carries,
        };
        for copy in 0..self.times {
            let now_ns = if copy == 0 { self.at_ns } else { self.last_ns };
            let moment = Moment { now_ns, is_known: self.has_time };
            flow.packet(moment, ends[0], &packet, &self.bytes[..usize::from(self.kept)], &mut None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bdp_model::capture::FlowProtocol;
    use proptest::prelude::*;

    const ENDS: [End; 2] = [
        (std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)), 40_000),
        (std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)), 443),
    ];

    fn packet(is_back: bool, flags: u8, [seq, ack]: [u32; 2], stamps: Option<(u32, u32)>) -> (End, Packet) {
        let (from, to) = if is_back { (ENDS[1], ENDS[0]) } else { (ENDS[0], ENDS[1]) };
        let mut options = Options::of_length(20);
        (options.mss, options.window_scale) = (Some(1460), Some(7));
        (options.sack_permitted, options.timestamps) = (true, stamps);
        let segment = Segment {
            source: from.1,
            destination: to.1,
            seq,
            ack,
            flags: Flags::new(flags),
            window: 64_240,
            urgent: 0,
            payload: 0,
            kept: 0,
            record: Record::None,
            options,
        };
        let packet = Packet {
            source: from.0,
            destination: to.0,
            length: 60,
            identification: Some(seq),
            ecn: 0,
            dscp: 0,
            hop_limit: 64,
            tunnels: 0,
            carries: Carries::Tcp(segment),
        };
        (from, packet)
    }

    proptest! {
        #[test]
        fn flow_of_few_packets_is_what_it_would_be_if_it_were_followed(
            steps in proptest::collection::vec(
                (any::<bool>(), proptest::sample::select(vec![2u8, 18, 16, 4, 20, 17, 1, 0, 194]), 0u32..3, 0u32..3, any::<bool>(), 1u64..2_000_000_000),
                1..12,
            ),
        ) {
            let identity = Identity { protocol: FlowProtocol::Tcp, number: 6, stream: 3, ends: ENDS };
            let mut room = None;
            let mut now_ns = 0;
            let mut brief: Option<Brief> = None;
            let mut followed: Option<Flow> = None;
            let mut from_the_first = Flow::new(identity, false, 0);
            for (number, (is_back, flags, seq, ack, stamped, later)) in steps.into_iter().enumerate() {
                let moment = Moment { now_ns, is_known: true };
                now_ns += later;
                let stamps = stamped.then_some((number as u32 + 100, ack));
                let (from, packet) = packet(is_back, flags, [seq, ack], stamps);
                let expected = from_the_first.packet(moment, from, &packet, &[], &mut room);
                // Copies are not merged, so that each has its own time.
                let notes = match (&mut brief, &mut followed) {
                    (_, Some(flow)) => flow.packet(moment, from, &packet, &[], &mut room),
                    (None, None) => {
                        let (first, notes) = Brief::beginning(identity, moment, from, &packet, &[]).unwrap();
                        brief = Some(first);
                        notes
                    }
                    (Some(few), None) => match few.take(moment, from, &packet, &[], true, true) {
                        Some(notes) => notes,
                        None => {
                            let mut flow = few.followed(false, &mut room);
                            let notes = flow.packet(moment, from, &packet, &[], &mut room);
                            followed = Some(flow);
                            notes
                        }
                    },
                };
                prop_assert_eq!(notes, expected);
            }
            let flow = followed.unwrap_or_else(|| brief.unwrap().followed(false, &mut room));
            prop_assert_eq!(flow.finish().flow, from_the_first.finish().flow);
        }
    }

    #[test]
    fn copies_of_a_segment_are_counted() {
        let identity = Identity { protocol: FlowProtocol::Tcp, number: 6, stream: 0, ends: ENDS };
        let at = |s: u64| Moment { now_ns: s * 1_000_000_000, is_known: true };
        let (from, syn) = packet(false, 2, [7, 0], Some((1, 0)));
        let (mut brief, _) = Brief::beginning(identity, at(0), from, &syn, &[]).unwrap();
        for second in [1, 3, 7, 15, 31] {
            let (from, syn) = packet(false, 2, [7, 0], Some((second as u32 * 1000, 0)));
            assert!(brief.take(at(second), from, &syn, &[], false, true).is_some());
        }
        let Counts { packets, bytes, from_ns, to_ns } = brief.counts();
        assert_eq!((packets, bytes, from_ns, to_ns), (6, 360, 0, 31_000_000_000));
        assert_eq!((brief.outcome(), brief.held_bytes()), (Some(AttemptOutcome::Unanswered), 0));
        let counted = brief.followed(false, &mut None).counts();
        assert_eq!((counted.packets, counted.to_ns), (packets, to_ns));
    }
}
