//! The rules on hand-made measurements: each shape of samples, and what must be said of it.

use bdp_explain::ceiling;
use bdp_model::facts::Facts;
use bdp_model::finding::{
    Action, Cause, Confidence, Fact, Finding, Lack, Limit, Missing, Place, Quantity, Remedy, Samples, Unit,
};
use bdp_model::measurement::{Direction, IntervalSpread, Measurement};
use bdp_model::one_way::{EachWay, EachWayReport};
use bdp_model::record::{ReceiverSample, RttSummary, SenderSample};
use bdp_model::udp::OneWayDelay;

const MSS: u64 = 1448;
const MIB: u64 = 1 << 20;
const MS: u64 = 1_000_000;

/// What is found of one direction; nothing where it was not measured.
fn explain(way: Direction, m: &Measurement) -> Vec<Finding> {
    Facts::measured(m, way).as_ref().map_or_else(Vec::new, bdp_explain::explain)
}

/// A measurement of ten seconds towards ams1, 24.2 ms away, as the parts of it say.
#[derive(Clone)]
struct Shape {
    goodput_mbps: f64,
    in_flight: u64,
    cwnd: u64,
    receive_window: u64,
    /// Share of the samples in which the above holds; in the others little is in flight.
    share: f64,
    rwnd_limited: Option<f64>,
    sndbuf_limited: Option<f64>,
    send_buffer: u64,
    rtt_loaded: u64,
    steady: f64,
    retransmits: u64,
    cpu: f64,
    nics: [Option<u64>; 2],
}

/// 1 MiB of receive window, full.
const WINDOW_BOUND: Shape = Shape {
    goodput_mbps: 338.0,
    in_flight: MIB,
    cwnd: 900 * MSS,
    receive_window: MIB,
    share: 0.96,
    rwnd_limited: Some(0.47),
    sndbuf_limited: Some(0.0),
    send_buffer: 4 * MIB,
    rtt_loaded: 24_200_000,
    steady: 0.97,
    retransmits: 0,
    cpu: 0.1,
    nics: [Some(1_000_000_000), Some(10_000_000_000)],
};

impl Shape {
    fn measurement(&self) -> Measurement {
        let text = include_str!("../../bdp-store/tests/it/measurement.json");
        let mut m: Measurement = serde_json::from_str(text).unwrap();
        m.near.device.as_mut().unwrap().speed_bps = self.nics[0];
        m.far.device.as_mut().unwrap().speed_bps = self.nics[1];
        let d = &mut m.directions[0];
        d.goodput_bps = self.goodput_mbps * 1e6;
        d.stream_goodput_bps = vec![d.goodput_bps];
        d.bytes = (d.goodput_bps * 10.0 / 8.0) as u64;
        d.retransmits = Some(self.retransmits);
        d.send_buffer_bytes = Some(self.send_buffer);
        d.sender_thread_cpu = Some(self.cpu);
        d.each_way_ns = None;
        // The spread stands for them.
        d.received.clear();
        d.spread = Some(IntervalSpread {
            intervals: 100,
            min: None,
            p5: Some(d.goodput_bps * self.steady),
            p50: d.goodput_bps,
            p95: Some(d.goodput_bps),
            max: None,
        });
        let p50 = self.rtt_loaded;
        d.rtt_ns.loaded = Some(RttSummary {
            sent: 200,
            received: 200,
            in_flight: 0,
            of_all: None,
            min: p50,
            p50,
            p95: Some(p50 + MS),
            p99: Some(p50 + MS),
            max: p50 + MS,
        });
        d.findings.clear();
        d.sent = (1..=100u64)
            .map(|i| {
                let busy = i * 100 * MS;
                let bound = (i as f64) > 100.0 * (1.0 - self.share);
                let limited = |share: f64| (busy as f64 * share) as u64;
                SenderSample {
                    at_ns: busy,
                    acked_bytes: Some(d.bytes * i / 100),
                    unacked: Some(if bound { self.in_flight / MSS } else { 10 } as u32),
                    cwnd: Some((self.cwnd / MSS) as u32),
                    snd_wnd_bytes: Some(self.receive_window),
                    srtt_ns: Some(self.rtt_loaded),
                    retransmits: Some(0),
                    busy_ns: Some(busy),
                    rwnd_limited_ns: self.rwnd_limited.map(limited),
                    sndbuf_limited_ns: self.sndbuf_limited.map(limited),
                    ..SenderSample::default()
                }
            })
            .collect();
        m.ceiling = ceiling(&m);
        m
    }

