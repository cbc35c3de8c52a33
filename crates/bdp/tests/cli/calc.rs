//! `bdp calc` as people run it.

use assert_cmd::Command;
use serde_json::Value;

fn bdp(args: &[&str]) -> std::process::Output {
    Command::cargo_bin("bdp").unwrap().arg("calc").args(args).output().unwrap()
}

/// Standard output of a run that must succeed and say nothing else.
#[track_caller]
fn answer(line: &str) -> String {
    let output = bdp(&line.split_whitespace().collect::<Vec<_>>());
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && complaint.is_empty(), "{line}: {complaint}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn json(line: &str) -> Value {
    serde_json::from_str(&answer(&format!("{line} --json"))).unwrap()
}

/// Standard error of a run that must be refused as wrong, with nothing on standard output.
#[track_caller]
fn refusal(line: &str) -> String {
    let output = bdp(&line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(2), "{line}");
    assert!(output.stdout.is_empty(), "{line}");
    String::from_utf8(output.stderr).unwrap()
}

/// The member of `list` whose `key` is `value`.
#[track_caller]
fn member<'a>(list: &'a Value, key: &str, value: &str) -> &'a Value {
    list.as_array().unwrap().iter().find(|entry| entry[key] == value).unwrap()
}

#[track_caller]
fn assert_mbps(bps: &Value, mbps: &str) {
    let decimals = mbps.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    assert_eq!(format!("{:.decimals$}", bps.as_f64().unwrap() / 1e6), mbps);
}

#[test]
fn the_product_by_either_name() {
    let text = answer("bdp --rate 1G --rtt 2.55ms");
    assert_eq!(
        text,
        "rate      1 Gbit/s\n\
         RTT       2.55 ms\n\
         window    318750 B = 318.75 kB = 311.28 KiB\n\
         segments  221 of 1448 B\n"
    );
    assert_eq!(answer("window --rate 1G --rtt 2.55ms"), text);
    // A time without a unit is seconds.
    assert_eq!(answer("bdp --rate 1G --rtt 0.00255"), text);
    let data = json("bdp --rate 100M --rtt 2.45ms --mss 1460");
    assert_eq!(data["window_bytes"], 30_625);
    assert_eq!(data["window_segments"], 21);
}

#[test]
fn the_rate_of_a_window() {
    let text = answer("rate --window 64K --rtt 173ms");
    assert_eq!(
        text,
        "window    65536 B = 64 KiB\n\
         RTT       173 ms\n\
         streams   1\n\
         W / RTT   3.03 Mbit/s\n\
         expected  3.01 Mbit/s by window / RTT: 45 x 1448 B / 173 ms\n"
    );
    let data = json("rate --window 128K --rtt 173ms --link 100M --streams 10");
    assert_mbps(&data["rate_bps"], "60.61");
    assert_mbps(&data["expected_bps"], "60.18");
    let data = json("rate --window 64kB --rtt 1ms --link 100M");
    assert_mbps(&data["expected_bps"], "94.15");
    assert_eq!(data["expected_by"], "ceiling: 94.15 Mbit/s");
    let data = json("rate --window 576 --rtt 40ms --clamped");
    assert_mbps(&data["expected_bps"], "0.0161");
}

#[test]
fn rates_under_loss() {
    let text = answer("loss --rtt 100ms --loss 1e-4");
    for (name, mbps) in [
        ("Mathis, C = 1 ", "11.68"),
        ("Mathis, C = 1.22", "14.31"),
        ("Mathis, C = 1.31", "15.30"),
        ("PFTK", "10.11"),
        ("TFRC", "14.29"),
        ("CUBIC", "21.89"),
    ] {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line[name.len()..].trim_start().starts_with(mbps), "{line}");
    }
    let data = json("loss --rtt 100ms --loss 0.1%");
    assert_eq!(data["loss"], 0.001);
    assert_mbps(&member(&data["models"], "model", "mathis_c1")["rate_bps"], "3.69");
    assert_mbps(&member(&data["models"], "model", "pftk")["rate_bps"], "3.17");
    // The cubic function alone would give 3.89: the Reno-friendly floor rules here.
    assert_mbps(&member(&data["models"], "model", "cubic")["rate_bps"], "4.52");
}

#[test]
fn the_loss_that_a_rate_tolerates_gives_that_rate() {
    let tolerated = json("loss --rtt 100ms --rate 100M");
    for entry in tolerated["models"].as_array().unwrap() {
        let loss = entry["tolerated_loss"].as_f64().unwrap();
        let back = json(&format!("loss --rtt 100ms --loss {loss:e}"));
        let name = entry["model"].as_str().unwrap();
        assert_mbps(&member(&back["models"], "model", name)["rate_bps"], "100.0000");
    }
    let any = answer("loss --rtt 100ms --rate 1k");
    assert!(any.lines().find(|line| line.starts_with("Mathis, C = 1 ")).unwrap().contains("any"), "{any}");
}

