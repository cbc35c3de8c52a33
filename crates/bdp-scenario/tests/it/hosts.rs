//! The clock, the kernels of hosts, and the settings of their TCP.

use bdp_model::case::stack::Clock;
use bdp_model::case::tcp_settings::{Ecn, TcpSettings};

use super::*;

const VIRTUAL: &str = "clock = 'virtual'\n";

#[test]
fn the_real_clock_and_the_machines_kernel_are_the_default() {
    let case = &plan(BASE)[0];
    assert_eq!((case.clock, case.stack()), (Clock::Real, None));
    assert!(case.hosts.iter().all(|host| host.tcp == TcpSettings::default()));
    // So plans and records of before are what they were.
    let json = serde_json::to_value(case).unwrap();
    assert_eq!(json.get("clock"), None);
    let keys: Vec<&String> = json["hosts"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["name", "sysctls", "router", "routes"]);
}

#[test]
fn a_clock_is_chosen_by_the_file_the_sweep_and_the_command_line() {
    assert_eq!(plan(&format!("{VIRTUAL}{BASE}"))[0].clock, Clock::Virtual);
    let swept = plan(&format!("{BASE}[sweep]\nclock = ['real', 'virtual']\n"));
    assert_eq!(swept.iter().map(|c| c.clock).collect::<Vec<_>>(), [Clock::Real, Clock::Virtual]);
    let text = format!("{BASE}[published]\ngoodput = '1M'\n");
    let (real, by_virtual) = (plan(&text), plan_with(&text, &set("clock", "virtual")));
    assert_eq!(by_virtual[0].clock, Clock::Virtual);
    assert_eq!(real[0].seed, by_virtual[0].seed, "the same draws by either clock");
    assert!(by_virtual[0].published_bps.is_some(), "the clock is no part of the experiment");
    let wrong = Scenario::parse("s", BASE).unwrap().plan(&set("clock", "fast")).unwrap_err().to_string();
    assert_eq!(wrong, "s.toml: --clock fast: clock = \"fast\": expected \"real\" or \"virtual\"");
}

#[test]
fn the_files_stack_is_that_of_every_host_and_is_swept() {
    let text = format!("{VIRTUAL}{BASE}[sweep]\nstack = ['linux-6.1', 'linux-7.2', 'kernel:/k/linux']\n");
    let cases = plan(&text);
    assert_eq!(keys(&cases)[1], "stack=linux-7.2 #1");
    for (case, name) in cases.iter().zip(["linux-6.1", "linux-7.2", "kernel:/k/linux"]) {
        let stacks: Vec<String> = case.hosts.iter().map(|h| h.stack.as_ref().unwrap().to_string()).collect();
        assert_eq!(stacks, [name, name]);
    }
    let own = plan(&format!("{VIRTUAL}{}", BASE.replace("[hosts.far]", "[hosts.far]\nstack = 'linux-6.12'")));
    assert_eq!(own[0].stack().unwrap().to_string(), "linux-6.12");
    assert_eq!(plan(&format!("stack = 'linux'\n{BASE}"))[0].stack().unwrap().to_string(), "linux");
}

#[test]
fn stacks_that_the_clock_has_not_are_refused() {
    let far = |stack: &str| BASE.replace("[hosts.far]", &format!("[hosts.far]\nstack = '{stack}'"));
    assert_eq!(
        error(&format!("stack = 'linux-6.1'\n{BASE}")),
        "s.toml:1: stack = \"linux-6.1\" conflicts with clock = \"real\": a guest kernel needs clock = \"virtual\" (--clock virtual)"
    );
    assert_eq!(
        error(&format!("{VIRTUAL}{}", far("linux"))),
        "s.toml:5: hosts.far.stack = \"linux\" conflicts with clock = \"virtual\": this machine's kernel uses the real clock; \
         choose a guest kernel or another stack, \"linux-6.1\", \"linux-6.12\", \"linux-7.2\", \"gvisor\", \"lwip\", \"smoltcp\", \"kernel:PATH\" or \
         \"exec:PROGRAM\", or none for the default kernel"
    );
    assert_eq!(
        error(&format!("{VIRTUAL}stack = 'linux-7.2'\n{}", far("linux-6.1"))),
        "s.toml:6: hosts.far.stack = \"linux-6.1\" conflicts with \"linux-7.2\" of host 'near': all \
         hosts of a case must use the same kernel (other stacks may differ); sweep 'stack' to compare \
         kernels"
    );
    assert_eq!(
        error(&far("linux-5.4")),
        "s.toml:4: hosts.far.stack = \"linux-5.4\": expected \"linux\" (this machine's kernel), \"linux-6.1\", \"linux-6.12\", \
         \"linux-7.2\", \"gvisor\", \"lwip\", \"smoltcp\", \"kernel:PATH\" or \"exec:PROGRAM\""
    );
}

