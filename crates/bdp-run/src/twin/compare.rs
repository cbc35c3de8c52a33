//! Compares figures of a twin's records with those of the measurement.

use bdp_model::measurement::Measurement;
use bdp_model::measurement::ends::Direction;
use bdp_model::record::{FlowRecord, Record};
use bdp_model::twin::{DirectionFigures, Fidelity, Figure, Twin};

/// Returns the figures of each direction that carries data in the twin.
pub fn figures(measurement: &Measurement, twin: &Twin, records: &[Record]) -> Vec<DirectionFigures> {
    let directions = [Some(twin.direction), twin.both_directions.then(|| twin.direction.opposite())];
    directions.into_iter().flatten().filter_map(|direction| of(measurement, direction, records)).collect()
}

fn of(measurement: &Measurement, direction: Direction, records: &[Record]) -> Option<DirectionFigures> {
    let measured = measurement.directions.iter().find(|d| d.direction == direction)?;
    let from = if direction == Direction::To { "near" } else { "far" };
    let flows: Vec<&FlowRecord> =
        records.iter().filter_map(|r| r.flows.iter().find(|flow| flow.from == from)).collect();
    let figure = |measured: Option<f64>, of: &dyn Fn(&FlowRecord) -> Option<f64>| {
        let twin: Vec<f64> = flows.iter().filter_map(|flow| of(flow)).collect();
        Figure::of(measured?, &twin)
    };
    let loaded = measured.rtt_ns.loaded.filter(|loaded| loaded.received > 0);
    let goodput_bps = figure(Some(measured.goodput_bps), &|flow| Some(flow.goodput_bps))?;
    let loaded_p50_ns = figure(loaded.map(|l| l.p50 as f64), &|flow| {
        Some(flow.rtt_ns.loaded.filter(|l| l.received > 0)?.p50 as f64)
    });
    let loaded_p95_ns =
        figure(loaded.and_then(|l| l.p95).map(|ns| ns as f64), &|flow| Some(flow.rtt_ns.loaded?.p95? as f64));
    let retransmits =
        figure(measured.retransmits.map(|n| n as f64), &|flow| flow.retransmits.map(|n| n as f64));
    let fidelity = Fidelity::of(&goodput_bps, loaded_p50_ns.as_ref());
    Some(DirectionFigures { direction, goodput_bps, loaded_p50_ns, loaded_p95_ns, retransmits, fidelity })
}
