//! Remedies beside the facts: what each may not advise, and that the plan of the same facts does what they say.

use bdp_explain::plan::{Wish, measured};
use bdp_model::facts::{Facts, SocketFacts, Source};
use bdp_model::finding::{Action, Cause, Finding, Limit, Quantity, Remedy};
use bdp_model::flow::connection::Connection;
use bdp_model::measurement::ends::End;
use bdp_model::measurement::experiment::{Change, Experiment};
use bdp_model::measurement::{Direction, Measurement};
use bdp_model::probes::{ProbeOutcome, ProbePoint, ProbeSeries};
use bdp_model::record::LossEpisode;
use bdp_model::tuning::{Plan, Target, Why};
use bdp_model::units::ByteCount;

use crate::rules::shape::{FULL_PATH, MIB, MS, Shape, WINDOW_BOUND, explain, lost, plain, retransmit};

const RMEM: &str = "net.ipv4.tcp_rmem";
const WMEM: &str = "net.ipv4.tcp_wmem";
const SCALING: &str = "net.ipv4.tcp_window_scaling";
const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";

fn first(m: &Measurement) -> Finding {
    explain(Direction::To, m).remove(0)
}

fn plan(m: &Measurement) -> Plan {
    measured(None, m, &Wish::default(), |_| None)
}

fn set(m: &mut Measurement, end: End, name: &str, value: &str) {
    let host = if end == End::Near { &mut m.near } else { &mut m.far };
    host.sysctls.insert(name.to_owned(), value.to_owned());
}

/// The largest number that the plan gives a setting at an end.
fn planned(plan: &Plan, end: End, name: &str) -> Option<f64> {
    let change = plan.changes.iter().find(|c| c.end == end && c.target == Target::sysctl(name))?;
    change.to.split(' ').next_back()?.parse().ok()
}

/// A send buffer of 1 MiB, which holds half of that in flight.
fn send_buffer_bound() -> Measurement {
    let shape = Shape {
        goodput_mbps: 174.0,
        in_flight: MIB / 2,
        receive_window: 8 * MIB,
        send_buffer: MIB,
        share: 1.0,
        rwnd_limited: Some(0.0),
        sndbuf_limited: Some(0.9),
        ..WINDOW_BOUND
    };
    let mut m = shape.measurement();
    set(&mut m, End::Near, WMEM, "4096 16384 1048576");
    m
}

/// Losses at rates that differ by a lot, whose remedy may name the sender's congestion control.
fn random_loss(change: impl FnOnce(&mut Facts)) -> Option<String> {
    let mut facts = plain();
    retransmit(&mut facts, 12);
    facts.loss_episodes = (0..12).map(|i| lost(8 * i + 4, [20, 42, 31, 60][i as usize % 4])).collect();
    facts.asked.congestion = None;
    change(&mut facts);
    let finding = bdp_explain::unweighed(&facts).remove(0);
    let remedy = finding.remedy.unwrap_or_else(|| panic!("{:?}", finding.limit));
    assert!(matches!(remedy.action, Action::FindErrors | Action::AddCapacity | Action::DeepenQueue));
    remedy.setting
}

#[test]
fn bbr_is_advised_to_a_sender_that_can_run_it_and_does_not() {
    let sysctl = Some("net.ipv4.tcp_congestion_control".to_owned());
    assert_eq!(random_loss(|_| ()), sysctl);
    let kernel_has = |all: &'static str| {
        random_loss(move |facts| {
            facts.sender.host.sysctls.insert(AVAILABLE.into(), all.into());
        })
    };
    assert_eq!(kernel_has("reno cubic bbr"), sysctl);
    assert_eq!(kernel_has("reno cubic"), None, "the plan refuses it, too");
    // What was asked for is asked for anew.
    assert_eq!(random_loss(|facts| facts.asked.congestion = Some("cubic".into())).as_deref(), Some("-C"));
    let mut facts = plain();
    for name in ["bbr", "bbr2", "bbr3"] {
        facts.congestion_control = name.to_owned();
        assert!(facts.sends_by_model() && facts.is_paced(), "{name}");
        for action in bdp_explain::unweighed(&facts).into_iter().filter_map(|finding| finding.remedy) {
            assert_eq!(action.setting.filter(|setting| setting.contains("congestion")), None, "{name}");
        }
    }
}