#[test]
fn settings_of_tcp_are_read_and_swept() {
    let far = "[hosts.far]\ncongestion = 'westwood'\nsack = false\nwindow_scaling = true\ntimestamps = false\n\
               initial_window = 3\necn = 'passive'\nreceive_buffer = '64K'\nsend_buffer = '1M'\n";
    let case = &plan(&BASE.replace("[hosts.far]\n", far))[0];
    let expected = TcpSettings {
        congestion: Some("westwood".to_owned()),
        sack: Some(false),
        window_scaling: Some(true),
        timestamps: Some(false),
        initial_window: Some(3),
        ecn: Some(Ecn::Passive),
        receive_buffer: Some(ByteCount::kib(64)),
        send_buffer: Some(ByteCount::kib(1024)),
    };
    assert_eq!(case.hosts[1].tcp, expected);
    assert_eq!(case.hosts[0].tcp, TcpSettings::default());
    let swept = "[sweep]\nhosts.near.sack = [true, false]\nhosts.near.receive_buffer = { from = '64K', to = '256K', steps = 3, scale = 'log' }\n";
    let cases = plan(&format!("{BASE}{swept}"));
    assert_eq!(cases.len(), 6);
    assert_eq!(cases[0].hosts[0].tcp.sack, Some(true));
    assert_eq!(cases[4].hosts[0].tcp.sack, Some(false));
    assert_eq!(cases[4].hosts[0].tcp.receive_buffer, Some(ByteCount::kib(128)));
    let when = "[[expect]]\nwhen = { hosts.near.sack = false, hosts.near.receive_buffer = '100K..' }\ngoodput_min = '1M'\n";
    let cases = plan(&format!("{BASE}{swept}{when}"));
    let judged: Vec<bool> = cases.iter().map(|c| c.expect.goodput_min_bps.is_some()).collect();
    assert_eq!(judged, [false, false, false, false, true, true]);
}

#[test]
fn a_flows_own_congestion_control_comes_before_its_hosts() {
    let near = BASE.replace("[hosts.near]", "[hosts.near]\ncongestion = 'vegas'");
    let of = |text: &str| plan(text)[0].flows[0].spec.congestion.clone().unwrap();
    assert_eq!(of(BASE), "cubic");
    assert_eq!(of(&near), "vegas");
    assert_eq!(of(&format!("{near}congestion = 'bbr'\n")), "bbr");
    let swept = plan(&format!("{near}[sweep]\nhosts.near.congestion = ['reno', 'bbr']\n"));
    assert_eq!(swept[1].flows[0].spec.congestion.as_deref(), Some("bbr"));
}

#[test]
fn settings_that_can_not_be_are_refused() {
    for (line, expected) in [
        ("sack = 1", "hosts.near.sack = 1: expected true or false"),
        ("ecn = true", "hosts.near.ecn = true: expected \"off\" or \"on\" or \"passive\""),
        (
            "initial_window = 0",
            "hosts.near.initial_window = 0: expected the initial window in segments, 1 to 1000",
        ),
        (
            "receive_buffer = '1K'",
            "hosts.near.receive_buffer = \"1K\": expected the maximum for autotuning in bytes, 2304 to 1073741824, such as \"64K\"",
        ),
        (
            "sack = true\nsysctls = { 'net.ipv4.tcp_sack' = 0 }",
            "hosts.near.sack = true conflicts with net.ipv4.tcp_sack = \"0\": both set the same value; remove one of them",
        ),
        (
            "receive_buffer = '1M'\nsysctls = { 'net.ipv4.tcp_rmem' = '4096 131072 6291456' }",
            "hosts.near.receive_buffer = \"1M\" conflicts with net.ipv4.tcp_rmem = \"4096 131072 6291456\": both set the same value; remove one of them",
        ),
        (
            "congestion = 'reno'\nsysctls = { 'net.ipv4.tcp_congestion_control' = 'bbr' }",
            "hosts.near.congestion = \"reno\" conflicts with net.ipv4.tcp_congestion_control = \"bbr\": both set the same value; remove one of them",
        ),
    ] {
        let text = BASE.replace("[hosts.near]", &format!("[hosts.near]\n{line}"));
        assert_eq!(error(&text), format!("s.toml:3: {expected}"), "{line}");
    }
    // What says the same twice contradicts nothing.
    let same =
        "[hosts.near]\nreceive_buffer = '1M'\nsysctls = { 'net.ipv4.tcp_rmem' = '4096 131072\t1048576' }";
    plan(&BASE.replace("[hosts.near]", same));
}

#[test]
fn readings_are_as_far_apart_as_the_flow_says() {
    let case = &plan(&format!("{BASE}interval = '1s'\n"))[0];
    assert_eq!(case.flows[0].spec.interval, Nanos::secs(1));
    let json = serde_json::to_value(case).unwrap();
    assert_eq!(json["flows"][0]["interval_ns"], 1_000_000_000);
    assert_eq!(&serde_json::from_value::<CaseSpec>(json).unwrap(), case);
    assert_eq!(serde_json::to_value(&plan(BASE)[0]).unwrap()["flows"][0].get("interval_ns"), None);
    let wrong = error(&format!("{BASE}interval = '1ms'\n"));
    assert_eq!(
        wrong,
        "s.toml:11: flow.interval = \"1ms\": expected the time between two readings, 10ms to 1h, such as \"1s\""
    );
}
