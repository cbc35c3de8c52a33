//! The emulator judged from outside, in guests: every bound holds on any machine, however busy.

use serde_json::Value;

use crate::support::guests::guests_boot;
use crate::support::{Bench, Ended};

/// Those whose cases take a guest a few seconds.
const SHIPPED: &str = "s3-30k s1-64k s1-128k";

/// The checks of a document that keeps to its schema.
fn checks(ended: &Ended) -> Vec<Value> {
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/lab-run.schema.json")).unwrap();
    let document = ended.json();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let complaints: Vec<String> = validator.iter_errors(&document).map(|e| e.to_string()).collect();
    assert_eq!(complaints, Vec::<String>::new());
    document["checks"].as_array().unwrap().clone()
}

fn missed(checks: &[Value]) -> Vec<&Value> {
    checks.iter().filter(|check| check["held"] != true).collect()
}

#[test]
fn frames_by_the_virtual_clock_come_out_when_they_are_to() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let ended = bench.run("lab selftest --clock virtual --json");
    let checks = checks(&ended);
    assert!(checks.len() >= 25, "{}", checks.len());
    assert!(missed(&checks).is_empty(), "{:#?}", missed(&checks));
    assert_eq!(ended.code(), 0, "{}", ended.err);
}

#[test]
fn frames_over_netem_and_the_emulator_fare_alike() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let ended = bench.run("lab selftest --netem frames --json");
    let checks = checks(&ended);
    assert!(checks.len() >= 20, "{}", checks.len());
    assert!(missed(&checks).is_empty(), "{:#?}", missed(&checks));
    assert_eq!(ended.code(), 0, "{}", ended.err);
}

#[test]
fn commands_that_are_exported_do_what_the_link_does() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let ended = bench.run("lab selftest --netem export --json");
    let checks = checks(&ended);
    assert_eq!(checks.len(), 12, "{checks:#?}");
    assert!(missed(&checks).is_empty(), "{:#?}", missed(&checks));
    assert_eq!(ended.code(), 0, "{}", ended.err);
}

#[test]
fn codel_drops_and_marks_the_frames_that_the_kernel_drops_and_marks() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let ended = bench.run("lab selftest --queues codel --json");
    let document = ended.json();
    let rows = document["beside_kernel_queues"]["rows"].as_array().expect("rows").clone();
    assert!(rows.len() >= 8, "{}", rows.len());
    for row in &rows {
        assert_eq!(row["unlike"], 0, "{row:#}");
        assert!(row["dropped"].as_u64() > Some(100) && row["agrees"] == true, "{row:#}");
    }
    assert_eq!(ended.code(), 0, "{}", ended.err);
}

#[test]
fn a_selftest_by_another_clock_has_other_trials() {
    let bench = Bench::new();
    let ended = bench.run("lab selftest loss --clock virtual");
    assert_eq!(ended.code(), 2, "{}", ended.err);
    let ended = bench.run("lab selftest --netem --clock real");
    assert_eq!(ended.code(), 2);
    assert!(ended.err.contains("omit --clock real"), "{}", ended.err);
    let ended = {
        let mut command = bench.bdp("lab selftest --clock virtual");
        command.env("BDP_KERNELS", bench.folder());
        crate::support::start(command).wait()
    };
    assert_eq!(ended.code(), 3, "{}", ended.err);
    assert!(ended.err.contains("is not built") && ended.err.lines().count() == 1, "{}", ended.err);
}

/// By this machine's clock these are INVALID on a busy machine.
#[test]
fn shipped_scenarios_meet_their_models_in_guests() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let ended = bench.run(&format!("lab run {SHIPPED} --clock virtual --repetitions 1 --json"));
    let document = ended.json();
    for case in document["cases"].as_array().unwrap() {
        let name = format!("{} {}", case["scenario"], case["params"]);
        assert_eq!(case["valid"], true, "{name}: {}", case["fidelity"]["broken"]);
        assert_eq!(case["attempt"], 1, "{name}");
        assert_eq!(case["expectation"]["met"], true, "{name}: {}", case["expectation"]);
    }
    assert_eq!(ended.code(), 0, "{}", ended.err);
}
