//! Runs, records and measurements to store.

use bdp_model::measurement::Measurement;
use bdp_model::record::Record;
use bdp_store::{NewRun, StoredMeasurement};

/// A whole record with numbers that are easily spoiled: every kind of field, the largest seed, long fractions.
pub fn record() -> Record {
    serde_json::from_str(include_str!("record.json")).expect("the sample is a record")
}

/// An attempt at a repetition, and how it went.
pub fn attempt(repetition: u32, attempt: u32, valid: bool) -> Record {
    let mut record = record();
    record.repetition = repetition;
    record.case.repetition = repetition;
    record.attempt = attempt;
    record.valid = valid;
    record
}

/// A run of six cases that starts at the given time.
pub fn run(scenario: &str, plan_digest: &str, started_unix_ms: u64) -> NewRun {
    NewRun {
        scenario: scenario.into(),
        scenario_text: format!("# {scenario}\n[flows.0]\nwindow = \"64K\"\n"),
        plan_digest: plan_digest.into(),
        planned: 6,
        command: format!("bdp lab run {scenario}"),
        bdp: "0.1.0".into(),
        started_unix_ms,
        ..NewRun::default()
    }
}

/// A whole measurement under a key of its own, with a swept parameter.
pub fn measured(case_key: &str) -> StoredMeasurement {
    let measurement: Measurement =
        serde_json::from_str(include_str!("measurement.json")).expect("the sample is a measurement");
    let params = [("window".to_owned(), "64K".into()), ("streams".to_owned(), 4.into())].into();
    StoredMeasurement { case_key: case_key.to_owned(), params, measurement }
}
