//! Links that change in time, as a user meets them: what a flow gets over time, traces that are wrong, paths of other emulators.

use std::fs;

use crate::support::guests::guests_boot;
use crate::support::{Bench, start};
use serde_json::Value;

/// Goodput in each second of the first flow, Mbit/s.
fn by_second(case: &Value) -> Vec<f64> {
    let samples = case["flows"][0]["received"].as_array().unwrap();
    let at = |second: u64| {
        let sample =
            samples.iter().take_while(|s| s["at_ns"].as_u64().unwrap() <= second * 1_000_000_000 + 1_000_000);
        sample.last().and_then(|s| s["bytes"].as_u64()).unwrap_or(0)
    };
    let seconds = samples.last().unwrap()["at_ns"].as_u64().unwrap() / 1_000_000_000;
    (0..seconds).map(|second| (at(second + 1) - at(second)) as f64 * 8.0 / 1e6).collect()
}

fn run(bench: &Bench, link: &str) -> Value {
    let text = format!(
        "title = \"what changes\"\nclock = \"virtual\"\n[[link]]\nbetween = [\"near\", \"far\"]\n{link}\n\
         delay = \"10ms\"\nlimit = 40\n[[flow]]\nfrom = \"near\"\nto = \"far\"\nduration = \"6s\"\ncongestion = \"reno\"\n"
    );
    fs::write(bench.folder().join("changes.toml"), text).unwrap();
    let ended = bench.run(&format!("lab run {}/changes.toml --json", bench.folder().display()));
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let document = ended.json();
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/lab-run.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&document), "{:?}", validator.iter_errors(&document).next());
    let case = document["cases"][0].clone();
    assert_eq!(
        (&case["valid"], &case["expected_bps"]),
        (&Value::Bool(true), &Value::Null),
        "{}",
        case["fidelity"]
    );
    case
}

#[test]
fn a_flow_gets_what_the_link_gives_over_time() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    // What came before a hole is read when the hole is filled, so that a second may have some of the one before.
    const WITHIN: std::ops::Range<f64> = 0.7..1.15;
    // What a full segment's 1448 bytes are of its 1538 on the wire.
    let share = 1448.0 / 1538.0;
    let steps = run(&bench, "rate = { steps = [[\"0s\", \"10M\"], [\"2s\", \"4M\"], [\"4s\", \"20M\"]] }");
    let got = by_second(&steps);
    for (second, rate) in [(1, 10.0), (3, 4.0), (5, 20.0)] {
        let of = got[second] / (rate * share);
        assert!(WITHIN.contains(&of), "second {second}: {of} of {rate} Mbit/s, {got:?}");
    }
    let outage = run(&bench, "rate = \"10M\"\noutage = { at = \"2s\", for = \"1s\" }");
    let got = by_second(&outage);
    // What was on its way at the beginning, and the handshake by which the flow's seconds come later.
    assert!(got[1] > 8.0 && got[2] < 0.4, "{got:?}");
    assert_eq!(outage["fidelity"]["directions"][0]["dropped"]["outage"], 0);

    // An opportunity in each ms for two seconds, then in every fourth: 12.032 and 3.008 Mbit/s of 1504 bytes each.
    let lines: String =
        (1..=4_000).filter(|ms| *ms <= 2_000 || ms % 4 == 0).map(|ms| format!("{ms}\n")).collect();
    fs::write(bench.folder().join("up.trace"), lines).unwrap();
    let traced = run(&bench, "forward.rate = { trace = \"up.trace\" }");
    let got = by_second(&traced);
    for (second, rate) in [(1, 12.032), (3, 3.008), (5, 12.032)] {
        let of = got[second] / (rate * 1448.0 / 1504.0);
        assert!(WITHIN.contains(&of), "second {second}: {of} of {rate} Mbit/s, {got:?}");
    }
}

#[test]
fn a_trace_that_is_wrong_is_refused_in_one_line() {
    let bench = Bench::new();
    let text =
        "title = \"t\"\n[[link]]\nbetween = [\"near\", \"far\"]\nrate = { trace = \"x.trace\" }\n[[flow]]\n";
    fs::write(bench.folder().join("t.toml"), text).unwrap();
    for (trace, expected) in [
        (None, "No such file"),
        (Some(""), "it is empty"),
        (Some("0\n0\n"), "all its times are 0 ms"),
        (Some("5\n4\n"), "line 2: 4 ms is before the previous time, 5 ms"),
        (Some("1\nx\n"), "line 2: 'x' is not a time in whole ms"),
    ] {
        if let Some(trace) = trace {
            fs::write(bench.folder().join("x.trace"), trace).unwrap();
        }
        let ended = bench.run(&format!("lab check {}/t.toml", bench.folder().display()));
        assert_eq!((ended.code(), ended.err.lines().count()), (2, 1), "{}", ended.err);
        assert!(
            ended.err.contains("cannot use the trace 'x.trace'") && ended.err.contains(expected),
            "{}",
            ended.err
        );
    }
}