#[test]
fn what_headers_leave() {
    let data = json("overhead");
    let goodput = |data: &Value, medium: &str, family: &str, transport: &str| {
        let cases = data["cases"].as_array().unwrap();
        let of = |case: &&Value| {
            case["medium"] == medium && case["family"] == family && case["transport"] == transport
        };
        cases.iter().find(of).unwrap()["goodput_bps"].clone()
    };
    assert_eq!(data["cases"].as_array().unwrap().len(), 18);
    assert_mbps(&goodput(&data, "ethernet", "ipv4", "tcp_timestamps"), "941.48");
    assert_mbps(&goodput(&data, "ethernet_vlan", "ipv4", "tcp_timestamps"), "939.04");
    assert_mbps(&goodput(&data, "ethernet", "ipv6", "tcp"), "936.28");
    assert_mbps(&goodput(&data, "ethernet", "ipv4", "udp"), "957.09");
    let jumbo = json("overhead --mtu 9000");
    assert_mbps(&goodput(&jumbo, "ethernet", "ipv4", "tcp"), "991.37");
    // No room for IPv6: nothing is claimed.
    assert!(goodput(&json("overhead --mtu 576"), "ethernet", "ipv6", "tcp").is_null());
    let text = answer("overhead --mtu 1500 --rate 10G");
    let line = text.lines().find(|line| line.contains("IPv4, TCP, timestamps")).unwrap();
    assert!(line.ends_with("9414.8") && line.contains("1448 B") && line.contains("1538 B"), "{line}");
}

#[test]
fn slow_start_to_a_rate_and_to_a_window() {
    let text = answer("slowstart --rate 100M --rtt 173ms");
    assert!(text.contains("1494 segments") && text.contains("8 round trips"), "{text}");
    let data = json("slowstart --rate 100M --rtt 173ms");
    assert_eq!(data["time_ns"], 8 * 173_000_000u64);
    assert_eq!(data["sent_bytes"], 2550 * 1448);
    assert_eq!(json("slowstart --rate 100M --rtt 173ms --delayed-ack")["round_trips"], 13);
    assert_eq!(json("slowstart --window 10kB --rtt 173ms")["round_trips"], 0);
    assert_eq!(json("slowstart --window 28960 --rtt 173ms")["round_trips"], 1);
}

#[test]
fn wrong_requests_are_refused_with_the_way_out() {
    for (line, hint) in [
        ("bdp --rate 1G", "--rtt"),
        ("bdp --rate 1G --rtt 41parsec", "seconds if no unit is given"),
        ("bdp --rate 10MB/s --rtt 41ms", "unknown unit 'MB/s'"),
        ("bdp --rate 0 --rtt 41ms", "more than 0"),
        ("bdp --rate 9E --rtt 41ms", "unknown unit"),
        ("bdp --rate 9000000T --rtt 200h", "smaller rate or RTT"),
        ("bdp --rate 1G --rtt 41ms --mss 70000", "at most 65495"),
        ("rate --window 64X --rtt 41ms", "64KiB"),
        ("rate --window 64K --rtt 0", "more than 0"),
        ("rate --window 64K --rtt 41ms --streams 0", "streams"),
        ("loss --rtt 100ms", "--loss"),
        ("loss --rtt 100ms --loss 1e-4 --rate 1G", "cannot be used with"),
        ("loss --rtt 100ms --loss 0", "bdp calc rate"),
        ("loss --rtt 100ms --loss 101%", "0 to 100 %"),
        ("loss --rtt 100ms --loss 100%", "below 100 %"),
        ("overhead --mtu 20", "68 to 65535"),
        ("slowstart --rtt 173ms", "--rate"),
        ("slowstart --rate 100M --rtt 173ms --initial-window 0", "1 to 65535"),
        ("", "needs one of: bdp, rate"),
        ("nonsense", "unrecognized"),
    ] {
        let complaint = refusal(line);
        assert!(complaint.contains(hint), "{line}: {complaint}");
    }
}

/// Each question's help shows how it is asked, and where its formula is from.
#[test]
fn help_has_an_example_that_runs_and_a_source() {
    for (question, source) in [
        ("bdp", "RFC 7323"),
        ("rate", "RFC 9293"),
        ("loss", "RFC 9438"),
        ("overhead", "IEEE 802.3"),
        ("slowstart", "RFC 6928"),
    ] {
        let help = answer(&format!("{question} --help"));
        assert!(help.contains(source) && help.contains("--json"), "{question}");
        let asked = format!("bdp calc {question} ");
        let examples = help.lines().filter_map(|line| {
            let line = line.trim_start().trim_start_matches("Examples:").trim_start_matches("Example:");
            line.trim_start().strip_prefix(&asked)
        });
        let ran = examples.map(|arguments| answer(&format!("{question} {arguments}"))).count();
        assert!(ran > 0, "{question}: no example in\n{help}");
    }
}
