//! What real runs produce: every kind of case once, held to the schema, to its own numbers and to the exit codes.

use std::sync::OnceLock;

use crate::support::guests::guests_boot;
use crate::support::machine;
use crate::support::scenario::Scenario;
use crate::support::{Bench, start};
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../../docs/lab-run.schema.json");

/// One scenario for each kind of case, by name.
fn kinds() -> Vec<(&'static str, String)> {
    let plain = Scenario::default();
    let flow = |flow| Scenario { flow, ..plain }.text();
    vec![
        ("window", flow("window = \"8K\"\n[expect]\nmodel_within = \"50%\"")),
        ("missed", flow("window = \"8K\"\n[expect]\ngoodput_min = \"1G\"")),
        ("autotuned", plain.text()),
        ("clamped", flow("window = 576")),
        ("streams", flow("window = \"4K\"\nstreams = 10")),
        ("loss", Scenario { link: "[link.forward]\nloss = \"2%\"", ..plain }.text()),
        ("ipv6", Scenario { top: "family = \"ipv6\"", flow: "window = \"8K\"", ..plain }.text()),
        ("jumbo", Scenario { link: "mtu = 9000", ..plain }.text()),
        ("mss", flow("mss = 536")),
        ("cubic", flow("congestion = \"cubic\"")),
        ("bbr", flow("congestion = \"bbr\"")),
        ("sysctl", Scenario { more: "[hosts.far]\nsysctls = { \"net.ipv4.tcp_sack\" = 0 }", ..plain }.text()),
        ("omit", flow("omit = \"400ms\"")),
        ("bytes", flow("bytes = 200000")),
        ("length", flow("bytes = 100000\nlength = 3000")),
        (
            "duplex",
            Scenario {
                more: "[[flow]]\nfrom = \"far\"\nto = \"near\"\nduration = \"1s\"\nomit = 0\ncongestion = \"reno\"",
                ..plain
            }
            .text(),
        ),
        (
            "three",
            Scenario {
                more: "[[link]]\nbetween = [\"far\", \"beyond\"]\nrate = \"3M\"\ndelay = \"15ms\"\n\
                       [[flow]]\nfrom = \"far\"\nto = \"beyond\"\nduration = \"1s\"\nomit = 0\ncongestion = \"reno\"",
                ..plain
            }
            .text(),
        ),
        ("no-congestion", flow("congestion = \"nosuch\"")),
        (
            "no-sysctl",
            Scenario { more: "[hosts.far]\nsysctls = { \"net.ipv4.no_such_sysctl\" = 1 }", ..plain }.text(),
        ),
        (
            "fixed-sysctl",
            Scenario {
                more: "[hosts.far]\nsysctls = { \"net.ipv4.tcp_available_congestion_control\" = \"reno\" }",
                ..plain
            }
            .text(),
        ),
        ("all-omitted", flow("bytes = 10000\nomit = \"900ms\"")),
        (
            "mixed",
            Scenario {
                flow: "window = \"8K\"",
                more: "[[flow]]\nfrom = \"near\"\nto = \"far\"\nduration = \"1s\"\nomit = 0\ncongestion = \"reno\"",
                ..plain
            }
            .text(),
        ),
    ]
}

/// The document of one run of all kinds: in guests where they boot, where every case is judged; by this machine's clock elsewhere.
/// `None` where there is no lab here.
fn document() -> Option<&'static Value> {
    static DOCUMENT: OnceLock<Option<Value>> = OnceLock::new();
    let document = DOCUMENT.get_or_init(|| {
        let bench = Bench::new();
        let mut line = "lab run --json --attempts 1".to_owned();
        let _lab = if guests_boot(&bench) {
            line.push_str(" --clock virtual");
            None
        } else {
            Some(machine::own_lab()?)
        };
        for (name, text) in kinds() {
            let file = format!("{name}.toml");
            bench.write(&file, text);
            line.push_str(&format!(" {file}"));
        }
        let running = start(bench.bdp(&line));
        let traces = machine::Traces::of(running.pid());
        let ended = running.wait();
        traces.assert_gone();
        // Some of them can't be run, which is told before anything that was missed or INVALID.
        assert_eq!(ended.code(), 3, "{}", ended.err);
        Some(ended.json())
    });
    document.as_ref()
}

/// The last attempt at a kind of case.
#[track_caller]
fn record(name: &str) -> Option<&'static Value> {
    let cases = document()?["cases"].as_array().unwrap();
    let file = format!("{name}.toml");
    let attempts = cases.iter().filter(|case| case["scenario"] == file.as_str());
    Some(attempts.max_by_key(|case| case["attempt"].as_u64()).unwrap_or_else(|| panic!("{name} is missing")))
}

