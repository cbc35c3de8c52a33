//! Queues that manage themselves: what holds of all of them.

use std::ops::RangeInclusive;

use bdp_link::{Counters, Departure, DropCause, End, Fate, Link, Packet};
use bdp_model::link::queue::{Cake, Codel, DualPi2, FqCodel, Isolation, Pie, Queue, QueueValue, Red, Tins};
use bdp_model::link::{DirectionConfig, LinkConfig, Medium, QueueLimit};
use bdp_model::units::{Nanos, Probability};
use proptest::prelude::*;

use crate::arbitrary::{self, Arrival};
use crate::{assert_conserved, drain, numbered, symmetric, wire};

/// A UDP datagram of a flow, with an ECN field, that carries its number behind its headers.
pub(crate) fn datagram(number: u64, bytes: usize, flow: u16, ecn: u8) -> Packet {
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

pub(crate) fn number(packet: &Packet) -> u64 {
    u64::from_be_bytes(packet.data[28..36].try_into().expect("eight bytes"))
}

/// A queue of any kind with any parameters, of sizes that a short train can reach.
fn queue() -> impl Strategy<Value = Queue> {
    let kinds = prop::sample::select(Queue::all());
    (kinds, prop::collection::vec(any::<u32>(), 16)).prop_map(|(mut queue, numbers)| {
        let within = |number: u32, range: RangeInclusive<u64>, most: u64| {
            (range.start() + u64::from(number) % (range.end() - range.start() + 1).min(most)) as u32
        };
        for (parameter, number) in queue.parameters().into_iter().zip(numbers) {
            let time = Nanos(u64::from(number) % 20_000_000);
            match parameter.value {
                QueueValue::Time(value, least) => *value = time.max(least),
                QueueValue::OptionalTime(value) => *value = (number % 2 == 0).then_some(time),
                QueueValue::Count(value, range) | QueueValue::SmallCount(value, range) => {
                    *value = within(number, range, 101);
                }
                QueueValue::Bytes(value, range) => *value = within(number, range, 5_000),
                QueueValue::Flag(value) | QueueValue::SmallFlag(value) => *value = number % 2 == 0,
                QueueValue::Fraction(value) => {
                    *value = Probability::new(f64::from(number) / f64::from(u32::MAX)).expect("a fraction");
                }
                QueueValue::Choice(value) => value.choose(number as usize % value.words().len()),
            }
        }
        if let Queue::Red(red) = &mut queue {
            red.max_bytes += red.min_bytes;
        }
        queue
    })
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

/// What a queue makes of a load that does not answer: the share lost, and the mean time inside, milliseconds.
fn under_overload(queue: Queue, ecn: u8) -> (f64, f64, Counters) {
    let (departed, counters) = overload(queue, 40_000, ecn);
    // Packet n came at n / 2 ms.
    let late = departed.iter().filter(|d| number(&d.packet) > 20_000);
    let times: Vec<f64> = late.map(|d| (d.due.as_ns() - number(&d.packet) * 500_000) as f64 / 1e6).collect();
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    (counters.aqm_dropped as f64 / 40_000.0, mean, counters)
}

/// RFC 8033, section 4.2: the controller settles where as much is dropped as is too much, with the delay at the target.
#[test]
fn pie_and_dualpi2_settle_at_their_target() {
    for queue in [Queue::Pie(Pie::default()), Queue::DualPi2(DualPi2::default())] {
        let (share, delay, _) = under_overload(queue, 0);
        assert!((0.47..0.5).contains(&share), "{queue:?}: {share}");
        assert!((10.0..25.0).contains(&delay), "{queue:?}: {delay} ms");
    }
}

/// RFC 8033, section 4.4: nothing is dropped in the first 150 ms.
#[test]
fn pie_lets_a_burst_pass() {
    let (_, counters) = overload(Queue::Pie(Pie::default()), 300, 0);
    assert_eq!(counters.aqm_dropped, 0);
}

/// RFC 8033, section 5.1: above a probability of a tenth it drops what it could mark.
#[test]
fn pie_marks_up_to_a_tenth() {
    let (share, _, counters) = under_overload(Queue::Pie(Pie { ecn: true, ..Pie::default() }), 2);
    assert!(counters.marked > 0 && share > 0.4, "{share} {counters:?}");
}

/// Floyd and Jacobson, section 4: the average stays below the upper threshold, since above it all are dropped.
#[test]
fn red_keeps_its_average_between_its_thresholds() {
    let red = Red { min_bytes: 10_000, max_bytes: 30_000, burst: 17, ..Red::default() };
    let (share, delay, _) = under_overload(Queue::Red(red), 0);
    assert!((0.47..0.5).contains(&share), "{share}");
    // 1,000 bytes take a millisecond.
    assert!((10.0..33.0).contains(&delay), "{delay} ms");
}

/// RFC 9332, section 2.5.1.1: the low-latency queue passes the classic one, and is marked by its step.
#[test]
fn dualpi2_keeps_the_low_latency_queue_short() {
    let direction = DirectionConfig {
        queue: Some(Queue::DualPi2(DualPi2::default())),
        limit: QueueLimit::Packets(10_000),
        ..wire(8_000_000)
    };
    let mut link = Link::new(&symmetric(direction), 1);
    for n in 0..4_000 {
        let now = Nanos(n * 1_000_000);
        link.enqueue(End::A, datagram(n, 1000, 1, 0), now);
        if n % 4 == 0 {
            link.enqueue(End::A, datagram(n + 100_000, 1000, 2, 1), now);
        }
    }
    let departed = drain(&mut link);
    let slowest = |low_latency: bool| {
        let of = departed.iter().filter(|d| (number(&d.packet) >= 100_000) == low_latency);
        of.map(|d| d.due.as_ns() / 1000 - number(&d.packet) % 100_000 * 1000).max().unwrap_or(0)
    };
    assert!(slowest(true) < 4_000, "{} us", slowest(true));
    assert!(slowest(false) > 10_000, "{} us", slowest(false));
    assert!(departed.iter().any(|d| number(&d.packet) >= 100_000 && d.packet.data[1] & 3 == 3));
}

/// A sparse flow passes the others, hosts have equal shares, and a tin above best effort goes first within its rate.
#[test]
fn cake_isolates_flows_hosts_and_tins() {
    let order = |cake: Cake, packets: &[(u64, u16, u8, u8)]| -> Vec<u64> {
        let direction = DirectionConfig { queue: Some(Queue::Cake(cake)), ..wire(8_000_000) };
        let mut link = Link::new(&symmetric(direction), 1);
        for &(n, flow, host, dscp) in packets {
            let mut packet = datagram(n, 1000, flow, dscp << 2);
            packet.data[15] = host;
            link.enqueue(End::A, packet, Nanos::ZERO);
        }
        drain(&mut link).iter().map(|d| number(&d.packet)).collect()
    };
    let flows = Cake { diffserv: Tins::Besteffort, isolation: Isolation::Flows, ..Cake::default() };
    let mut packets: Vec<_> = (0..20).map(|n| (n, 1, 1, 0)).collect();
    packets.push((99, 2, 1, 46));
    let place = |order: Vec<u64>| order.iter().position(|&n| n == 99);
    assert!(place(order(flows, &packets)).is_some_and(|at| at <= 2));
    let tins = Cake { diffserv: Tins::Diffserv4, ..flows };
    assert_eq!(place(order(tins, &packets)), Some(1));
}

/// Readings of a queue that fills by one packet a millisecond and then empties.
#[test]
fn a_queue_is_read_at_its_interval() {
    for queue in [None, Some(Queue::Codel(Codel::default()))] {
        let direction = DirectionConfig { queue, queue_samples: Some(Nanos::millis(1)), ..wire(8_000_000) };
        let mut link = Link::new(&symmetric(direction), 1);
        link.start_clock(Nanos::micros(250));
        for n in 0..10 {
            link.enqueue(End::A, datagram(n, 1000, 1, 0), Nanos(n * 500_000));
        }
        drain(&mut link);
        let samples = link.queue_samples(End::A).expect("samples");
        assert_eq!(samples.interval_ns, 1_000_000);
        // At n + 1/4 ms 2 n + 1 have come and n + 1 been begun, the last of which had waited n / 2 ms.
        assert_eq!(samples.packets, [0, 1, 2, 3, 4, 4, 3, 2, 1]);
        assert_eq!(samples.bytes, [0, 1000, 2000, 3000, 4000, 4000, 3000, 2000, 1000]);
        assert_eq!(samples.delay_ns, [0, 1, 2, 3, 4, 5, 6, 7, 8].map(|n| n * 500_000));
    }
}
