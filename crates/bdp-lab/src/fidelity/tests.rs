use bdp_model::record::{Excess, HostFidelity, OtherProgram};

use super::*;

const US: u64 = 1_000;

/// A window-limited flow on a path of 40 ms that nothing disturbed.
fn good() -> Observation {
    let direction = |name: &str| DirectionFidelity {
        name: name.to_owned(),
        packets_in: 1000,
        packets_out: 1000,
        conserved: true,
        rate_configured_bps: Some(1_000_000),
        rate_achieved_bps: Some(1_001_000.0),
        loss_tolerance: 0.001,
        release_lateness_ns: Lateness { count: 1000, mean: 5 * US, ..Default::default() },
        unread_ns: Lateness { count: 1000, mean: 5 * US, ..Default::default() },
        ..Default::default()
    };
    Observation {
        directions: vec![direction("near->far"), direction("far->near")],
        loops: vec![on_loop("near and far", 40, 1)],
        flows: vec![FlowSeen { name: "near->far".to_owned(), way: vec![0, 1], ..Default::default() }],
        host_cpu: (0.5, 0.0),
        cpus: 2,
        ..Default::default()
    }
}

fn on_loop(ends: &str, ms: u64, links: usize) -> Loop {
    let rtt = Nanos::millis(ms);
    Loop {
        ends: ends.to_owned(),
        links,
        rtt_configured: rtt,
        rtt_least: rtt,
        rtt_idle: Some((rtt, rtt)),
        probed_idle: true,
        idle: Some(excess(rtt.as_ns(), 120 * US)),
        loaded: Some(excess(rtt.as_ns(), 120 * US)),
        ..Default::default()
    }
}

/// A hundred probes that all took so much beyond their links.
fn excess(emulated_ns: u64, beyond_ns: u64) -> Excess {
    let allowance = Allowance::of(1, Nanos(emulated_ns));
    let harm = harm_at(emulated_ns, beyond_ns, allowance.round_trip);
    Excess {
        probes: 100,
        emulated_mean_ns: emulated_ns,
        mean_ns: beyond_ns,
        p50_ns: beyond_ns,
        far_ns: beyond_ns,
        harm,
        ..Default::default()
    }
}

fn broken(seen: Observation) -> Vec<String> {
    judge(seen, &Bounds::default()).broken
}

#[test]
fn a_good_case_is_valid() {
    let fidelity = judge(good(), &Bounds::default());
    assert!(fidelity.valid, "{:?}", fidelity.broken);
    assert_eq!(fidelity.cause, None);
    assert!(fidelity.flows[0].harm < 0.001, "{:?}", fidelity.flows);
}

/// The case that was once OK: a path of 2.55 ms on which round trips took 5.9 ms at the median and the least of them 2.7.
#[test]
fn a_round_trip_that_is_twice_the_configured_one_is_not_ok_because_the_least_was_right() {
    let configured = Nanos::micros(2_550);
    let mut seen = good();
    seen.loops[0] = Loop {
        rtt_configured: configured,
        rtt_least: configured,
        rtt_idle: Some((Nanos::micros(2_700), Nanos::micros(5_900))),
        idle: Some(Excess { p50_ns: 3_350 * US, ..excess(2_550 * US, 3_350 * US) }),
        loaded: Some(excess(2_550 * US, 3_350 * US)),
        ..seen.loops[0].clone()
    };
    let broken = broken(seen);
    assert_eq!(broken.len(), 2, "{broken:?}");
    assert!(broken[0].contains("half of the idle probes took 3.35 ms or more"), "{broken:?}");
    assert!(broken[1].contains("took about 100 % of its goodput"), "{broken:?}");
    assert!(broken[1].contains("3.35 ms in far"), "{broken:?}");
}

#[test]
fn packets_that_lie_unread_count_as_those_that_leave_late() {
    for spoil in
        [(|d: &mut DirectionFidelity| d.unread_ns.mean = 3_000 * US) as fn(&mut DirectionFidelity), |d| {
            d.release_lateness_ns.mean = 3_000 * US
        }]
    {
        let mut seen = good();
        spoil(&mut seen.directions[1]);
        let broken = broken(seen);
        assert!(
            broken[0].contains("about 6.9 % of its goodput (bound 4.0 %): packets took 3.02 ms"),
            "{broken:?}"
        );
    }
}

