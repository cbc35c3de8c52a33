//! Queues that manage themselves: what holds of all of them.

use bdp_link::{Counters, Departure, DropCause, End, Fate, Link, Packet};
use bdp_model::link::{DirectionConfig, LinkConfig, Medium, QueueLimit};
use bdp_model::queue::{Codel, FqCodel, Queue};
use bdp_model::units::Nanos;
use proptest::prelude::*;

use crate::arbitrary::{self, Arrival};
use crate::{assert_conserved, drain, numbered, symmetric, wire};

/// A UDP datagram of a flow, with an ECN field, that carries its number behind its headers.
fn datagram(number: u64, bytes: usize, flow: u16, ecn: u8) -> Packet {
    let bytes = bytes.max(36);
    let mut data = vec![0; bytes];
    data[0] = 0x45;
    data[1] = ecn;
    data[2..4].copy_from_slice(&(bytes as u16).to_be_bytes());
    data[9] = 17;
    data[20..22].copy_from_slice(&flow.to_be_bytes());
    data[28..36].copy_from_slice(&number.to_be_bytes());
    Packet::from(data)
}

fn number(packet: &Packet) -> u64 {
    u64::from_be_bytes(packet.data[28..36].try_into().expect("eight bytes"))
}

fn queue() -> impl Strategy<Value = Queue> {
    let codel = (1..20_000_000u64, 1..50_000_000u64, any::<bool>(), prop::option::of(0..5_000_000u64))
        .prop_map(|(target, interval, ecn, ce_threshold)| Codel {
            target: Nanos(target),
            interval: Nanos(interval),
            ecn,
            ce_threshold: ce_threshold.map(Nanos),
        });
    prop_oneof![
        codel.clone().prop_map(Queue::Codel),
        (codel, 1..50u32, 100..3_000u32).prop_map(|(codel, flows, quantum_bytes)| Queue::FqCodel(FqCodel {
            codel,
            flows,
            quantum_bytes
        })),
    ]
}