#[test]
fn a_buffer_that_bdp_locked_is_asked_for_anew() {
    let mut m = WINDOW_BOUND.measurement();
    m.request.spec.socket_buffer = Some(ByteCount::kib(1024));
    let remedy = first(&m).remedy.unwrap();
    assert_eq!((remedy.action, remedy.setting.as_deref()), (Action::AskSocketBuffer, Some("--sockbuf")));
    let mut m = send_buffer_bound();
    assert_eq!(first(&m).remedy.unwrap().setting.as_deref(), Some(WMEM));
    m.request.spec.socket_buffer = Some(ByteCount::kib(512));
    let finding = first(&m);
    let remedy = finding.remedy.unwrap();
    assert_eq!((finding.limit, finding.cause), (Limit::SendBuffer, Some(Cause::SocketBufferAsked)));
    assert_eq!((remedy.action, remedy.setting.as_deref()), (Action::AskSocketBuffer, Some("--sockbuf")));
    assert_eq!(plan(&m).changes, []);
}

#[test]
fn a_window_that_was_asked_for_locks_no_send_buffer() {
    let mut m = send_buffer_bound();
    m.request.spec.window = ByteCount::kib(8192).try_into().ok();
    let finding = first(&m);
    let remedy = finding.remedy.unwrap();
    assert_eq!((finding.limit, remedy.setting.as_deref()), (Limit::SendBuffer, Some(WMEM)));
    let plan = plan(&m);
    assert_eq!(planned(&plan, End::Near, WMEM), remedy.value);
    assert_eq!(planned(&plan, End::Far, RMEM), None, "-w stands in its stead");
}

#[test]
fn a_buffer_that_another_program_locked_is_left_to_its_call() {
    let watched = |m: &Measurement, lock: fn(&mut Facts)| {
        let mut facts = Facts::measured(m, Direction::To).unwrap();
        facts.source = Source::Watched;
        lock(&mut facts);
        bdp_explain::unweighed(&facts).remove(0)
    };
    let asked = |finding: Finding| {
        let remedy = finding.remedy.unwrap();
        (remedy.action, remedy.setting.unwrap(), remedy.host.unwrap())
    };
    let receiver = |asked| SocketFacts { receive_buffer_asked: Some(asked), ..SocketFacts::default() };
    let by_program = (Action::AskSocketBuffer, "SO_RCVBUF".to_owned(), "ams1".to_owned());
    let m = WINDOW_BOUND.measurement();
    assert_eq!(asked(watched(&m, |f| f.receiver.socket = None)).0, Action::RaiseMaximum);
    let unlocked = watched(&m, |f| f.receiver.socket = Some(SocketFacts::default()));
    assert_eq!(asked(unlocked).0, Action::RaiseMaximum);
    let mut facts = Facts::measured(&m, Direction::To).unwrap();
    facts.source = Source::Watched;
    facts.receiver.socket = Some(receiver(true));
    assert_eq!(asked(bdp_explain::unweighed(&facts).remove(0)), by_program);
    let m = send_buffer_bound();
    let locked = watched(&m, |f| {
        let socket = SocketFacts { send_buffer_asked: Some(true), ..SocketFacts::default() };
        f.sender.socket = Some(socket);
    });
    assert_eq!(asked(locked), (Action::AskSocketBuffer, "SO_SNDBUF".to_owned(), "fra1".to_owned()));
}

