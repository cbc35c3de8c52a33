//! `bdp pcap`: captures of connections whose limits are known, in every form in which captures come.

use std::fs;
use std::io::Write;

use bdp_pcap::{Block, blocks};
use serde_json::Value;

use crate::support::guests::guests_boot;
use crate::support::schema::assert_in_schema;
use crate::support::{BDP, Bench, start};

const SCHEMA: &str = include_str!("../../../../docs/pcap.schema.json");

/// Two hosts whose stacks run in steps, so that no guest is needed.
const STEPPED: &str = "title = 'captured'\nclock = 'virtual'\nidle = '200ms'\n[hosts.near]\nstack = 'smoltcp'\n\
    [hosts.far]\nstack = 'smoltcp'\n[[link]]\nbetween = ['near', 'far']\nrate = '50M'\ndelay = '20ms'\nLINK\n\
    [[flow]]\nfrom = 'near'\nto = 'far'\nduration = '4s'\nomit = '1s'\nFLOW\n";

/// Two hosts with Linux's own TCP.
const LINUX: &str = "title = 'captured'\nclock = 'virtual'\nidle = '200ms'\n[[link]]\nbetween = ['near', 'far']\n\
    rate = '50M'\ndelay = '20ms'\nLINK\n[[flow]]\nfrom = 'near'\nto = 'far'\nduration = '6s'\nomit = '1s'\nFLOW\n";

/// The captures of a run at both ends, and its record.
fn captured(bench: &Bench, scenario: &str, link: &str, flow: &str) -> ([String; 2], Value) {
    bench.write("captured.toml", scenario.replace("LINK", link).replace("FLOW", flow));
    let ended = bench.run("lab run captured.toml --store none --capture captures --json");
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let document = ended.json();
    let files = ["near", "far"].map(|host| {
        let all = document["cases"][0]["captures"].as_array().unwrap();
        let own = all.iter().find(|capture| capture["host"] == host).unwrap();
        own["path"].as_str().unwrap().to_owned()
    });
    (files, document["cases"][0].clone())
}

/// The document of `bdp pcap`, which keeps to its schema.
fn explained(bench: &Bench, line: &str) -> Value {
    let ended = start(bench.shell(&format!("exec {BDP} pcap {line} --json"))).wait();
    assert_eq!(ended.code(), 0, "{}", ended.err);
    in_schema(ended.json())
}

fn in_schema(document: Value) -> Value {
    assert_in_schema(&document, SCHEMA);
    document
}

/// The first TCP flow, and the direction of its data.
fn first(document: &Value) -> (&Value, &Value) {
    let flows = document["captures"][0]["flows"].as_array().unwrap();
    let flow = flows.iter().find(|flow| flow["protocol"] == "tcp").unwrap();
    let bytes = |i: usize| flow["directions"][i]["payload_bytes"].as_u64();
    (flow, &flow["directions"][usize::from(bytes(1) > bytes(0))])
}

#[test]
fn a_window_is_found_at_either_end() {
    let bench = Bench::new();
    let (files, record) = captured(&bench, STEPPED, "", "window = '32K'");
    for (file, vantage) in files.iter().zip(["near_a", "near_b"]) {
        let document = explained(&bench, file);
        let (flow, data) = first(&document);
        assert_eq!(data["findings"][0]["limit"], "receive_window", "{vantage}: {data:#}");
        assert_eq!(flow["tcp"]["vantage"], vantage);
        let goodput =
            data["goodput_bps"].as_f64().unwrap() / record["flows"][0]["goodput_bps"].as_f64().unwrap();
        assert!((0.9..1.1).contains(&goodput), "{goodput}");
        let rtt = data["tcp"]["rtt_min_ns"].as_u64().unwrap();
        assert!((40_000_000..42_000_000).contains(&rtt), "{rtt}");
        let shares: f64 =
            data["time_spent"]["whole"].as_object().unwrap().values().filter_map(Value::as_f64).sum();
        assert!((shares - 1.0).abs() < 1e-6, "{shares}");
        assert!(data["tcp"]["window_waits"]["samples"].as_u64().unwrap() > 50, "{data:#}");
    }
    let text = bench.run(&format!("pcap {}", files[0]));
    assert_eq!(text.code(), 0, "{}", text.err);
    for expected in ["flow 1: ", "handshake", "receive window", "LIMIT", "time"] {
        assert!(text.out.contains(expected), "{expected}: {}", text.out);
    }
}

