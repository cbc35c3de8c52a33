//! What the devices and the path's bottleneck carry.

use bdp_explain::ceiling;
use bdp_model::facts::{Facts, OneWay};
use bdp_model::finding::fact::{self, Bps};
use bdp_model::finding::{Action, Confidence, Fact, Lack, Limit, Missing};
use bdp_model::flow::udp::OneWayDelay;
use bdp_model::measurement::{Direction, Measurement};
use bdp_model::record::ReceiverSample;

use crate::rules::shape::{MIB, MS, Shape, WINDOW_BOUND, each_way, explain, found, limit, lost, retransmit};

#[test]
fn the_ceiling_is_the_slowest_nic_less_headers() {
    let of = |change: &dyn Fn(&mut Measurement)| {
        let mut m = WINDOW_BOUND.measurement();
        change(&mut m);
        ceiling(&m).map(|c| (format!("{:.2}", c.goodput_bps / 1e6), c.by))
    };
    let some = |mbps: &str, by: &str| Some((mbps.to_owned(), by.to_owned()));
    assert_eq!(of(&|_| {}), some("941.48", "the near NIC, eth0, 1 Gbit/s"));
    let ipv6 = |m: &mut Measurement| {
        m.near.address = "2001:db8::7".into();
        m.path.mss_bytes = Some(1428);
    };
    assert_eq!(of(&ipv6), some("928.48", "the near NIC, eth0, 1 Gbit/s"));
    assert_eq!(of(&|m| m.path.mss_bytes = Some(1460)), some("949.28", "the near NIC, eth0, 1 Gbit/s"));
    let jumbo = |m: &mut Measurement| {
        m.path.mss_bytes = None;
        (m.path.mtu_to, m.path.mtu_from) = (Some(9000), Some(9000));
    };
    assert_eq!(of(&jumbo), some("990.04", "the near NIC, eth0, 1 Gbit/s"));
    let far = |m: &mut Measurement| m.near.device = None;
    assert_eq!(of(&far), some("9414.82", "the far NIC, ens3, 10 Gbit/s"));
    let small = |m: &mut Measurement| m.path.mss_bytes = Some(536);
    assert_eq!(of(&small), some("856.23", "the near NIC, eth0, 1 Gbit/s"));
    let virtual_ = |m: &mut Measurement| {
        m.near.device.as_mut().unwrap().speed_bps = None;
        m.far.device.as_mut().unwrap().speed_bps = Some(0);
    };
    assert_eq!(of(&virtual_), None);
}

#[test]
fn probes_that_an_end_answers_late_are_no_queue() {
    let mut m = WINDOW_BOUND.measurement();
    let loaded = m.directions[0].rtt_ns.loaded.as_mut().unwrap();
    (loaded.p50, loaded.p95) = (40 * MS, Some(75 * MS));
    let finding = explain(Direction::To, &m).remove(0);
    assert_eq!(finding.limit, Limit::ReceiveWindow, "the flow's own round trip is what it was: {finding:?}");
    m.directions[0].sent.iter_mut().for_each(|s| s.srtt_ns = Some(40 * MS));
    assert_eq!(explain(Direction::To, &m).remove(0).limit, Limit::PathRate);
}

/// Both directions at once: the way there has a queue of 64 ms, the way back a window of 1 MiB in that longer round trip.
fn loaded_both_ways() -> Measurement {
    let there = Shape { goodput_mbps: 92.0, receive_window: 8 * MIB, rtt_loaded: 88 * MS, ..WINDOW_BOUND };
    let back = Shape { goodput_mbps: 93.0, rtt_loaded: 88 * MS, ..WINDOW_BOUND };
    let mut m = there.measurement();
    m.directions.push(back.measurement().directions.remove(0));
    m.directions[1].direction = Direction::From;
    m.request.bidirectional = true;
    for d in &mut m.directions {
        // Whatever the two clocks are apart.
        d.each_way_ns = Some(each_way([-400, 424], [-336, 424]));
    }
    m
}

#[test]
fn each_direction_is_judged_by_the_queue_of_its_own_way() {
    let mut m = loaded_both_ways();
    let there = explain(Direction::To, &m).remove(0);
    assert_eq!(there.limit, Limit::PathRate, "{there:#?}");
    assert_eq!((there.observed(Fact::QueueOneWay).unwrap().value / 1e5).round(), 638.0, "{there:#?}");
    let back = explain(Direction::From, &m).remove(0);
    assert_eq!((back.limit, back.confidence), (Limit::ReceiveWindow, Confidence::High), "{back:#?}");
    assert_eq!((back.observed(Fact::OtherWayQueue).unwrap().value / 1e5).round(), 638.0);
    assert_eq!(back.remedy.unwrap().action, Action::RaiseMaximum);
    // The round trip alone does not say which of the two ways has the queue.
    m.directions.iter_mut().for_each(|d| d.each_way_ns = None);
    let there = explain(Direction::To, &m).remove(0);
    assert_eq!(there.limit, Limit::Unknown, "{there:#?}");
    assert!(there.missing.contains(&Missing::new(Lack::QueueDirection)), "{there:#?}");
    assert_eq!(explain(Direction::From, &m).remove(0).limit, Limit::ReceiveWindow);
    // Of one direction it does.
    m.directions.truncate(1);
    m.request.bidirectional = false;
    assert_eq!(explain(Direction::To, &m).remove(0).limit, Limit::PathRate);
    // A queue of acknowledgements is not the data's: it is the way back that has it.
    m.directions[0].each_way_ns = Some(each_way([12, 12], [12, 76]));
    assert_eq!(explain(Direction::To, &m).remove(0).limit, Limit::ReversePath);
}