#[test]
fn without_window_scaling_neither_remedy_nor_plan_is_a_larger_buffer() {
    let unscaled = |far: &str| {
        let mut m = Shape { receive_window: 65_535, in_flight: 65_535, goodput_mbps: 21.1, ..WINDOW_BOUND }
            .measurement();
        m.directions[0].window.socket_buffer_bytes = Some(131_070);
        m.directions[0].sender_window_scaling = Some(false);
        m.directions[0].receiver_window_scaling = Some(false);
        set(&mut m, End::Near, SCALING, "1");
        set(&mut m, End::Far, SCALING, far);
        // Its buffer is as large as it may be, besides.
        set(&mut m, End::Far, RMEM, "4096 131072 131072");
        m
    };
    let stripped = unscaled("1");
    assert_eq!(first(&stripped).remedy, Some(Remedy::new(Action::PassWindowScaling)));
    assert_eq!(plan(&stripped).changes, []);
    let off = unscaled("0");
    let turned_on = Remedy::new(Action::Set).setting(SCALING).value(Quantity::count(1)).host("ams1");
    assert_eq!(first(&off).remedy, Some(turned_on));
    assert_eq!(planned(&plan(&off), End::Far, SCALING), Some(1.0));
}

fn more_streams(goodput_bps: f64) -> Experiment {
    Experiment {
        direction: Direction::To,
        change: Change::Streams { streams: 4 },
        between: Vec::new(),
        duration_ns: 2000 * MS,
        omit_ns: 500 * MS,
        bytes: (goodput_bps / 4.0) as u64,
        goodput_bps,
        retransmits: Some(0),
        loss_events: 0,
        rtt_added_ns: Some(0),
        own_rtt_added_ns: Some(0),
        host_paused_ns: None,
        burst: None,
    }
}

#[test]
fn no_window_is_larger_than_what_the_path_carries_needs() {
    // 338 Mbit/s by a window of 1 MiB; the devices carry 941.
    let of = |experiments: Vec<Experiment>| {
        let mut m = WINDOW_BOUND.measurement();
        m.experiments = experiments;
        let finding = first(&m);
        assert_eq!(finding.limit, Limit::ReceiveWindow);
        (finding.next, finding.remedy.unwrap(), plan(&m))
    };
    let (next, remedy, plan) = of(Vec::new());
    assert!(next.unwrap().goodput_bps > 600e6);
    assert_eq!(planned(&plan, End::Far, RMEM), remedy.value);
    // Four connections had 500 together: each had less than it had alone.
    let (next, remedy, plan) = of(vec![more_streams(500e6)]);
    let next = next.unwrap();
    assert_eq!((next.limit, next.goodput_bps), (Limit::PathRate, 500e6));
    // 500 Mbit/s x 24.1 ms is 1.44 MiB; with room, half of a buffer: 3.3 MiB.
    assert!((3.2..3.4).contains(&(remedy.value.unwrap() / MIB as f64)), "{remedy:?}");
    assert_eq!(planned(&plan, End::Far, RMEM), remedy.value);
    assert_eq!(plan.path.directions[0].rate_bps, Some(500e6));
    // Four windows hold four times as much: they say nothing of the path.
    assert!(of(vec![more_streams(1300e6)]).0.unwrap().goodput_bps > 600e6);
    // One that a host disturbed says nothing.
    let paused = Experiment { host_paused_ns: Some(300 * MS), ..more_streams(500e6) };
    assert!(of(vec![paused]).0.unwrap().goodput_bps > 600e6);
}

#[test]
fn what_binds_next_is_not_named_if_nobody_knows_what_the_path_carries() {
    let mut m = WINDOW_BOUND.measurement();
    set(&mut m, End::Near, WMEM, "4096 16384 4194304");
    assert!(first(&m).next.is_some());
    m.ceiling = None;
    let finding = first(&m);
    assert_eq!(
        (finding.next, finding.remedy.unwrap().value),
        (None, None),
        "a window of 2 MiB carries nothing on a path of 50 Mbit/s"
    );
}

#[test]
fn a_window_that_holds_all_that_the_path_carries_is_not_to_be_larger() {
    let mut m = WINDOW_BOUND.measurement();
    m.request.spec.window = ByteCount::kib(1024).try_into().ok();
    assert_eq!(first(&m).remedy.unwrap().action, Action::AskWindow);
    m.experiments = vec![more_streams(340e6)];
    assert_eq!(first(&m).remedy, None);
}

