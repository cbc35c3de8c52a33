//! The scenarios that ship: complete, and with the numbers of the experiments.

use super::*;

fn cases(name: &str) -> Vec<CaseSpec> {
    let (name, text) = find(name).unwrap();
    let scenario = Scenario::parse(name, text).unwrap_or_else(|e| panic!("{e}"));
    scenario.plan(&PlanOptions::default()).unwrap()
}

fn rtt(case: &CaseSpec) -> Nanos {
    case.links[0].config.forward.delay + case.links[0].config.reverse.delay
}

#[test]
fn all_parse_plan_and_say_where_they_come_from() {
    let on_disk: BTreeSet<String> =
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios"))
            .unwrap()
            .filter_map(|e| e.unwrap().file_name().to_str()?.strip_suffix(".toml").map(str::to_owned))
            .collect();
    let inside: BTreeSet<String> = shipped().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(on_disk, inside, "scenarios/ and shipped.rs differ");
    for (name, text) in shipped() {
        let scenario = Scenario::parse(name, text).unwrap_or_else(|e| panic!("{e}"));
        assert!(scenario.about.len() > 100 && !scenario.source.is_empty(), "{name}");
        let cases = scenario.plan(&PlanOptions::default()).unwrap();
        let unique: BTreeSet<String> = keys(&cases).into_iter().collect();
        assert_eq!(unique.len(), cases.len(), "{name} has two cases of one key");
        for case in &cases {
            // What is stored is what is run again.
            let json = serde_json::to_string(case).unwrap();
            assert_eq!(&serde_json::from_str::<CaseSpec>(&json).unwrap(), case, "{name}");
        }
    }
    assert_eq!(find("S3-30K.toml").map(|(name, _)| name), Some("s3-30k"));
    assert!(find("s9").is_none());
}

#[test]
fn datagrams_are_offered_as_the_source_offered_them() {
    let all = cases("s1-udp");
    let [case] = all.as_slice() else { panic!("{} cases", all.len()) };
    let udp = case.flows[0].spec.udp.clone().unwrap();
    assert_eq!((udp.rate_bps, udp.datagram_bytes), (Some(110_000_000), Some(1470)));
    assert_eq!(case.published_bps, Some(Published::Number(98.0e6)));
    assert_eq!(case.links[0].config.forward.overhead_bytes, 0);
    let all = cases("s1-starve");
    let flows = &all[0].flows;
    assert_eq!((&flows[0].spec.udp, flows[0].spec.window.map(WindowBytes::as_bytes)), (&None, Some(131_072)));
    let udp = flows[1].spec.udp.clone().unwrap();
    assert_eq!((udp.rate_bps, flows[1].spec.streams, flows[1].background), (Some(29_000_000), 10, true));
    assert!(all[0].expect.goodput_max_bps.is_some_and(|most| most < 5_350_000));
}

#[test]
fn numbers_are_those_of_the_experiments() {
    for (name, rtt_ms, window, streams, published) in [
        ("s1-64k", 173.0, Some(65_536), 1, Published::Number(2.77e6)),
        ("s1-128k", 173.0, Some(131_072), 1, Published::Number(5.35e6)),
        ("s1-streams", 173.0, Some(131_072), 10, Published::Number(47.8e6)),
        ("s3-base", 0.94, None, 1, Published::Number(1.01e9)),
        ("s3-noscale", 51.0, None, 1, Published::Range([10.0e6, 10.6e6])),
        ("s3-30k", 41.0, Some(30_720), 1, Published::Range([5.57e6, 5.60e6])),
    ] {
        let all = cases(name);
        let [case] = all.as_slice() else { panic!("{name} has {} cases", all.len()) };
        assert_eq!(rtt(case).as_millis_f64(), rtt_ms, "{name}");
        let flow = &case.flows[0];
        assert_eq!(flow.spec.window.map(WindowBytes::as_bytes), window, "{name}");
        assert_eq!(flow.spec.streams, streams, "{name}");
        assert_eq!(flow.spec.congestion.as_deref(), Some("reno"), "{name}");
        assert_eq!(case.published_bps, Some(published), "{name}");
        let bar = (name != "s3-base").then(|| Probability::new(0.05).unwrap());
        assert_eq!(case.expect.model_within, bar, "{name}");
        let scaling_off = case.hosts[1].sysctls.get("net.ipv4.tcp_window_scaling").is_some_and(|v| v == "0");
        assert_eq!(scaling_off, ["s3-noscale", "s3-30k"].contains(&name), "{name}");
    }
    for case in cases("s3-oneway") {
        assert_eq!(rtt(&case).as_millis_f64(), 41.0);
    }
    assert_eq!(cases("s3-loss").len(), 24);
}

