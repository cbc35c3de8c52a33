//! A link fed with super-packets against the same link fed with their segments: the same fate and the same time for each.

use bdp_link::{Departure, End, Link, Packet, Segments};
use bdp_model::link::{
    DirectionConfig, HeaderRewrite, Jitter, JitterDistribution, LinkConfig, Loss, Medium, Policer,
    QueueLimit, Reorder, Turns,
};
use bdp_model::units::{ByteCount, Nanos, Offset, Probability, Rate};
use proptest::prelude::*;

use crate::arbitrary::end;
use crate::segment::{ACK, PSH, Segment, offloaded, offloaded_datagrams};
use crate::{assert_conserved, independent, symmetric};

/// By so much a segment may come later than by itself, where it departs in a run.
const LONGEST_RUN: Nanos = Nanos::micros(50);

fn some<T: std::fmt::Debug + Clone>(of: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    prop_oneof![3 => Just(None), 1 => of.prop_map(Some)]
}

fn seldom() -> impl Strategy<Value = Probability> {
    prop_oneof![3 => Just(0.0), 1 => 0.0..0.3f64].prop_map(|p| Probability::new(p).expect("a fraction"))
}

fn limit() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        (0..200u64).prop_map(QueueLimit::Packets),
        (0..300_000u64).prop_map(|b| QueueLimit::Bytes(ByteCount::bytes(b))),
        Just(QueueLimit::Unlimited),
    ]
}

/// Everything that a direction can do, at rates about those that super-packets are for.
fn direction() -> impl Strategy<Value = DirectionConfig> {
    let rate = prop_oneof![
        1 => Just(None),
        4 => (100_000_000..20_000_000_000u64).prop_map(|r| Some(Rate::bps(r))),
    ];
    let loss = prop_oneof![
        2 => Just(Loss::None),
        2 => (0.0..0.1f64).prop_map(independent),
        1 => (2..90u64).prop_map(Loss::Periodic),
        1 => Just(Loss::List(vec![0, 3, 4, 44, 45, 90])),
        1 => (0.0..0.2f64, 0.1..1.0f64, 0.0..0.02f64).prop_map(|(bad, good, loss)| {
            let [to_bad, to_good, loss_good, loss_bad] =
                [bad, good, loss, 0.9].map(|p| Probability::new(p).expect("a fraction"));
            Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad }
        }),
    ];
    let distribution = (0..3, 0..100_000u64).prop_map(|(which, ns)| match which {
        0 => JitterDistribution::Uniform { spread: Nanos(ns) },
        1 => JitterDistribution::Normal { deviation: Nanos(ns) },
        _ => JitterDistribution::Table([-(ns as i64), 0, 3 * ns as i64].map(Offset::ns).to_vec()),
    });
    let jitter = some((distribution, any::<bool>())).prop_map(|j| {
        j.map(|(distribution, reorder)| Jitter { distribution, reorder, correlation_time: None })
    });
    let reorder = some(0..300_000u64).prop_map(|by| {
        by.map(|by| Reorder { probability: Probability::new(0.05).expect("a fraction"), by: Nanos(by) })
    });
    let policer = some((1_000_000_000..8_000_000_000u64, 1500..200_000u64)).prop_map(|p| {
        p.map(|(rate, burst)| Policer { rate: Rate::bps(rate), burst: ByteCount::bytes(burst) })
    });
    let size = some(600..1600u32);
    let window_field_max = some(50..200u16);
    (
        (rate, 0..100u32, 0..5_000_000u64, loss, limit(), size, window_field_max),
        (seldom(), seldom(), policer, some(limit()), jitter, reorder),
    )
        .prop_map(
            |(
                (rate, overhead_bytes, delay, loss, limit, drop_above, window_field_max),
                (corrupt, duplicate, policer, ecn_threshold, jitter, reorder),
            )| DirectionConfig {
                rate,
                overhead_bytes,
                delay: Nanos(delay),
                loss,
                limit,
                drop_above,
                corrupt,
                duplicate,
                policer,
                ecn_threshold,
                queue: None,
                jitter,
                reorder,
                rewrite: HeaderRewrite { window_field_max, window_scale: None },
                ..DirectionConfig::default()
            },
        )
}