/// Links that a flow does not cross are not its own: a fast link among slow ones hides nothing and spoils nothing.
#[test]
fn each_flow_is_judged_by_the_links_that_it_crosses() {
    let mut seen = good();
    seen.directions.extend(good().directions);
    seen.directions[3].release_lateness_ns =
        Lateness { count: 1_000_000, mean: 9_000 * US, ..Default::default() };
    assert_eq!(broken(seen.clone()), [""; 0]);
    seen.loops.push(on_loop("h1 and h2", 40, 1));
    seen.flows.push(FlowSeen {
        name: "h1->h2".to_owned(),
        on_loop: 1,
        way: vec![2, 3],
        ..Default::default()
    });
    assert!(broken(seen)[0].starts_with("h1->h2: the emulation took about 18 %"));
}

#[test]
fn a_queue_that_never_empties_hides_what_round_trips_lose() {
    let mut seen = good();
    seen.loops[0].loaded = Some(excess(40_000 * US, 9_000 * US));
    assert_eq!(broken(seen.clone()).len(), 1);
    seen.flows[0].busy = Some(0.5);
    assert_eq!(broken(seen.clone()).len(), 1);
    seen.flows[0].busy = Some(0.97);
    let fidelity = judge(seen, &Bounds::default());
    assert!(fidelity.valid && (fidelity.flows[0].harm - 0.03).abs() < 1e-9, "{:?}", fidelity.flows);
}

#[test]
fn many_segments_from_a_driver_that_had_to_sleep_have_half_of_the_bound() {
    let mut seen = good();
    seen.loops[0].loaded = Some(excess(40_000 * US, 1_500 * US));
    assert_eq!(broken(seen.clone()), [""; 0]);
    seen.slept = true;
    assert_eq!(broken(seen.clone()), [""; 0]);
    seen.flows[0].segments = 220.0;
    assert!(broken(seen.clone())[0].contains("about 3.0 % of its goodput (bound 2.0 %)"));
    seen.flows[0].busy = Some(0.97);
    assert_eq!(broken(seen), [""; 0]);
}

#[test]
fn without_an_answer_nothing_is_ok() {
    let mut seen = good();
    seen.loops[0] = Loop { rtt_idle: None, idle: None, loaded: None, ..seen.loops[0].clone() };
    assert!(broken(seen.clone())[0].contains("no probe was answered"));
    // A scenario that asks for no idle time is judged by what was probed under load.
    seen.loops[0].probed_idle = false;
    assert_eq!(broken(seen), [""; 0]);
}

#[test]
fn an_idle_round_trip_that_is_never_right_is_not_ok() {
    let mut seen = good();
    seen.loops[0].rtt_idle = Some((Nanos::micros(40_500), Nanos::micros(40_500)));
    assert_eq!(broken(seen.clone()), [""; 0]);
    seen.loops[0].rtt_idle = Some((Nanos::micros(40_700), Nanos::micros(40_700)));
    assert!(
        broken(seen.clone())[0]
            .contains("idle RTT 700 us above the configured 40 ms at least (bound 650 us)")
    );
    seen.loops[0].jitter = true;
    assert_eq!(broken(seen), [""; 0]);
}

#[test]
fn idle_connections_are_judged_by_their_whole_round_trip() {
    let mut seen = good();
    let connects = |median_us: u64, jitter| Loop {
        rtt_idle: Some((Nanos::millis(40), Nanos::micros(median_us))),
        idle: None,
        loaded: None,
        jitter,
        ..on_loop("near and far", 40, 1)
    };
    seen.loops[0] = connects(41_000, false);
    assert_eq!(broken(seen.clone()), [""; 0]);
    seen.loops[0] = connects(43_000, false);
    assert!(broken(seen.clone())[0].contains("took 3 ms or more beyond the links' 40 ms"));
    seen.loops[0] = connects(43_000, true);
    assert_eq!(broken(seen), [""; 0]);
}

#[test]
fn jitter_may_shorten_the_round_trip_by_what_it_has() {
    let mut seen = good();
    seen.loops[0].rtt_idle = Some((Nanos::millis(37), Nanos::millis(40)));
    assert!(broken(seen.clone())[0].contains("below the configured 40 ms"));
    seen.loops[0].rtt_least = Nanos::millis(36);
    assert_eq!(broken(seen.clone()), [""; 0]);
    seen.loops[0].rtt_idle = Some((Nanos::millis(35), Nanos::millis(40)));
    assert!(broken(seen)[0].contains("below the configured 36 ms"));
}

