//! The JSON of `bdp measure --json`. Specified in `docs/measurement.md` and `docs/measurement.schema.json`.

use bdp_model::comparison::Interval;
use bdp_model::expectation::Judgement;
use bdp_model::figure::{Figure, Quantile, figure, values};
use bdp_model::measurement::{Direction, Measurement};
use serde_json::{Map, Value, json as value};

use super::ways;
use crate::json::measurement_json;

/// Version of the shape of the document.
pub const MEASUREMENTS_SCHEMA: &str = "bdp.measurements/1";

/// `{"schema", "bdp", "run", "runs", "summary", "expectations"}`: every measurement, complete, over those that did not fail
/// the medians of each direction, and what became of what was expected. `run` is their name in the store. A number that is
/// not finite becomes null.
pub fn measurements_json(measurements: &[Measurement], run: Option<&str>, judged: &[Judgement]) -> Value {
    value!({
        "schema": MEASUREMENTS_SCHEMA,
        "bdp": env!("CARGO_PKG_VERSION"),
        "run": run,
        "runs": measurements.iter().map(measurement_json).collect::<Vec<_>>(),
        "expectations": judged,
        "summary": {
            "n": measurements.iter().filter(|m| m.error.is_none()).count(),
            "n_failed": measurements.iter().filter(|m| m.error.is_some()).count(),
            "rtt_idle_ns": quantiles(measurements, Figure::RttIdle),
            "directions":
                ways(measurements).into_iter().map(|way| summary(measurements, way)).collect::<Vec<_>>(),
        },
    })
}

fn summary(measurements: &[Measurement], way: Direction) -> Value {
    let goodputs = values(Figure::Goodput(way), measurements);
    let least = goodputs.iter().copied().min_by(f64::total_cmp);
    let most = goodputs.iter().copied().max_by(f64::total_cmp);
    value!({
        "direction": way,
        "n": goodputs.len(),
        "goodput_median_bps": figure(Figure::Goodput(way), measurements),
        "goodput_interval_bps": Interval::of_median(&goodputs)
            .map(|i| value!({ "low": i.low, "high": i.high, "confidence": i.confidence })),
        "goodput_min_bps": least,
        "goodput_max_bps": most,
        "retransmits_median": figure(Figure::Retransmits(way), measurements),
        "retransmit_ratio_median": figure(Figure::RetransmitRatio(way), measurements),
        "loss_ratio_median": figure(Figure::Loss(way), measurements),
        "on_the_wire_median_bytes": figure(Figure::Window(way), measurements),
        "rtt_loaded_ns": quantiles(measurements, |quantile| Figure::RttLoaded(way, quantile)),
        "limits": limits(measurements, way),
    })
}

/// The median over the runs of each quantile; null where none was measured.
fn quantiles(measurements: &[Measurement], of: impl Fn(Quantile) -> Figure) -> Value {
    let mut all = Map::new();
    for quantile in Quantile::ALL {
        let median = figure(of(quantile), measurements);
        if median.is_none() && quantile == Quantile::Min {
            return Value::Null;
        }
        // Null too where no run had the samples for it.
        all.insert(quantile.name().to_owned(), value!(median));
    }
    Value::Object(all)
}

/// How many runs found which limit.
fn limits(measurements: &[Measurement], way: Direction) -> Value {
    let mut counts: Vec<(Value, u64)> = Vec::new();
    let found = measurements
        .iter()
        .flat_map(|m| &m.directions)
        .filter(|d| d.direction == way)
        .filter_map(|d| d.findings.first());
    for finding in found {
        let limit = value!(finding.limit);
        match counts.iter_mut().find(|(counted, _)| *counted == limit) {
            Some((_, count)) => *count += 1,
            None => counts.push((limit, 1)),
        }
    }
    Value::Array(counts.into_iter().map(|(limit, n)| value!({ "limit": limit, "n": n })).collect())
}