/// A super-packet, the end at which it enters, and how long after the one before.
type Arrival = (Packet, End, Nanos);

/// Mostly of ECN-capable TCP, sometimes of datagrams.
fn arrival() -> impl Strategy<Value = Arrival> {
    let gap = prop_oneof![2 => Just(0), 4 => 0..200_000u64, 1 => 0..2_000_000u64].prop_map(Nanos);
    let tcp = (1..40_000usize, prop_oneof![Just(1448u16), 500..2000u16], any::<bool>(), any::<u8>())
        .prop_map(|(payload, size, ipv6, first)| {
            let segment = Segment::new(ACK | PSH, 100, &[]).with_payload(&bytes(payload, first));
            let mut packet = segment.enveloped().swap_remove(if ipv6 { 3 } else { 0 });
            if ipv6 {
                packet.data[1] |= 0b10 << 4;
            } else {
                packet.data[1] |= 0b10;
                packet.data[10..12].fill(0);
                let sum = !crate::segment::sum(&packet.data[..20]);
                packet.data[10..12].copy_from_slice(&sum.to_be_bytes());
            }
            offloaded(packet, &segment, size)
        });
    let udp = (1..40_000usize, 500..2000u16, any::<u8>())
        .prop_map(|(payload, size, first)| offloaded_datagrams(&bytes(payload, first), size));
    (prop_oneof![4 => tcp, 1 => udp], end(), gap)
}

fn bytes(count: usize, first: u8) -> Vec<u8> {
    (0..count).map(|n| (n % 251) as u8 ^ first).collect()
}

/// Every segment that came out at an end, with the departure that it was part of.
fn spread(departures: &[Departure], end: End) -> Vec<(Nanos, bool, Packet)> {
    let mut all = Vec::new();
    for &Departure { due, ref packet, segments, ip_bytes, .. } in departures.iter().filter(|d| d.to == end) {
        let view = Segments::of(packet);
        assert_eq!((view.count(), view.run_bytes(0..segments)), (segments, ip_bytes));
        all.extend((0..segments).map(|i| (due, i + 1 == segments, view.cut(packet, i..i + 1))));
    }
    all
}

/// Pops everything, each at the instant it is due.
fn drain(link: &mut Link) -> Vec<Departure> {
    let mut departures = Vec::new();
    while let Some(due) = link.next_event() {
        departures.extend(link.pop(due));
        assert_conserved(link);
    }
    departures
}

fn check(config: &LinkConfig, seed: u64, arrivals: &[Arrival]) -> Result<usize, TestCaseError> {
    let [mut whole, mut by_segment] = [(); 2].map(|()| Link::new(config, seed));
    let mut now = Nanos(1_000_000_000);
    let mut departures = [Vec::new(), Vec::new()];
    for (packet, from, gap) in arrivals {
        now += *gap;
        for (link, departures) in [&mut whole, &mut by_segment].into_iter().zip(&mut departures) {
            while link.next_event().is_some_and(|due| due <= now) {
                departures.extend(link.pop(now));
            }
        }
        let mut verdicts = Vec::new();
        whole.enqueue_each(*from, packet.clone(), now, &mut |verdict| verdicts.push(verdict));
        assert_conserved(&whole);
        let segments = Segments::of(packet);
        let expected: Vec<_> = (0..segments.count())
            .map(|i| by_segment.enqueue(*from, segments.cut(packet, i..i + 1), now))
            .collect();
        prop_assert_eq!(verdicts, expected);
    }
    for (link, departures) in [&mut whole, &mut by_segment].into_iter().zip(&mut departures) {
        departures.extend(drain(link));
    }
    for end in [End::A, End::B] {
        prop_assert_eq!(whole.counters(end), by_segment.counters(end));
        let [in_runs, alone] = departures.each_ref().map(|departures| spread(departures, end));
        prop_assert_eq!(in_runs.len(), alone.len());
        for ((run_due, last, packet), (due, _, expected)) in in_runs.into_iter().zip(alone) {
            prop_assert_eq!(&packet, &expected);
            prop_assert!(run_due >= due && run_due <= due + LONGEST_RUN, "due {due:?}, departs {run_due:?}");
            prop_assert!(!last || run_due == due);
        }
    }
    let runs = departures[0].iter().filter(|d| d.segments > 1).count();
    Ok(runs)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_segment_fares_as_by_itself(
        forward in direction(),
        reverse in direction(),
        half_duplex: bool,
        turn in 0..500_000u64,
        seed: u64,
        arrivals in prop::collection::vec(arrival(), 1..20),
    ) {
        let turns = Turns { guard: Nanos(turn / 10), turn: Nanos(turn) };
        let medium = if half_duplex { Medium::HalfDuplex(turns) } else { Medium::FullDuplex };
        check(&LinkConfig { forward, reverse, medium, ..LinkConfig::default() }, seed, &arrivals)?;
    }
}