#[test]
fn a_buffer_that_may_still_grow_is_not_laid_to_its_maximum() {
    let mut m = send_buffer_bound();
    set(&mut m, End::Near, WMEM, "4096 16384 4194304");
    let finding = first(&m);
    assert_eq!((finding.limit, finding.remedy), (Limit::SendBuffer, None));
    assert_eq!(planned(&plan(&m), End::Near, WMEM), None);
}

#[test]
fn memory_that_the_host_lacks_is_not_advised() {
    let mut m = WINDOW_BOUND.measurement();
    // TCP saves memory from 4 MiB on.
    set(&mut m, End::Far, "net.ipv4.tcp_mem", "768 1024 1536");
    assert_eq!(first(&m).remedy, None);
    assert!(plan(&m).refused.iter().any(|refused| matches!(refused.why, Why::Memory { .. })));
}

#[test]
fn a_full_path_is_not_planned_larger_buffers_beside_a_smaller_window() {
    let mut m = FULL_PATH.measurement();
    // Less than twice rate x round trip, and a queue stands all the same.
    set(&mut m, End::Far, RMEM, "4096 131072 250000");
    set(&mut m, End::Near, WMEM, "4096 16384 250000");
    let remedy = first(&m).remedy.unwrap();
    assert_eq!(remedy.action, Action::SmallerWindow);
    // 50 Mbit/s x 24.1 ms, and a little more.
    assert!((150_000.0..180_000.0).contains(&remedy.value.unwrap()), "{remedy:?}");
    let plan = plan(&m);
    assert_eq!((planned(&plan, End::Far, RMEM), planned(&plan, End::Near, WMEM)), (None, None));
}

/// What a remedy says of a setting, the plan of the same facts does, or says why not; and it does nothing to a buffer of which the remedy says something else.
#[test]
fn plan_and_remedy_agree() {
    let mut raised = 0;
    for case in 0..2u32.pow(9) {
        let is = |bit: u32| case >> bit & 1 == 1;
        let mut m = if is(0) { WINDOW_BOUND.measurement() } else { send_buffer_bound() };
        set(&mut m, End::Near, WMEM, if is(1) { "4096 16384 1048576" } else { "4096 16384 67108864" });
        set(&mut m, End::Far, RMEM, if is(2) { "4096 131072 2097152" } else { "4096 131072 33554432" });
        if is(3) {
            m.request.spec.window = ByteCount::kib(1024).try_into().ok();
        }
        if is(4) {
            m.request.spec.socket_buffer = Some(ByteCount::kib(1024));
        }
        if is(5) {
            set(&mut m, End::Far, "net.ipv4.tcp_mem", "768 1024 1536");
        }
        if is(6) {
            m.experiments = vec![more_streams(600e6)];
        }
        if is(7) {
            m.directions[0].window.socket_buffer_bytes = Some(8 * MIB);
        }
        if is(8) {
            m.directions[0].send_buffer_bytes = Some(67_108_864);
        }
        let plan = plan(&m);
        for remedy in explain(Direction::To, &m).into_iter().take(1).map(|finding| finding.remedy) {
            let of = |end, name: &str| {
                let remedy = remedy.as_ref().filter(|r| r.setting.as_deref() == Some(name));
                (remedy.and_then(|remedy| remedy.value), planned(&plan, end, name))
            };
            for (said, done) in [of(End::Far, RMEM), of(End::Near, WMEM)] {
                if said.is_some() {
                    raised += 1;
                    assert_eq!(said, done, "{case:09b}: {remedy:?} beside {:?}", plan.refused);
                }
            }
            let is_asked = |r: &Remedy| matches!(r.action, Action::AskWindow | Action::AskSocketBuffer);
            if remedy.as_ref().is_none_or(is_asked) {
                assert_eq!(plan.changes, [], "{case:09b}: {remedy:?}");
            }
        }
    }
    assert!(raised > 20, "{raised}");
}

