//! What changes in time: against slow oracles, and against what is foreseen of it.

use bdp_link::{DropCause, End, Fate, Link, Verdict};
use bdp_model::link::over_time::{DelayOverTime, Moment, Outage, RateOverTime, Timeline};
use bdp_model::link::trace::{OPPORTUNITY_BYTES, Trace};
use bdp_model::link::{DirectionConfig, Jitter, JitterDistribution, Loss, QueueLimit};
use bdp_model::units::{Nanos, Probability, Rate};
use proptest::prelude::*;

use crate::{assert_conserved, drain, number, numbered, symmetric, wire};

const ZERO: Nanos = Nanos::secs(7);

fn moments<T: Copy>(values: &[(u64, T)]) -> Vec<Moment<T>> {
    values.iter().map(|&(ms, value)| Moment { at: Nanos::millis(ms), value }).collect()
}

/// A link whose time zero is [`ZERO`].
fn started(direction: DirectionConfig) -> Link {
    let mut link = Link::new(&symmetric(direction), 3);
    link.start_clock(ZERO);
    link
}

fn steps(values: &[(u64, u64)]) -> DirectionConfig {
    let rates: Vec<_> = values.iter().map(|&(ms, mbps)| (ms, Rate::mbps(mbps))).collect();
    let over_time = RateOverTime::Timeline(Timeline::Steps(moments(&rates)));
    DirectionConfig { rate_over_time: Some(over_time), ..wire(values[0].1 * 1_000_000) }
}

fn traced(repeat: bool, at: Vec<(u64, u64)>) -> DirectionConfig {
    let trace = Trace::new("t", repeat, at).expect("a trace");
    DirectionConfig {
        rate_over_time: Some(RateOverTime::Trace(trace.clone())),
        ..wire(trace.mean().as_bps())
    }
}

fn due_ms(link: &mut Link) -> Vec<(u64, f64)> {
    let since = |due: Nanos| (due.as_ns() as f64 - ZERO.as_ns() as f64) / 1e6;
    drain(link).iter().map(|d| (number(&d.packet), since(d.due))).collect()
}