#[test]
fn losses_are_counted_as_the_kernel_counts_them_and_told_from_reordering() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let (files, record) = captured(&bench, LINUX, "loss = '0.5%'\nlimit = 400", "congestion = 'reno'");
    let kernel = record["flows"][0]["retransmits"].as_u64().unwrap();
    for file in &files {
        let document = explained(&bench, file);
        let (_, data) = first(&document);
        let counted = data["tcp"]["retransmissions"]["segments"].as_u64().unwrap();
        // At the far end such as were lost once more are not seen.
        assert!(counted.abs_diff(kernel) <= 1 + kernel / 20, "{counted} of {kernel}");
        assert_eq!(data["findings"][0]["limit"], "random_loss", "{data:#}");
        assert_eq!(data["tcp"]["reordered"], 0);
        // Only the sender's end shows that well enough.
        let expected = if file == &files[0] { Value::from("reno") } else { Value::Null };
        assert_eq!(data["tcp"]["congestion_control"]["like"], expected);
    }
    let (files, _) = captured(
        &bench,
        LINUX,
        "limit = 400\nforward.reorder = { probability = '1%', by = '3ms' }",
        "congestion = 'cubic'",
    );
    let document = explained(&bench, &files[1]);
    let (_, data) = first(&document);
    assert!(data["tcp"]["reordered"].as_u64().unwrap() > 50, "{data:#}");
}

/// What a scenario that ships shows in its capture at this host: the limits of the largest flow, the binding one first, and what its data met.
fn of_scenario(bench: &Bench, scenario: &str, filter: &str, host: &str) -> (Vec<String>, Value) {
    let line = format!(
        "lab run {scenario} --filter '{filter}' --repetitions 1 --clock virtual --set stack=linux-6.1 --store none --capture {scenario} --json"
    );
    let ended = start(bench.shell(&format!("exec {BDP} {line}"))).wait();
    assert_eq!(ended.code(), 0, "{}", ended.err);
    let document = ended.json();
    let captures = document["cases"][0]["captures"].as_array().unwrap();
    let own = captures.iter().find(|capture| capture["host"] == host).unwrap();
    let document = explained(bench, own["path"].as_str().unwrap());
    let data = first(&document).1.clone();
    let findings = data["findings"].as_array().unwrap();
    (findings.iter().map(|finding| finding["limit"].as_str().unwrap().to_owned()).collect(), data)
}

/// What took an expert and a capture in the source: the sender is idle for a round trip between two windows.
#[test]
fn the_stall_of_a_small_window_is_found_in_a_capture_alone() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let (limits, data) = of_scenario(&bench, "s3-noscale", "#1", "near");
    assert_eq!(limits, ["receive_window"], "{data:#}");
    let finding = &data["findings"][0];
    assert_eq!(finding["cause"], "scaling_missing", "{finding:#}");
    assert_eq!(finding["remedy"]["action"], "find_window_scaling", "{finding:#}");
    let stalls = &data["tcp"]["window_stalls"];
    let ms = stalls["p50_ns"].as_u64().unwrap() / 1_000_000;
    // 51 ms less the time over which a window is spread; one for each round trip of 12 s.
    assert!((35..=51).contains(&ms), "{stalls:#}");
    assert!(stalls["samples"].as_u64().unwrap() > 200, "{stalls:#}");
}

#[test]
fn loss_no_sack_and_a_full_way_back_are_found_in_captures_alone() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let (limits, data) = of_scenario(&bench, "s4-loss", "reno sack=true", "h1");
    assert_eq!(limits, ["random_loss"], "{data:#}");
    let (limits, data) = of_scenario(&bench, "s4-loss", "reno sack=false", "h1");
    assert_eq!(limits, ["random_loss", "sack_missing"], "{data:#}");
    assert_eq!(data["tcp"]["congestion_control"]["like"], "reno", "{data:#}");
    let (limits, data) = of_scenario(&bench, "s4-reverse", "reno sack=true", "h1");
    assert!(limits.contains(&"reverse_path".to_owned()), "{limits:?} {data:#}");
}

#[test]
fn datagrams_are_lost_as_the_emulator_lost_them() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let flow = "protocol = 'udp'\nrate = '10M'\ndatagram = 1000";
    let scenario = LINUX.replace("omit = '1s'\n", "");
    let (files, record) = captured(&bench, &scenario, "loss = '2%'\nforward.jitter = '2ms'", flow);
    let truth = &record["flows"][0]["udp"];
    let (sent, lost) = (truth["sent"].as_u64().unwrap(), truth["lost"].as_u64().unwrap());
    assert!(lost > 20, "{truth:#}");
    for (file, is_far) in files.iter().zip([false, true]) {
        let document = explained(&bench, file);
        let flows = document["captures"][0]["flows"].as_array().unwrap();
        let streams = flows.iter().flat_map(|flow| flow["directions"].as_array().unwrap());
        let streams: Vec<&Value> =
            streams.filter_map(|way| way["datagrams"]["streams"].as_array()).flatten().collect();
        assert_eq!(streams.len(), 1, "{document:#}");
        let stream = streams[0];
        assert_eq!(stream["protocol"], "bdp");
        assert_eq!(stream["expected"], sent, "{stream:#}");
        assert_eq!(stream["lost"], if is_far { lost } else { 0 }, "{stream:#}");
        if is_far {
            let ratio = stream["jitter_ns"].as_f64().unwrap() / truth["jitter_ns"].as_f64().unwrap();
            assert!((0.9..1.1).contains(&ratio), "{stream:#} {truth:#}");
        }
    }
    let text = bench.run(&format!("pcap {}", files[1]));
    let line = format!("{lost} of {sent} datagrams lost");
    assert!(text.out.split_whitespace().collect::<Vec<_>>().join(" ").contains(&line), "{}", text.out);
}

