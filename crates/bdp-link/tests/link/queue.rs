//! Drop-tail: who is admitted, and how long the longest wait is.

use bdp_link::{DropCause, End, Link, Verdict};
use bdp_model::link::{DirectionConfig, QueueLimit};
use bdp_model::units::{ByteCount, Nanos, Rate};

use crate::{assert_conserved, drain, number, numbered, symmetric, wire};

const FULL: Verdict = Verdict::dropped(DropCause::Queue);

/// A link of 8 Mbit/s, so that a byte takes a microsecond.
fn limited(limit: QueueLimit) -> Link {
    let direction = DirectionConfig { limit, delay: Nanos::secs(1), ..wire(8_000_000) };
    Link::new(&symmetric(direction), 0)
}

#[test]
fn packets_count_until_their_serialisation_ends() {
    let mut link = limited(QueueLimit::Packets(3));
    let mut enter = |n: u64, now: Nanos| link.enqueue(End::A, numbered(n, 100), now);
    assert_eq!([0, 1, 2].map(|n| enter(n, Nanos::ZERO)), [Verdict::QUEUED; 3]);
    assert_eq!(enter(3, Nanos::ZERO), FULL);
    assert_eq!(enter(4, Nanos(99_999)), FULL);
    // The first has left the wire, though it propagates for a second yet.
    assert_eq!(enter(5, Nanos(100_000)), Verdict::QUEUED);
    assert_eq!(enter(6, Nanos(100_000)), FULL);
    assert_eq!(enter(7, Nanos(400_000)), Verdict::QUEUED);
    assert_eq!(link.queued(End::A), 5);
    assert_eq!(link.counters(End::A).queue_dropped, 3);
    assert_conserved(&link);
    let out: Vec<_> = drain(&mut link).iter().map(|d| number(&d.packet)).collect();
    assert_eq!(out, [0, 1, 2, 5, 7]);
}

#[test]
fn bytes_count_by_what_remains_on_the_wire() {
    let mut link = limited(QueueLimit::Bytes(ByteCount::bytes(250)));
    let mut enter = |n: u64, bytes: usize, now: u64| link.enqueue(End::A, numbered(n, bytes), Nanos(now));
    assert_eq!(enter(0, 100, 0), Verdict::QUEUED);
    assert_eq!(enter(1, 151, 0), FULL);
    assert_eq!(enter(2, 150, 0), Verdict::QUEUED);
    // 250 bytes at t = 0; one byte leaves each microsecond.
    assert_eq!(enter(3, 20, 19_999), FULL);
    assert_eq!(enter(4, 20, 20_000), Verdict::QUEUED);
    assert_eq!(enter(5, 251, 10_000_000), FULL);
    assert_eq!(enter(6, 250, 10_000_000), Verdict::QUEUED);
    assert_eq!(link.counters(End::A).queueing_max, Nanos(250_000));
    assert_conserved(&link);
}

#[test]
fn bytes_count_by_the_fraction_of_a_nanosecond() {
    // 8 + 17 bytes at 3 bit/s take 200/3 s, 24 bytes 64 s. The wait is down to 64 s after 8/3 s = 2,666,666,666 + 2/3 ns.
    let limit = QueueLimit::Bytes(ByteCount::bytes(24));
    for (now, verdict) in [(2_666_666_666, FULL), (2_666_666_667, Verdict::QUEUED)] {
        let mut link = Link::new(&symmetric(DirectionConfig { limit, ..wire(3) }), 0);
        link.enqueue(End::A, numbered(0, 8), Nanos::ZERO);
        assert_eq!(link.enqueue(End::A, numbered(1, 17), Nanos(now)), verdict, "at {now} ns");
    }
}

#[test]
fn wire_bytes_count_the_overhead() {
    let limit = QueueLimit::Bytes(ByteCount::bytes(138));
    let direction = DirectionConfig { overhead_bytes: 38, limit, ..wire(8_000_000) };
    let mut link = Link::new(&symmetric(direction), 0);
    assert_eq!(link.enqueue(End::A, numbered(0, 101), Nanos::ZERO), FULL);
    assert_eq!(link.enqueue(End::A, numbered(0, 100), Nanos::ZERO), Verdict::QUEUED);
}

#[test]
fn longest_queueing_time_in_bytes_is_limit_over_rate() {
    for rate_bps in [8_000_000, 2_000_003, 99_999_989] {
        for limit_bytes in [3_000, 64_000, 65_537] {
            let limit = QueueLimit::Bytes(ByteCount::bytes(limit_bytes));
            let mut link = Link::new(&symmetric(DirectionConfig { limit, ..wire(rate_bps) }), 0);
            let bound = u128::from(limit_bytes) * 8 * 1_000_000_000 / u128::from(rate_bps);
            // Twice the rate, in packets of 8 to 1500 bytes: the queue is always full, and small packets fill gaps.
            let mut now = Nanos::ZERO;
            let mut dropped = 0;
            for n in 0..20_000u64 {
                let bytes = 8 + (n * 7919 % 1493) as usize;
                dropped += u64::from(link.enqueue(End::A, numbered(n, bytes), now) == FULL);
                now += Nanos(Rate::bps(rate_bps).serialisation(bytes as u64).as_ns() / 2);
                while link.pop(now).is_some() {}
                let longest = u128::from(link.counters(End::A).queueing_max.as_ns());
                assert!(longest <= bound, "{longest} ns in a queue of {bound} ns");
            }
            // Within the time of the smallest packet of the bound: the limit is used to the end.
            let longest = u128::from(link.counters(End::A).queueing_max.as_ns());
            let smallest = u128::from(Rate::bps(rate_bps).serialisation(8).as_ns());
            assert!(longest + smallest > bound, "{longest} ns in a queue of {bound} ns");
            assert!(dropped > 5_000, "{dropped} dropped");
        }
    }
}

#[test]
fn longest_queueing_time_in_packets_is_limit_over_rate() {
    // 50 packets of 1500 bytes at 2 Mbit/s: 300 ms, reached where 50 arrive at once.
    let limit = QueueLimit::Packets(50);
    let mut link = Link::new(&symmetric(DirectionConfig { limit, ..wire(2_000_000) }), 0);
    let admitted = (0..1000)
        .filter(|&n| link.enqueue(End::A, numbered(n, 1500), Nanos::ZERO) == Verdict::QUEUED)
        .count();
    assert_eq!(admitted, 50);
    drain(&mut link);
    assert_eq!(link.counters(End::A).queueing_max, Nanos::millis(300));
}

#[test]
fn a_burst_loses_its_tail() {
    let mut link = limited(QueueLimit::Packets(8));
    for n in 0..20 {
        link.enqueue(End::B, numbered(n, 1500), Nanos::ZERO);
    }
    let out: Vec<_> = drain(&mut link).iter().map(|d| number(&d.packet)).collect();
    assert_eq!(out, (0..8).collect::<Vec<_>>());
    assert_eq!(link.counters(End::B).queue_dropped, 12);
    assert_eq!(link.counters(End::B).bytes_out, 8 * 1500);
}

#[test]
fn a_rate_of_zero_sends_nothing() {
    let mut link = Link::new(&symmetric(wire(0)), 0);
    assert_eq!(link.enqueue(End::A, numbered(0, 8), Nanos::ZERO), FULL);
    assert_eq!(link.next_event(), None);
    assert_conserved(&link);
}

#[test]
fn names_of_causes_are_those_of_records() {
    let names = ["size", "outage", "loss", "policer", "queue", "aqm"];
    assert_eq!(DropCause::ALL.map(DropCause::name), names);
}
