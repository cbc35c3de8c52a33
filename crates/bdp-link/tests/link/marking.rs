//! The ECN threshold: who is marked, and that nothing else of the packet changes but its checksum.

use bdp_link::{End, Fate, Link, Packet};
use bdp_model::link::{DirectionConfig, LinkConfig, Medium, QueueLimit, Turns};
use bdp_model::units::{ByteCount, Nanos};

use crate::segment::{ACK, Segment, ip_checksum_is_right};
use crate::{assert_conserved, drain, symmetric, wire};

const NOT_ECT: u8 = 0;
const ECT_1: u8 = 1;
const ECT_0: u8 = 2;
const CE: u8 = 3;

/// In every envelope, with this ECN field and DSCP 46.
fn packets(ecn: u8) -> Vec<Packet> {
    let mut all = Segment::new(ACK, 1, &[]).with_payload(&[7; 60]).enveloped();
    for packet in &mut all {
        set_traffic_class(packet, 46 << 2 | ecn);
    }
    all
}

fn set_traffic_class(packet: &mut Packet, class: u8) {
    if packet.data[0] >> 4 == 6 {
        packet.data[0] = 0x60 | class >> 4;
        packet.data[1] = class << 4 | packet.data[1] & 0x0f;
        return;
    }
    packet.data[1] = class;
    packet.data[10..12].fill(0);
    let header_len = usize::from(packet.data[0] & 0xf) * 4;
    let checksum = !crate::segment::sum(&packet.data[..header_len]);
    packet.data[10..12].copy_from_slice(&checksum.to_be_bytes());
}

fn marked(link: &mut Link, packet: Packet, now: Nanos) -> bool {
    let Fate::Queued { marked, .. } = link.enqueue(End::A, packet, now).fate else { panic!("queued") };
    marked
}

/// 8 Mbit/s: a byte takes a microsecond.
fn link(threshold: QueueLimit) -> Link {
    Link::new(&symmetric(DirectionConfig { ecn_threshold: Some(threshold), ..wire(8_000_000) }), 0)
}

#[test]
fn a_packet_that_finds_the_threshold_is_marked() {
    let packet = packets(ECT_0).remove(0);
    let bytes = packet.data.len() as u64;
    let mut link = link(QueueLimit::Packets(3));
    let at_once: Vec<bool> = (0..5).map(|_| marked(&mut link, packet.clone(), Nanos::ZERO)).collect();
    assert_eq!(at_once, [false, false, false, true, true]);
    // Five wait; at the end of the second's serialisation three are left, at the end of the third's two.
    assert!(marked(&mut link, packet.clone(), Nanos::micros(2 * bytes)));
    assert!(marked(&mut link, packet.clone(), Nanos::micros(4 * bytes) - Nanos(1)));
    assert!(marked(&mut link, packet.clone(), Nanos::micros(4 * bytes)));
    assert!(!marked(&mut link, packet.clone(), Nanos::micros(6 * bytes)));
    assert_eq!(link.counters(End::A).marked, 5);
    assert_conserved(&link);
}

#[test]
fn bytes_count_by_what_remains_on_the_wire() {
    let packet = packets(ECT_1).remove(0);
    let bytes = packet.data.len() as u64;
    for (now, expected) in [(0, true), (1_000, true), (1_001, false)] {
        let mut link = link(QueueLimit::Bytes(ByteCount::bytes(2 * bytes - 1)));
        assert!(!marked(&mut link, packet.clone(), Nanos::ZERO));
        assert!(!marked(&mut link, packet.clone(), Nanos::ZERO));
        assert_eq!(marked(&mut link, packet.clone(), Nanos(now)), expected, "at {now} ns");
    }
}

#[test]
fn only_capable_packets_are_marked_and_only_their_field_changes() {
    for (ecn, capable) in [(NOT_ECT, false), (ECT_1, true), (ECT_0, true), (CE, false)] {
        for packet in packets(ecn) {
            let mut link = link(QueueLimit::Packets(1));
            assert!(!marked(&mut link, packet.clone(), Nanos::ZERO));
            assert_eq!(marked(&mut link, packet.clone(), Nanos::ZERO), capable, "ECN field {ecn}");
            assert_eq!(link.counters(End::A).marked, u64::from(capable));
            let out = drain(&mut link);
            assert_eq!(out[0].packet, packet);
            let mut expected = packet;
            if capable {
                set_traffic_class(&mut expected, 46 << 2 | CE);
            }
            assert_eq!(out[1].packet, expected);
            assert!(expected.data[0] >> 4 == 6 || ip_checksum_is_right(&out[1].packet));
        }
    }
}

#[test]
fn without_a_rate_nothing_waits_and_nothing_is_marked() {
    let threshold = Some(QueueLimit::Packets(0));
    let direction = DirectionConfig { ecn_threshold: threshold, ..DirectionConfig::default() };
    let mut link = Link::new(&symmetric(direction), 0);
    assert!((0..10).all(|_| !marked(&mut link, packets(ECT_0).remove(0), Nanos::ZERO)));
}

#[test]
fn on_a_shared_medium_what_waits_for_its_turn_counts() {
    let direction = DirectionConfig { ecn_threshold: Some(QueueLimit::Packets(2)), ..wire(8_000_000) };
    let turns = Turns { guard: Nanos::millis(1), turn: Nanos::ZERO };
    let config = LinkConfig { medium: Medium::HalfDuplex(turns), ..symmetric(direction) };
    let mut link = Link::new(&config, 0);
    let packet = packets(ECT_0).remove(0);
    link.enqueue(End::B, packet.clone(), Nanos::ZERO);
    let at_once: Vec<bool> = (0..4).map(|_| marked(&mut link, packet.clone(), Nanos::ZERO)).collect();
    assert_eq!(at_once, [false, false, true, true]);
    drain(&mut link);
    assert_eq!(link.counters(End::A).marked, 2);
}