fn link() -> impl Strategy<Value = LinkConfig> {
    (arbitrary::link(), queue(), queue()).prop_map(|(link, forward, reverse)| {
        let with = |direction: DirectionConfig, queue| DirectionConfig {
            queue: Some(queue),
            ecn_threshold: None,
            ..direction
        };
        let (forward, reverse) = (with(link.forward, forward), with(link.reverse, reverse));
        LinkConfig { forward, reverse, medium: Medium::FullDuplex, ..link }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// What was admitted departs, once, or is reported as dropped later, once; and whatever comes out was foreseen.
    #[test]
    fn in_is_out_and_dropped_then_or_later(
        config in link(),
        seed: u64,
        arrivals in prop::collection::vec((arbitrary::arrival(), 0..5u16, 0..4u8), 1..150),
    ) {
        let mut link = Link::new(&config, seed);
        link.keep_removed();
        // A packet's number may be what is corrupted.
        let corrupts = [&config.forward, &config.reverse].iter().any(|d| d.corrupt.fraction() > 0.0);
        let mut now = Nanos::ZERO;
        let (mut admitted, mut refused) = (vec![0u32; arrivals.len()], [0, 0]);
        let mut departed: Vec<Departure> = Vec::new();
        for (n, (Arrival { from, bytes, gap }, flow, ecn)) in arrivals.iter().cloned().enumerate() {
            now += gap;
            while link.next_event().is_some_and(|at| at <= now) {
                departed.extend(link.pop(now));
            }
            let packet = datagram(n as u64, bytes, flow, ecn);
            let soonest = link.soonest(from, &packet, now);
            let verdict = link.enqueue(from, packet, now);
            for fate in std::iter::once(verdict.fate).chain(verdict.copy) {
                match fate {
                    Fate::Queued { .. } => admitted[n] += 1,
                    Fate::Dropped(_) => refused[usize::from(from == End::B)] += 1,
                }
            }
            assert_conserved(&link);
            let mut then = link.clone();
            let foreseen = [End::A, End::B].map(|to| link.upcoming(to).next().map(|(at, _)| at));
            let comes = drain(&mut then);
            for departure in &comes {
                let at = foreseen[usize::from(departure.to == End::B)];
                prop_assert!(at.is_some_and(|at| at <= departure.due), "{departure:?} before {at:?}");
                let same = departure.to == from.other() && number(&departure.packet) == n as u64;
                prop_assert!(corrupts || !same || departure.due >= soonest);
            }
        }
        departed.extend(drain(&mut link));
        let mut removed = [0u64; 2];
        let mut out = vec![0u32; arrivals.len()];
        for from in [End::A, End::B] {
            for (_, _, packet) in link.take_removed(from) {
                removed[usize::from(from == End::B)] += 1;
                if packet.data.len() >= 36 {
                    out[number(&packet) as usize % arrivals.len()] += 1;
                }
            }
        }
        for departure in &departed {
            out[number(&departure.packet) as usize % arrivals.len()] += 1;
        }
        if !corrupts {
            prop_assert_eq!(out, admitted);
        }
        for from in [End::A, End::B] {
            let counters = link.counters(from);
            let all = DropCause::ALL.map(|cause| counters.dropped(cause)).iter().sum::<u64>();
            let side = usize::from(from == End::B);
            prop_assert_eq!(all, refused[side] + removed[side]);
            assert_conserved(&link);
        }
    }

    /// When it is asked for, and how often, changes nothing.
    #[test]
    fn looking_changes_nothing(
        config in link(),
        seed: u64,
        arrivals in prop::collection::vec((arbitrary::arrival(), 0..3u16, 0..4u8), 1..100),
    ) {
        let run = |eager: bool| -> (Vec<Departure>, [Counters; 2]) {
            let mut link = Link::new(&config, seed);
            let mut now = Nanos::ZERO;
            let mut departed = Vec::new();
            for (n, (Arrival { from, bytes, gap }, flow, ecn)) in arrivals.iter().cloned().enumerate() {
                let before = now;
                now += gap;
                if eager {
                    for step in 0..5 {
                        let at = before + Nanos(gap.as_ns() * step / 5);
                        while let Some(departure) = link.pop(at) {
                            departed.push(departure);
                        }
                    }
                }
                link.enqueue(from, datagram(n as u64, bytes, flow, ecn), now);
            }
            departed.extend(drain(&mut link));
            departed.sort_by_key(|d| (d.due, d.to == End::A, number(&d.packet)));
            (departed, [End::A, End::B].map(|from| link.counters(from).clone()))
        };
        prop_assert_eq!(run(true), run(false));
    }
}

/// A steady overload of 1,000-byte packets at 8 Mbit/s, one a millisecond served and two offered.
fn overload(queue: Queue, packets: u64, ecn: u8) -> (Vec<Departure>, Counters) {
    let direction =
        DirectionConfig { queue: Some(queue), limit: QueueLimit::Packets(10_000), ..wire(8_000_000) };
    let mut link = Link::new(&symmetric(direction), 1);
    let mut departed = Vec::new();
    for n in 0..packets {
        let now = Nanos(n * 500_000);
        while link.next_event().is_some_and(|at| at <= now) {
            departed.extend(link.pop(now));
        }
        link.enqueue(End::A, datagram(n, 1000, 1, ecn), now);
    }
    departed.extend(drain(&mut link));
    (departed, link.counters(End::A).clone())
}

/// RFC 8289, section 5.6: nothing is dropped before the sojourn time has been above the target for an interval.
#[test]
fn codel_drops_first_an_interval_after_the_target_is_passed() {
    let direction = DirectionConfig { queue: Some(Queue::Codel(Codel::default())), ..wire(8_000_000) };
    let mut link = Link::new(&symmetric(direction), 1);
    link.keep_removed();
    for n in 0..400 {
        let now = Nanos(n * 500_000);
        link.enqueue(End::A, datagram(n, 1000, 1, 0), now);
    }
    let (at, cause, packet) = link.take_removed(End::A).next().expect("a drop");
    assert_eq!(cause, DropCause::Aqm);
    // Packet n waits n/2 ms: the target of 5 ms is reached by packet 10, which is served at 10 ms; the drop is of the
    // first one that is served after 110 ms.
    assert_eq!((at, number(&packet)), (Nanos::millis(111), 111));
}

#[test]
fn codel_marks_what_can_be_marked() {
    let marking = Queue::Codel(Codel { ecn: true, ..Codel::default() });
    let (departed, counters) = overload(marking, 2_000, 2);
    assert_eq!((counters.aqm_dropped, departed.len()), (0, 2_000));
    assert_eq!(departed.iter().filter(|d| d.packet.data[1] & 3 == 3).count() as u64, counters.marked);
    assert!(counters.marked > 50);
    let (departed, counters) = overload(marking, 2_000, 0);
    assert_eq!((counters.marked, departed.len() as u64), (0, 2_000 - counters.aqm_dropped));
    assert!(counters.aqm_dropped > 50);
    let stepped = Queue::Codel(Codel { ce_threshold: Some(Nanos::millis(1)), ..Codel::default() });
    let (_, counters) = overload(stepped, 20, 1);
    // Packet n waits n / 2 ms; that of packet 2 is above the threshold by how time is cut to units of 1,024 ns.
    assert_eq!(counters.marked, 18);
}

/// RFC 8290, section 1.2: a flow that builds no queue of its own is served before those that do.
#[test]
fn a_sparse_flow_passes_a_queue() {
    let queue = Queue::FqCodel(FqCodel::default());
    let direction = DirectionConfig { queue: Some(queue), ..wire(8_000_000) };
    let mut link = Link::new(&symmetric(direction), 1);
    for n in 0..40 {
        link.enqueue(End::A, datagram(n, 1000, 1, 0), Nanos::ZERO);
    }
    link.enqueue(End::A, datagram(99, 1000, 2, 0), Nanos::micros(3_500));
    let order: Vec<u64> = drain(&mut link).iter().map(|d| number(&d.packet)).collect();
    assert_eq!(order.iter().position(|&n| n == 99), Some(4));
    assert_eq!(order.len(), 41);
}

#[test]
fn packets_that_are_no_ip_share_a_queue() {
    let queue = Queue::FqCodel(FqCodel::default());
    let mut link = Link::new(&symmetric(DirectionConfig { queue: Some(queue), ..wire(8_000_000) }), 1);
    for n in 0..10 {
        link.enqueue(End::A, numbered(n, 40), Nanos::ZERO);
    }
    let order: Vec<u64> = drain(&mut link).iter().map(|d| crate::number(&d.packet)).collect();
    assert_eq!(order, (0..10).collect::<Vec<_>>());
}