    fn finding(&self) -> Finding {
        let mut findings = explain(Direction::To, &self.measurement());
        assert_eq!(findings.len(), 1, "{findings:?}");
        findings.remove(0)
    }
}

#[test]
fn each_shape_has_its_limit() {
    use Confidence::{High, Low, Medium};
    use Limit::{Ceiling, Cpu, PathRate, ReceiveWindow, SendBuffer, Unknown};
    let window = WINDOW_BOUND;
    // A large receive window, and 512 KiB of payload in a send buffer of 1 MiB.
    let buffer = Shape {
        goodput_mbps: 170.0,
        in_flight: MIB / 2,
        receive_window: 8 * MIB,
        rwnd_limited: Some(0.0),
        sndbuf_limited: Some(0.9),
        send_buffer: MIB,
        ..WINDOW_BOUND
    };
    // Half a congestion window after each loss.
    let lossy = Shape {
        goodput_mbps: 60.0,
        in_flight: 180 * 1024,
        cwnd: 180 * 1024,
        receive_window: 8 * MIB,
        rwnd_limited: Some(0.0),
        steady: 0.6,
        retransmits: 240,
        ..WINDOW_BOUND
    };
    // A buffer of tcp_wmem's largest, of which writes take exactly what is free.
    let used_up = Shape {
        goodput_mbps: 728.0,
        in_flight: 21 * MIB / 10,
        cwnd: 4 * MIB,
        sndbuf_limited: Some(0.01),
        send_buffer: 4 * MIB,
        ..buffer.clone()
    };
    let tiny = Shape { goodput_mbps: 0.1, in_flight: 0, receive_window: 1152, ..WINDOW_BOUND };
    let full = Shape { goodput_mbps: 934.0, rtt_loaded: 72 * MS, ..window.clone() };
    let queue = Shape { goodput_mbps: 95.0, rtt_loaded: 88 * MS, receive_window: MIB, ..window.clone() };
    let cases: &[(&str, Shape, Limit, Confidence)] = &[
        ("window", window.clone(), ReceiveWindow, High),
        (
            "window, half of the time",
            Shape { share: 0.6, goodput_mbps: 260.0, ..window.clone() },
            ReceiveWindow,
            Medium,
        ),
        (
            "window, the kernel denies it",
            Shape { rwnd_limited: Some(0.0), ..window.clone() },
            ReceiveWindow,
            Medium,
        ),
        ("window, the kernel is silent", Shape { rwnd_limited: None, ..window.clone() }, ReceiveWindow, High),
        ("window full by and by", Shape { share: 0.45, ..window.clone() }, ReceiveWindow, Low),
        ("window seldom full", Shape { share: 0.3, ..window.clone() }, Unknown, Low),
        ("window full, a third reached", Shape { goodput_mbps: 110.0, ..window.clone() }, Unknown, Low),
        ("congestion window as full", Shape { cwnd: MIB / MSS * MSS, ..window.clone() }, Unknown, Low),
        ("buffer", buffer.clone(), SendBuffer, High),
        ("buffer, the kernel is silent", Shape { sndbuf_limited: None, ..buffer.clone() }, SendBuffer, Low),
        ("buffer, the kernel denies it", Shape { sndbuf_limited: Some(0.0), ..buffer.clone() }, Unknown, Low),
        ("buffer used up, the kernel denies it", used_up.clone(), SendBuffer, Low),
        ("buffer that grows, the kernel denies it", Shape { send_buffer: 3 * MIB, ..used_up }, Unknown, Low),
        ("window under a segment", tiny.clone(), ReceiveWindow, High),
        (
            "window under a segment, seldom full",
            Shape { share: 0.5, receive_window: 8192, ..tiny },
            Unknown,
            Low,
        ),
        ("buffer of unknown room", Shape { send_buffer: 64 * MIB, ..buffer.clone() }, SendBuffer, Medium),
        ("buffer full beside the congestion window", Shape { cwnd: MIB / 2, ..buffer.clone() }, Unknown, Low),
        ("buffer, goodput elsewhere", Shape { goodput_mbps: 50.0, ..buffer.clone() }, Unknown, Low),
        ("ceiling", full.clone(), Ceiling, High),
        (
            "just below the ceiling",
            Shape { goodput_mbps: 880.0, rtt_loaded: 25 * MS, ..full.clone() },
            Unknown,
            Low,
        ),
        ("above the ceiling", Shape { goodput_mbps: 2000.0, ..full.clone() }, Ceiling, Low),
        ("no NIC is known", Shape { nics: [None; 2], share: 0.2, rtt_loaded: 25 * MS, ..full }, Unknown, Low),
        ("a queue on the path", queue.clone(), PathRate, Medium),
        ("a queue, but a process is busy", Shape { cpu: 0.99, share: 0.2, ..queue.clone() }, Cpu, High),
        ("a queue, but the goodput jumps", Shape { steady: 0.5, share: 0.2, ..queue }, Unknown, Low),
        ("loss", lossy, Unknown, Low),
    ];
    for (name, shape, limit, confidence) in cases {
        let finding = shape.finding();
        assert_eq!((finding.limit, finding.confidence), (*limit, *confidence), "{name}: {finding:#?}");
        assert!(!finding.evidence.is_empty(), "{name}: {finding:#?}");
    }
}

