use std::net::Ipv4Addr;

use bdp_model::capture::pair::{
    CapturePair, Change, Changed, ChangedValue, OrderBy, PairedConnection, Recognised,
};
use proptest::prelude::*;

use super::*;
use crate::flows::{Analysis, Found, Frame};

const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;
const ECE: u8 = 64;
const CWR: u8 = 128;
/// One-way delay between the places.
const DELAY_US: u64 = 10_000;
const BEGAN_NS: u64 = 1_767_225_600_000_000_000;

/// A packet as it passes a place.
#[derive(Debug, Clone)]
struct Sends {
    from_b: bool,
    ends: [([u8; 4], u16); 2],
    flags: u8,
    seq: u32,
    ack: u32,
    window: u16,
    payload: usize,
    identification: u16,
    class: u8,
    hop_limit: u8,
    mss: Option<u16>,
    scale: Option<u8>,
    sack: bool,
    stamps: Option<(u32, u32)>,
}

impl Sends {
    fn bytes(&self) -> Vec<u8> {
        let mut options = Vec::new();
        if let Some(mss) = self.mss {
            options.extend([2, 4]);
            options.extend(mss.to_be_bytes());
        }
        options.extend(self.scale.into_iter().flat_map(|scale| [3, 3, scale]));
        if self.sack {
            options.extend([4, 2]);
        }
        if let Some((own, echo)) = self.stamps {
            options.extend([8, 10]);
            options.extend(own.to_be_bytes());
            options.extend(echo.to_be_bytes());
        }
        options.resize(options.len().next_multiple_of(4), 1);
        let header = 20 + options.len();
        let (from, to) =
            if self.from_b { (self.ends[1], self.ends[0]) } else { (self.ends[0], self.ends[1]) };
        let mut out = vec![0x45, self.class];
        out.extend(((20 + header + self.payload) as u16).to_be_bytes());
        out.extend(self.identification.to_be_bytes());
        out.extend([0x40, 0, self.hop_limit, 6, 0, 0]);
        out.extend(Ipv4Addr::from(from.0).octets());
        out.extend(Ipv4Addr::from(to.0).octets());
        out.extend(from.1.to_be_bytes());
        out.extend(to.1.to_be_bytes());
        out.extend(self.seq.to_be_bytes());
        out.extend(self.ack.to_be_bytes());
        out.extend([(header as u8 / 4) << 4, self.flags]);
        out.extend(self.window.to_be_bytes());
        out.extend([0; 4]);
        out.extend(options);
        out.resize(out.len() + self.payload, 0);
        out
    }
}

/// Two places of a path and their packets, each with its own clock.
struct Lab {
    places: [Vec<(u64, Vec<u8>)>; 2],
    /// Modification of each packet between the two places.
    between: fn(&mut Sends),
    identification: [u16; 2],
    /// Offset of the second clock, and its drift in parts per million.
    ahead_us: u64,
    ppm: u64,
    base: [u32; 2],
    scale: Option<u8>,
}

impl Lab {
    fn new() -> Self {
        Self {
            places: [Vec::new(), Vec::new()],
            between: |_| {},
            identification: [100, 7_000],
            ahead_us: 0,
            ppm: 0,
            base: [u32::MAX - 3_000, 5_000],
            scale: Some(7),
        }
    }

    /// Returns a segment of an end, with bytes counted from the first.
    fn segment(&mut self, at_us: u64, from_b: bool, from: u32, ack: u32, payload: usize) -> Sends {
        let own = usize::from(from_b);
        self.identification[own] += 1;
        let stamp = (at_us / 1000) as u32 + 1_000 * (own as u32 + 1);
        Sends {
            from_b,
            ends: [([10, 0, 0, 1], 4_000), ([192, 0, 2, 9], 443)],
            flags: ACK,
            seq: self.base[own].wrapping_add(1).wrapping_add(from),
            ack: self.base[1 - own].wrapping_add(1).wrapping_add(ack),
            window: 500,
            payload,
            identification: self.identification[own],
            class: 0,
            hop_limit: 64,
            mss: None,
            scale: None,
            sack: false,
            stamps: Some((stamp, 1)),
        }
    }

