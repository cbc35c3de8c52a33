//! The JSON against its schema: everything that is written passes, and whatever is spoiled does not.

use crate::fixture::{Recipe, demo, elaborate, failed, in_a_guest, invalid, missed, record, sweep};
use bdp_explain::explain;
use bdp_model::facts::Facts;
use bdp_model::finding::caveat::WindowShortfall;
use bdp_model::finding::{Action, Lack, Limit, Missing, Next, Quantity, Remedy};
use bdp_model::flow::method::TimestampSource;
use bdp_model::flow::udp::UdpRequest;
use bdp_model::link::Loss;
use bdp_model::record::Record;
use bdp_report::json;
use jsonschema::Validator;
use serde_json::{Value, json as value};

const SCHEMA: &str = include_str!("../../../../docs/lab-run.schema.json");

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

fn validator() -> Validator {
    jsonschema::draft202012::new(&schema()).unwrap()
}

fn complaints(validator: &Validator, document: &Value) -> Vec<String> {
    validator.iter_errors(document).map(|e| format!("{}: {e}", e.instance_path())).collect()
}

/// One record of each kind, every optional member both null and not.
fn everything() -> Vec<Record> {
    let swept = Recipe {
        scenario: "s0-window-i",
        params: vec![("flow.window", 319_000.into())],
        window: Some(319_000),
        ..Recipe::default()
    };
    let mut short = record(&swept);
    short.window.reached = Some(false);
    short.window.note =
        Some(WindowShortfall::NotCalibrated { seen_bytes: 1, best_bytes: 2, buffer_bytes: 3 });
    let mut udp = record(&Recipe { scenario: "s1-udp", ..Recipe::default() });
    let times = bdp_model::flow::udp::Distribution { count: 9, p50: 1, p95: Some(2), p99: Some(3), max: 4 };
    udp.flows[0].udp = Some(bdp_model::flow::udp::UdpReport {
        asked_bps: Some(110e6),
        dropped_by_receiver: Some(0),
        jitter_ns: Some(124_000),
        delay_variation_ns: Some(times),
        one_way_delay_ns: Some(Default::default()),
        send_gap_ns: Some(times),
        timestamps: TimestampSource::Kernel,
        ..Default::default()
    });
    udp.case.flows[0].spec.udp = Some(UdpRequest {
        rate_bps: Some(110_000_000),
        search: None,
        datagram_bytes: Some(1470),
        dont_fragment: false,
    });
    let mut explained = record(&Recipe { scenario: "explained", ..Recipe::default() });
    explained.flows[0].needless_retransmits = Some(0);
    explained.flows[0].send_buffer_bytes = Some(4 << 20);
    explained.flows[0].sender_thread_cpu = Some(0.01);
    explained.flows[0].receiver_thread_cpu = Some(0.02);
    explained.flows[0].sender_window_scaling = Some(true);
    explained.flows[0].receiver_window_scaling = Some(true);
    explained.flows[0].findings = explain(&Facts::emulated(&explained, 0).unwrap());
    let mut limited = explained.clone();
    limited.scenario = "limited".to_owned();
    let larger = Remedy::new(Action::AskWindow).setting("flow.window").value(Quantity::bytes(65_536.0));
    let scaling = Remedy::new(Action::Set).setting("net.ipv4.tcp_window_scaling").host("far");
    limited.flows[0].findings[0].remedy = Some(larger.also(scaling));
    limited.flows[0].findings[0].next =
        Some(Next { limit: Limit::PathRate, goodput_bps: 94e6, needed_bytes: None });
    limited.flows[0].findings[0].missing = vec![Missing::new(Lack::IdleRoundTrip)];
    vec![
        record(&Recipe::default()),
        invalid(
            &Recipe { scenario: "s1-w512k", ..Recipe::default() },
            "3.1 % released over 1 ms late (bound 1 %)",
        ),
        record(&Recipe { scenario: "s1-w512k", attempt: 2, ..Recipe::default() }),
        failed(&Recipe { scenario: "s1-128k", ..Recipe::default() }, "connect: no answer within 3 s"),
        missed(&Recipe { scenario: "s3-30k", here_bps: 2.7e6, ..Recipe::default() }),
        record(&Recipe { scenario: "autotuned", window: None, published: None, ..Recipe::default() }),
        record(&Recipe { scenario: "periodic", loss: Loss::Periodic(100), ..Recipe::default() }),
        short,
        elaborate(),
        in_a_guest(),
        udp,
        explained,
        limited,
    ]
}

#[test]
fn the_schema_is_a_schema() {
    assert!(jsonschema::meta::is_valid(&schema()));
}