/// The same, which must have run to its end, INVALID or not; in a guest nothing disturbs it.
#[track_caller]
fn measured(name: &str) -> Option<&'static Value> {
    let record = record(name)?;
    assert_eq!(record["error"], Value::Null, "{name}");
    if record["environment"]["clock"] == "virtual" {
        assert_eq!(record["valid"], true, "{name}: {}", record["fidelity"]["broken"]);
    }
    assert!(record["goodput_bps"].as_f64().unwrap() > 0.0, "{name}");
    for direction in record["fidelity"]["directions"].as_array().unwrap() {
        assert_eq!(direction["conserved"], true, "{name}: {direction}");
    }
    Some(record)
}

/// The error of one that must have failed.
#[track_caller]
fn failure(name: &str) -> Option<&'static str> {
    let record = record(name)?;
    let error = record["error"].as_str().unwrap_or_else(|| panic!("{name} did not fail"));
    assert_eq!(error.lines().count(), 1, "{error}");
    assert_eq!(record["attempt"], 1, "what failed once is not repeated");
    assert_eq!(record["valid"], false);
    assert_eq!(record["goodput_bps"], Value::Null);
    Some(error)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn complaints(document: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    validator.iter_errors(document).map(|e| format!("{}: {e}", e.instance_path())).collect()
}

#[test]
fn the_document_keeps_to_its_schema() {
    let Some(document) = document() else { return };
    assert_eq!(complaints(document), Vec::<String>::new());
    assert_eq!(document["summary"].as_array().unwrap().len(), kinds().len());
}