    fn syn(&mut self, at_us: u64, from_b: bool) -> Sends {
        let scale = self.scale;
        let one = self.segment(at_us, from_b, 0, 0, 0);
        Sends {
            flags: if from_b { SYN | ACK } else { SYN },
            seq: one.seq.wrapping_sub(1),
            ack: if from_b { one.ack } else { 0 },
            mss: Some(1460),
            scale,
            sack: true,
            ..one
        }
    }

    /// Passes a packet by its sender's place at a time, and by the other one later, if at all.
    fn pass(&mut self, at_us: u64, sends: Sends, after_us: Option<u64>) {
        let near = usize::from(sends.from_b);
        let clock = |place: usize, us: u64| {
            let faster = if place == 1 { us * self.ppm / 1_000 + self.ahead_us * 1_000 } else { 0 };
            us * 1_000 + faster
        };
        let mut arrives = sends.clone();
        (self.between)(&mut arrives);
        let (here, there) = (sends.bytes(), arrives.bytes());
        self.places[near].push((clock(near, at_us), here));
        if let Some(after_us) = after_us {
            self.places[1 - near].push((clock(1 - near, at_us + after_us), there));
        }
    }

    fn handshake(&mut self) {
        let syn = self.syn(0, false);
        self.pass(0, syn, Some(DELAY_US));
        let answer = self.syn(10_100, true);
        self.pass(10_100, answer, Some(DELAY_US));
        let third = self.segment(20_200, false, 0, 0, 0);
        self.pass(20_200, third, Some(DELAY_US));
    }

    /// Sends full segments a millisecond apart, some of them lost. Each is answered, and lost data is not acknowledged.
    fn transfer(&mut self, count: u32, is_lost: impl Fn(u32) -> bool) {
        for i in 0..count {
            let at = 30_000 + u64::from(i) * 1_000;
            let data = self.segment(at, false, i * 1448, 0, 1448);
            self.pass(at, data, (!is_lost(i)).then_some(DELAY_US));
            let acked = (0..=i).find(|&i| is_lost(i)).unwrap_or(i + 1) * 1448;
            let back = self.segment(at + DELAY_US + 10, true, 0, acked, 0);
            self.pass(at + DELAY_US + 10, back, Some(DELAY_US));
        }
    }

    fn read(&self, place: usize) -> (bdp_model::capture::CaptureSummary, Vec<Found>) {
        let mut packets = self.places[place].clone();
        packets.sort_by_key(|packet| packet.0);
        let mut analysis = Analysis::default().logged(100_000);
        for (at, data) in &packets {
            let (at_ns, length) = (Some(BEGAN_NS + at), data.len() as u32);
            analysis.frame(&Frame { at_ns, link_type: 101, length, data: &data[..data.len().min(100)] });
        }
        analysis.finish()
    }

    fn compared(&self, first: usize) -> Option<CapturePair> {
        let read = [self.read(first), self.read(1 - first)];
        let place = |i: usize| {
            let (summary, found) = &read[i];
            let flows = found.iter().map(|one| LoggedFlow { flow: &one.flow, log: one.log.as_deref() });
            Place { summary, flows: flows.collect() }
        };
        compare([&place(0), &place(1)])
    }

    fn only(&self) -> (CapturePair, PairedConnection) {
        let pair = self.compared(0).unwrap();
        assert_eq!(pair.connections.len(), 1);
        (pair.clone(), pair.connections[0].clone())
    }
}

fn change(connection: &PairedConnection, what: Changed, direction: usize) -> Option<&Change> {
    connection.changes.iter().find(|change| change.what == what && change.direction == direction)
}

fn number(value: u64) -> Option<ChangedValue> {
    Some(ChangedValue::Number(value))
}