#[test]
fn curves_are_judged_up_to_half_and_from_twice_rate_x_rtt() {
    for (name, bdp_bytes, minimum) in
        [("s0-window-i", 318_750, 885_000_000), ("s0-window-ii", 27_256, 78_700_000)]
    {
        for case in cases(name) {
            let window = case.flows[0].spec.window.unwrap().as_bytes();
            let bars = (case.expect.model_within.map(Probability::fraction), case.expect.goodput_min_bps);
            let expected = match window {
                w if w <= bdp_bytes / 2 => (Some(0.12), None),
                w if w >= 2 * bdp_bytes => (None, Some(minimum)),
                _ => (None, None),
            };
            assert_eq!(bars, expected, "{name} {window}");
            let plateau = (window < 1448).then_some(Published::Number(5e4));
            assert_eq!(case.published_bps, plateau, "{name} {window}");
        }
    }
    let both: Vec<CaseSpec> = cases("s0-window-i");
    assert_eq!((both[0].flows[0].from.as_str(), both[20].flows[0].from.as_str()), ("near", "far"));
    assert_eq!(both.last().unwrap().flows[0].spec.window, WindowBytes::new(128 << 20));
}

#[test]
fn the_middlebox_is_judged_only_where_both_sides_agree() {
    let all = cases("s1-scale");
    let judged: Vec<_> = all
        .iter()
        .filter(|c| c.expect != Default::default())
        .map(|c| c.links[0].config.forward.rewrite.window_scale)
        .collect();
    assert_eq!(judged, [None, Some(WindowScaleRewrite::Strip)]);
    assert_eq!(all[2].links[0].config.reverse.rewrite.window_scale, Some(WindowScaleRewrite::Set(0)));
}

#[test]
fn connects_are_timed_below_and_above_what_the_path_holds() {
    let all = cases("s0-latency");
    assert_eq!(all.len(), 4);
    for case in &all {
        assert_eq!(case.probe, ProbeKind::TcpConnect);
        let rate = case.links[0].config.forward.rate.unwrap();
        let expected = if rate == Rate::mbps(1000) { 2.55 } else { 2.45 };
        assert_eq!(rtt(case).as_millis_f64(), expected);
        let held = rate.as_bps() as f64 * rtt(case).as_secs_f64() / 8.0;
        let window = case.flows[0].spec.window.unwrap().as_bytes() as f64;
        assert!(window <= held / 1.6 || window >= 2.0 * held, "{window} of {held}");
        assert_eq!(case.expect.model_within.is_some(), window < held);
    }
}

#[test]
fn streams_are_judged_up_to_twenty() {
    for case in cases("s0-streams") {
        let streams = case.flows[0].spec.streams;
        assert_eq!(case.flows[0].spec.window, WindowBytes::new(56_000));
        assert_eq!(
            case.expect != Default::default(),
            streams <= 3 || (10..=20).contains(&streams),
            "{streams}"
        );
        let published = match streams {
            1 => Some(Published::Number(2e8)),
            10..=20 => Some(Published::Number(9e8)),
            _ => None,
        };
        assert_eq!(case.published_bps, published);
    }
}