/// 5 Mbit/s were asked in the background, and 4.29 were sent.
#[test]
fn a_sender_of_datagrams_that_missed_its_rate_is_not_ok() {
    let mut seen = good();
    let datagrams = |sent_of_asked, edges| Some(DatagramsSeen { sent_of_asked, edges });
    seen.flows.push(FlowSeen {
        datagrams: datagrams(0.858, 0.0),
        name: "h3->h4".to_owned(),
        ..Default::default()
    });
    assert_eq!(broken(seen.clone()), ["h3->h4: its host sent 86 % of what was asked (bound 2.0 % off)"]);
    seen.flows[1].datagrams = datagrams(0.985, 0.0);
    assert_eq!(broken(seen.clone()), [""; 0]);
    // A pause where counting begins moves what was sent before it into what is counted.
    seen.flows[1].datagrams = datagrams(1.0, 0.06);
    assert!(broken(seen)[0].contains("late where counting began or ended"));
}

#[test]
fn the_cause_names_who_took_the_processors_and_what_to_do() {
    let other = |name: &str, process, processors| OtherProgram { name: name.to_owned(), process, processors };
    let mut seen = good();
    seen.loops[0].loaded = Some(excess(40_000 * US, 9_000 * US));
    assert!(judge(seen.clone(), &Bounds::default()).cause.unwrap().starts_with("unknown; neither"));
    seen.watched.others = vec![other("rustc", 30, 0.9), other("stress", 31, 0.7)];
    seen.host_cpu = (1.0, 0.13);
    seen.shared = true;
    assert_eq!(
        judge(seen.clone(), &Bounds::default()).cause.unwrap(),
        "rustc (process 30) and stress (process 31) took 1.6 of 2 processors: run when they have ended; the hypervisor \
         took 13 % of the processors; other cases ran beside it: --jobs 1 runs each alone"
    );
    seen.watched.others.clear();
    seen.host_cpu = (1.0, 0.0);
    seen.shared = false;
    seen.watched.hosts = vec![HostFidelity { running: 0.5, ..Default::default() }; 2];
    assert!(judge(seen, &Bounds::default()).cause.unwrap().contains("its own hosts used 100 %"));
}

#[test]
fn each_bound_breaks_by_itself() {
    type Spoil = fn(&mut Observation);
    let spoils: [(&str, Spoil); 8] = [
        ("unread by the emulator", |o| o.directions[0].unread_ns.mean = 5_000 * US),
        ("in far", |o| o.loops[0].loaded = Some(excess(40_000 * US, 4_000 * US))),
        ("half of the idle probes", |o| o.loops[0].idle = Some(excess(40_000 * US, 4_000 * US))),
        ("packets in", |o| o.directions[0].conserved = false),
        ("TUN devices", |o| {
            o.directions[0].dropped.insert("device_in".to_owned(), 1);
        }),
        ("rate", |o| o.directions[0].rate_achieved_bps = Some(1_006_000.0)),
        ("loss", |o| o.directions[0].loss_achieved = 0.002),
        ("unplugged", |o| o.faults.push("unplugged".to_owned())),
    ];
    for (word, spoil) in spoils {
        let mut seen = good();
        spoil(&mut seen);
        let fidelity = judge(seen, &Bounds::default());
        assert!(!fidelity.valid, "{word}");
        assert_eq!(fidelity.broken.len(), 1, "{word}: {:?}", fidelity.broken);
        assert!(fidelity.broken[0].contains(word), "{word}: {:?}", fidelity.broken);
    }
}

/// What probes say is the mean of moments: a tenth of the time at next to no rate costs a tenth, not ten times as much.
#[test]
fn a_long_pause_costs_the_time_it_takes() {
    let allowance = Allowance::of(1, Nanos::millis(2));
    let harm = |beyond_us: u64| harm_at(2_000 * US, beyond_us * US, allowance.round_trip);
    assert_eq!(harm(100), 0.0);
    assert!((harm(300) - 200.0 / 2_100.0).abs() < 1e-6, "{}", harm(300));
    assert_eq!(harm(100_000), 1.0);
}