#[test]
fn losses_are_counted_and_retransmissions_are_told_by_what_was_lost() {
    let mut lab = Lab::new();
    lab.handshake();
    lab.transfer(40, |i| i == 5 || i == 6);
    // Two lost ones, one of them retransmitted, and one not lost.
    for (at, i, is_lost) in [(80_000, 5, false), (80_100, 6, true), (80_200, 7, false), (140_000, 6, false)] {
        let again = lab.segment(at, false, i * 1448, 0, 1448);
        lab.pass(at, again, (!is_lost).then_some(DELAY_US));
    }
    let lost_ack = lab.segment(150_000, true, 0, 40 * 1448, 0);
    lab.pass(150_000, lost_ack, None);
    let last = lab.segment(200_000, true, 0, 40 * 1448, 0);
    lab.pass(200_000, last, Some(DELAY_US));
    let (pair, connection) = lab.only();
    let [there, back] = &connection.directions;
    assert_eq!((there.segments, there.lost_segments, there.lost_bytes), (44, 3, 3 * 1448));
    assert_eq!((there.acks, there.lost_acks, back.acks, back.lost_acks), (2, 0, 43, 1));
    assert_eq!((there.retransmitted_after_loss, there.retransmitted_otherwise), (3, 1));
    assert_eq!((there.outside, there.only_second, there.duplicated, there.reordered), (0, 0, 0, 0));
    assert_eq!(
        there.losses.iter().map(|point| point.at_ns).collect::<Vec<_>>(),
        [35_000_000, 36_000_000, 80_100_000]
    );
    assert_eq!((connection.recognised, connection.nearer_a), (Recognised::Ends, 0));
    assert_eq!((connection.order_by, connection.rtt_between_ns), (OrderBy::Times, Some(20_000_000)));
    assert_eq!(connection.changes, Vec::new());
    assert_eq!(pair.unpaired, [0, 0]);
}

#[test]
fn the_order_of_the_files_does_not_matter() {
    let mut lab = Lab::new();
    lab.ahead_us = 3_000_000;
    lab.handshake();
    lab.transfer(40, |i| i % 9 == 3);
    let [one, other] = [lab.compared(0).unwrap(), lab.compared(1).unwrap()];
    assert_eq!((one.connections[0].nearer_a, other.connections[0].nearer_a), (0, 1));
    assert_eq!(one.connections[0].directions, other.connections[0].directions);
    let (one, other) = (one.clock.unwrap().offset_ns, other.clock.unwrap().offset_ns);
    assert_eq!(one, [2_990_000_000, 3_010_000_000]);
    assert_eq!(other, [-3_010_000_000, -2_990_000_000]);
}

#[test]
fn addresses_may_be_translated() {
    let mut lab = Lab::new();
    lab.between = |sends| {
        sends.ends[0] = ([198, 51, 100, 3], 61_000);
        sends.hop_limit -= 2;
    };
    // Packets of b pass its own place with the outer address.
    lab.handshake();
    lab.transfer(20, |i| i == 4);
    for (_, bytes) in &mut lab.places[1] {
        if bytes[12..16] == [192, 0, 2, 9] {
            bytes[16..20].copy_from_slice(&[198, 51, 100, 3]);
            bytes[22..24].copy_from_slice(&61_000_u16.to_be_bytes());
        }
    }
    for (_, bytes) in &mut lab.places[0] {
        if bytes[12..16] == [192, 0, 2, 9] {
            bytes[16..20].copy_from_slice(&[10, 0, 0, 1]);
            bytes[22..24].copy_from_slice(&4_000_u16.to_be_bytes());
        }
    }
    let (_, connection) = lab.only();
    assert_eq!(connection.recognised, Recognised::SequenceNumbers);
    assert_eq!(connection.directions[0].lost_segments, 1);
    let source = change(&connection, Changed::Source, 0).unwrap();
    let end = |text: &str| Some(ChangedValue::End(text.parse().unwrap()));
    assert_eq!((source.sent, source.arrived), (end("10.0.0.1:4000"), end("198.51.100.3:61000")));
    let back = change(&connection, Changed::Destination, 1).unwrap();
    assert_eq!((back.sent, back.arrived), (end("198.51.100.3:61000"), end("10.0.0.1:4000")));
    let hops = change(&connection, Changed::HopLimit, 0).unwrap();
    assert_eq!((hops.sent, hops.arrived, hops.packets), (number(64), number(62), 21));
}