#[test]
fn a_receive_window_is_told_with_its_numbers() {
    let finding = WINDOW_BOUND.finding();
    assert_eq!((&finding.place, finding.cause), (&Place::receiver("ams1"), Some(Cause::RmemMaximum)));
    let facts: Vec<Fact> = finding.evidence.iter().map(|evidence| evidence.fact).collect();
    assert_eq!(facts, [Fact::OfWindowRate, Fact::WindowFull, Fact::SettingMaximum, Fact::KernelCountsWindow]);
    let of_rate = &finding.evidence[0];
    assert_eq!((of_rate.unit, of_rate.at_least), (Unit::Share, Some(0.7)));
    assert!((of_rate.value - 0.975).abs() < 0.001, "{of_rate:?}");
    assert_eq!((of_rate.other(0), of_rate.other(1)), (MIB as f64, 24.2e6));
    let full = &finding.evidence[1];
    assert_eq!((full.value, full.at_least), (0.96, Some(0.5)));
    assert_eq!(full.samples, Some(Samples { met: 96, of: 100 }));
    let most = &finding.evidence[2];
    assert_eq!((most.value, most.name.as_deref()), (2.0 * MIB as f64, Some("net.ipv4.tcp_rmem")));
    let next = finding.next.unwrap();
    assert_eq!((next.limit, (next.goodput_bps / 1e6).round()), (Limit::Ceiling, 941.0));
    assert_eq!((next.needed_bytes.unwrap() / MIB as f64 * 100.0).round(), 272.0);
    let remedy = finding.remedy.unwrap();
    assert_eq!((remedy.action, remedy.host.as_deref()), (Action::RaiseMaximum, Some("ams1")));
    // The buffer is twice the window.
    assert_eq!((remedy.value.unwrap() / MIB as f64 * 100.0).round(), 543.0);
}

#[test]
fn from_there_the_near_end_receives() {
    let mut m = WINDOW_BOUND.measurement();
    m.directions[0].direction = Direction::From;
    let finding = explain(Direction::From, &m).remove(0);
    assert_eq!(finding.place, Place::receiver("fra1"));
    assert!(explain(Direction::To, &m).is_empty());
}

#[test]
fn ends_of_one_name_are_told_apart() {
    let mut m = WINDOW_BOUND.measurement();
    m.near.name = m.far.name.clone();
    assert_eq!(explain(Direction::To, &m).remove(0).place, Place::receiver("the far end"));
}