#[test]
fn a_named_pipe_is_no_trace() {
    let bench = Bench::new();
    let made = start(bench.shell("mkfifo x.trace")).wait();
    assert_eq!(made.code(), 0, "{}", made.err);
    bench.write(
        "traced.toml",
        "title = 't'\n[[link]]\nbetween = ['near', 'far']\nrate = { trace = 'x.trace' }\n[[flow]]\n",
    );
    let ended = bench.run("lab check traced.toml");
    assert_eq!((ended.code(), ended.err.lines().count()), (2, 1), "{}", ended.err);
    assert!(ended.err.contains("is not a file"), "{}", ended.err);
}

#[test]
fn paths_of_other_emulators_come_and_go() {
    let bench = Bench::new();
    let at = |name: &str| format!("{}/{name}", bench.folder().display());
    let command =
        "tc qdisc add dev eth0 root netem limit 100 delay 50ms 10ms 25% loss random 1% rate 10000000bit 0";
    fs::write(at("netem.sh"), command).unwrap();
    let imported = bench.run(&format!("lab import {}", at("netem.sh")));
    assert_eq!(imported.code(), 0, "{}", imported.err);
    assert_eq!(
        imported.err.trim(),
        "not imported: forward: delay: its correlation; each packet is drawn independently"
    );
    fs::write(at("path.toml"), &imported.out).unwrap();
    let exported = bench.run(&format!("lab export {}", at("path.toml")));
    assert_eq!(exported.code(), 0, "{}", exported.err);
    assert!(exported.out.contains(&format!("\n{}\n", command.replace(" 25%", ""))), "{}", exported.out);
    let empty = start(bench.shell("bdp lab import --netem ''")).wait();
    assert_eq!((empty.code(), empty.err.lines().count(), empty.out.len()), (2, 1, 0), "{}", empty.err);
    let refused = bench.run(&format!("lab import {}", at("nowhere")));
    assert_eq!((refused.code(), refused.err.lines().count()), (2, 1), "{}", refused.err);
}

/// A path of 10 ms, and from its first second on one of 40 ms.
const MOVES: &str = "title = 'A path moves'\nidle = '200ms'\n\
    [hosts.near]\nSTACKroutes = [{ to = 'far', via = 'r1' }, { to = 'far', via = 'r2', at = '1s' }]\n\
    [hosts.far]\nSTACKroutes = [{ to = 'near', via = 'r1' }, { to = 'near', via = 'r2', at = '1s' }]\n\
    [hosts.r1]\nrouter = true\n[hosts.r2]\nrouter = true\n\
    [[link]]\nbetween = ['near', 'r1']\nrate = '20M'\ndelay = '5ms'\n[[link]]\nbetween = ['r1', 'far']\n\
    [[link]]\nbetween = ['near', 'r2']\nrate = '20M'\ndelay = '20ms'\n[[link]]\nbetween = ['r2', 'far']\n\
    [[flow]]\nfrom = 'near'\nto = 'far'\nFLOWduration = '3s'\nomit = 0\n";

/// Packets by the first path and by the second, and the least and the largest of the loaded round trips in ms.
fn moved(stack: &str, flow: &str, clock: &str) -> Option<[f64; 4]> {
    let bench = Bench::new();
    fs::write(bench.folder().join("moves.toml"), MOVES.replace("STACK", stack).replace("FLOW", flow))
        .unwrap();
    let ended = bench.run(&format!("lab run {}/moves.toml --clock {clock} --json", bench.folder().display()));
    let document = ended.json();
    let case = &document["cases"][0];
    if clock == "real" && case["valid"] != true {
        // This machine was too busy to say.
        return None;
    }
    assert_eq!(case["valid"], true, "{}", ended.err);
    let directions = case["fidelity"]["directions"].as_array().unwrap();
    let packets = |name: &str| directions.iter().find(|d| d["name"] == name).unwrap()["packets_in"].as_f64();
    let loaded = |name: &str| Some(case["rtt_ns"]["loaded"][name].as_f64().unwrap() / 1e6);
    Some([packets("near->r1"), packets("near->r2"), loaded("min"), loaded("max")].map(Option::unwrap))
}

#[test]
fn packets_take_the_route_of_their_moment() {
    const DATAGRAMS: &str = "protocol = 'udp'\nrate = '4M'\ndatagram = 1000\n";
    let mut ways = vec![
        ("stack = 'smoltcp'\n", "window = '64K'\ncongestion = 'reno'\n", "virtual"),
        ("", DATAGRAMS, "real"),
    ];
    if guests_boot(&Bench::new()) {
        ways.extend([("", "window = '64K'\n", "virtual"), ("", DATAGRAMS, "virtual")]);
    }
    for (stack, flow, clock) in ways {
        let Some([first, second, least, most]) = moved(stack, flow, clock) else { continue };
        if clock == "real" {
            // When a flow's first datagram leaves, and how late a program reads, is this machine's.
            assert!(
                first > 0.0 && second > first && least >= 10.0 && most >= 40.0,
                "{first} {second} {least} {most}"
            );
            continue;
        }
        // A third of the time by the one, two thirds by the other, at 20 Mbit/s or 4.
        let share = first / (first + second);
        assert!((0.25..0.5).contains(&share), "{stack}{flow}: {first} and {second}");
        assert!(
            (10.0..20.0).contains(&least) && (40.0..45.0).contains(&most),
            "{stack}{flow}: {least} {most}"
        );
    }
}