/// Shifts sequence numbers of a, and b's acknowledgements, by an offset.
fn shifted(sends: &mut Sends) {
    if sends.from_b {
        sends.ack = sends.ack.wrapping_sub(123_456_789);
    } else {
        sends.seq = sends.seq.wrapping_add(123_456_789);
    }
}

#[test]
fn sequence_numbers_may_be_shifted() {
    for is_translated in [false, true] {
        let mut lab = Lab::new();
        lab.between = shifted;
        lab.handshake();
        lab.transfer(30, |i| i == 4 || i == 20);
        // As sent by b, with the numbers of its side.
        let own = |bytes: &[u8]| bytes[12..16] == [192, 0, 2, 9];
        for place in 0..2 {
            for (_, bytes) in lab.places[place].iter_mut().filter(|(_, bytes)| own(bytes)) {
                let ack = u32::from_be_bytes([bytes[28], bytes[29], bytes[30], bytes[31]]);
                let ack = ack.wrapping_add(123_456_789);
                bytes[28..32].copy_from_slice(&ack.to_be_bytes());
            }
            if is_translated && place == 1 {
                for (_, bytes) in &mut lab.places[1] {
                    let at = if own(bytes) { 16 } else { 12 };
                    bytes[at..at + 4].copy_from_slice(&[198, 51, 100, 3]);
                }
            }
        }
        let (_, connection) = lab.only();
        let expected = if is_translated { Recognised::Timestamps } else { Recognised::Ends };
        assert_eq!((connection.recognised, connection.terminated), (expected, false));
        let [there, back] = &connection.directions;
        assert_eq!((there.segments, there.lost_segments, back.acks, back.lost_acks), (30, 2, 31, 0));
        let numbers = change(&connection, Changed::SequenceNumbers, 0).unwrap();
        let base = u32::MAX - 3_000;
        assert_eq!(numbers.sent, number(u64::from(base)));
        assert_eq!(numbers.arrived, number(u64::from(base.wrapping_add(123_456_789))));
        assert_eq!(change(&connection, Changed::SequenceNumbers, 1), None);
    }
}

#[test]
fn super_packets_are_matched_by_their_bytes() {
    // Split by the network card after the first place, or merged by the card before the second.
    for joined_at in [0, 1] {
        let mut lab = Lab::new();
        lab.handshake();
        let mut own = 0;
        for i in 0..20_u32 {
            let at = 30_000 + u64::from(i) * 2_000;
            let whole = lab.segment(at, false, i * 14_480, 0, 14_480);
            let near = if joined_at == 0 { vec![whole.clone()] } else { Vec::new() };
            own += near.len();
            near.into_iter().for_each(|sends| lab.places[0].push((at * 1_000, sends.bytes())));
            for j in 0..10 {
                let part = lab.segment(at, false, i * 14_480 + j * 1_448, 0, 1_448);
                let is_lost = joined_at == 0 && (i, j) == (7, 4);
                if joined_at == 1 {
                    lab.places[0].push((at * 1_000, part.bytes()));
                } else if !is_lost {
                    lab.places[1].push(((at + DELAY_US) * 1_000, part.bytes()));
                }
            }
            if joined_at == 1 && i != 7 {
                lab.places[1].push(((at + DELAY_US) * 1_000, whole.bytes()));
            }
            let back = lab.segment(at + DELAY_US, true, 0, i.min(6) * 14_480, 0);
            lab.pass(at + DELAY_US, back, Some(DELAY_US));
        }
        assert_eq!(own, if joined_at == 0 { 20 } else { 0 });
        let (_, connection) = lab.only();
        assert!(connection.super_packets);
        let there = &connection.directions[0];
        let lost = if joined_at == 0 { 1 } else { 10 };
        assert_eq!(
            (there.segments, there.lost_segments, there.lost_bytes),
            (200, lost, lost * 1448),
            "{joined_at}"
        );
        assert_eq!((there.duplicated, there.reordered, there.only_second), (0, 0, 0));
        assert_eq!(change(&connection, Changed::Segments, 0), None);
    }
}