/// Opportunities burnt one by one, each with whatever is there, as mahimahi does it.
fn mahimahi(at: &[(u64, u64)], arrivals: &[(u64, usize)]) -> Vec<u64> {
    let length = at.last().expect("some").0;
    let mut left: std::collections::VecDeque<(usize, u64)> = Default::default();
    let (mut coming, mut out) = (arrivals.iter().peekable(), Vec::new());
    let rounds = (0..).flat_map(|round| at.iter().map(move |(ms, count)| (round * length + ms, *count)));
    for (ms, count) in rounds {
        let now = ms * 1_000_000;
        while let Some((_, bytes)) = coming.next_if(|(at, _)| *at < now) {
            left.push_back((*bytes, 0));
        }
        for _ in 0..count {
            let mut opportunity = OPPORTUNITY_BYTES as usize;
            while let Some((bytes, _)) = left.front_mut() {
                let used = opportunity.min(*bytes);
                opportunity -= used;
                *bytes -= used;
                if *bytes > 0 {
                    break;
                }
                left.pop_front();
                out.push(now);
            }
        }
        if out.len() == arrivals.len() {
            return out;
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_trace_delivers_as_mahimahi_burns_it(
        gaps in prop::collection::vec((1..40u64, 1..4u64), 1..12),
        first in prop::option::of(1..3u64),
        packets in prop::collection::vec((0..9_000_000u64, 8..4_000usize), 1..80),
    ) {
        let mut at: Vec<(u64, u64)> = first.map(|count| (0, count)).into_iter().collect();
        let mut ms = 0;
        for (gap, count) in gaps {
            ms += gap;
            at.push((ms, count));
        }
        // Never at the very nanosecond of an opportunity.
        let mut now = 1;
        let arrivals: Vec<(u64, usize)> = packets.iter().map(|&(gap, bytes)| {
            now += gap;
            (if now % 1_000_000 == 0 { now + 1 } else { now }, bytes)
        }).collect();
        let mut link = started(DirectionConfig { limit: QueueLimit::Unlimited, overhead_bytes: 0, ..traced(true, at.clone()) });
        for (n, &(at, bytes)) in (0..).zip(&arrivals) {
            link.enqueue(End::A, numbered(n, bytes), ZERO + Nanos(at));
        }
        let due: Vec<u64> = drain(&mut link).iter().map(|d| (d.due - ZERO).as_ns()).collect();
        prop_assert_eq!(due, mahimahi(&at, &arrivals));
        assert_conserved(&link);
    }

    /// Bit by bit: every microsecond the wire does so many bits as its rate has, and none in an outage.
    #[test]
    fn steps_and_outages_serve_bit_by_bit(
        rates in prop::collection::vec((1..20u64, 0..50u64), 1..6),
        flap in (1..5_000u64, 1..3_000u64, 0..20_000u64),
        once in (0..30_000u64, 1..9_000u64),
        packets in prop::collection::vec((0..3_000u64, 8..1500usize), 1..60),
    ) {
        let mut at = 0;
        let mut values = vec![(0, 8)];
        for (gap, mbps) in rates {
            at += gap;
            values.push((at, mbps));
        }
        values.push((at + 5, 16));
        let micros = |at, lasts, every| Outage {
            at: Nanos::micros(at), lasts: Nanos::micros(lasts), every, drop: false,
        };
        let outages = vec![
            micros(flap.2, flap.0, Some(Nanos::micros(flap.0 + flap.1))),
            micros(once.0, once.1, None),
        ];
        let out = |us: u64| {
            let of = |outage: &Outage| {
                let since = us.checked_sub(outage.at.as_ns() / 1_000)?;
                let since = outage.every.map_or(since, |every| since % (every.as_ns() / 1_000));
                Some(since < outage.lasts.as_ns() / 1_000)
            };
            outages.iter().any(|outage| of(outage) == Some(true))
        };
        let rate = |us: u64| values.iter().rev().find(|(ms, _)| ms * 1_000 <= us).map_or(0, |(_, mbps)| *mbps);
        let config = DirectionConfig { outages: outages.clone(), limit: QueueLimit::Unlimited, ..steps(&values) };
        let mut link = started(config);
        let mut now = 0;
        let mut arrivals = Vec::new();
        for (n, &(gap, bytes)) in (0..).zip(&packets) {
            now += gap;
            arrivals.push((now, bytes as u64 * 8));
            link.enqueue(End::A, numbered(n, bytes), ZERO + Nanos::micros(now));
        }
        // In which microsecond the last bit is done.
        let (mut expected, mut us, mut spare) = (Vec::new(), 0, 0);
        for (arrived, mut bits) in arrivals {
            if us < arrived {
                (us, spare) = (arrived, if out(arrived) { 0 } else { rate(arrived) });
            }
            while bits > spare {
                bits -= spare;
                us += 1;
                spare = if out(us) { 0 } else { rate(us) };
            }
            spare -= bits;
            expected.push(us);
        }
        let due: Vec<u64> =
            drain(&mut link).iter().map(|d| ((d.due - ZERO).as_ns().saturating_sub(1)) / 1_000).collect();
        // What ends with a microsecond ends in it.
        prop_assert_eq!(due.len(), expected.len());
        for (due, expected) in due.iter().zip(&expected) {
            prop_assert!(due == expected || due + 1 == *expected, "{due} {expected}");
        }
        assert_conserved(&link);
    }

    #[test]
    fn nothing_comes_out_before_it_is_foreseen(
        trace in prop::option::of(prop::collection::vec((1..30u64, 1..3u64), 1..6)),
        delays in prop::collection::vec((1..40u64, 0..30u64), 0..4),
        (ramp, reorder, jittered) in any::<(bool, bool, bool)>(),
        started in 0..60u64,
        seed: u64,
        arrivals in prop::collection::vec((0..8_000_000u64, 20..1500usize), 1..50),
    ) {
        let mut config = match trace {
            Some(gaps) => {
                let mut ms = 0;
                traced(true, gaps.into_iter().map(|(gap, count)| { ms += gap; (ms, count) }).collect())
            }
            None => steps(&[(0, 4), (20, 40), (35, 0), (44, 8)]),
        };
        let mut at = 0;
        let mut points = vec![(0, 12_000_000)];
        for (gap, ms) in delays {
            at += gap;
            points.push((at, ms * 1_000_000));
        }
        let timeline_ns = if ramp { Timeline::Ramp(moments(&points)) } else { Timeline::Steps(moments(&points)) };
        config.delay = Nanos::millis(12);
        config.delay_over_time = Some(DelayOverTime { timeline_ns, reorder });
        config.outages = vec![Outage { at: Nanos::millis(9), lasts: Nanos::millis(4), every: Some(Nanos::millis(31)), drop: false }];
        config.jitter = jittered.then(|| Jitter {
            distribution: JitterDistribution::Normal { deviation: Nanos::millis(1) },
            reorder: false,
            correlation_time: Some(Nanos::millis(20)),
        });
        let mut link = Link::new(&symmetric(config), seed);
        let mut now = Nanos::ZERO;
        let mut is_started = false;
        let mut entered = Vec::new();
        for (n, (gap, bytes)) in (0u64..).zip(arrivals) {
            now += Nanos(gap);
            if !is_started && now >= Nanos::millis(started) {
                is_started = true;
                link.start_clock(now);
            }
            while link.next_event().is_some_and(|at| at <= now) {
                link.pop(now);
            }
            let packet = numbered(n, bytes);
            let soonest = link.soonest(End::A, &packet, now);
            let least = now + link.least(End::A, &numbered(n, 20));
            prop_assert!(least <= soonest);
            link.enqueue(End::A, packet.clone(), now);
            entered.push((n, least));
            let departures = drain(&mut link.clone());
            let foreseen: Vec<_> = link.upcoming(End::B).collect();
            prop_assert!(foreseen.is_sorted_by_key(|(at, _)| *at), "{foreseen:?}");
            for (i, departure) in departures.iter().enumerate() {
                let (at, packet) = foreseen[i.min(foreseen.len() - 1)];
                prop_assert!(departure.due >= at, "{departure:?} before {at:?}");
                prop_assert!(packet.is_none_or(|packet| packet.data == departure.packet.data));
                let (_, least) = entered[number(&departure.packet) as usize];
                prop_assert!(departure.due >= least);
            }
            let own = departures.iter().find(|d| d.packet.data[..8] == packet.data[..8]);
            prop_assert!(own.is_none_or(|own| own.due >= soonest));
        }
    }
}

#[test]
fn before_time_zero_the_first_values_hold() {
    let delay_over_time = Some(DelayOverTime {
        timeline_ns: Timeline::Steps(moments(&[(0, 3_000_000), (1, 5_000_000)])),
        reorder: false,
    });
    let config = DirectionConfig { delay: Nanos::millis(3), delay_over_time, ..steps(&[(0, 8), (1, 80)]) };
    let mut link = Link::new(&symmetric(config), 0);
    // A byte takes a microsecond, whatever the clock says.
    link.enqueue(End::A, numbered(0, 1_000), Nanos::secs(2));
    assert_eq!(drain(&mut link)[0].due, Nanos::secs(2) + Nanos::millis(4));
    // Begun before: half of it by time zero, the rest and 500 bytes of the next within the first millisecond.
    link.start_clock(ZERO);
    link.enqueue(End::A, numbered(1, 1_000), ZERO - Nanos::micros(500));
    link.enqueue(End::A, numbered(2, 1_000), ZERO);
    assert_eq!(due_ms(&mut link), [(1, 3.5), (2, 6.05)]);
}

#[test]
fn packets_keep_their_order_where_the_delay_falls_unless_they_may_not() {
    for (reorder, expected) in [(false, [(0, 10.0), (1, 10.0)]), (true, [(1, 3.0), (0, 10.0)])] {
        let timeline_ns = Timeline::Steps(moments(&[(0, 10_000_000), (1, 2_000_000)]));
        let delay_over_time = Some(DelayOverTime { timeline_ns, reorder });
        let mut link =
            started(DirectionConfig { delay: Nanos::millis(10), delay_over_time, ..Default::default() });
        link.enqueue(End::A, numbered(0, 100), ZERO);
        link.enqueue(End::A, numbered(1, 100), ZERO + Nanos::millis(1));
        assert_eq!(due_ms(&mut link), expected);
    }
}

#[test]
fn an_outage_drops_or_holds() {
    let outage =
        |drop| Outage { at: Nanos::millis(5), lasts: Nanos::millis(2), every: Some(Nanos::millis(10)), drop };
    let fates = |drop| {
        // Without a rate, too.
        let mut link = started(DirectionConfig { outages: vec![outage(drop)], ..Default::default() });
        let times = [4_999, 5_000, 6_999, 7_000, 15_000, 17_000].map(|us| ZERO + Nanos::micros(us));
        let fates = times.map(|now| link.enqueue(End::A, numbered(now.as_ns(), 100), now));
        let due: Vec<f64> = due_ms(&mut link).iter().map(|(_, ms)| *ms).collect();
        assert_conserved(&link);
        (fates, due)
    };
    let gone = Verdict::dropped(DropCause::Outage);
    let inside = Verdict::QUEUED;
    assert_eq!(fates(true), ([inside, gone, gone, inside, gone, inside], vec![4.999, 7.0, 17.0]));
    assert_eq!(fates(false), ([inside; 6], vec![4.999, 7.0, 7.0, 7.0, 17.0, 17.0]));
}

#[test]
fn a_trace_that_is_not_repeated_ends() {
    let mut link = started(DirectionConfig { overhead_bytes: 4, ..traced(false, vec![(3, 1), (8, 1)]) });
    let fates: Vec<Fate> =
        (0..3).map(|n| link.enqueue(End::A, numbered(n, 1_500), ZERO + Nanos(1)).fate).collect();
    let dropped = Fate::Dropped(DropCause::Queue);
    let queued = Fate::Queued { marked: false, held_back: false };
    assert_eq!(fates, [queued, queued, dropped]);
    assert_eq!(due_ms(&mut link), [(0, 3.0), (1, 8.0)]);
}

#[test]
fn loss_that_ramps_loses_what_it_should() {
    let share = |p| Probability::new(p).expect("a fraction");
    let loss = Loss::OverTime(Timeline::Ramp(moments(&[(0, share(0.0)), (100_000, share(0.5))])));
    let mut link = started(DirectionConfig { loss, ..Default::default() });
    for n in 0..100_000 {
        link.enqueue(End::A, numbered(n, 100), ZERO + Nanos::millis(n));
        while link.pop(ZERO + Nanos::millis(n)).is_some() {}
    }
    let expected = link.loss_expected(End::A).expect("it changes");
    assert!((expected.lost - 25_000.0).abs() < 1.0, "{expected:?}");
    let lost = link.counters(End::A).lost as f64;
    assert!((lost - expected.lost).abs() < 5.0 * expected.variance.sqrt(), "{lost}");
    assert_conserved(&link);
}
