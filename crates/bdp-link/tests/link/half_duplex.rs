//! One wire for both directions: how the ends share it, what a change costs, and that nobody ever talks over another.

use bdp_link::{Departure, End, Link};
use bdp_model::link::{DirectionConfig, LinkConfig, Medium, Turns};
use bdp_model::units::{Nanos, Rate};
use proptest::prelude::*;

use crate::arbitrary::{self, Arrival};
use crate::{assert_conserved, drain, number, numbered, symmetric, wire};

fn half_duplex(direction: DirectionConfig, guard: Nanos, turn: Nanos) -> LinkConfig {
    LinkConfig { medium: Medium::HalfDuplex(Turns { guard, turn }), ..symmetric(direction) }
}

/// Who sends (by the end that receives), number, due in microseconds.
fn seen(link: &mut Link) -> Vec<(End, u64, u64)> {
    drain(link).iter().map(|d| (d.to.other(), number(&d.packet), d.due.as_ns() / 1_000)).collect()
}

// 8 Mbit/s: a byte takes a microsecond.
const RATE_BPS: u64 = 8_000_000;

#[test]
fn alone_it_is_a_wire_of_one_s_own() {
    let direction = DirectionConfig { delay: Nanos::millis(1), ..wire(999_983) };
    let mut shared = Link::new(&half_duplex(direction.clone(), Nanos::millis(9), Nanos::ZERO), 0);
    let mut own = Link::new(&symmetric(direction), 0);
    for n in 0..2_000 {
        let now = Nanos(n * 70_001);
        assert_eq!(shared.enqueue(End::B, numbered(n, 9), now), own.enqueue(End::B, numbered(n, 9), now));
    }
    assert_eq!(drain(&mut shared), drain(&mut own));
    assert_eq!(shared.counters(End::B), own.counters(End::B));
}

#[test]
fn a_change_of_the_sender_costs_a_guard_and_silence_that_passed_counts() {
    let config = half_duplex(wire(RATE_BPS), Nanos::micros(50), Nanos::ZERO);
    let mut link = Link::new(&config, 0);
    link.enqueue(End::A, numbered(0, 100), Nanos::ZERO);
    // While A sends: from 150 us. 20 us after that: at once 30 us later. Long after that: at once.
    link.enqueue(End::B, numbered(1, 10), Nanos::micros(30));
    link.enqueue(End::A, numbered(2, 10), Nanos::micros(180));
    link.enqueue(End::B, numbered(3, 10), Nanos::micros(1_000));
    link.enqueue(End::B, numbered(4, 10), Nanos::micros(1_001));
    assert_eq!(
        seen(&mut link),
        [(End::A, 0, 100), (End::B, 1, 160), (End::A, 2, 220), (End::B, 3, 1_010), (End::B, 4, 1_020)]
    );
    assert_conserved(&link);
}

#[test]
fn a_sender_goes_on_until_it_has_nothing_or_the_other_has_waited_for_a_turn() {
    let config = half_duplex(wire(RATE_BPS), Nanos::micros(7), Nanos::micros(250));
    let mut link = Link::new(&config, 0);
    for n in 0..8 {
        link.enqueue(End::A, numbered(n, 100), Nanos::ZERO);
    }
    // B waits from 120 us on, so it is its turn at 370 us: behind the packet that ends at 400.
    link.enqueue(End::B, numbered(100, 30), Nanos::micros(120));
    link.enqueue(End::B, numbered(101, 30), Nanos::micros(120));
    let order: Vec<_> = seen(&mut link);
    assert_eq!(order[3], (End::A, 3, 400));
    assert_eq!(order[4..6], [(End::B, 100, 437), (End::B, 101, 467)]);
    assert_eq!(order[6], (End::A, 4, 574));
    assert_eq!(order.last(), Some(&(End::A, 7, 874)));
}

#[test]
fn no_turn_at_all_alternates() {
    let mut link = Link::new(&half_duplex(wire(RATE_BPS), Nanos::ZERO, Nanos::ZERO), 0);
    for n in 0..5 {
        link.enqueue(End::A, numbered(n, 10), Nanos::ZERO);
        link.enqueue(End::B, numbered(n, 10), Nanos::ZERO);
    }
    let ends: Vec<End> = seen(&mut link).into_iter().map(|(from, ..)| from).collect();
    assert_eq!(ends, [End::A, End::B].repeat(5));
}

/// Bits a second of each direction where both always have packets of `bytes`, over whole cycles.
fn saturated(guard: Nanos, turn: Nanos, bytes: usize) -> [f64; 2] {
    let mut link = Link::new(&half_duplex(wire(RATE_BPS), guard, turn), 0);
    const PACKETS: u64 = 4_000;
    for n in 0..PACKETS {
        link.enqueue(End::A, numbered(n, bytes), Nanos::ZERO);
        link.enqueue(End::B, numbered(n, bytes), Nanos::ZERO);
    }
    let departures = drain(&mut link);
    [End::B, End::A].map(|to| {
        // From one beginning of a turn to a later one: the last packet of a turn is the one before a gap.
        let dues: Vec<u64> = departures.iter().filter(|d| d.to == to).map(|d| d.due.as_ns()).collect();
        let ends: Vec<usize> =
            (0..dues.len() - 1).filter(|&i| dues[i + 1] - dues[i] > bytes as u64 * 1_000).collect();
        let (first, last) = (ends[0], ends[ends.len() - 2]);
        (last - first) as f64 * bytes as f64 * 8e9 / (dues[last] - dues[first]) as f64
    })
}