#[test]
fn an_offset_cancels_and_a_drift_is_removed() {
    let mut lab = Lab::new();
    (lab.ahead_us, lab.ppm) = (7_000_000, 80);
    lab.handshake();
    for i in 0..2_000_u32 {
        let at = 30_000 + u64::from(i) * 5_000;
        // A queue that grows gradually and stays.
        let queue = (u64::from(i) * 20).min(20_000) + u64::from(i % 7) * 100;
        let data = lab.segment(at, false, i * 1448, 0, 1448);
        lab.pass(at, data, Some(DELAY_US + queue));
        let back = lab.segment(at + DELAY_US + queue, true, 0, (i + 1) * 1448, 0);
        lab.pass(at + DELAY_US + queue, back, Some(DELAY_US + u64::from(i % 5)));
    }
    let (pair, connection) = lab.only();
    let clock = pair.clock.unwrap();
    let ppm = clock.drift_ppm.unwrap();
    assert!((ppm - 80.0).abs() < 1.0, "{ppm}");
    let [low, high] = clock.offset_ns;
    assert!(low <= 7_000_000_000 && 7_000_000_000 <= high && high - low <= 20_100_000, "{low} {high}");
    let rtt = connection.rtt_between_ns.unwrap();
    assert!(rtt.abs_diff(20_000_000) < 50_000, "{rtt}");
    let [there, back] = connection.directions.map(|way| way.queueing.unwrap());
    assert!(there.max_ns.abs_diff(20_600_000) < 100_000, "{there:?}");
    assert!(there.p50_ns.abs_diff(20_000_000) < 700_000, "{there:?}");
    assert!(back.max_ns < 60_000, "{back:?}");
}

#[test]
fn a_syn_that_is_lost_counts_and_one_with_fewer_options_is_no_change() {
    let mut lab = Lab::new();
    let first = Sends { flags: SYN | ECE | CWR, ..lab.syn(0, false) };
    lab.pass(0, first, None);
    let second = lab.syn(1_000_000, false);
    lab.pass(1_000_000, second, Some(DELAY_US));
    let answer = lab.syn(1_010_100, true);
    lab.pass(1_010_100, answer, Some(DELAY_US));
    for i in 0..20 {
        let at = 1_030_000 + u64::from(i) * 1_000;
        let data = lab.segment(at, false, i * 1448, 0, 1448);
        lab.pass(at, data, Some(DELAY_US));
    }
    let (_, connection) = lab.only();
    let there = &connection.directions[0];
    assert_eq!((there.acks, there.lost_acks, there.outside), (2, 1, 0));
    assert_eq!(connection.changes, Vec::new());
}

#[test]
fn captures_without_a_common_connection_are_no_pair() {
    let mut lab = Lab::new();
    lab.handshake();
    lab.transfer(20, |_| false);
    let mut other = Lab::new();
    other.base = [77, 99];
    other.handshake();
    other.transfer(20, |_| false);
    for (_, bytes) in &mut other.places[1] {
        let at = if bytes[12..16] == [192, 0, 2, 9] { 16 } else { 12 };
        bytes[at + 3] = 77;
    }
    lab.places[1] = other.places[1].clone();
    // The timestamps of the SYNs are equal by chance; the later ones differ.
    for (_, bytes) in &mut lab.places[1] {
        if bytes[33] & SYN != 0 {
            let last = bytes.len();
            bytes[last - 8] ^= 1;
        }
    }
    assert_eq!(lab.compared(0), None);
    lab.places[1].clear();
    assert_eq!(lab.compared(0), None);
}

