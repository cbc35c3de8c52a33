//! `bdp explain`: what limits the transfers of a run, without the figures.

use crate::finding::rate;
use bdp_model::facts::Facts;
use bdp_model::measurement::Measurement;
use bdp_model::record::Record;

use crate::grid::tame;
use crate::measurement::arrow;
use crate::measurement::conclusion::findings_lines;
use crate::style::Style;
use crate::time_spent;

/// Returns each flow of each case with its findings.
pub fn records(records: &[Record], style: &Style) -> String {
    let mut text = String::new();
    for record in records {
        let params: Vec<String> =
            record.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let name = [vec![record.scenario.clone()], params].concat().join(" ");
        let repetition =
            if record.repetition > 1 { format!(" #{}", record.repetition) } else { String::new() };
        let name = format!("{}{repetition}", tame(&name));
        if record.flows.is_empty() || !record.valid {
            let why = record
                .error
                .as_deref()
                .or(record.skipped.as_deref())
                .unwrap_or("INVALID: nothing is said of it");
            text.push_str(&format!("{name}: {}\n", tame(why)));
            continue;
        }
        for (i, flow) in record.flows.iter().enumerate() {
            let (ends, goodput) =
                (format!("{}->{}", tame(&flow.from), tame(&flow.to)), rate(flow.goodput_bps));
            text.push_str(&format!("{name}  {ends}  {goodput}\n"));
            text.push_str(&findings_lines(" ", &flow.findings, "", style));
            text.push_str(&time_spent::line(" ", Facts::emulated(record, i).as_ref(), style));
        }
    }
    text
}

/// Returns each direction of each measurement with its findings.
pub fn measurements(all: &[Measurement], style: &Style) -> String {
    let mut text = String::new();
    for measurement in all {
        let (near, far) = (tame(&measurement.near.name), tame(&measurement.far.name));
        text.push_str(&format!("{near} - {far}\n"));
        for direction in &measurement.directions {
            let way = arrow(direction.direction, style);
            text.push_str(&format!("{way} {}\n", rate(direction.goodput_bps)));
            text.push_str(&findings_lines(way, &direction.findings, "", style));
            let facts = Facts::measured(measurement, direction.direction);
            text.push_str(&time_spent::line(way, facts.as_ref(), style));
        }
    }
    text
}