#[test]
fn saturated_ends_share_what_the_guards_leave() {
    for (guard_us, turn_us, bytes) in [
        (0, 2_000, 1_000),
        (50, 2_000, 1_000),
        (500, 2_000, 1_000),
        (500, 2_001, 1_000),
        (33, 0, 250),
        (120, 999, 64),
    ] {
        let [a, b] = saturated(Nanos::micros(guard_us), Nanos::micros(turn_us), bytes);
        // A byte takes a microsecond; a turn ends with the packet that fills it.
        let turn = (turn_us.div_ceil(bytes as u64).max(1) * bytes as u64) as f64;
        let expected = RATE_BPS as f64 / 2.0 * turn / (turn + guard_us as f64);
        for rate in [a, b] {
            assert!(
                (rate / expected - 1.0).abs() < 1e-9,
                "{guard_us}, {turn_us}: {rate}, expected {expected}"
            );
        }
    }
}

#[test]
fn throughput_falls_as_the_guard_grows() {
    let rates: Vec<f64> =
        [0, 1, 10, 100, 1_000].map(|us| saturated(Nanos::micros(us), Nanos::millis(2), 1_000)[0]).to_vec();
    assert!(rates.windows(2).all(|w| w[1] < w[0]), "{rates:?}");
}

#[test]
fn each_end_has_its_own_rate() {
    let forward = wire(RATE_BPS);
    let reverse = DirectionConfig { rate: Some(Rate::bps(RATE_BPS / 10)), ..wire(RATE_BPS) };
    let mut link =
        Link::new(&LinkConfig { forward, reverse, ..half_duplex(wire(1), Nanos::micros(5), Nanos::ZERO) }, 0);
    link.enqueue(End::A, numbered(0, 100), Nanos::ZERO);
    link.enqueue(End::B, numbered(0, 100), Nanos::ZERO);
    assert_eq!(seen(&mut link), [(End::A, 0, 100), (End::B, 0, 1_105)]);
}

#[test]
fn the_ends_of_the_clock_and_no_rate_are_no_cliffs() {
    let instant = DirectionConfig { rate: None, ..wire(1) };
    let mut link = Link::new(&half_duplex(instant, Nanos(u64::MAX), Nanos(u64::MAX)), 0);
    for n in 0..10 {
        link.enqueue(End::A, numbered(n, 10), Nanos(n));
        link.enqueue(End::B, numbered(n, 10), Nanos(u64::MAX - 10 + n));
    }
    assert_eq!(drain(&mut link).len(), 20);
    let mut link = Link::new(&half_duplex(wire(1), Nanos(u64::MAX), Nanos::ZERO), 0);
    for n in 0..10 {
        link.enqueue(End::A, numbered(n, 1_000), Nanos(u64::MAX / 2));
        link.enqueue(End::B, numbered(n, 1_000), Nanos(u64::MAX / 2));
    }
    drain(&mut link);
    assert_conserved(&link);
    let mut link = Link::new(&half_duplex(wire(0), Nanos::ZERO, Nanos::ZERO), 0);
    link.enqueue(End::A, numbered(0, 8), Nanos::ZERO);
    assert_eq!((link.next_event(), link.counters(End::A).queue_dropped), (None, 1));
}

/// Time on the wire, cut to whole nanoseconds.
fn on_wire(config: &DirectionConfig, departure: &Departure) -> u64 {
    let bits = (departure.packet.data.len() as u128 + u128::from(config.overhead_bytes)) * 8;
    config.rate.map_or(0, |rate| (bits * 1_000_000_000 / u128::from(rate.as_bps())) as u64)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn transmissions_never_overlap_and_the_medium_never_idles_without_need(
        forward in arbitrary::certain(),
        reverse in arbitrary::certain(),
        guard in prop_oneof![Just(0u64), 0..2_000_000u64],
        turn in prop_oneof![Just(0u64), 0..5_000_000u64],
        arrivals in prop::collection::vec(arbitrary::arrival(), 1..300),
    ) {
        // Without delay a packet is due the moment it leaves the wire. With a rate no two are due together.
        let [forward, reverse] = [forward, reverse].map(|d| DirectionConfig {
            delay: Nanos::ZERO,
            rate: d.rate.or(Some(Rate::mbps(10))),
            ..d
        });
        let turns = Turns { guard: Nanos(guard), turn: Nanos(turn) };
        let config = LinkConfig { forward, reverse, medium: Medium::HalfDuplex(turns), ..LinkConfig::default() };
        let mut link = Link::new(&config, 0);
        let mut arrived = Vec::new();
        let mut now = Nanos::ZERO;
        for (n, Arrival { from, bytes, gap }) in (0u64..).zip(arrivals) {
            now += gap;
            arrived.push(now.as_ns());
            link.enqueue(from, numbered(n, bytes), now);
        }
        let departures = drain(&mut link);
        // In the order in which they were sent; each end's own order is that of arrival.
        for pair in departures.windows(2) {
            let [before, after] = pair else { unreachable!("windows of two") };
            let direction = if after.to == End::B { &config.forward } else { &config.reverse };
            let took = on_wire(direction, after);
            let ended = before.due.as_ns();
            let begun = after.due.as_ns() - took;
            let came = arrived[number(&after.packet) as usize];
            prop_assert!(begun + 1 >= came);
            if before.to == after.to {
                prop_assert!(after.due.as_ns() - ended >= took, "{} ns after {}", begun, ended);
                // What had arrived goes on without a pause, to the fraction of a nanosecond.
                prop_assert!(begun <= ended.max(came) + 1);
            } else {
                prop_assert!(begun >= ended + guard, "{} ns after {}", begun, ended);
                prop_assert!(begun <= came.max(ended + guard + 1), "{} ns after {}", begun, ended);
            }
        }
        assert_conserved(&link);
    }
}