#[test]
fn what_a_middlebox_changes_is_named_with_both_values() {
    let mut lab = Lab::new();
    lab.between = |sends| {
        sends.scale = None;
        sends.sack = false;
        sends.mss = sends.mss.map(|_| 1_300);
        sends.class = if sends.from_b { 0 } else { sends.class | 1 };
        sends.window = sends.window.min(400);
        sends.hop_limit -= 3;
        if !sends.from_b {
            sends.stamps = None;
        }
    };
    lab.handshake();
    for i in 0..30_u32 {
        let at = 30_000 + u64::from(i) * 1_000;
        let data = Sends { class: 0x2a, ..lab.segment(at, false, i * 1_200, 0, 1_200) };
        lab.pass(at, data, (i != 9).then_some(DELAY_US));
        let back = Sends { class: 0x28, ..lab.segment(at + DELAY_US, true, 0, (i + 1).min(9) * 1_200, 0) };
        lab.pass(at + DELAY_US, back, Some(DELAY_US));
    }
    let (_, connection) = lab.only();
    let expected = |what, direction, sent, arrived| {
        let found = change(&connection, what, direction).unwrap_or_else(|| panic!("{what:?} {direction}"));
        assert_eq!((found.sent, found.arrived), (sent, arrived), "{what:?}");
        (found.packets, found.of)
    };
    for direction in 0..2 {
        assert_eq!(expected(Changed::WindowScale, direction, number(7), None), (1, 1));
        assert_eq!(expected(Changed::SackPermitted, direction, number(1), None), (1, 1));
        assert_eq!(expected(Changed::Mss, direction, number(1_460), number(1_300)), (1, 1));
        assert_eq!(expected(Changed::HopLimit, direction, number(64), number(61)), (31, 31));
        assert_eq!(expected(Changed::Window, direction, number(500), number(400)), (31, 31));
    }
    assert_eq!(expected(Changed::TimestampsOffered, 0, number(1), None), (1, 1));
    let stamps = change(&connection, Changed::Timestamps, 0).unwrap();
    assert_eq!((stamps.arrived, stamps.packets), (None, 31));
    // ECT(0) became CE on 29 packets; those without became ECT(1).
    assert_eq!(expected(Changed::Ecn, 0, number(0), number(1)), (2, 31));
    let ce = connection.changes.iter().find(|c| c.what == Changed::Ecn && c.arrived == number(3)).unwrap();
    assert_eq!((ce.sent, ce.packets), (number(2), 29));
    assert_eq!(expected(Changed::Dscp, 1, number(10), number(0)), (30, 31));
    assert_eq!(connection.directions[0].lost_segments, 1);
}

#[test]
fn a_proxy_that_answers_itself_is_told() {
    let mut lab = Lab::new();
    lab.handshake();
    lab.transfer(60, |_| false);
    // Beyond it, everything is from another sender: numbers, timestamps, identification, and acknowledgements of every fourth segment.
    let mut kept = 0;
    lab.places[1].retain_mut(|(_, bytes)| {
        let is_back = bytes[12..16] == [192, 0, 2, 9];
        let is_ack = bytes.len() == 52 + 12 - 12 && bytes[33] & SYN == 0;
        if !is_back {
            let seq = u32::from_be_bytes([bytes[24], bytes[25], bytes[26], bytes[27]]).wrapping_add(99);
            bytes[24..28].copy_from_slice(&seq.to_be_bytes());
        } else {
            let ack = u32::from_be_bytes([bytes[28], bytes[29], bytes[30], bytes[31]]).wrapping_add(99);
            bytes[28..32].copy_from_slice(&ack.to_be_bytes());
        }
        bytes[4] ^= 0x55;
        let header = 20 + usize::from(bytes[32] >> 4) * 4;
        bytes[header - 7] ^= 0x33;
        bytes[header - 9] ^= 0x33;
        kept += u32::from(is_back && is_ack);
        !(is_back && is_ack) || kept % 4 == 0
    });
    let (_, connection) = lab.only();
    assert!(connection.terminated);
    assert_eq!((connection.rtt_between_ns, connection.directions[0].lost_segments), (None, 0));
}

