use bdp_model::record::breach::{Cause, Delayed, HarmSeen, OtherProgram, Place};
use bdp_model::record::{Excess, HostFidelity};

use super::*;

const US: u64 = 1_000;

/// A window-limited flow on an undisturbed path of 40 ms.
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

#[test]
fn a_clock_that_stands_still_knows_no_lateness() {
    let mut seen = good();
    seen.directions[1].release_lateness_ns.max = 5_001;
    assert!(judge(seen.clone(), &Bounds::default()).valid);
    seen.still = true;
    let broken = judge(seen.clone(), &Bounds::default()).broken;
    assert_eq!(broken, [Breach::ReleasedLate { link: "far->near".to_owned(), late_ns: 5_001 }]);
    seen.directions[1].release_lateness_ns.max = 5_000;
    assert!(judge(seen, &Bounds::default()).valid);
}

#[test]
fn the_last_of_few_datagrams_breaks_nothing() {
    let mut seen = good();
    let mut valid = |sent_of_asked, one| {
        seen.flows[0].datagrams = Some(DatagramsSeen { sent_of_asked, one, edges: 0.0 });
        judge(seen.clone(), &Bounds::default()).valid
    };
    // 17 datagrams in the time of 16.
    assert!(valid(17.0 / 16.0, 1.0 / 16.0));
    assert!(!valid(18.0 / 16.0, 1.0 / 16.0));
    assert!(!valid(1.03, 0.001));
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

/// A hundred probes that all took this long beyond their links.
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

fn broken(seen: Observation) -> Vec<Breach> {
    judge(seen, &Bounds::default()).broken
}

#[test]
fn a_good_case_is_valid() {
    let fidelity = judge(good(), &Bounds::default());
    assert!(fidelity.valid, "{:?}", fidelity.broken);
    assert_eq!(fidelity.cause, []);
    assert!(fidelity.flows[0].harm < 0.001, "{:?}", fidelity.flows);
}

/// The case that was once OK: a path of 2.55 ms whose round trips took 5.9 ms at the median and 2.7 at least.
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
    assert!(matches!(broken[0], Breach::IdleBeyond { excess_ns: 3_350_000, .. }), "{broken:?}");
    let Breach::Harm { harm, places, .. } = &broken[1] else { panic!("{broken:?}") };
    assert!(*harm > 0.99, "{broken:?}");
    assert_eq!(places[0], Delayed { place: Place::Host("far".to_owned()), ns: 3_350_000 });
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
        let Breach::Harm { harm, bound, seen_by: HarmSeen::Packets, beyond_ns, .. } = broken[0] else {
            panic!("{broken:?}")
        };
        assert!((0.0685..0.0695).contains(&harm) && bound == 0.04, "{broken:?}");
        assert!((3_015_000..=3_025_000).contains(&beyond_ns), "{broken:?}");
    }
}

/// Links that a flow does not cross have no influence: a fast link among slow ones hides nothing and spoils nothing.
#[test]
fn each_flow_is_judged_by_the_links_that_it_crosses() {
    let mut seen = good();
    seen.directions.extend(good().directions);
    seen.directions[3].release_lateness_ns =
        Lateness { count: 1_000_000, mean: 9_000 * US, ..Default::default() };
    assert_eq!(broken(seen.clone()), []);
    seen.loops.push(on_loop("h1 and h2", 40, 1));
    seen.flows.push(FlowSeen {
        name: "h1->h2".to_owned(),
        on_loop: 1,
        way: vec![2, 3],
        ..Default::default()
    });
    let broken = broken(seen);
    let Breach::Harm { flow, harm, .. } = &broken[0] else { panic!("{broken:?}") };
    assert!(flow == "h1->h2" && (0.175..0.185).contains(harm), "{broken:?}");
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
    assert_eq!(broken(seen.clone()), []);
    seen.slept = true;
    assert_eq!(broken(seen.clone()), []);
    seen.flows[0].segments = 220.0;
    let bunched = broken(seen.clone());
    let Breach::Harm { harm, bound, .. } = bunched[0] else { panic!("{bunched:?}") };
    assert!((0.0295..0.0305).contains(&harm) && bound == 0.02, "{bunched:?}");
    seen.flows[0].busy = Some(0.97);
    assert_eq!(broken(seen), []);
}

#[test]
fn without_an_answer_nothing_is_ok() {
    let mut seen = good();
    seen.loops[0] = Loop { rtt_idle: None, idle: None, loaded: None, ..seen.loops[0].clone() };
    assert_eq!(broken(seen.clone())[0], Breach::NoAnswer { between: None });
    // A scenario without idle time is judged by the probes under load.
    seen.loops[0].probed_idle = false;
    assert_eq!(broken(seen), []);
}

#[test]
fn an_idle_round_trip_that_is_never_right_is_not_ok() {
    let mut seen = good();
    seen.loops[0].rtt_idle = Some((Nanos::micros(40_500), Nanos::micros(40_500)));
    assert_eq!(broken(seen.clone()), []);
    seen.loops[0].rtt_idle = Some((Nanos::micros(40_700), Nanos::micros(40_700)));
    let above = |excess, configured, bound| Breach::IdleAbove {
        between: None,
        excess_ns: excess * US,
        configured_ns: configured * US,
        bound_ns: bound * US,
    };
    assert_eq!(broken(seen.clone())[0], above(700, 40_000, 650));
    seen.loops[0].jitter = true;
    assert_eq!(broken(seen), []);
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
    assert_eq!(broken(seen.clone()), []);
    seen.loops[0] = connects(43_000, false);
    let late = broken(seen.clone());
    let is_late = |breach: &Breach| {
        matches!(breach, Breach::IdleBeyond { excess_ns: 3_000_000, configured_ns: 40_000_000, .. })
    };
    assert!(is_late(&late[0]), "{late:?}");
    seen.loops[0] = connects(43_000, true);
    assert_eq!(broken(seen), []);
}