fn arrivals_of(payload: usize, count: usize, gap: Nanos) -> Vec<Arrival> {
    let segment = Segment::new(ACK, 100, &[]).with_payload(&vec![7; payload]);
    vec![(offloaded(segment.v4(&[]), &segment, 1000), End::A, gap); count]
}

#[test]
fn delay_alone_moves_super_packets_whole() {
    let config = symmetric(DirectionConfig { delay: Nanos::millis(5), ..DirectionConfig::default() });
    let mut link = Link::new(&config, 1);
    let [(packet, ..)] = arrivals_of(60_000, 1, Nanos::ZERO).try_into().expect("one");
    let (buffer, sent) = (packet.data.as_ptr(), packet.clone());
    link.enqueue(End::A, packet, Nanos(3));
    assert_eq!(link.queued(End::A), 60);
    let [departure] = drain(&mut link).try_into().expect("one departure");
    assert_eq!((departure.due, departure.segments, &departure.packet), (Nanos(5_000_003), 60, &sent));
    assert_eq!(departure.packet.data.as_ptr(), buffer, "moved, not copied");
    assert_eq!((link.counters(End::A).packets_out, link.counters(End::A).bytes_out), (60, 60 * 1040));
}

#[test]
fn runs_are_as_long_as_50_us_and_losses_allow() {
    // 1040 bytes at 832 Mbit/s are 10 us: six segments from first to last departure.
    let wire = DirectionConfig { limit: QueueLimit::Unlimited, ..crate::wire(832_000_000) };
    let lossy = DirectionConfig { loss: Loss::List(vec![8, 9]), ..wire.clone() };
    for (direction, expected) in [
        (wire, vec![(6, 60_000), (6, 120_000), (6, 180_000), (2, 200_000)]),
        (lossy, vec![(6, 60_000), (2, 80_000), (6, 140_000), (4, 180_000)]),
    ] {
        let mut link = Link::new(&symmetric(direction), 1);
        for (packet, ..) in arrivals_of(20_000, 1, Nanos::ZERO) {
            link.enqueue(End::A, packet, Nanos::ZERO);
        }
        let runs: Vec<_> = drain(&mut link).iter().map(|d| (d.segments, d.due.as_ns())).collect();
        assert_eq!(runs, expected);
    }
}

/// The conditions of the fast scenarios: most segments travel in runs, so equality above is not that of single ones.
#[test]
fn at_5_gbit_s_with_loss_runs_are_the_rule() {
    let direction = DirectionConfig {
        rate: Some(Rate::bps(5_000_000_000)),
        delay: Nanos::micros(2_500),
        loss: independent(1e-3),
        limit: QueueLimit::Packets(2000),
        ..DirectionConfig::default()
    };
    let runs =
        check(&symmetric(direction), 7, &arrivals_of(60_000, 200, Nanos::micros(100))).expect("agreement");
    assert!((400..900).contains(&runs), "{runs} runs of 200 super-packets");
}
