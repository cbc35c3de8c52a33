//! Findings for a measurement, new or stored: the same rules over the same facts.

pub use bdp_explain::candidate::{Claim, Grounds};
use bdp_model::facts::Facts;
use bdp_model::finding::Finding;
use bdp_model::measurement::{DirectionResult, Measurement};
use bdp_model::record::{Record, Transfer};

/// Sets what limits each flow. An emulator that broke its promise may itself be the limit, so an invalid record gets
/// no findings.
pub fn record(record: &mut Record) {
    if !record.valid {
        return;
    }
    let findings: Vec<_> = (0..record.flows.len()).map(|i| findings(Facts::emulated(record, i))).collect();
    for (flow, findings) in record.flows.iter_mut().zip(findings) {
        found(flow, findings);
    }
}

/// Sets what limits each direction.
pub fn measurement(measurement: &mut Measurement) {
    let of = |d: &DirectionResult| findings(Facts::measured(measurement, d.direction));
    let findings: Vec<_> = measurement.directions.iter().map(of).collect();
    for (direction, findings) in measurement.directions.iter_mut().zip(findings) {
        found(direction, findings);
    }
}

/// Returns the grounds on which candidates are weighed, for each flow of a record.
pub fn grounds_of_record(record: &Record) -> Vec<Grounds> {
    (0..record.flows.len()).filter_map(|i| bdp_explain::grounds(&Facts::emulated(record, i)?)).collect()
}

/// Returns the grounds on which candidates are weighed, for each direction of a measurement.
pub fn grounds_of_measurement(measurement: &Measurement) -> Vec<Grounds> {
    let of = |d: &DirectionResult| bdp_explain::grounds(&Facts::measured(measurement, d.direction)?);
    measurement.directions.iter().filter_map(of).collect()
}

fn findings(facts: Option<Facts>) -> Vec<Finding> {
    facts.as_ref().map_or_else(Vec::new, bdp_explain::explain)
}

/// Sets what limits a transfer, and each of several streams if that is specific to it.
fn found(transfer: &mut Transfer, findings: Vec<Finding>) {
    let first = findings.first().map(|finding| finding.limit);
    for stream in &mut transfer.streams {
        stream.limit = bdp_explain::stream::judge(stream, first);
    }
    transfer.findings = findings;
}