#[test]
fn lengths_have_the_published_means_beside_them() {
    let all = cases("s2-length");
    let means = |rate: u64| -> Vec<(u64, f64)> {
        all.iter()
            .filter(|c| c.links[0].config.forward.rate == Some(Rate::mbps(rate)))
            .filter_map(|c| match c.published_bps {
                Some(Published::Number(bps)) => Some((c.flows[0].spec.length.as_bytes() / 1024, bps / 1e3)),
                _ => None,
            })
            .collect()
    };
    let wan =
        [(4, 1244.0), (8, 1420.0), (16, 2587.0), (32, 2641.0), (64, 2777.0), (128, 2781.0), (512, 2725.0)];
    assert_eq!(means(3), wan);
    let lan = [135_804.0, 174_218.0, 216_412.0, 277_207.0, 276_555.0, 277_591.0, 278_917.0];
    assert_eq!(means(300), wan.iter().zip(lan).map(|(&(length, _), bps)| (length, bps)).collect::<Vec<_>>());
    for case in &all {
        assert_eq!(case.expect != Default::default(), case.published_bps.is_some());
        assert_eq!(case.flows[0].spec.nodelay, case.published_bps.is_none());
    }
}

#[test]
fn of_a_black_hole_nothing_is_expected() {
    let all = cases("s2-mss");
    for case in &all {
        let swallows = case.links[1].config.forward.drop_above == Some(1500);
        let jumbo = case.flows[0].spec.mss.is_none_or(|mss| mss > 1460) && case.links[1].config.mtu == 9000;
        let probes = !case.hosts[0].sysctls.is_empty();
        let nothing = case.expect.goodput_max_bps == Some(0);
        assert_eq!(nothing, swallows && jumbo && !probes, "{}", case.key());
        assert_eq!(case.expect.model_within.is_some(), !(swallows && jumbo), "{}", case.key());
    }
    assert_eq!(all.iter().filter(|c| c.expect.goodput_max_bps == Some(0)).count(), 1);
}

#[test]
fn the_reverse_flow_is_background_between_two_routers() {
    for case in cases("s4-reverse") {
        let line = &case.links[2].config;
        for direction in [&line.forward, &line.reverse] {
            assert_eq!((direction.rate, direction.delay), (Some(Rate::mbps(2)), Nanos::millis(50)));
            assert_eq!(direction.limit, QueueLimit::Packets(8));
        }
        let routers: Vec<&str> = case.hosts.iter().filter(|h| h.router).map(|h| h.name.as_str()).collect();
        assert_eq!(routers, ["r1", "r2"]);
        let flows: Vec<_> =
            case.flows.iter().map(|f| (f.from.as_str(), f.to.as_str(), f.background)).collect();
        assert_eq!(flows, [("h1", "h2", false), ("h4", "h3", true)]);
        let means: Vec<_> = case.published_rows.iter().map(|row| row.mean_bps.unwrap()).collect();
        assert_eq!(means, [1.296e6, 1.242e6, 1.205e6, 1.024e6, 1.352e6]);
    }
}

#[test]
fn both_directions_lose_and_each_kernel_has_each_congestion_control_with_and_without_sack() {
    let cases = cases("s4-loss");
    let first: Vec<_> = cases.iter().filter(|case| case.repetition == 1).collect();
    assert_eq!((first.len(), cases.len()), (30, 300));
    let line = &first[0].links[2].config;
    for direction in [&line.forward, &line.reverse] {
        assert_eq!((direction.rate, direction.delay), (Some(Rate::mbps(2)), Nanos::millis(100)));
        assert_eq!(direction.loss, Loss::Independent(Probability::new(0.05).unwrap()));
    }
    let without = first.iter().filter(|case| case.hosts[0].tcp.sack == Some(false)).count();
    assert_eq!(without, 15);
    let row = &first[0].published_rows[0];
    assert_eq!(
        (row.name.as_str(), row.min_bps, row.sd_bps),
        ("Linux 2.6.10", Some(164_380.0), Some(22_750.0))
    );
    assert!(cases.iter().all(|case| case.published_rows.len() == 6 && case.published_bps.is_none()));
}

#[test]
fn the_tables_of_stacks_run_by_the_real_clock_too() {
    for name in ["s4-loss", "s4-reverse"] {
        let (name, text) = find(name).unwrap();
        let overrides = [("clock", "real"), ("stack", "linux")].map(|(p, v)| (p.to_owned(), v.to_owned()));
        let options = PlanOptions { overrides: overrides.to_vec(), ..PlanOptions::default() };
        let cases = Scenario::parse(name, text).unwrap().plan(&options).unwrap();
        assert_eq!(cases.len(), 100);
    }
}
