//! The rate achieved while the wire was never idle.

use bdp_link::{End, Link};
use bdp_model::link::DirectionConfig;
use bdp_model::units::Nanos;

use crate::{numbered, symmetric, wire};

const RATE_BPS: u64 = 10_000_000;

/// 1250 bytes with overhead, 1 ms each at 10 Mbit/s.
fn enqueue(link: &mut Link, packets: u64, now: Nanos) {
    for n in 0..packets {
        link.enqueue(End::A, numbered(n, 1_212), now);
    }
}

fn link() -> Link {
    let direction = DirectionConfig { overhead_bytes: 38, delay: Nanos::millis(30), ..wire(RATE_BPS) };
    Link::new(&symmetric(direction), 0)
}

/// Pops each packet `late` after it is due.
fn drain_late(link: &mut Link, late: impl Fn(u64) -> Nanos) {
    let mut n = 0;
    while let Some(due) = link.next_event() {
        link.pop(due + late(n)).expect("due");
        n += 1;
    }
}

fn assert_rate(link: &Link, expected_bps: f64) {
    let rate = link.busy_rate_bps(End::A).expect("a stretch of at least 100 ms");
    assert!((rate / expected_bps - 1.0).abs() < 1e-9, "{rate} bit/s, expected {expected_bps}");
}

#[test]
fn punctual_release_achieves_the_rate() {
    let mut link = link();
    enqueue(&mut link, 500, Nanos::ZERO);
    drain_late(&mut link, |_| Nanos::ZERO);
    assert_rate(&link, RATE_BPS as f64);
    assert_eq!(link.busy_rate_bps(End::B), None);
}

#[test]
fn constant_lateness_changes_nothing_and_growing_lateness_shows() {
    let mut constant = link();
    enqueue(&mut constant, 500, Nanos::ZERO);
    drain_late(&mut constant, |_| Nanos::millis(3));
    assert_rate(&constant, RATE_BPS as f64);

    let mut growing = link();
    enqueue(&mut growing, 500, Nanos::ZERO);
    drain_late(&mut growing, |n| Nanos::micros(n * 250));
    assert_rate(&growing, RATE_BPS as f64 / 1.25);
}

#[test]
fn a_stretch_below_100_ms_tells_nothing() {
    let mut link = link();
    // 100 packets span 99 ms from first release to last, 101 span 100 ms.
    enqueue(&mut link, 100, Nanos::ZERO);
    drain_late(&mut link, |_| Nanos::ZERO);
    assert_eq!(link.busy_rate_bps(End::A), None);
    enqueue(&mut link, 101, Nanos::secs(1));
    drain_late(&mut link, |_| Nanos::ZERO);
    assert_rate(&link, RATE_BPS as f64);
}

#[test]
fn idle_time_ends_a_stretch_and_the_longest_counts() {
    let mut link = link();
    enqueue(&mut link, 201, Nanos::ZERO);
    drain_late(&mut link, Nanos::millis);
    enqueue(&mut link, 601, Nanos::secs(10));
    drain_late(&mut link, |_| Nanos::ZERO);
    enqueue(&mut link, 301, Nanos::secs(20));
    drain_late(&mut link, |n| Nanos::millis(n / 3));
    assert_rate(&link, RATE_BPS as f64);
}

#[test]
fn packets_that_each_find_the_wire_idle_are_no_stretch() {
    let mut link = link();
    for n in 0..1_000 {
        enqueue(&mut link, 1, Nanos(n * 1_000_001));
    }
    drain_late(&mut link, |_| Nanos::ZERO);
    assert_eq!(link.busy_rate_bps(End::A), None);

    // Arriving the moment that the wire is free, they are one.
    let mut touching = self::link();
    for n in 0..1_000 {
        enqueue(&mut touching, 1, Nanos(n * 1_000_000));
    }
    drain_late(&mut touching, |_| Nanos::ZERO);
    assert_rate(&touching, RATE_BPS as f64);
}

#[test]
fn without_a_rate_there_is_none() {
    let mut link = Link::new(&symmetric(DirectionConfig { rate: None, ..wire(1) }), 0);
    for n in 0..1_000 {
        enqueue(&mut link, 2, Nanos::millis(n));
    }
    // The two of each millisecond leave 200 ms apart.
    drain_late(&mut link, |n| Nanos::millis(n % 2 * 200));
    assert_eq!(link.busy_rate_bps(End::A), None);
}