#[test]
fn what_the_user_set_is_what_the_user_changes() {
    let remedy = |change: &dyn Fn(&mut Measurement)| {
        let mut m = WINDOW_BOUND.measurement();
        change(&mut m);
        explain(Direction::To, &m).remove(0).remedy.unwrap()
    };
    let bytes = bdp_model::units::ByteCount::kib(1024);
    let window = remedy(&|m| m.request.spec.window = bytes.try_into().ok());
    assert_eq!((window.action, window.setting.as_deref()), (Action::AskWindow, Some("-w")));
    assert_eq!((window.value.unwrap() / MIB as f64 * 100.0).round(), 272.0);
    let buffer = remedy(&|m| m.request.spec.socket_buffer = Some(bytes));
    assert_eq!((buffer.action, buffer.setting.as_deref()), (Action::AskSocketBuffer, Some("--sockbuf")));
    let unscaled = remedy(&|m| {
        m.far.sysctls.insert("net.ipv4.tcp_window_scaling".into(), "0".into());
        let d = &mut m.directions[0];
        d.stream_goodput_bps = vec![21.1e6];
        d.goodput_bps = 21.1e6;
        for sample in &mut d.sent {
            sample.snd_wnd_bytes = Some(64_240);
            sample.unacked = sample.unacked.map(|n| n.min(44));
        }
    });
    assert_eq!(unscaled, turn_on("net.ipv4.tcp_window_scaling", "ams1"));
}

#[test]
fn of_several_streams_the_one_that_was_sampled_is_judged() {
    let mut m = Shape { goodput_mbps: 676.0, ..WINDOW_BOUND }.measurement();
    m.request.spec.streams = 2;
    m.directions[0].stream_goodput_bps = vec![338e6; 2];
    let finding = explain(Direction::To, &m).remove(0);
    assert_eq!(finding.limit, Limit::ReceiveWindow);
    let needed = finding.next.unwrap().needed_bytes.unwrap();
    assert_eq!((needed / MIB as f64 * 100.0).round(), 136.0, "half of it each");
}