#[test]
fn what_is_written_passes() {
    let validator = validator();
    for records in [everything(), demo(), sweep(), Vec::new()] {
        let document = json(&records, None);
        assert_eq!(complaints(&validator, &document), Vec::<String>::new());
        assert_eq!(document["cases"].as_array().map(Vec::len), Some(records.len()));
    }
}

/// Every object in the document, by its JSON pointer, but those whose keys are data.
fn objects(document: &Value, at: &str, found: &mut Vec<(String, Vec<String>)>) {
    const MAPS: [&str; 3] = ["params", "sysctls", "dropped"];
    match document {
        Value::Object(members) => {
            if !MAPS.iter().any(|map| at.split('/').any(|part| part == *map)) {
                found.push((at.to_owned(), members.keys().cloned().collect()));
            }
            for (key, member) in members {
                objects(member, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                objects(item, &format!("{at}/{i}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn a_missing_member_fails_wherever_it_is_missing() {
    let validator = validator();
    let document = json(&[elaborate(), record(&Recipe::default())], None);
    let mut found = Vec::new();
    objects(&document, "", &mut found);
    assert!(found.len() > 60, "the walk must reach the samples and the links: {}", found.len());
    for (pointer, keys) in found {
        for key in keys {
            let mut spoiled = document.clone();
            spoiled.pointer_mut(&pointer).and_then(Value::as_object_mut).unwrap().remove(&key);
            assert!(!validator.is_valid(&spoiled), "{pointer} without {key} passes");
        }
    }
}

#[test]
fn an_unknown_member_and_a_wrong_type_fail_wherever_they_are() {
    let validator = validator();
    let document = json(&[elaborate(), record(&Recipe::default())], None);
    let mut found = Vec::new();
    objects(&document, "", &mut found);
    for (pointer, keys) in found {
        let mut spoiled = document.clone();
        spoiled.pointer_mut(&pointer).and_then(Value::as_object_mut).unwrap().insert("x".into(), 1.into());
        assert!(!validator.is_valid(&spoiled), "{pointer} with a member x passes");
        for key in keys {
            // No member of any object takes a list of a list.
            let mut spoiled = document.clone();
            spoiled.pointer_mut(&pointer).unwrap()[&key] = value!([[[]]]);
            assert!(!validator.is_valid(&spoiled), "{pointer}/{key} as a list of lists passes");
        }
    }
}

#[test]
fn spoiled_documents_fail() {
    let validator = validator();
    let document = json(&everything(), None);
    let cases: &[(&str, Value)] = &[
        ("/schema", value!("bdp.cases/2")),
        ("/bdp", value!("")),
        ("/cases/0/schema", value!("bdp.record/2")),
        ("/cases/0/scenario", value!("")),
        ("/cases/0/repetition", value!(0)),
        ("/cases/0/attempt", value!(1.5)),
        ("/cases/0/seed", value!(-1)),
        ("/cases/0/valid", value!("true")),
        ("/cases/0/params", value!({ "flow.window": null })),
        ("/cases/0/goodput_bps", value!("3.0 Mbit/s")),
        ("/cases/0/goodput_bps", value!(-1.0)),
        ("/cases/0/expected_bps", value!(true)),
        ("/cases/0/published_bps", value!("2.77 Mbit/s")),
        ("/cases/0/published_bps", value!([1e6])),
        ("/cases/0/published_bps", value!([1e6, 2e6, 3e6])),
        ("/cases/0/published_bps", value!([1e6, null])),
        ("/cases/0/rtt_idle_ns", value!(0.5)),
        ("/cases/0/rtt_ns/idle/p50", value!(null)),
        ("/cases/0/window/asked_bytes", value!("64K")),
        ("/cases/0/window/on_the_wire_bytes", value!(-1)),
        ("/cases/0/window/reached", value!("yes")),
        ("/cases/0/flows/0/goodput_bps", value!(null)),
        ("/cases/0/flows/0/sent/0/cwnd", value!("64")),
        ("/cases/0/fidelity/host_cpu_busy", value!(1.5)),
        ("/cases/0/fidelity/directions/0/dropped/loss", value!(null)),
        ("/cases/0/fidelity/directions/0/loss_achieved", value!(2)),
        ("/cases/0/environment/cpus", value!(0)),
        ("/cases/0/environment/sysctls/far", value!("4096")),
        ("/cases/0/case/family", value!("IPv4")),
        ("/cases/0/case/idle_ns", value!("2s")),
        ("/cases/0/case/links/0/between", value!(["near"])),
        ("/cases/0/case/links/0/config/forward/delay_ns", value!("41ms")),
        ("/cases/0/case/links/0/config/forward/loss", value!({ "independent": 0.1, "periodic": 2 })),
        ("/cases/0/case/links/0/config/forward/limit", value!("1000")),
        ("/cases/0/case/flows/0/window_method", value!("guess")),
        ("/cases/0/case/flows/0/streams", value!(0)),
        ("/summary/0/n_valid", value!(-1)),
        ("/summary/0/published_bps", value!({})),
        // One member contradicts another.
        ("/cases/0/error", value!("connection reset")),
        ("/cases/0/goodput_bps", value!(null)),
        ("/cases/0/fidelity/valid", value!(false)),
        ("/cases/0/fidelity/broken", value!(["3.1 % late"])),
        ("/cases/0/flows", value!([])),
        ("/cases/1/fidelity/broken", value!([])),
        ("/cases/1/fidelity/valid", value!(true)),
        ("/cases/3/error", value!(null)),
        ("/summary/0/goodput_median_bps", value!(null)),
        ("/summary/2/goodput_median_bps", value!(1e6)),
    ];
    assert_eq!(document["summary"][2]["n_valid"], 0, "the failed case's summary");
    for (pointer, wrong) in cases {
        let mut spoiled = document.clone();
        *spoiled.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer} is not there")) = wrong.clone();
        assert!(!validator.is_valid(&spoiled), "{pointer} = {wrong} passes");
    }
}

#[test]
fn a_rate_that_is_no_number_does_not_pass_for_one() {
    let mut spoiled = record(&Recipe::default());
    spoiled.flows[0].goodput_bps = f64::NAN;
    assert!(!validator().is_valid(&json(&[spoiled], None)));
}

#[test]
fn the_summary_counts_valid_records_alone() {
    let at = |repetition, attempt, here_bps| Recipe { repetition, attempt, here_bps, ..Recipe::default() };
    let records = [
        record(&at(1, 1, 3.0e6)),
        invalid(&at(2, 1, 9.9e6), "late"),
        record(&at(2, 2, 2.6e6)),
        missed(&at(3, 1, 2.0e6)),
        failed(&at(4, 1, 0.0), "no answer"),
    ];
    let document = json(&records, None);
    let sd = document["summary"][0]["goodput_sd_bps"].as_f64().unwrap();
    assert!((sd - 503_322.295_7).abs() < 1e-3, "{sd}");
    assert_eq!(
        document["summary"],
        value!([{
            "scenario": "s1-64k",
            "params": {},
            "n_valid": 3,
            "n_invalid": 1,
            "n_failed": 1,
            "n_skipped": 0,
            "n_missed": 1,
            "goodput_median_bps": 2.6e6,
            "goodput_min_bps": 2.0e6,
            "goodput_max_bps": 3.0e6,
            "goodput_mean_bps": (3.0e6 + 2.6e6 + 2.0e6) / 3.0,
            "goodput_sd_bps": sd,
            "goodput_mean_interval_bps": null,
            "loss_models": null,
            "published_rows": [],
            "expected_median_bps": 3.013e6,
            "model_ratio_median": 2.6e6 / 3.013e6,
            "published_bps": 2.77e6,
            "rtt_idle_min_ns": 173_000_000,
            "on_the_wire_median_bytes": 65_160.0,
            "limits": [],
        }])
    );
}

#[test]
fn cases_read_back_as_the_records_they_were() {
    let records = everything();
    let text = json(&records, None).to_string();
    let document: Value = serde_json::from_str(&text).unwrap();
    let back: Vec<Record> = serde_json::from_value(document["cases"].clone()).unwrap();
    assert_eq!(back, records);
}

#[test]
fn an_invalid_case_of_the_real_clock_has_a_command_by_the_virtual_one() {
    let next =
        |record: &Record| json(std::slice::from_ref(record), None)["cases"][0]["fidelity"]["next"].clone();
    let swept =
        Recipe { scenario: "s0-window-i", params: vec![("flow.window", "64K".into())], ..Recipe::default() };
    assert_eq!(
        next(&invalid(&swept, "late")),
        "bdp lab run s0-window-i --filter 'flow.window=64K #1' --clock virtual"
    );
    let mut changed = invalid(&swept, "late");
    changed.case.set.insert("flow.duration".into(), "2s".into());
    changed.case.set.insert("stack".into(), "linux".into());
    let command =
        "bdp lab run s0-window-i --set flow.duration=2s --filter 'flow.window=64K #1' --clock virtual";
    assert_eq!(next(&changed), command);
    let shown = Recipe { scenario: "demo-window", ..swept };
    assert_eq!(next(&invalid(&shown, "late")), "bdp demo --clock virtual");
    assert_eq!(next(&record(&Recipe::default())), Value::Null);
    let mut guest = in_a_guest();
    guest.valid = false;
    guest.fidelity.valid = false;
    assert_eq!(next(&guest), Value::Null, "there is no other clock to go to");
}