#[test]
fn four_threads_at_a_quarter_are_not_busy() {
    let queue = Shape { goodput_mbps: 95.0, rtt_loaded: 88 * MS, cpu: 0.25, ..WINDOW_BOUND };
    let mut m = queue.measurement();
    m.directions[0].sender_cpu = 1.0;
    m.directions[0].sender_threads = Some(4);
    assert_eq!(explain(Direction::To, &m).remove(0).limit, Limit::PathRate);
    // As much from an end that reports no threads' times: four of them, or one for each stream.
    m.directions[0].sender_thread_cpu = None;
    assert_eq!(explain(Direction::To, &m).remove(0).limit, Limit::PathRate);
    m.directions[0].sender_threads = None;
    m.request.spec.streams = 4;
    m.directions[0].stream_goodput_bps = vec![95e6 / 4.0; 4];
    assert_eq!(explain(Direction::To, &m).remove(0).limit, Limit::PathRate);
    // One that is full among three that are not.
    m.directions[0].sender_cpu = 1.1;
    m.directions[0].sender_thread_cpu = Some(0.97);
    let finding = explain(Direction::To, &m).remove(0);
    assert_ne!(finding.limit, Limit::PathRate, "{finding:#?}");
}

#[test]
fn goodput_of_a_full_path_is_steady_over_round_trips_and_not_from_read_to_read() {
    let shape = Shape {
        goodput_mbps: 92.0,
        rtt_loaded: 88 * MS,
        receive_window: 8 * MIB,
        steady: 0.3,
        ..WINDOW_BOUND
    };
    let mut m = shape.measurement();
    let mut now_and_then = m.clone();
    now_and_then.directions[0].sent.iter_mut().step_by(2).for_each(|s| s.srtt_ns = Some(24_200_000));
    assert_eq!(explain(Direction::To, &now_and_then).remove(0).limit, Limit::Unknown);
    // A lost segment holds back what came after it, once a second; what was held back is read at once.
    let held_back = |i: u64| if i % 10 == 3 { 1_150_000 } else { 0 };
    let at = |i: u64| ReceiverSample {
        at_ns: i * 100 * MS,
        bytes: i * 1_150_000 - held_back(i),
        ..Default::default()
    };
    m.directions[0].received = (0..=100).map(at).collect();
    assert_eq!(explain(Direction::To, &m).remove(0).limit, Limit::PathRate);
    // Half of the rate for half of the time is no steady one, and a path that changed.
    let at = |i: u64| ReceiverSample {
        at_ns: i * 100 * MS,
        bytes: (i + i.saturating_sub(50)) * 1_150_000,
        ..Default::default()
    };
    m.directions[0].received = (0..=100).map(at).collect();
    assert_eq!(explain(Direction::To, &m).remove(0).limit, Limit::PathChanged);
}

#[test]
fn short_queue_beside_a_long_round_trip_fills_the_path_where_nothing_else_holds_back() {
    let short = Shape {
        goodput_mbps: 92.0,
        rtt_loaded: 27_200_000,
        cwnd: MIB,
        receive_window: 8 * MIB,
        rwnd_limited: Some(0.0),
        ..WINDOW_BOUND
    };
    assert_eq!(short.finding().limit, Limit::PathRate);
    assert_eq!(Shape { rtt_loaded: 25_200_000, ..short.clone() }.finding().limit, Limit::Unknown);
    assert_eq!(Shape { steady: 0.8, ..short.clone() }.finding().limit, Limit::Unknown);
    // A window that is full explains as much.
    let window = Shape { rtt_loaded: 27_200_000, goodput_mbps: 300.0, ..WINDOW_BOUND };
    assert_eq!(window.finding().limit, Limit::ReceiveWindow);
}

#[test]
fn sender_that_has_the_paths_rate_all_the_time_fills_it_without_a_queue() {
    let level = |facts: &mut Facts, congestion: &str, peak_bps: u64| {
        facts.congestion_control = congestion.to_owned();
        facts.sent.iter_mut().for_each(|s| s.delivery_rate_bps = Some(peak_bps));
    };
    let finding = found(|facts| level(facts, "bbr", 21_000_000));
    assert_eq!((finding.limit, finding.confidence), (Limit::PathRate, Confidence::Medium), "{finding:#?}");
    assert_eq!(finding.figures(), Some(fact::OfPeakRate { goodput: Bps(20e6), peak: Bps(21e6) }));
    assert!(finding.observed(Fact::QueueRoundTrip).is_none());
    assert_ne!(limit(|facts| level(facts, "bbr", 30_000_000)), Limit::PathRate, "it saw more");
    let lossy = limit(|facts| {
        level(facts, "bbr", 21_000_000);
        retransmit(facts, 200);
    });
    assert_ne!(lossy, Limit::PathRate, "something drops what it adds");
    // One that goes by losses grows on, and is at the rate where that makes a queue grow and no goodput.
    let grows = |facts: &mut Facts, queue_us: i64| {
        level(facts, "cubic", 20_200_000);
        let delay = |ns: i64| {
            Some(OneWayDelay { min: ns, p50: ns, p95: Some(ns), p99: Some(ns), max: ns, clock_error: 0 })
        };
        let (idle, loaded) = (delay(12_000_000), delay(12_000_000 + queue_us * 1000));
        facts.one_way = Some(OneWay { idle, loaded, back_idle: idle, back_loaded: idle });
    };
    assert_eq!(limit(|facts| grows(facts, 600)), Limit::PathRate);
    assert_eq!(limit(|facts| grows(facts, 0)), Limit::Unknown);
    let met = limit(|facts| {
        grows(facts, 0);
        facts.loss_episodes = vec![lost(20, 40), lost(70, 41)];
        retransmit(facts, 2);
    });
    assert_eq!(met, Limit::Unknown, "a policer leaves as much");
}