#[test]
fn segments_that_a_pacer_holds_are_not_laid_to_the_buffer() {
    let mut m = Shape {
        goodput_mbps: 728.0,
        in_flight: 21 * MIB / 10,
        cwnd: 4 * MIB,
        receive_window: 8 * MIB,
        sndbuf_limited: Some(0.0),
        ..WINDOW_BOUND
    }
    .measurement();
    assert_eq!(explain(Direction::To, &m).remove(0).limit, Limit::SendBuffer);
    m.directions[0].congestion_control = "bbr".to_owned();
    assert_eq!(explain(Direction::To, &m).remove(0).limit, Limit::Unknown);
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

#[test]
fn a_window_under_a_segment_is_explained_by_the_persist_timer() {
    let tiny = Shape { goodput_mbps: 0.1, in_flight: 0, receive_window: 1152, ..WINDOW_BOUND };
    let finding = tiny.finding();
    let segment = finding.observed(Fact::NoWholeSegment).unwrap();
    assert_eq!((segment.value, segment.at_most), (1152.0, Some(MSS as f64)));
    assert!(WINDOW_BOUND.finding().observed(Fact::NoWholeSegment).is_none());
}

#[test]
fn what_was_asked_for_is_not_laid_to_the_system() {
    let mut m = WINDOW_BOUND.measurement();
    assert!(explain(Direction::To, &m)[0].observed(Fact::SettingMaximum).is_some());
    m.request.spec.window = bdp_model::window::WindowBytes::new(1 << 20);
    assert!(explain(Direction::To, &m)[0].observed(Fact::SettingMaximum).is_none());
}

#[test]
fn a_flow_too_short_to_wait_is_not_laid_to_the_processor() {
    let mut m = Shape { cpu: 0.99, share: 0.2, ..WINDOW_BOUND }.measurement();
    let blames = |m: &Measurement| explain(Direction::To, m)[0].observed(Fact::SendingThread).is_some();
    assert!(blames(&m));
    m.directions[0].duration_ns = 3 * MS;
    assert!(!blames(&m));
}

#[test]
fn what_was_omitted_is_not_judged() {
    let mut m = Shape { share: 0.3, ..WINDOW_BOUND }.measurement();
    assert_eq!(explain(Direction::To, &m).remove(0).limit, Limit::Unknown);
    m.directions[0].omit_ns = 7000 * MS;
    assert_eq!(explain(Direction::To, &m).remove(0).limit, Limit::ReceiveWindow);
}

#[test]
fn a_measurement_too_short_is_said_to_be_so() {
    let mut m = WINDOW_BOUND.measurement();
    // Ten samples, of which three count.
    m.directions[0].sent.truncate(10);
    m.directions[0].omit_ns = 750 * MS;
    let missing = |m: &Measurement| explain(Direction::To, m).remove(0).missing;
    assert_eq!(missing(&m), [Missing::new(Lack::LongerAfterOmit).samples(3)]);
    m.directions[0].omit_ns = 0;
    m.directions[0].sent.truncate(1);
    assert_eq!(missing(&m), [Missing::new(Lack::LongerMeasurement).samples(1)]);
    // Enough of them, which do not tell.
    let mut m = WINDOW_BOUND.measurement();
    m.directions[0].sent.iter_mut().for_each(|s| s.snd_wnd_bytes = None);
    assert_eq!(missing(&m), [Missing::new(Lack::TcpInfoWindows)]);
}

#[test]
fn what_is_missing_is_named() {
    let mut m = WINDOW_BOUND.measurement();
    m.ceiling = None;
    m.rtt_idle_ns = None;
    m.directions[0].rtt_ns.idle = None;
    m.directions[0].rtt_ns.loaded = None;
    m.directions[0].sent.clear();
    let finding = explain(Direction::To, &m).remove(0);
    assert_eq!(finding.limit, Limit::Unknown);
    let missing: Vec<Lack> = finding.missing.iter().map(|missing| missing.what).collect();
    assert_eq!(missing, [Lack::TcpInfo, Lack::IdleRoundTrip, Lack::LoadedRoundTrip, Lack::NicSpeed]);
}

#[test]
fn loss_is_seen_though_no_rule_claims_it() {
    let lossy = Shape {
        in_flight: MIB / 2,
        cwnd: MIB / 2 / MSS * MSS,
        receive_window: 8 * MIB,
        retransmits: 240,
        ..WINDOW_BOUND
    };
    let finding = lossy.finding();
    let again = finding.observed(Fact::Retransmitted).unwrap();
    assert_eq!((again.value, again.other(0)), (240.0, 291_782.0));
    let full = finding.observed(Fact::CongestionWindowFull).unwrap();
    assert_eq!((full.value, full.name.as_deref()), (0.96, Some("cubic")));
}

#[test]
fn what_was_sent_again_needlessly_is_told() {
    let lossy = Shape { in_flight: MIB / 2, receive_window: 8 * MIB, retransmits: 240, ..WINDOW_BOUND };
    let mut measurement = lossy.measurement();
    // The receiver tells of a copy that the network made too.
    for (told, needless) in
        [(None, None), (Some(0), None), (Some(200), Some(200.0)), (Some(900), Some(240.0))]
    {
        measurement.directions[0].needless_retransmits = told;
        let finding = explain(Direction::To, &measurement).remove(0);
        let said = finding.observed(Fact::NeedlessRetransmits).map(|evidence| evidence.value);
        assert_eq!(said, needless, "{told:?}");
    }
}

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

/// What the probes say of each way, medians before and under load in milliseconds: there, back.
fn each_way(idle: [i64; 2], loaded: [i64; 2]) -> EachWayReport {
    let delay = |ms: i64| {
        let ns = ms * MS as i64;
        OneWayDelay { min: ns, p50: ns, p95: Some(ns), p99: Some(ns), max: ns, clock_error: 12 * MS }
    };
    let both = |[there, back]: [i64; 2]| Some(EachWay { there: delay(there), back: delay(back) });
    EachWayReport { idle: both(idle), loaded: both(loaded), skew: None }
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
    // A queue of acknowledgements is not the data's.
    m.directions[0].each_way_ns = Some(each_way([12, 12], [12, 76]));
    assert_eq!(explain(Direction::To, &m).remove(0).limit, Limit::Unknown);
}

#[test]
fn asked_rate_that_is_reached_is_the_limit() {
    let paced = |goodput_mbps| {
        let mut m = Shape { goodput_mbps, share: 0.0, ..WINDOW_BOUND }.measurement();
        m.request.spec.pacing_bps = Some(200_000_000);
        m
    };
    let finding = explain(Direction::To, &paced(198.0)).remove(0);
    assert_eq!((finding.limit, finding.confidence), (Limit::AskedRate, Confidence::High), "{finding:#?}");
    let of_asked = finding.observed(Fact::OfAskedRate).unwrap();
    assert_eq!((of_asked.other(0), of_asked.other(1), of_asked.name.as_deref()), (198e6, 200e6, Some("-b")));
    assert_eq!((of_asked.at_least, of_asked.at_most), (Some(0.95), Some(1.05)));
    assert_eq!(explain(Direction::To, &paced(150.0)).remove(0).limit, Limit::Unknown);
    assert_eq!(explain(Direction::To, &paced(300.0)).remove(0).limit, Limit::Unknown);
    // Each of two streams has the rate.
    let mut two = paced(396.0);
    two.request.spec.streams = 2;
    assert_eq!(explain(Direction::To, &two).remove(0).limit, Limit::AskedRate);
    two.directions[0].goodput_bps = 198e6;
    two.directions[0].spread = None;
    assert_eq!(explain(Direction::To, &two).remove(0).limit, Limit::Unknown);
}

#[test]
fn rate_that_a_full_path_all_but_reaches_is_the_paths() {
    let queued = |goodput_mbps| {
        let shape = Shape { goodput_mbps, share: 0.0, rtt_loaded: 88 * MS, ..WINDOW_BOUND };
        let mut m = shape.measurement();
        m.request.spec.pacing_bps = Some(200_000_000);
        explain(Direction::To, &m).remove(0)
    };
    let full = queued(196.0);
    assert_eq!((full.limit, &full.place), (Limit::PathRate, &Place::path()), "{full:#?}");
    let reached = queued(200.0);
    assert_eq!(reached.limit, Limit::AskedRate);
    assert!(reached.observed(Fact::QueueRoundTrip).is_some(), "{reached:#?}");
}

#[test]
fn asked_window_that_binds_is_named_with_its_option() {
    let mut m = WINDOW_BOUND.measurement();
    m.request.spec.window = bdp_model::window::WindowBytes::new(1 << 20);
    let finding = explain(Direction::To, &m).remove(0);
    assert_eq!((finding.limit, finding.cause), (Limit::ReceiveWindow, Some(Cause::WindowAsked)));
    let asked = finding.observed(Fact::WindowAsked).unwrap();
    assert_eq!((asked.value, asked.name.as_deref()), (MIB as f64, Some("-w")));
    // Seldom full by the samples, as behind a pacer, and the kernel counts it all the time.
    let seldom = Shape { share: 0.35, rwnd_limited: Some(0.97), ..WINDOW_BOUND };
    assert_eq!(seldom.finding().limit, Limit::ReceiveWindow);
    assert_eq!(Shape { goodput_mbps: 200.0, ..seldom }.finding().limit, Limit::Unknown);
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

fn turn_on(setting: &str, host: &str) -> Remedy {
    Remedy::new(Action::Set).setting(setting).value(Quantity::count(1)).host(host)
}

/// 64 KiB - 1, full.
fn unscaled(sender: Option<bool>, receiver: Option<bool>, sysctls: [Option<&str>; 2]) -> Finding {
    let mut m =
        Shape { receive_window: 65_535, in_flight: 65_535, goodput_mbps: 21.1, ..WINDOW_BOUND }.measurement();
    m.directions[0].window.socket_buffer_bytes = Some(360_000);
    (m.directions[0].sender_window_scaling, m.directions[0].receiver_window_scaling) = (sender, receiver);
    for (host, value) in [&mut m.near, &mut m.far].into_iter().zip(sysctls) {
        let name = "net.ipv4.tcp_window_scaling".to_owned();
        host.sysctls.extend(value.map(|value| (name, value.to_owned())));
    }
    explain(Direction::To, &m).remove(0)
}

#[test]
fn window_scaling_that_is_removed_is_not_laid_to_the_receive_buffer() {
    let on = Some("1");
    let finding = unscaled(Some(false), Some(false), [on, on]);
    assert_eq!(finding.limit, Limit::ReceiveWindow);
    assert_eq!(finding.cause, Some(Cause::ScalingStripped));
    assert_eq!(finding.remedy, Some(Remedy::new(Action::PassWindowScaling)));
    assert!(finding.observed(Fact::ScalingRemoved).is_some(), "{finding:#?}");
    // Where a host has it off, that host is named.
    for (sysctls, host) in [([on, Some("0")], "ams1"), ([Some("0"), on], "fra1")] {
        let finding = unscaled(Some(false), Some(false), sysctls);
        assert_eq!(finding.cause, Some(Cause::ScalingOff));
        assert_eq!(finding.remedy, Some(turn_on("net.ipv4.tcp_window_scaling", host)));
        assert_eq!(finding.observed(Fact::ScalingSetting).unwrap().host.as_deref(), Some(host));
    }
    // Nobody knows of the other host.
    let finding = unscaled(Some(false), None, [on, None]);
    assert_eq!(finding.cause, Some(Cause::ScalingMissing));
    assert_eq!(finding.remedy, Some(Remedy::new(Action::FindWindowScaling)));
    // Removed from one segment of the handshake alone.
    for (sender, receiver) in [(true, false), (false, true)] {
        let finding = unscaled(Some(sender), Some(receiver), [on, on]);
        assert_eq!((finding.limit, finding.confidence), (Limit::ReceiveWindow, Confidence::High));
        assert_eq!((finding.cause, finding.place), (Some(Cause::ScalingHalfStripped), Place::path()));
    }
    // In use, it is none of these.
    assert_eq!(unscaled(Some(true), Some(true), [on, on]).cause, Some(Cause::BelowMaximum));
}

#[test]
fn tcp_rmem_is_raised_only_where_it_binds() {
    let mut m = WINDOW_BOUND.measurement();
    let raise = |m: &Measurement| {
        explain(Direction::To, m).remove(0).remedy.is_some_and(|r| r.action == Action::RaiseMaximum)
    };
    assert!(raise(&m));
    m.directions[0].window.socket_buffer_bytes = Some(1_500_000);
    let finding = explain(Direction::To, &m).remove(0);
    assert_eq!((finding.limit, &finding.remedy), (Limit::ReceiveWindow, &None), "{finding:#?}");
    assert_eq!(finding.cause, Some(Cause::BelowMaximum));
    let buffer = finding.observed(Fact::BufferBelowMaximum).unwrap();
    assert_eq!((buffer.value, buffer.other(0)), (1_500_000.0, 2.0 * MIB as f64));
    assert_eq!(finding.missing, [Missing::new(Lack::WindowBound)]);
    m.far.sysctls.insert("net.ipv4.tcp_moderate_rcvbuf".into(), "0".into());
    let finding = explain(Direction::To, &m).remove(0);
    assert_eq!(finding.cause, Some(Cause::AutotuningOff));
    assert_eq!(finding.remedy, Some(turn_on("net.ipv4.tcp_moderate_rcvbuf", "ams1")));
}

#[test]
fn reader_that_pauses_is_not_a_full_path() {
    // A window that had been 8 MiB and closes in every third sample; bursts fill a queue meanwhile.
    let mut m = Shape { goodput_mbps: 92.0, rtt_loaded: 88 * MS, rwnd_limited: Some(0.6), ..WINDOW_BOUND }
        .measurement();
    m.directions[0].each_way_ns = Some(each_way([12, 12], [70, 12]));
    for (i, sample) in m.directions[0].sent.iter_mut().enumerate() {
        sample.snd_wnd_bytes = Some(if i % 3 == 2 { 0 } else { 8 * MIB });
    }
    let finding = explain(Direction::To, &m).remove(0);
    assert_eq!((finding.limit, finding.confidence), (Limit::SlowReader, Confidence::Medium), "{finding:#?}");
    assert_eq!(finding.place, Place::receiver("ams1"));
    let shrunk = finding.observed(Fact::WindowShrunk).unwrap();
    assert_eq!((shrunk.other(0), shrunk.at_least), (8.0 * MIB as f64, Some(0.15)));
    assert_eq!(shrunk.samples, Some(Samples { met: 33, of: 100 }));
    // Its process did not run: the samples of the receiver say so as well.
    let at = |i: u64| ReceiverSample { at_ns: i * 100 * MS, bytes: i * 1_150_000, ..Default::default() };
    m.directions[0].received = (0..100).filter(|i| i % 20 < 10).map(at).collect();
    let finding = explain(Direction::To, &m).remove(0);
    assert_eq!((finding.limit, finding.confidence), (Limit::SlowReader, Confidence::High), "{finding:#?}");
    assert_eq!(finding.cause, Some(Cause::Paused));
    assert_eq!(finding.observed(Fact::ReceiverPaused).unwrap().value, 1.1e9);
    // A window that grows, and is full, is read by someone.
    m.directions[0].received.clear();
    for (i, sample) in m.directions[0].sent.iter_mut().enumerate() {
        sample.snd_wnd_bytes = Some((i as u64 + 1) * 80 * 1024);
    }
    assert_eq!(explain(Direction::To, &m).remove(0).limit, Limit::PathRate);
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
    assert_eq!(explain(Direction::To, &m).remove(0).limit, Limit::Unknown);
    // A lost segment holds back what came after it, once a second; what was held back is read at once.
    let held_back = |i: u64| if i % 10 == 3 { 1_150_000 } else { 0 };
    let at = |i: u64| ReceiverSample {
        at_ns: i * 100 * MS,
        bytes: i * 1_150_000 - held_back(i),
        ..Default::default()
    };
    m.directions[0].received = (0..=100).map(at).collect();
    assert_eq!(explain(Direction::To, &m).remove(0).limit, Limit::PathRate);
    // Half of the rate for half of the time is no steady one.
    let at = |i: u64| ReceiverSample {
        at_ns: i * 100 * MS,
        bytes: (i + i.saturating_sub(50)) * 1_150_000,
        ..Default::default()
    };
    m.directions[0].received = (0..=100).map(at).collect();
    assert_eq!(explain(Direction::To, &m).remove(0).limit, Limit::Unknown);
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
    assert_eq!(Shape { steady: 0.85, ..short.clone() }.finding().limit, Limit::Unknown);
    // A window that is full explains as much.
    let window = Shape { rtt_loaded: 27_200_000, goodput_mbps: 300.0, ..WINDOW_BOUND };
    assert_eq!(window.finding().limit, Limit::ReceiveWindow);
}

#[test]
fn send_buffer_that_large_writes_overrun_is_found_though_the_kernel_does_not_count_it() {
    // In most samples a tenth of the congestion window is in flight, and bursts fill a queue.
    let dry = Shape {
        goodput_mbps: 61.0,
        in_flight: 60 * MSS,
        cwnd: 600 * MSS,
        receive_window: 2 * MIB,
        rwnd_limited: Some(0.0),
        sndbuf_limited: Some(0.0),
        send_buffer: 65_536,
        rtt_loaded: 36 * MS,
        ..WINDOW_BOUND
    };
    let of = |shape: &Shape, largest: &str, congestion: &str| {
        let mut m = shape.measurement();
        m.near.sysctls.insert("net.ipv4.tcp_wmem".into(), format!("4096 16384 {largest}"));
        m.directions[0].congestion_control = congestion.to_owned();
        explain(Direction::To, &m).remove(0)
    };
    let finding = of(&dry, "65536", "cubic");
    assert_eq!((finding.limit, finding.confidence), (Limit::SendBuffer, Confidence::Medium), "{finding:#?}");
    assert_eq!(finding.cause, Some(Cause::BufferRunsDry));
    let buffer = finding.observed(Fact::BufferBelowNeed).unwrap();
    assert_eq!((buffer.value, (buffer.other(2) / 1024.0).round()), (65_536.0, 180.0));
    assert_eq!(buffer.at_most, Some(buffer.other(2)));
    // One that may still grow, a pacer, and a buffer that holds a round trip are something else.
    for (shape, largest, congestion) in [
        (&dry, "4194304", "cubic"),
        (&dry, "65536", "bbr"),
        (&Shape { send_buffer: 300_000, ..dry.clone() }, "300000", "cubic"),
        (&Shape { in_flight: 590 * MSS, ..dry.clone() }, "65536", "cubic"),
    ] {
        let finding = of(shape, largest, congestion);
        assert_ne!(finding.cause, Some(Cause::BufferRunsDry), "{finding:#?}");
    }
}
