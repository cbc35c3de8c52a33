//! A wire whose rate changes: departures computed by hand.

use bdp_link::{DropCause, End, Fate, Link, Service, Steps, Verdict};
use bdp_model::link::{DirectionConfig, LinkConfig, Medium, QueueLimit, Turns};
use bdp_model::units::{ByteCount, Nanos, Rate};

use crate::segment::{ACK, Segment, offloaded};
use crate::{assert_conserved, drain, number, numbered, symmetric, wire};

const FULL: Verdict = Verdict::dropped(DropCause::Queue);

/// 8 Mbit/s, so that a byte takes a microsecond; from 1 ms on half of it, from 2 ms to 5 ms nothing, then ten times as much.
fn steps() -> Service {
    let changes = [(1, 4), (2, 0), (5, 80)].map(|(ms, mbps)| (Nanos::millis(ms), Rate::mbps(mbps)));
    Service::Steps(Steps::new(Rate::mbps(8), changes.to_vec()))
}

fn stepped(direction: DirectionConfig) -> Link {
    Link::new(&symmetric(direction), 0).with_service(End::A, steps())
}

fn due_us(link: &mut Link) -> Vec<(u64, u64)> {
    drain(link).iter().map(|d| (number(&d.packet), d.due.as_ns() / 1_000)).collect()
}

#[test]
fn a_packet_on_the_wire_goes_on_at_the_new_rate() {
    let mut link = stepped(DirectionConfig { delay: Nanos::micros(7), ..wire(8_000_000) });
    for n in 0..4 {
        link.enqueue(End::A, numbered(n, 600), Nanos::ZERO);
    }
    // 0: 600 us. 1: 400 bytes by 1 ms, 200 more by 1.4 ms. 2: 300 bytes by 2 ms, then an outage, 300 bytes by 5.03 ms.
    // 3: 60 us at 80 Mbit/s.
    assert_eq!(due_us(&mut link), [(0, 607), (1, 1_407), (2, 5_037), (3, 5_097)]);
    assert_eq!(link.counters(End::A).queueing_max, Nanos::micros(5_090));
    assert_conserved(&link);
}

#[test]
fn a_packet_that_comes_in_an_outage_waits_for_its_end() {
    let mut link = stepped(wire(8_000_000));
    link.enqueue(End::A, numbered(0, 100), Nanos::millis(3));
    link.enqueue(End::A, numbered(1, 100), Nanos::micros(5_005));
    assert_eq!(due_us(&mut link), [(0, 5_010), (1, 5_020)]);
}

#[test]
fn a_limit_in_bytes_counts_what_remains_at_whatever_rate() {
    let limit = QueueLimit::Bytes(ByteCount::bytes(600));
    let mut link = stepped(DirectionConfig { limit, ..wire(8_000_000) });
    let mut enter =
        |n: u64, bytes: usize, us: u64| link.enqueue(End::A, numbered(n, bytes), Nanos::micros(us));
    assert_eq!(enter(0, 600, 900), Verdict::QUEUED);
    // 100 bytes by 1 ms, 1 each 2 us from then on, and none from 2 ms on.
    assert_eq!([enter(1, 151, 1_100), enter(2, 150, 1_100)], [FULL, Verdict::QUEUED]);
    assert_eq!([enter(3, 451, 1_999), enter(4, 450, 2_000)], [FULL, Verdict::QUEUED]);
    assert_eq!([enter(5, 8, 4_999), enter(6, 8, 5_001)], [FULL, Verdict::QUEUED]);
    // 150 bytes are left at 2 ms, of 600 with those behind: at 80 Mbit/s by 5.06 ms.
    assert_eq!(due_us(&mut link), [(0, 2_000), (2, 5_015), (4, 5_060), (6, 5_060)]);
    assert_conserved(&link);
}

#[test]
fn a_step_to_the_same_rate_changes_nothing() {
    for rate_bps in [3, 999_983, 99_999_989] {
        let rate = Rate::bps(rate_bps);
        let config = symmetric(DirectionConfig { limit: QueueLimit::Packets(3), ..wire(rate_bps) });
        let changes = (1..50).map(|n| (Nanos(n * 8_000_000_007 / rate_bps), rate)).collect();
        let same = Service::Steps(Steps::new(rate, changes));
        let mut links = [Link::new(&config, 0), Link::new(&config, 0).with_service(End::A, same)];
        for n in 0..200 {
            let now = Nanos(n * 7 * 8_000_000_000 / rate_bps);
            let [plain, stepped] =
                links.each_mut().map(|link| link.enqueue(End::A, numbered(n, 9 + n as usize % 5), now));
            assert_eq!(plain, stepped);
        }
        let [plain, stepped] = links.each_mut().map(drain);
        assert_eq!(plain, stepped);
    }
}

#[test]
fn segments_of_a_super_packet_are_served_at_the_rate_of_their_time() {
    let segment = Segment::new(ACK, 100, &[]).with_payload(&[7; 4_000]);
    let packet = offloaded(segment.v4(&[]), &segment, 1_000);
    // 1040 bytes: 10.4 us at 800 Mbit/s, 104 us at 80. The second has 20.8 - 15 = 5.8 us of 10.4 left at the step.
    let changes = vec![(Nanos::micros(15), Rate::mbps(80))];
    let slower = Service::Steps(Steps::new(Rate::mbps(800), changes));
    let mut link = Link::new(&symmetric(wire(800_000_000)), 0).with_service(End::A, slower);
    link.enqueue(End::A, packet, Nanos::ZERO);
    let runs: Vec<_> = drain(&mut link).iter().map(|d| (d.segments, d.due.as_ns())).collect();
    assert_eq!(runs, [(1, 10_400), (1, 73_000), (1, 177_000), (1, 281_000)]);
    assert_eq!(link.queued(End::A), 0);
    assert_conserved(&link);
}

#[test]
fn on_a_shared_medium_each_end_has_its_service() {
    let medium = Medium::HalfDuplex(Turns { guard: Nanos::micros(10), turn: Nanos::ZERO });
    let config = LinkConfig { medium, ..symmetric(wire(8_000_000)) };
    let mut link = Link::new(&config, 0).with_service(End::A, steps());
    for n in 0..2 {
        link.enqueue(End::A, numbered(n, 900), Nanos::ZERO);
        link.enqueue(End::B, numbered(10 + n, 50), Nanos::ZERO);
    }
    // A 900 us, guard, B 50, guard from 960: A has 30 bytes by 1 ms, 500 by 2 ms, 370 more by 5.037 ms; B again.
    assert_eq!(due_us(&mut link), [(0, 900), (10, 960), (1, 5_037), (11, 5_097)]);
}

#[test]
fn what_is_marked_is_told_when_it_comes() {
    let threshold = Some(QueueLimit::Packets(1));
    let mut link = stepped(DirectionConfig { ecn_threshold: threshold, ..wire(8_000_000) });
    let mut packet = Segment::new(ACK, 1, &[]).v4(&[]);
    packet.data[1] = 0b10;
    let marked = [0, 2_500].map(|us| link.enqueue(End::A, packet.clone(), Nanos::micros(us)).fate);
    assert_eq!(marked, [Fate::Queued { marked: false, held_back: false }; 2]);
    let third = link.enqueue(End::A, packet, Nanos::millis(4)).fate;
    assert_eq!(third, Fate::Queued { marked: true, held_back: false });
}