/// A queue of 20 ms before each of twelve losses.
fn congestion(change: impl FnOnce(&mut Facts)) -> Remedy {
    let mut facts = plain();
    retransmit(&mut facts, 12);
    let at = |i: u64| LossEpisode { srtt_ns: 44 * MS, ..lost(8 * i + 4, [12, 40, 20, 33][i as usize % 4]) };
    facts.loss_episodes = (0..12).map(at).collect();
    facts.asked.congestion = None;
    change(&mut facts);
    let finding = bdp_explain::unweighed(&facts).remove(0);
    let remedy = finding.remedy.unwrap();
    assert_eq!(remedy.action, Action::AddCapacity, "{:?}", finding.limit);
    remedy
}

#[test]
fn a_longer_queue_is_advised_if_the_bottleneck_is_idle_at_times() {
    let remedy = congestion(|_| ());
    // The peak of 36 Mbit/s x 24.1 ms.
    let bytes = remedy.value.unwrap();
    assert!((100_000.0..115_000.0).contains(&bytes) && remedy.setting.is_some(), "{remedy:?}");
    // It has all of its peak: only a faster bottleneck carries more.
    let full = congestion(|facts| {
        for sample in &mut facts.sent {
            sample.delivery_rate_bps = Some(20_400_000);
        }
    });
    assert_eq!((full.value, full.setting), (None, None));
    // The queue was as long as that already.
    let long = congestion(|facts| {
        for episode in &mut facts.loss_episodes {
            episode.srtt_ns = 60 * MS;
        }
    });
    assert_eq!(long.value, None, "{long:?}");
}

#[test]
fn errors_beside_a_connection_without_sack_take_both() {
    let mut facts = plain();
    retransmit(&mut facts, 12);
    facts.loss_episodes = (0..12).map(|i| lost(8 * i + 4, [12, 40, 20, 33][i as usize % 4])).collect();
    let remedy = |facts: &Facts| bdp_explain::explain(facts).remove(0).remedy.unwrap();
    assert_eq!((remedy(&facts).action, remedy(&facts).also), (Action::FindErrors, None));
    facts.connection = Some(Connection { sack: Some(false), ..Connection::default() });
    facts.sender.host.sysctls.insert("net.ipv4.tcp_sack".into(), "0".into());
    let both = remedy(&facts);
    assert_eq!((both.action, both.setting), (Action::FindErrors, None));
    assert_eq!(both.also, Some(Box::new(Remedy::new(Action::EnableSack).host("fra1"))));
}

#[test]
fn a_window_is_not_made_smaller_if_that_empties_no_queue_or_the_path_became_longer() {
    let of = |rtt_loaded: u64, change: &dyn Fn(&mut Facts)| {
        let shape = Shape { rtt_loaded, ..FULL_PATH };
        let mut facts = Facts::measured(&shape.measurement(), Direction::To).unwrap();
        facts.probes = None;
        change(&mut facts);
        let finding = bdp_explain::explain(&facts).remove(0);
        assert_eq!(finding.limit, Limit::PathRate, "{finding:#?}");
        finding.remedy.unwrap()
    };
    assert_eq!(of(124 * MS, &|_| ()).action, Action::SmallerWindow);
    // Six milliseconds are hardly more than what acknowledgements wait for.
    assert_eq!(of(31 * MS, &|_| ()).action, Action::AddCapacity);
    // The least round trip of the second half is that of another path.
    let probes = |second: u64| {
        move |facts: &mut Facts| {
            let point = |i: i64| ProbePoint {
                due_ns: i * 50_000_000,
                sent_ns: i * 50_000_000,
                outcome: ProbeOutcome::Answered(if i < 100 { 124 * MS } else { second * MS }),
                there_ns: None,
                back_ns: None,
                host_ns: None,
                echoed: None,
            };
            facts.probes = Some(ProbeSeries { counted_ns: None, points: (0..200).map(point).collect() });
        }
    };
    assert_eq!(of(124 * MS, &probes(124)).action, Action::SmallerWindow);
    assert_eq!(of(124 * MS, &probes(170)).action, Action::AddCapacity);
}