/// That of a self-test is one, with its checks; whether they were held is for a quiet machine.
#[test]
fn the_document_of_a_self_test_keeps_to_the_schema() {
    let Some(_lab) = machine::own_lab() else { return };
    let ended = Bench::new().run("lab selftest loss --json");
    assert!([0, 1].contains(&ended.code()), "{}", ended.err);
    let document = ended.json();
    assert_eq!(complaints(&document), Vec::<String>::new());
    let checks = document["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 2, "{document:#}");
    let held = checks.iter().all(|check| check["held"] == true);
    assert_eq!(ended.code() == 0, held, "{document:#}");
}

#[test]
fn only_valid_records_are_in_the_summary() {
    let Some(document) = document() else { return };
    for summary in document["summary"].as_array().unwrap() {
        let of: Vec<&Value> = document["cases"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|case| case["scenario"] == summary["scenario"])
            .collect();
        let valid: Vec<f64> =
            of.iter().filter(|c| c["valid"] == true).map(|c| number(&c["goodput_bps"])).collect();
        assert_eq!(summary["n_valid"], valid.len());
        let failed = of.iter().filter(|c| !c["error"].is_null()).count();
        assert_eq!(summary["n_failed"], failed);
        assert_eq!(summary["n_invalid"], of.len() - valid.len() - failed);
        match valid.first() {
            // An attempt that is valid is the last: there is one at most.
            Some(&goodput) => assert_eq!(number(&summary["goodput_median_bps"]), goodput),
            None => assert_eq!(summary["goodput_median_bps"], Value::Null),
        }
    }
}

#[test]
fn a_window_is_put_on_the_wire_and_judged() {
    let Some(record) = measured("window") else { return };
    let window = &record["window"];
    assert_eq!(window["method"], "tcp_rmem");
    assert_eq!(window["asked_bytes"], 8192);
    // Five whole segments of 1448 bytes.
    assert_eq!(window["on_the_wire_bytes"].as_u64().unwrap() / 1448, 5, "{window}");
    let met = &record["expectation"]["met"];
    assert_eq!(*met, if record["valid"] == true { Value::Bool(true) } else { Value::Null });
    let Some(missed) = measured("missed") else { return };
    let met = &missed["expectation"]["met"];
    assert_eq!(*met, if missed["valid"] == true { Value::Bool(false) } else { Value::Null });
    // One window was wanted twice under the same conditions: it is found once.
    assert_eq!(window["socket_buffer_bytes"], missed["window"]["socket_buffer_bytes"]);
}

#[test]
fn autotuning_is_left_alone() {
    let Some(record) = measured("autotuned") else { return };
    assert_eq!(record["window"]["method"], "autotuned");
    assert_eq!(record["window"]["asked_bytes"], Value::Null);
    assert_eq!(record["environment"]["sysctls"]["far"]["net.ipv4.tcp_moderate_rcvbuf"], "1");
}

#[test]
fn below_a_segment_the_path_clamps() {
    let Some(record) = measured("clamped") else { return };
    assert_eq!(record["window"]["method"], "path clamp");
    assert_eq!(record["window"]["on_the_wire_bytes"], 576);
}

#[test]
fn every_stream_counts() {
    let Some(record) = measured("streams") else { return };
    let flow = &record["flows"][0];
    let streams: Vec<f64> = flow["stream_goodput_bps"].as_array().unwrap().iter().map(number).collect();
    assert_eq!(streams.len(), 10);
    assert!(streams.iter().all(|&bps| bps > 0.0), "{streams:?}");
    let sum: f64 = streams.iter().sum();
    assert!((sum / number(&flow["goodput_bps"]) - 1.0).abs() < 1e-6, "{sum} {flow}");
    // What the sender's kernel counted of each adds up to what it counted of all.
    let each = flow["streams"].as_array().unwrap();
    let sum_of = |count: &str| each.iter().map(|stream| stream[count].as_u64().unwrap()).sum::<u64>();
    let last = flow["sent"].as_array().unwrap().last().unwrap();
    assert_eq!(each.len(), 10);
    assert!(each.iter().all(|stream| stream["busy_ns"].as_u64() > Some(0)), "{each:?}");
    assert_eq!(sum_of("acked_bytes"), last["acked_bytes"].as_u64().unwrap());
    assert_eq!(sum_of("retransmits"), last["retransmits"].as_u64().unwrap());
}

#[test]
fn losses_are_those_of_the_link() {
    let Some(record) = measured("loss") else { return };
    let [forward, reverse] = &record["fidelity"]["directions"].as_array().unwrap()[..] else { panic!() };
    assert_eq!(forward["loss_configured"], 0.02);
    assert!(forward["dropped"]["loss"].as_u64().unwrap() > 0, "{forward}");
    assert_eq!(reverse["dropped"]["loss"], 0);
    assert!(record["flows"][0]["retransmits"].as_u64().unwrap() > 0);
}

#[test]
fn ipv6_has_its_own_headers() {
    let Some(record) = measured("ipv6") else { return };
    assert_eq!(record["case"]["family"], "ipv6");
    // 1500 less 40 of IPv6, 20 of TCP and 12 of timestamps.
    assert_eq!(record["flows"][0]["mss_bytes"], 1428);
    assert_eq!(record["window"]["on_the_wire_bytes"].as_u64().unwrap() / 1428, 5);
    // What every kernel says unasked on IPv6 is kept off the link, or counted as not ours.
    assert_eq!(record["fidelity"]["directions"][0]["dropped"]["loss"], 0);
}

#[test]
fn mtu_and_mss_shape_segments() {
    let Some(record) = measured("jumbo") else { return };
    assert_eq!(record["flows"][0]["mss_bytes"], 9000 - 40 - 12);
    let Some(record) = measured("mss") else { return };
    assert_eq!(record["flows"][0]["mss_bytes"], 536 - 12);
}

#[test]
fn the_congestion_control_is_read_back() {
    let Some(record) = measured("cubic") else { return };
    assert_eq!(record["flows"][0]["congestion_control"], "cubic");
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    if known.split_whitespace().any(|name| name == "bbr") {
        assert_eq!(measured("bbr").unwrap()["flows"][0]["congestion_control"], "bbr");
    } else {
        let refused = record_error_or_bbr();
        assert!(refused.contains("bbr"), "{refused}");
    }
}

/// A kernel that had bbr as a module may have loaded it by now; one without says so.
fn record_error_or_bbr() -> String {
    let record = record("bbr").unwrap();
    let read_back = record["flows"][0]["congestion_control"].as_str();
    read_back.or(record["error"].as_str()).unwrap_or_default().to_owned()
}

#[test]
fn sysctls_are_set_on_their_host_alone() {
    let Some(record) = measured("sysctl") else { return };
    let sysctls = &record["environment"]["sysctls"];
    assert_eq!(sysctls["far"]["net.ipv4.tcp_sack"], "0");
    assert_eq!(sysctls["near"]["net.ipv4.tcp_sack"], "1");
}

#[test]
fn what_is_omitted_does_not_count() {
    let Some(record) = measured("omit") else { return };
    let flow = &record["flows"][0];
    let (omit, duration) = (number(&flow["omit_ns"]), number(&flow["duration_ns"]));
    // By the first reading past it, which a machine that halts makes late.
    assert!(omit >= 4e8 && omit < duration && duration >= 1e9, "{omit} {duration}");
    let counted_bytes = number(&flow["goodput_bps"]) * (duration - omit) / 8e9;
    assert!(counted_bytes < number(&flow["received_bytes"]), "{flow}");
}

#[test]
fn a_flow_of_so_many_bytes_ends_with_the_last() {
    let Some(record) = measured("bytes") else { return };
    let flow = &record["flows"][0];
    assert_eq!(flow["received_bytes"], 200_000);
    // 0.32 s at 5 Mbit/s, and slow start before it.
    let duration = number(&flow["duration_ns"]);
    assert!((2e8..4e9).contains(&duration), "{duration}");
    // The first read starts the clock, so what it brought took no time and does not count.
    let first = &flow["received"][0];
    let counted = 200_000.0 - number(&first["bytes"]);
    let goodput = counted * 8e9 / (duration - number(&first["at_ns"]));
    let ratio = number(&flow["goodput_bps"]) / goodput;
    assert!(counted > 0.0 && (0.999..=1.001).contains(&ratio), "{ratio}: {first}");
    // Writes of 3000 bytes do not add up to 100000: the last one is shorter.
    let Some(record) = measured("length") else { return };
    assert_eq!(record["flows"][0]["received_bytes"], 100_000);
}

#[test]
fn both_directions_run_at_once() {
    let Some(record) = measured("duplex") else { return };
    let flows = record["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 2);
    assert_eq!((&flows[1]["from"], &flows[1]["to"]), (&"far".into(), &"near".into()));
    for (flow, direction) in flows.iter().zip(record["fidelity"]["directions"].as_array().unwrap()) {
        let bytes = number(&flow["received_bytes"]);
        assert!(bytes > 100_000.0 && number(&direction["bytes_out"]) > bytes, "{bytes} {direction}");
    }
    let sum: f64 = flows.iter().map(|f| number(&f["goodput_bps"])).sum();
    assert!((number(&record["goodput_bps"]) / sum - 1.0).abs() < 1e-9);
}

#[test]
fn three_hosts_have_two_links_and_no_route_between_the_outer_two() {
    let Some(record) = measured("three") else { return };
    let names: Vec<&str> = record["fidelity"]["directions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["near->far", "far->near", "far->beyond", "beyond->far"]);
    assert!(record["flows"].as_array().unwrap().iter().all(|f| number(&f["goodput_bps"]) > 0.0));
}

#[test]
fn what_the_kernel_does_not_have_fails_by_name_with_the_way_out() {
    let Some(error) = failure("no-congestion") else { return };
    assert!(error.contains("near") && error.contains("nosuch") && error.contains("; available: "), "{error}");
    let error = failure("no-sysctl").unwrap();
    assert!(error.contains("'far'") && error.contains("net.ipv4.no_such_sysctl = 1"), "{error}");
    let error = failure("fixed-sysctl").unwrap();
    assert!(error.contains("tcp_available_congestion_control"), "{error}");
}

#[test]
fn what_cannot_be_counted_fails() {
    let Some(error) = failure("all-omitted") else { return };
    assert!(error.contains("within the omitted 900 ms") && error.contains("smaller omit"), "{error}");
    let error = failure("mixed").unwrap();
    assert!(error.contains("'far'") && error.contains("set a window for both"), "{error}");
}

#[test]
fn exit_codes_follow_from_the_records() {
    let bench = Bench::new();
    let clock = if guests_boot(&bench) { "virtual" } else { "real" };
    let Some(_lab) = machine::own_lab() else { return };
    let with = |expect| Scenario { flow: "window = \"8K\"", more: expect, ..Default::default() }.text();
    bench.write("kept.toml", with("[expect]\nmodel_within = \"50%\""));
    bench.write("missed.toml", with("[expect]\ngoodput_min = \"1G\""));
    for (file, met) in [("kept.toml", 0), ("missed.toml", 1)] {
        let ended = bench.run(&format!("lab run --json {file} --clock {clock}"));
        let document = ended.json();
        let attempts = document["cases"].as_array().unwrap();
        let valid = attempts.iter().any(|case| case["valid"] == true);
        if valid {
            assert_eq!(ended.code(), met, "{file}: {}", ended.err);
        } else {
            assert_eq!(clock, "real", "{}", ended.err);
            // On a machine too busy for a path of 40 ms no attempt counts, and the code says that.
            assert!(!ended.every_case_is_valid());
            assert_eq!(attempts.len(), 4, "{file}");
        }
    }
}
