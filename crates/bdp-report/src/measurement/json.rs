//! JSON of `bdp measure --json`. Specified in `docs/measurement.md` and `docs/measurement.schema.json`.

use bdp_model::finding::Limit;
use bdp_model::measurement::expectation::Judgement;
use bdp_model::measurement::figure::{Figure, Quantile, figure, values};
use bdp_model::measurement::{Direction, Measurement};
use bdp_model::statistics::comparison::Interval;
use serde::Serialize;
use serde_json::{Value, json as value};

use super::ways;
use crate::json::measurement_json;

/// Name and version of the schema.
pub const MEASUREMENTS_SCHEMA: &str = "bdp.measurements/1";

/// Returns `{"schema", "bdp", "run", "runs", "summary", "expectations"}`: every measurement, complete, the medians of each direction over
/// the successful ones, and the result of each expectation. `run` is the run's id in the store. Non-finite numbers become null.
pub fn measurements_json(measurements: &[Measurement], run: Option<&str>, judged: &[Judgement]) -> Value {
    value!(Measurements {
        schema: MEASUREMENTS_SCHEMA,
        bdp: env!("CARGO_PKG_VERSION"),
        run,
        runs: measurements.iter().map(measurement_json).collect(),
        expectations: judged,
        summary: Summary {
            n: measurements.iter().filter(|m| m.error.is_none()).count(),
            n_failed: measurements.iter().filter(|m| m.error.is_some()).count(),
            rtt_idle_ns: Quantiles::of(measurements, Figure::RttIdle),
            directions: ways(measurements).into_iter().map(|way| summary(measurements, way)).collect(),
        },
    })
}

/// One or more runs of a measurement.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Measurements<'a> {
    /// Name and version of the schema.
    #[cfg_attr(feature = "schema", schemars(extend("const" = MEASUREMENTS_SCHEMA)))]
    schema: &'static str,
    /// Version of bdp that wrote the document.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    bdp: &'static str,
    /// The run's id in the store; null if it is not stored.
    run: Option<&'a str>,
    /// Every measurement, in the order run.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Measurement>"))]
    runs: Vec<Value>,
    /// Result of each `--expect`, in order; empty if none was given or the run comes from the store.
    expectations: &'a [Judgement],
    /// Summary of the runs that did not fail.
    summary: Summary,
}

/// Summary of the runs that did not fail.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Summary {
    /// Number of runs that did not fail.
    n: usize,
    /// Number of failed runs; excluded from all statistics.
    n_failed: usize,
    /// Idle round-trip time: median over the runs of each quantile, nanoseconds; null if not measured.
    rtt_idle_ns: Option<Quantiles>,
    /// Summary of each direction.
    directions: Vec<DirectionSummary>,
}

/// One direction, summarised over the runs.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DirectionSummary {
    /// Direction.
    direction: Direction,
    /// Number of runs that measured the direction.
    n: usize,
    /// Median goodput, bit/s; null if no run measured it.
    goodput_median_bps: Option<f64>,
    /// Confidence interval of the median goodput by order statistics, bit/s; null for fewer than 3 runs.
    goodput_interval_bps: Option<Bounds>,
    /// Smallest goodput, bit/s.
    goodput_min_bps: Option<f64>,
    /// Largest goodput, bit/s.
    goodput_max_bps: Option<f64>,
    /// Median number of retransmitted segments.
    retransmits_median: Option<f64>,
    /// Median share of the sent segments that were retransmissions.
    retransmit_ratio_median: Option<f64>,
    /// Median share of the sent segments or datagrams that were lost.
    loss_ratio_median: Option<f64>,
    /// Median window on the wire.
    on_the_wire_median_bytes: Option<f64>,
    /// Round-trip time under load: median over the runs of each quantile, nanoseconds; null if not measured.
    rtt_loaded_ns: Option<Quantiles>,
    /// Limits that the runs found.
    limits: Vec<LimitCount>,
}

/// Confidence interval of a median.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Bounds {
    /// Lower bound.
    low: f64,
    /// Upper bound.
    high: f64,
    /// Confidence level, 0 to 1: 0.75 for 3 runs, at least 0.95 from 6 runs on.
    confidence: f64,
}

/// Quantiles of round-trip times.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Quantiles {
    /// Smallest.
    min: f64,
    /// Median.
    p50: f64,
    /// 95th percentile; null if no run had 20 replies.
    p95: Option<f64>,
    /// 99th percentile; null if no run had 100 replies.
    p99: Option<f64>,
    /// Largest.
    max: f64,
}

/// A limit and the number of runs that found it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LimitCount {
    /// What limits the flow.
    limit: Limit,
    /// Number of runs.
    n: u64,
}

fn summary(measurements: &[Measurement], way: Direction) -> DirectionSummary {
    let goodputs = values(Figure::Goodput(way), measurements);
    let least = goodputs.iter().copied().min_by(f64::total_cmp);
    let most = goodputs.iter().copied().max_by(f64::total_cmp);
    DirectionSummary {
        direction: way,
        n: goodputs.len(),
        goodput_median_bps: figure(Figure::Goodput(way), measurements),
        goodput_interval_bps: Interval::of_median(&goodputs).map(|i| Bounds {
            low: i.low,
            high: i.high,
            confidence: i.confidence,
        }),
        goodput_min_bps: least,
        goodput_max_bps: most,
        retransmits_median: figure(Figure::Retransmits(way), measurements),
        retransmit_ratio_median: figure(Figure::RetransmitRatio(way), measurements),
        loss_ratio_median: figure(Figure::Loss(way), measurements),
        on_the_wire_median_bytes: figure(Figure::Window(way), measurements),
        rtt_loaded_ns: Quantiles::of(measurements, |quantile| Figure::RttLoaded(way, quantile)),
        limits: limits(measurements, way),
    }
}

impl Quantiles {
    /// Returns the median over the runs of each quantile; `None` if none was measured.
    fn of(measurements: &[Measurement], of: impl Fn(Quantile) -> Figure) -> Option<Self> {
        let median = |quantile| figure(of(quantile), measurements);
        Some(Self {
            min: median(Quantile::Min)?,
            p50: median(Quantile::P50)?,
            p95: median(Quantile::P95),
            p99: median(Quantile::P99),
            max: median(Quantile::Max)?,
        })
    }
}

/// Counts the runs that found each limit.
fn limits(measurements: &[Measurement], way: Direction) -> Vec<LimitCount> {
    let mut counts: Vec<LimitCount> = Vec::new();
    let found = measurements
        .iter()
        .flat_map(|m| &m.directions)
        .filter(|d| d.direction == way)
        .filter_map(|d| d.findings.first());
    for finding in found {
        match counts.iter_mut().find(|counted| counted.limit == finding.limit) {
            Some(counted) => counted.n += 1,
            None => counts.push(LimitCount { limit: finding.limit, n: 1 }),
        }
    }
    counts
}