#[test]
fn jitter_may_shorten_the_round_trip_by_what_it_has() {
    let mut seen = good();
    seen.loops[0].rtt_idle = Some((Nanos::millis(37), Nanos::millis(40)));
    let below = |idle, configured| Breach::IdleBelow {
        between: None,
        idle_ns: idle * US,
        configured_ns: configured * US,
    };
    assert_eq!(broken(seen.clone())[0], below(37_000, 40_000));
    seen.loops[0].rtt_least = Nanos::millis(36);
    assert_eq!(broken(seen.clone()), []);
    seen.loops[0].rtt_idle = Some((Nanos::millis(35), Nanos::millis(40)));
    assert_eq!(broken(seen)[0], below(35_000, 36_000));
}

/// 5 Mbit/s were requested in the background, and 4.29 were sent.
#[test]
fn a_sender_of_datagrams_that_missed_its_rate_is_not_ok() {
    let mut seen = good();
    let datagrams = |sent_of_asked, edges| Some(DatagramsSeen { sent_of_asked, one: 0.001, edges });
    seen.flows.push(FlowSeen {
        datagrams: datagrams(0.858, 0.0),
        name: "h3->h4".to_owned(),
        ..Default::default()
    });
    let fell_short = Breach::SentOfAsked { flow: "h3->h4".to_owned(), share: 0.858, bound: 0.02 };
    assert_eq!(broken(seen.clone()), [fell_short]);
    seen.flows[1].datagrams = datagrams(0.985, 0.0);
    assert_eq!(broken(seen.clone()), []);
    // A pause at the start of counting moves earlier packets into the counted time.
    seen.flows[1].datagrams = datagrams(1.0, 0.06);
    assert!(matches!(broken(seen)[0], Breach::Harm { seen_by: HarmSeen::Edges, .. }));
}

#[test]
fn the_cause_names_who_took_the_processors_and_what_to_do() {
    let other = |name: &str, process, processors| OtherProgram { name: name.to_owned(), process, processors };
    let mut seen = good();
    seen.loops[0].loaded = Some(excess(40_000 * US, 9_000 * US));
    assert_eq!(judge(seen.clone(), &Bounds::default()).cause, [Cause::Unknown]);
    seen.watched.others = vec![other("rustc", 30, 0.9), other("stress", 31, 0.7)];
    seen.host_cpu = (1.0, 0.13);
    seen.shared = true;
    let programs = Cause::Programs { named: seen.watched.others.clone(), count: 2, processors: 1.6, of: 2 };
    let causes = judge(seen.clone(), &Bounds::default()).cause;
    assert_eq!(causes, [programs, Cause::Hypervisor { share: 0.13 }, Cause::OtherCases]);
    seen.watched.others.clear();
    seen.host_cpu = (1.0, 0.0);
    seen.shared = false;
    seen.watched.hosts = vec![HostFidelity { running: 0.5, ..Default::default() }; 2];
    assert_eq!(judge(seen, &Bounds::default()).cause, [Cause::OwnHosts { share: 1.0 }]);
}

#[test]
fn each_bound_breaks_by_itself() {
    type Spoil = fn(&mut Observation);
    type Is = fn(&Breach) -> bool;
    fn is_harm_at(breach: &Breach, place: &Place) -> bool {
        matches!(breach, Breach::Harm { places, .. } if places[0].place == *place)
    }
    let spoils: [(Is, Spoil); 8] = [
        (|b| is_harm_at(b, &Place::Emulator), |o| o.directions[0].unread_ns.mean = 5_000 * US),
        (
            |b| is_harm_at(b, &Place::Host("far".to_owned())),
            |o| o.loops[0].loaded = Some(excess(40_000 * US, 4_000 * US)),
        ),
        (
            |b| matches!(b, Breach::IdleBeyond { .. }),
            |o| o.loops[0].idle = Some(excess(40_000 * US, 4_000 * US)),
        ),
        (|b| matches!(b, Breach::NotConserved { .. }), |o| o.directions[0].conserved = false),
        (
            |b| matches!(b, Breach::DeviceDrops { packets: 1, .. }),
            |o| {
                o.directions[0].dropped.insert("device_in".to_owned(), 1);
            },
        ),
        (|b| matches!(b, Breach::Rate { .. }), |o| o.directions[0].rate_achieved_bps = Some(1_006_000.0)),
        (|b| matches!(b, Breach::Loss { .. }), |o| o.directions[0].loss_achieved = 0.002),
        (
            |b| *b == Breach::LinkFailed { error: "unplugged".to_owned() },
            |o| o.faults.push("unplugged".to_owned()),
        ),
    ];
    for (is_it, spoil) in spoils {
        let mut seen = good();
        spoil(&mut seen);
        let fidelity = judge(seen, &Bounds::default());
        assert!(!fidelity.valid && fidelity.broken.len() == 1, "{:?}", fidelity.broken);
        assert!(is_it(&fidelity.broken[0]), "{:?}", fidelity.broken);
    }
}

/// Probes give the mean over moments: a tenth of the time at next to no rate costs a tenth, not ten times as much.
#[test]
fn a_long_pause_costs_the_time_it_takes() {
    let allowance = Allowance::of(1, Nanos::millis(2));
    let harm = |beyond_us: u64| harm_at(2_000 * US, beyond_us * US, allowance.round_trip);
    assert_eq!(harm(100), 0.0);
    assert!((harm(300) - 200.0 / 2_100.0).abs() < 1e-6, "{}", harm(300));
    assert_eq!(harm(100_000), 1.0);
}
