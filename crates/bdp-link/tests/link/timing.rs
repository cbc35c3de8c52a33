//! Departures to the nanosecond.

use bdp_link::{End, Link, Verdict};
use bdp_model::link::{DirectionConfig, LinkConfig, QueueLimit};
use bdp_model::units::{Nanos, Rate};

use crate::{drain, number, numbered, symmetric, wire};

#[test]
fn a_packet_takes_serialisation_and_propagation() {
    // (1500 + 38) x 8 = 12,304 bits at 100 Mbit/s: 123,040 ns.
    let direction = DirectionConfig { overhead_bytes: 38, delay: Nanos::millis(20), ..wire(100_000_000) };
    let mut link = Link::new(&symmetric(direction), 0);
    assert_eq!(link.next_event(), None);
    assert_eq!(link.enqueue(End::A, numbered(0, 1500), Nanos(7)), Verdict::QUEUED);
    let due = Nanos(7 + 123_040 + 20_000_000);
    assert_eq!(link.next_event(), Some(due));
    assert_eq!(link.pop(due - Nanos(1)), None);
    let departure = link.pop(due).expect("due");
    assert_eq!((departure.to, departure.due, departure.packet), (End::B, due, numbered(0, 1500)));
    assert_eq!(link.next_event(), None);
}

#[test]
fn back_to_back_packets_do_not_drift() {
    // 9 bytes, the smallest that holds a number with an odd bit count, at rates that divide nothing.
    for rate_bps in [3, 7, 11_111_111, 99_999_989, 2_147_483_659] {
        let mut link = Link::new(&symmetric(wire(rate_bps)), 0);
        for n in 0..2000 {
            link.enqueue(End::A, numbered(n, 9), Nanos::ZERO);
        }
        for (n, departure) in (1u128..).zip(drain(&mut link)) {
            let exact = n * 72 * 1_000_000_000 / u128::from(rate_bps);
            assert_eq!(u128::from(departure.due.as_ns()), exact, "packet {n} at {rate_bps} bit/s");
        }
    }
}

#[test]
fn an_idle_wire_starts_on_the_arrival() {
    let mut link = Link::new(&symmetric(wire(3)), 0);
    // 80 bits at 3 bit/s: 26,666,666,666 + 2/3 ns, the fraction of which is not carried over idle time.
    link.enqueue(End::A, numbered(0, 10), Nanos::ZERO);
    link.enqueue(End::A, numbered(1, 10), Nanos::secs(60));
    let due: Vec<_> = drain(&mut link).iter().map(|d| d.due).collect();
    assert_eq!(due, [Nanos(26_666_666_666), Nanos(86_666_666_666)]);
}

#[test]
fn without_a_rate_only_propagation_counts_and_no_limit_binds() {
    for limit in [QueueLimit::Packets(0), QueueLimit::Packets(1), QueueLimit::Bytes(Default::default())] {
        let direction =
            DirectionConfig { delay: Nanos::micros(3), limit, rate: None, ..DirectionConfig::default() };
        let mut link = Link::new(&symmetric(direction), 0);
        for n in 0..100 {
            assert_eq!(link.enqueue(End::A, numbered(n, 1500), Nanos(n / 2)), Verdict::QUEUED);
        }
        assert_eq!(link.counters(End::A).queueing_max, Nanos::ZERO);
        for (n, departure) in (0..).zip(drain(&mut link)) {
            assert_eq!((number(&departure.packet), departure.due), (n, Nanos(n / 2 + 3000)));
        }
    }
}

#[test]
fn directions_share_nothing_and_depart_in_due_order() {
    let config = LinkConfig {
        forward: DirectionConfig { delay: Nanos(5_000), ..wire(8_000_000) },
        reverse: DirectionConfig { delay: Nanos(1_000), ..wire(80_000_000) },
        ..LinkConfig::default()
    };
    let mut link = Link::new(&config, 0);
    // Forward: 10 us each, +5 us. Reverse: 1 us each, +1 us.
    for n in 0..3 {
        link.enqueue(End::A, numbered(n, 10), Nanos::ZERO);
        link.enqueue(End::B, numbered(n, 10), Nanos(12_000));
    }
    let seen: Vec<_> =
        drain(&mut link).iter().map(|d| (d.to, number(&d.packet), d.due.as_ns() / 1000)).collect();
    assert_eq!(
        seen,
        [
            (End::A, 0, 14),
            (End::B, 0, 15),
            (End::A, 1, 15),
            (End::A, 2, 16),
            (End::B, 1, 25),
            (End::B, 2, 35)
        ]
        .map(|(to, n, us)| (to, n, us))
    );
}

#[test]
fn of_two_at_the_same_nanosecond_the_one_from_a_is_first() {
    let mut link = Link::new(&LinkConfig::default(), 0);
    link.enqueue(End::B, numbered(1, 8), Nanos(9));
    link.enqueue(End::A, numbered(0, 8), Nanos(9));
    assert_eq!(drain(&mut link).iter().map(|d| d.to).collect::<Vec<_>>(), [End::B, End::A]);
}

#[test]
fn a_late_pop_does_not_move_what_follows() {
    let mut link = Link::new(&symmetric(wire(8_000_000)), 0);
    link.enqueue(End::A, numbered(0, 10), Nanos::ZERO);
    assert_eq!(link.pop(Nanos::secs(1)).map(|d| d.due), Some(Nanos(10_000)));
    link.enqueue(End::A, numbered(1, 10), Nanos::secs(1));
    assert_eq!(link.next_event(), Some(Nanos(1_000_010_000)));
}

#[test]
fn time_that_runs_backwards_neither_panics_nor_reorders() {
    for rate in [None, Some(Rate::bps(8_000_000))] {
        let mut link = Link::new(&symmetric(DirectionConfig { rate, ..wire(1) }), 0);
        for (n, now) in [500_000, 0, 400_000, 1, 600_000].into_iter().enumerate() {
            link.enqueue(End::A, numbered(n as u64, 10), Nanos(now));
        }
        let numbers: Vec<_> = drain(&mut link).iter().map(|d| number(&d.packet)).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
    }
}

#[test]
fn the_end_of_the_clock_is_no_cliff() {
    let direction = DirectionConfig { delay: Nanos(u64::MAX), ..wire(1_000) };
    let mut link = Link::new(&symmetric(direction), 0);
    assert_eq!(link.enqueue(End::A, numbered(0, 10), Nanos::secs(1)), Verdict::QUEUED);
    assert_eq!(link.next_event(), Some(Nanos(u64::MAX)));
    assert_ne!(link.enqueue(End::A, numbered(1, 10), Nanos(u64::MAX)), Verdict::QUEUED);
    assert_eq!(drain(&mut link).len(), 1);
}
