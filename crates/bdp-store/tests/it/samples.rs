//! Runs and records to store.

use bdp_model::record::Record;
use bdp_store::NewRun;

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
    }
}