#[test]
fn packed_piped_and_filtered_captures_give_the_same_flow() {
    let bench = Bench::new();
    let ([near, _], _) = captured(&bench, STEPPED, "", "window = '32K'");
    let whole = explained(&bench, &near);
    let (flow, _) = first(&whole);
    let port = flow["b"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
    let bytes = fs::read(bench.path(&near)).unwrap();
    // Two members one after the other are one file (RFC 1952).
    let half = bytes.len() / 2;
    let mut packed = Vec::new();
    for part in [&bytes[..half], &bytes[half..]] {
        let mut encoder = flate2::write::GzEncoder::new(&mut packed, flate2::Compression::fast());
        encoder.write_all(part).unwrap();
        encoder.finish().unwrap();
    }
    fs::write(bench.path("c.gz"), &packed).unwrap();
    let frames = [&bytes[..half], &bytes[half..]]
        .map(|part| ruzstd::encoding::compress_to_vec(part, ruzstd::encoding::CompressionLevel::Fastest));
    fs::write(bench.path("c.zst"), frames.concat()).unwrap();
    for file in ["c.gz", "c.zst"] {
        assert_eq!(first(&explained(&bench, file)).0, flow, "{file}");
    }
    let piped = start(bench.shell(&format!("exec {BDP} pcap - --json < {near}"))).wait();
    assert_eq!(piped.code(), 0, "{}", piped.err);
    assert_eq!(first(&in_schema(piped.json())).0, flow);
    let filtered = explained(&bench, &format!("{near} --filter 'tcp port {port} and after 0s'"));
    assert_eq!(filtered["captures"][0]["flows"].as_array().unwrap().len(), 1);
    assert_eq!(first(&filtered).0, flow);
    assert!(filtered["captures"][0]["filtered"].as_u64().unwrap() > 0);
    // The same as pcap of either order.
    for (name, is_big) in [("little.pcap", false), ("big.pcap", true)] {
        fs::write(bench.path(name), classic(&bytes, is_big)).unwrap();
        assert_eq!(first(&explained(&bench, name)).0, flow, "{name}");
    }
}

/// A capture of ours as pcap with nanoseconds.
fn classic(pcapng: &[u8], is_big: bool) -> Vec<u8> {
    let word = |value: u32| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut all: Vec<u8> =
        [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65535, 101].into_iter().flat_map(word).collect();
    if is_big {
        all[4..8].copy_from_slice(&[0, 2, 0, 4]);
    }
    for block in blocks(pcapng) {
        if let Block::Packet { at, length, data, .. } = block.unwrap() {
            let at = at.unwrap().as_ns();
            let head = [(at / 1_000_000_000) as u32, (at % 1_000_000_000) as u32, data.len() as u32, length];
            all.extend(head.into_iter().flat_map(word));
            all.extend_from_slice(data);
        }
    }
    all
}

#[test]
fn what_breaks_gives_what_was_read_before_and_exit_code_3() {
    let bench = Bench::new();
    let ([near, _], _) = captured(&bench, STEPPED, "", "window = '32K'");
    let bytes = fs::read(bench.path(&near)).unwrap();
    fs::write(bench.path("cut.pcapng"), &bytes[..bytes.len() / 2 + 3]).unwrap();
    let ended = bench.run("pcap cut.pcapng --json");
    assert_eq!((ended.code(), ended.err.lines().count()), (3, 1), "{}", ended.err);
    assert!(ended.err.contains("cut.pcapng") && ended.err.contains("at byte"), "{}", ended.err);
    let document = in_schema(ended.json());
    assert!(document["captures"][0]["broke"].is_string());
    assert_eq!(first(&document).1["findings"][0]["limit"], "receive_window");
    fs::write(bench.path("noise"), (0..5000_u32).map(|i| (i * i / 7) as u8).collect::<Vec<u8>>()).unwrap();
    fs::write(bench.path("empty"), "").unwrap();
    for (line, code, expected) in [
        ("pcap noise", 3, "not pcap or pcapng"),
        ("pcap empty", 3, "empty: "),
        ("pcap nowhere.pcap", 3, "No such file"),
        ("pcap .", 3, "is a folder"),
        ("pcap cut.pcapng --flow 99", 2, "flow 99 does not exist"),
        ("pcap cut.pcapng --filter 'port x'", 2, "is not a port"),
    ] {
        let ended = start(bench.shell(&format!("exec {BDP} {line}"))).wait();
        assert_eq!((ended.code(), ended.err.lines().count()), (code, 1), "{line}: {}", ended.err);
        assert!(ended.err.contains(expected), "{line}: {}", ended.err);
    }
}
