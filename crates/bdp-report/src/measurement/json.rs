//! The JSON of `bdp measure --json`. Specified in `docs/measurement.md` and `docs/measurement.schema.json`.

use bdp_model::comparison::Interval;
use bdp_model::expectation::Judgement;
use bdp_model::figure::{Figure, Quantile, figure, values};
use bdp_model::finding::Limit;
use bdp_model::measurement::{Direction, Measurement};
use serde::Serialize;
use serde_json::{Value, json as value};

use super::ways;
use crate::json::measurement_json;

/// Version of the shape of the document.
pub const MEASUREMENTS_SCHEMA: &str = "bdp.measurements/1";

/// `{"schema", "bdp", "run", "runs", "summary", "expectations"}`: every measurement, complete, over those that did not fail
/// the medians of each direction, and what became of what was expected. `run` is their name in the store. A number that is
/// not finite becomes null.
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

/// One run of a request, or several.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Measurements<'a> {
    /// Name and version of this document's shape.
    #[cfg_attr(feature = "schema", schemars(extend("const" = MEASUREMENTS_SCHEMA)))]
    schema: &'static str,
    /// Version of bdp that wrote the document.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    bdp: &'static str,
    /// The run's id in the store.
    run: Option<&'a str>,
    /// Every measurement, in the order in which they ran.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Measurement>"))]
    runs: Vec<Value>,
    /// What became of each `--expect`, in their order; empty if none was given, and of a stored run.
    expectations: &'a [Judgement],
    /// Over the runs that did not fail.
    summary: Summary,
}

/// Over the runs that did not fail.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Summary {
    /// Runs that did not fail.
    n: usize,
    /// Runs that failed; they are in no statistic.
    n_failed: usize,
    /// Medians over the runs of each quantile, nanoseconds; null if none was measured.
    rtt_idle_ns: Option<Quantiles>,
    /// Each direction.
    directions: Vec<DirectionSummary>,
}

/// One direction over the runs.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DirectionSummary {
    /// Which.
    direction: Direction,
    /// Runs that measured it.
    n: usize,
    /// Median, bit/s; null if no run measured it.
    goodput_median_bps: Option<f64>,
    /// Bounds of the median by order statistics, bit/s; null of fewer than 3 runs.
    goodput_interval_bps: Option<Bounds>,
    /// Smallest, bit/s.
    goodput_min_bps: Option<f64>,
    /// Largest, bit/s.
    goodput_max_bps: Option<f64>,
    /// Median of the retransmitted segments.
    retransmits_median: Option<f64>,
    /// Median of them as a share of the segments sent.
    retransmit_ratio_median: Option<f64>,
    /// Median of the segments or datagrams lost, as a share of those sent.
    loss_ratio_median: Option<f64>,
    /// Median of the windows on the wire.
    on_the_wire_median_bytes: Option<f64>,
    /// Medians over the runs of each quantile, nanoseconds; null if none was measured.
    rtt_loaded_ns: Option<Quantiles>,
    /// What the runs found to be the limit.
    limits: Vec<LimitCount>,
}

/// Bounds of a median.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Bounds {
    /// The lower one.
    low: f64,
    /// The upper one.
    high: f64,
    /// How sure, 0 to 1: 0.75 of 3 runs, 0.95 and more of 6.
    confidence: f64,
}

/// Quantiles of round trips.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Quantiles {
    /// Smallest.
    min: f64,
    /// Median.
    p50: f64,
    /// 95th percentile; null if no run had 20 answers.
    p95: Option<f64>,
    /// 99th percentile; null if no run had 100 answers.
    p99: Option<f64>,
    /// Largest.
    max: f64,
}

/// A limit and how many runs found it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LimitCount {
    /// What limits the flow.
    limit: Limit,
    /// How many runs.
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
    /// The median over the runs of each; `None` if none was measured.
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

/// How many runs found which limit.
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
