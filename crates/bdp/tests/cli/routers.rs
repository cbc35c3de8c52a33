//! Routers by the virtual clock: what they merely pass on goes past their kernels, and comes out as if it had gone through them.

use std::fs;

use crate::support::guests::guests_boot;
use crate::support::{Bench, start};
use bdp_pcap::{Block, blocks};
use serde_json::Value;

/// Two flows that cross each other's acknowledgements, over routers with a setting or without one.
fn crossing(top: &str, middle: &str, setting: &str) -> String {
    let link = |a: &str, b: &str, keys: &str| format!("[[link]]\nbetween = [\"{a}\", \"{b}\"]\n{keys}\n");
    let flow = |from: &str, to: &str, keys: &str| {
        format!("[[flow]]\nfrom = \"{from}\"\nto = \"{to}\"\nomit = 0\nduration = \"1s\"\n{keys}\n")
    };
    [
        format!("title = \"t\"\nidle = \"200ms\"\nclock = \"virtual\"\n{top}\n"),
        "[hosts.h1]\n[hosts.h2]\n[hosts.h3]\n[hosts.h4]\n".to_owned(),
        format!("[hosts.r1]\nrouter = true\n{setting}\n[hosts.r2]\nrouter = true\n{setting}\n"),
        link("h1", "r1", "rate = \"100M\"\ncapture = \"h1\""),
        link("h3", "r1", "rate = \"50M\"\nmtu = 1400"),
        link("r1", "r2", middle),
        link("r2", "h2", "rate = \"100M\"\ncapture = \"both\""),
        link("r2", "h4", "delay = \"1ms\"\ncapture = \"h4\""),
        flow("h1", "h2", "congestion = \"cubic\""),
        flow("h4", "h3", "congestion = \"reno\""),
    ]
    .concat()
}

/// A value of a setting that routers have anyway; a setting of their own has them asked.
const ASKED: &str = "sysctls = { \"net.ipv4.ip_default_ttl\" = \"64\" }";

/// A program that reads its clock moves it on by a nanosecond, and which program does so first differs: what a program samples may
/// be one segment more or less by it.
const READINGS_NS: f64 = 300_000.0;
const READINGS: f64 = 5e-3;

#[test]
fn what_is_passed_on_is_as_the_kernel_would_pass_it_on() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    const LOSSY: &str = "rate = \"5M\"\ndelay = \"20ms\"\njitter = \"1ms\"\nloss = \"1%\"\nlimit = \"30p\"";
    const NARROW: &str = "rate = \"5M\"\ndelay = \"5ms\"\nmtu = 1300\nlimit = \"9p\"\ncorrupt = \"1%\"";
    const WIDE: &str = "rate = \"2G\"\ndelay = \"5ms\"";
    for (name, top, middle) in [
        ("lossy", "", LOSSY),
        ("lossy6", "family = \"ipv6\"", LOSSY),
        ("narrow", "", NARROW),
        ("narrow6", "family = \"ipv6\"", NARROW),
        ("wide", "", WIDE),
    ] {
        let [past, through] = ["", ASKED].map(|setting| {
            let kind = if setting.is_empty() { "past" } else { "through" };
            let folder = format!("{name}-{kind}");
            bench.write("crossing.toml", crossing(top, middle, setting));
            let line = format!("lab run crossing.toml --store none --json --capture {folder}");
            let ended = start(bench.bdp(&line)).wait();
            assert_eq!(ended.code(), 0, "{name}: {}", ended.err);
            ended.json()["cases"][0].take()
        });
        assert_eq!((&past["valid"], &through["valid"]), (&Value::Bool(true), &Value::Bool(true)), "{name}");
        let mut differing = Vec::new();
        compare("", &past, &through, &mut differing);
        assert!(differing.is_empty(), "{name}: {differing:#?}");
        let sent = past["fidelity"]["directions"][0]["packets_in"].as_u64().unwrap();
        assert!(sent > 100, "{name}: {sent}");
        if middle == WIDE {
            // So many segments that the last of them may fall on either side of the end.
            continue;
        }
        assert_eq!(past["fidelity"]["directions"], through["fidelity"]["directions"], "{name}");
        for (past, through) in captures(&past).iter().zip(captures(&through)) {
            let (past, through) = (frames(&bench, past), frames(&bench, &through));
            assert!(past.len() > 100 && past.len() == through.len(), "{name}");
            assert_eq!(past.len(), through.len(), "{name}");
            for (i, (past, through)) in past.iter().zip(&through).enumerate() {
                assert_eq!(past, through, "{name}, frame {i}");
            }
        }
    }
}

/// The frames of a capture: what they are, and what became of them.
fn frames(bench: &Bench, file: &str) -> Vec<String> {
    let bytes = fs::read(bench.path(file)).unwrap();
    let frame = |block: Block<'_>| match block {
        Block::Packet { direction, length, data, comments, .. } => {
            // Beside numbers that the kernel draws by its clock: version, class, length, hops, protocol, addresses.
            let header = match data[0] >> 4 {
                4 => [&data[..4], &data[6..10], &data[12..20]].concat(),
                _ => [&data[..1], &data[4..40]].concat(),
            };
            Some(format!("{direction:?} {length} {header:02x?} {comments:?}"))
        }
        _ => None,
    };
    let mut frames: Vec<_> = blocks(&bytes).filter_map(|block| frame(block.unwrap())).collect();
    // The kernel says unasked, at a time that it draws, which groups it listens to.
    frames.retain(|frame| !frame.contains("not_ours"));
    // Which of two programs of a host sends first at one moment may differ.
    frames.sort();
    frames
}

fn captures(case: &Value) -> Vec<String> {
    let captures = case["captures"].as_array().unwrap();
    assert_eq!(captures.len(), 4);
    captures.iter().map(|capture| capture["path"].as_str().unwrap().to_owned()).collect()
}

/// Notes where two records differ by more than readings of the clock do.
fn compare(at: &str, past: &Value, through: &Value, differing: &mut Vec<String>) {
    const MACHINES: [&str; 4] = [
        ".environment.started_unix_ms",
        ".environment.took_ms",
        ".environment.guest",
        ".environment.sysctls",
    ];
    if MACHINES.contains(&at)
        || at.ends_with(".sysctls")
        || at.starts_with(".captures")
        || at.contains("rtt_ns")
        // Sentences round what the numbers beside them say.
        || at.ends_with(".text")
        || at.ends_with(".summary")
        // A segment that arrives or leaves at the moment of a sample is counted before it or after.
        || at.ends_with(".unread_bytes")
        || at.ends_with(".not_sent_bytes")
        || at.ends_with(".value")
        // Read half a round trip apart, by the host's own clock.
        || at.contains(".loss_episodes")
        || at.contains(".time_spent")
    {
        return;
    }
    let mut differs = || differing.push(format!("{at}: {past} {through}"));
    match (past, through) {
        (Value::Object(a), Value::Object(b)) => {
            if !a.keys().eq(b.keys()) {
                differs();
            }
            for (key, a) in a {
                compare(&format!("{at}.{key}"), a, &b[key], differing);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            if a.len() != b.len() {
                differs();
            }
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{at}[{i}]"), a, b, differing);
            }
        }
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            let differ = if at.contains("_ns") { READINGS_NS } else { READINGS * a.abs() };
            if (a - b).abs() > differ {
                differs();
            }
        }
        _ if past != through => differs(),
        _ => {}
    }
}