#[test]
fn what_the_capture_alone_lacks_is_no_loss() {
    let mut lab = Lab::new();
    lab.handshake();
    lab.transfer(30, |i| i == 11);
    // It is acknowledged and was never retransmitted.
    let last = lab.segment(100_000, true, 0, 30 * 1448, 0);
    lab.pass(100_000, last, Some(DELAY_US));
    let (_, connection) = lab.only();
    let there = &connection.directions[0];
    assert_eq!((there.lost_segments, there.missed_by_capture, there.segments), (0, 1, 30));
}

#[test]
fn packets_before_and_after_the_other_capture_are_left_out() {
    let mut lab = Lab::new();
    lab.transfer(100, |_| false);
    // The capture began later and ended earlier.
    lab.places[1].retain(|(at, _)| (60_000_000..110_000_000).contains(at));
    let (_, connection) = lab.only();
    let [there, back] = &connection.directions;
    assert_eq!((there.lost_segments, back.lost_acks), (0, 0));
    assert_eq!((there.segments, there.outside), (50, 50));
}

proptest! {
    #[test]
    fn each_packet_has_one_fate(fates in prop::collection::vec((0_u8..8, 0_u64..6), 10..200), is_back in any::<bool>()) {
        let mut lab = Lab::new();
        lab.handshake();
        let (mut lost, mut doubled, mut sent, mut last) = (0, 0, 0, 0);
        for (i, &(fate, late)) in fates.iter().enumerate() {
            let at = 30_000 + i as u64 * 1_000;
            let data = lab.segment(at, is_back, i as u32 / 3 * 1_448, 0, 1_448);
            let after = DELAY_US + late * 700;
            sent += 1;
            match fate {
                0 => {
                    lost += 1;
                    lab.pass(at, data, None);
                }
                1 => {
                    doubled += 1;
                    lab.pass(at, data.clone(), Some(after));
                    let far = usize::from(!is_back);
                    lab.places[far].push(((at + after + 50) * 1_000, data.bytes()));
                    last = last.max(at);
                }
                _ => {
                    lab.pass(at, data, Some(after));
                    last = last.max(at);
                }
            }
        }
        // A final packet, so that both captures ran until then.
        let end = lab.segment(2_000_000, is_back, 900_000, 0, 0);
        lab.pass(2_000_000, Sends { flags: ACK | FIN, ..end }, Some(DELAY_US));
        let (_, connection) = lab.only();
        let way = &connection.directions[usize::from(is_back)];
        prop_assert_eq!((way.segments, way.lost_segments, way.duplicated), (sent, lost, doubled));
        prop_assert_eq!((way.outside, way.only_second, way.missed_by_capture), (0, 0, 0));
    }

    /// For any packets, comparing a capture with itself shows no loss, and comparing it with another does not panic.
    #[test]
    fn a_capture_beside_itself_loses_nothing(
        packets in prop::collection::vec((0_u64..3_000_000, any::<bool>(), 0_u32..4_000, 0_u32..4_000, 0_usize..3_000, 0_u8..32, 0_u16..4, any::<u8>()), 1..80),
        other in 0_usize..80,
    ) {
        let mut lab = Lab::new();
        for (at, from_b, from, ack, payload, flags, identification, odd) in packets {
            let payload = if odd & 1 == 0 { 0 } else { payload };
            let mut sends = lab.segment(at, from_b, from, ack, payload);
            (sends.flags, sends.identification) = (flags, identification);
            if odd & 2 == 0 {
                sends.stamps = None;
            }
            if odd & 4 == 0 {
                sends.seq = sends.seq.wrapping_mul(u32::from(odd));
            }
            let bytes = sends.bytes();
            lab.places[0].push((at * 1_000, bytes));
        }
        lab.places[1] = lab.places[0].clone();
        if let Some(pair) = lab.compared(0) {
            for way in pair.connections.iter().flat_map(|connection| &connection.directions) {
                prop_assert_eq!((way.lost(), way.only_second, way.duplicated), (0, 0, 0));
            }
        }
        lab.places[1].truncate(other);
        lab.places[1].reverse();
        let _ = (lab.compared(0), lab.compared(1));
    }
}
