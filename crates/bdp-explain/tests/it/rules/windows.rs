//! Windows and buffers.

use bdp_model::finding::fact::{self, Bytes};
use bdp_model::finding::{
    Action, Cause, Confidence, Fact, Finding, Lack, Limit, Missing, Place, Quantity, Remedy, Samples, Unit,
};
use bdp_model::measurement::{Direction, Measurement};
use bdp_model::units::Nanos;

use crate::rules::shape::{MIB, MS, MSS, Shape, WINDOW_BOUND, explain};

#[test]
fn a_receive_window_is_told_with_its_numbers() {
    let finding = WINDOW_BOUND.finding();
    assert_eq!((&finding.place, finding.cause), (&Place::receiver("ams1"), Some(Cause::RmemMaximum)));
    let facts: Vec<Fact> = finding.evidence.iter().map(|evidence| evidence.fact).collect();
    assert_eq!(facts, [Fact::OfWindowRate, Fact::WindowFull, Fact::SettingMaximum, Fact::KernelCountsWindow]);
    let of_rate = &finding.evidence[0];
    assert_eq!((of_rate.unit, of_rate.at_least), (Unit::Share, Some(0.7)));
    assert!((of_rate.value - 0.975).abs() < 0.001, "{of_rate:?}");
    let fact::OfWindowRate { window, round_trip, .. } = of_rate.figures().unwrap();
    assert_eq!((window, round_trip), (Bytes(MIB as f64), Nanos(24_200_000)));
    let full = &finding.evidence[1];
    assert_eq!((full.value, full.at_least), (0.96, Some(0.5)));
    assert_eq!(full.samples, Some(Samples { met: 96, of: 100 }));
    let most = &finding.evidence[2];
    assert_eq!((most.value, most.name.as_deref()), (2.0 * MIB as f64, Some("net.ipv4.tcp_rmem")));
    let next = finding.next.unwrap();
    assert_eq!((next.limit, (next.goodput_bps / 1e6).round()), (Limit::SendBuffer, 693.0));
    assert_eq!((next.needed_bytes.unwrap() / MIB as f64 * 100.0).round(), 200.0);
    let remedy = finding.remedy.unwrap();
    assert_eq!((remedy.action, remedy.host.as_deref()), (Action::RaiseMaximum, Some("ams1")));
    // The buffer is twice the window, which has room for a little more than rate x RTT.
    assert_eq!((remedy.value.unwrap() / MIB as f64 * 100.0).round(), 625.0);
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
fn window_of_several_streams_is_that_of_all() {
    let of = |others_mbps: f64| {
        let all = 338.0 + others_mbps;
        let mut m =
            Shape { goodput_mbps: all, nics: [Some(10_000_000_000); 2], ..WINDOW_BOUND }.measurement();
        m.request.spec.streams = 4;
        m.directions[0].stream_goodput_bps =
            vec![338e6, others_mbps / 3.0 * 1e6, others_mbps / 3.0 * 1e6, others_mbps / 3.0 * 1e6];
        explain(Direction::To, &m).remove(0)
    };
    let finding = of(3.0 * 338.0);
    assert_eq!(finding.limit, Limit::ReceiveWindow);
    let of_rate = finding.observed(Fact::OfWindowRate).unwrap();
    assert!((of_rate.value - 0.975).abs() < 0.001, "{of_rate:?}");
    // 4 x 1 MiB in 24.2 ms.
    let fact::OfWindowRate { carries, streams, .. } = of_rate.figures().unwrap();
    assert_eq!(((carries.0 / 1e6).round(), streams), (1387.0, Some(4)));
    assert!(finding.next.unwrap().goodput_bps > 4.0 * 338e6);
    // Others that have far more than such a window carries have larger ones.
    assert_ne!(of(3.0 * 900.0).limit, Limit::ReceiveWindow);
}

#[test]
fn a_maximum_that_is_enough_is_not_raised() {
    // A buffer of which little is window: what 941 Mbit/s need of it is less than tcp_rmem allows already.
    let mut m = Shape {
        goodput_mbps: 880.0,
        in_flight: 27 * MIB / 10,
        receive_window: 27 * MIB / 10,
        cwnd: 8 * MIB,
        ..WINDOW_BOUND
    }
    .measurement();
    m.directions[0].window.socket_buffer_bytes = Some(64 * MIB);
    m.far.sysctls.insert("net.ipv4.tcp_rmem".into(), format!("4096 131072 {}", 64 * MIB));
    let finding = explain(Direction::To, &m).remove(0);
    assert_eq!((finding.cause, &finding.remedy), (Some(Cause::RmemMaximum), &None), "{finding:#?}");
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
    m.request.spec.window = bdp_model::flow::window::WindowBytes::new(1 << 20);
    assert!(explain(Direction::To, &m)[0].observed(Fact::SettingMaximum).is_none());
}

#[test]
fn what_was_omitted_is_not_judged() {
    let mut m = Shape { share: 0.3, rwnd_limited: None, ..WINDOW_BOUND }.measurement();
    assert_eq!(explain(Direction::To, &m).remove(0).limit, Limit::Unknown);
    m.directions[0].omit_ns = 7000 * MS;
    assert_eq!(explain(Direction::To, &m).remove(0).limit, Limit::ReceiveWindow);
}

#[test]
fn asked_window_that_binds_is_named_with_its_option() {
    let mut m = WINDOW_BOUND.measurement();
    m.request.spec.window = bdp_model::flow::window::WindowBytes::new(1 << 20);
    let finding = explain(Direction::To, &m).remove(0);
    assert_eq!((finding.limit, finding.cause), (Limit::ReceiveWindow, Some(Cause::WindowAsked)));
    let asked = finding.observed(Fact::WindowAsked).unwrap();
    assert_eq!((asked.value, asked.name.as_deref()), (MIB as f64, Some("-w")));
    // Seldom full by the samples, as behind a pacer, and the kernel counts it all the time.
    let seldom = Shape { share: 0.35, rwnd_limited: Some(0.97), ..WINDOW_BOUND };
    assert_eq!(seldom.finding().limit, Limit::ReceiveWindow);
    let denied = Shape { goodput_mbps: 200.0, ..seldom }.finding();
    assert_eq!((denied.limit, denied.confidence), (Limit::ReceiveWindow, Confidence::Low), "more fits it");
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
    assert_eq!(buffer.value, 1_500_000.0);
    assert_eq!(buffer.figures(), Some(fact::BufferBelowMaximum { maximum: Bytes(2.0 * MIB as f64) }));
    assert_eq!(finding.missing, [Missing::new(Lack::WindowBound)]);
    m.far.sysctls.insert("net.ipv4.tcp_moderate_rcvbuf".into(), "0".into());
    let finding = explain(Direction::To, &m).remove(0);
    assert_eq!(finding.cause, Some(Cause::AutotuningOff));
    assert_eq!(finding.remedy, Some(turn_on("net.ipv4.tcp_moderate_rcvbuf", "ams1")));
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
    let needed = buffer.figures::<fact::BufferBelowNeed>().unwrap().needed.0;
    assert_eq!((buffer.value, (needed / 1024.0).round()), (65_536.0, 180.0));
    assert_eq!(buffer.at_most, Some(needed));
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
