//! What each key becomes.

use bdp_model::case::CaseFlow;
use bdp_model::flow::socket::{SocketNumbers, SocketOption};
use bdp_model::link::{DirectionConfig, LinkConfig, Medium};

use super::*;

#[test]
fn what_is_absent_has_its_default() {
    let all = plan("title = 't'\n[link]\nbetween = ['a', 'b']\n[flow]\n");
    let [case] = all.as_slice() else { panic!("{} cases", all.len()) };
    assert_eq!((case.family, case.idle, case.key().as_str()), (Family::Ipv4, Nanos::secs(1), "#1"));
    assert_eq!(case.hosts.iter().map(|h| h.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(case.links[0].config, Default::default());
    let flow = &case.flows[0];
    assert_eq!(
        (flow.from.as_str(), flow.to.as_str(), flow.spec.congestion.as_deref().unwrap()),
        ("a", "b", "cubic")
    );
    assert_eq!((flow.spec.window, flow.spec.mss, flow.spec.bytes, flow.spec.streams), (None, None, None, 1));
    assert_eq!((flow.spec.duration, flow.spec.omit), (Nanos::secs(10), Nanos::secs(2)));
    assert_eq!((flow.spec.length, flow.window_method), (ByteCount::kib(128), WindowMethod::Auto));
}

#[test]
fn a_link_key_is_both_directions_and_a_direction_has_the_last_word() {
    let text = r#"title = "t"
family = "ipv6"
idle = 0
[hosts.far]
congestion = "bbr"
[hosts.far.sysctls]
net.ipv4.tcp_sack = false
"net.ipv4.tcp_rmem" = "4096 8192 8192"
[[link]]
between = ["near", "far"]
rate = "2M"
delay = "50ms"
loss = "5%"
limit = 8
overhead = 0
mtu = 9000
window_scale = 3
[link.reverse]
rate = "none"
loss = { every = 100 }
limit = "64KiB"
window_scale = "strip"
window_field_max = 1000
[[flow]]
direction = "reverse"
mss = 8940
window = "56kB"
window_method = "path"
streams = 3
nodelay = true
bytes = "10M"
duration = "1min"
"#;
    let case = &plan(text)[0];
    assert_eq!((case.family, case.idle), (Family::Ipv6, Nanos::ZERO));
    // Declared hosts come first, then those that links name.
    assert_eq!(case.hosts.iter().map(|h| h.name.as_str()).collect::<Vec<_>>(), ["far", "near"]);
    let sysctls: Vec<_> = case.hosts[0].sysctls.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(sysctls, [("net.ipv4.tcp_rmem", "4096 8192 8192"), ("net.ipv4.tcp_sack", "0")]);
    let (forward, reverse) = (&case.links[0].config.forward, &case.links[0].config.reverse);
    assert_eq!((forward.rate, reverse.rate), (Some(Rate::mbps(2)), None));
    assert_eq!((forward.delay, reverse.delay), (Nanos::millis(50), Nanos::millis(50)));
    assert_eq!(forward.loss, Loss::Independent(Probability::new(0.05).unwrap()));
    assert_eq!(reverse.loss, Loss::Periodic(100));
    assert_eq!(
        (forward.limit, reverse.limit),
        (QueueLimit::Packets(8), QueueLimit::Bytes(ByteCount::kib(64)))
    );
    assert_eq!(forward.rewrite.window_scale, Some(WindowScaleRewrite::Set(3)));
    assert_eq!(reverse.rewrite.window_scale, Some(WindowScaleRewrite::Strip));
    assert_eq!((forward.rewrite.window_field_max, reverse.rewrite.window_field_max), (None, Some(1000)));
    assert_eq!((forward.overhead_bytes, case.links[0].config.mtu), (0, 9000));
    let flow = &case.flows[0];
    assert_eq!((flow.from.as_str(), flow.spec.congestion.as_deref().unwrap()), ("far", "bbr"));
    assert_eq!(
        (flow.spec.mss, flow.spec.window, flow.spec.streams),
        (Some(8940), WindowBytes::new(56_000), 3)
    );
    assert_eq!((flow.window_method, flow.spec.nodelay), (WindowMethod::Path, true));
    assert_eq!((flow.spec.bytes, flow.spec.duration), (Some(ByteCount::kib(10 * 1024)), Nanos::secs(60)));
}

#[test]
fn each_socket_option_that_is_a_number_is_a_key_of_a_flow() {
    let with = |line: &str| BASE.replace("[[flow]]\n", &format!("[[flow]]\n{line}\n"));
    for option in SocketOption::all() {
        let most = option.most.min(1 << 20);
        for typed in [most.to_string(), format!("'{}'", option.typed(most))] {
            let flow = &plan(&with(&format!("{} = {typed}", option.member)))[0].flows[0];
            let expected = SocketNumbers::of(|one| (one == option).then_some(most));
            assert_eq!(flow.spec.socket, expected, "{typed}");
            let record = serde_json::to_value(flow).unwrap();
            assert_eq!(record[option.member], most);
            assert_eq!(&serde_json::from_value::<CaseFlow>(record).unwrap(), flow);
        }
        assert_eq!(plan(&with(&format!("{} = 'default'", option.member))), plan(BASE));
        if option.most < u64::MAX {
            let message = error(&with(&format!("{} = {}", option.member, option.most + 1)));
            assert!(message.contains(&option.range()), "{message}");
        }
    }
    assert!(serde_json::to_value(&plan(BASE)[0].flows[0]).unwrap().get("priority").is_none());
    let of_udp = error(&with("protocol = 'udp'\nrate = '1M'\nunsent_limit = '64K'"));
    assert!(of_udp.contains("unsent_limit belongs to the other protocol"), "{of_udp}");
    let stepped = error(&format!("clock = 'virtual'\nstack = 'smoltcp'\n{}", with("priority = 3")));
    assert!(stepped.contains("SO_PRIORITY is an option of kernels"), "{stepped}");
}

#[test]
fn queue_limits_have_three_forms() {
    for (limit, expected) in [
        ("1000", QueueLimit::Packets(1000)),
        ("'250p'", QueueLimit::Packets(250)),
        ("'250'", QueueLimit::Packets(250)),
        ("'64K'", QueueLimit::Bytes(ByteCount::kib(64))),
        ("'2000B'", QueueLimit::Bytes(ByteCount::bytes(2000))),
        ("'none'", QueueLimit::Unlimited),
    ] {
        let text = BASE.replace("delay = \"20ms\"", &format!("limit = {limit}"));
        assert_eq!(plan(&text)[0].links[0].config.reverse.limit, expected, "{limit}");
    }
}

#[test]
fn captures_are_asked_for_by_end_or_by_host() {
    for (names, word, expected) in [
        (["near", "far"], "near", [true, false]),
        (["near", "far"], "far", [false, true]),
        (["near", "far"], "both", [true, true]),
        (["near", "far"], "none", [false, false]),
        (["ams", "fra"], "near", [true, false]),
        (["ams", "fra"], "fra", [false, true]),
        (["far", "near"], "far", [true, false]),
        (["far", "router"], "near", [true, false]),
        (["router", "near"], "near", [false, true]),
    ] {
        let [first, second] = names;
        let text = format!(
            "title = 't'\n[link]\nbetween = ['{first}', '{second}']\ncapture = '{word}'\ncapture_snap = 96\n\
             [flow]\nfrom = '{first}'\nto = '{second}'\n"
        );
        let link = &plan(&text)[0].links[0];
        assert_eq!((link.capture, link.capture_snap), (expected, 96), "{word} of {names:?}");
    }
}

#[test]
fn every_example_of_the_reference_is_a_scenario() {
    let examples = examples(include_str!("../../../../docs/scenario.md"));
    assert_eq!(examples.len(), 9);
    for example in examples {
        assert!(!plan(example).is_empty());
    }
}

fn examples(text: &str) -> Vec<&str> {
    text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_example_of_the_emulator_has_every_impairment() {
    let [example] = examples(include_str!("../../../../docs/emulator.md")).try_into().expect("one example");
    let configs: Vec<LinkConfig> = plan(example).into_iter().map(|c| c.links[0].config.clone()).collect();
    let direction = |has: fn(&DirectionConfig) -> bool| configs.iter().filter(|c| has(&c.forward)).count();
    assert_eq!(
        [
            direction(|d| d.rewrite.window_field_max.is_some()),
            direction(|d| d.rewrite.window_scale.is_some()),
            direction(|d| d.drop_above.is_some()),
            direction(|d| matches!(d.loss, Loss::Independent(_))),
            direction(|d| matches!(d.loss, Loss::Periodic(_))),
            direction(|d| matches!(d.loss, Loss::List(_))),
            direction(|d| matches!(d.loss, Loss::GilbertElliott { .. })),
            direction(|d| d.corrupt.fraction() > 0.0),
            direction(|d| d.duplicate.fraction() > 0.0),
            direction(|d| d.policer.is_some()),
            direction(|d| matches!(d.limit, QueueLimit::Bytes(_))),
            direction(|d| d.ecn_threshold.is_some()),
            direction(|d| d.jitter.is_some()),
            direction(|d| d.reorder.is_some()),
            configs.iter().filter(|c| c.medium != Medium::FullDuplex).count(),
        ],
        [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 1, 1]
    );
}

#[test]
fn every_default_of_the_reference_is_the_default() {
    let spelled_out = r#"title = "t"
family = "ipv4"
seed = 1
repetitions = 1
idle = "1s"
probe = "udp"
[hosts.near]
router = false
routes = []
[[link]]
between = ["near", "far"]
mtu = 1500
rate = "none"
delay = 0
loss = "none"
limit = 1000
overhead = 38
window_field_max = "none"
window_scale = "keep"
capture = "none"
capture_snap = 65535
[[flow]]
from = "near"
to = "far"
direction = "forward"
window = "auto"
window_method = "auto"
streams = 1
length = "128K"
mss = "default"
congestion = "cubic"
nodelay = false
start = 0
duration = "10s"
omit = "2s"
bytes = "none"
background = false
"#;
    let short = "title = 't'\n[link]\nbetween = ['near', 'far']\n[flow]\n";
    assert_eq!(plan(spelled_out), plan(short));
    // Seconds need no unit.
    let bare = spelled_out.replace("\"10s\"", "10").replace("\"2s\"", "2.0").replace("\"1s\"", "'1'");
    assert_eq!(plan(&bare), plan(short));
}
