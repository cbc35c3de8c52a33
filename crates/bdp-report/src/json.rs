//! JSON of `bdp lab run --json`: every record and a summary. Specified in `docs/record.md` and `docs/lab-run.schema.json`.

use std::collections::BTreeMap;

use bdp_model::case::{Published, PublishedRow};
use bdp_model::facts::Facts;
use bdp_model::facts::segments::Segments;
use bdp_model::finding::Limit;
use bdp_model::measurement::Measurement;
use bdp_model::measurement::instrument::Instrument;
use bdp_model::probes::hops::PathReport;
use bdp_model::probes::ping::Ping;
use bdp_model::record::{Record, Transfer};
use bdp_model::sweep::repeated::Repeated;
use serde::Serialize;
use serde_json::{Value, json as value};

use crate::breach;
use crate::caveat::{worded, worded_shortfall};
use crate::finding;
use crate::hops::{method_words as method_of_hops, sentences};
use crate::ping::method_words;
use crate::summary::{Ending, Point, in_order, points};
use crate::time_spent;
use crate::virtual_clock;

/// Name and version of the schema; readers refuse a larger major version.
pub const CASES_SCHEMA: &str = "bdp.cases/1";

/// Returns `{"schema", "bdp", "run", "cases", "summary"}`: all records, complete, in the natural order of their points, and one summary per
/// scenario and parameter point. `run` is the run's id if it is stored. Non-finite numbers become null.
pub fn json(records: &[Record], run: Option<&str>) -> Value {
    let points = points(records);
    value!(Cases {
        schema: CASES_SCHEMA,
        bdp: env!("CARGO_PKG_VERSION"),
        run,
        cases: in_order(records).into_iter().map(record_json).collect(),
        summary: points.iter().filter(|point| has_flows(point)).map(summary).collect(),
    })
}

/// Cases run in the lab.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Cases<'a> {
    /// Name and version of the schema.
    #[cfg_attr(feature = "schema", schemars(extend("const" = CASES_SCHEMA)))]
    schema: &'static str,
    /// Version of bdp that wrote the document.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    bdp: &'static str,
    /// The run's id in the store; null if it is not stored.
    run: Option<&'a str>,
    /// Every attempt at every case, including INVALID and failed ones, in the natural order of their points, then by repetition and attempt.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Record>"))]
    cases: Vec<Value>,
    /// One entry per scenario and point of its swept parameters, except for `bdp lab exec`. Statistics cover valid records only.
    summary: Vec<Summary<'a>>,
}

/// One point of a scenario's sweep, summarised over its valid repetitions.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Summary<'a> {
    /// Scenario name.
    scenario: &'a str,
    /// Swept parameters of this point, by dotted path.
    params: &'a BTreeMap<String, Value>,
    /// Number of valid records.
    n_valid: usize,
    /// Number of attempts in which the emulator missed its guarantees.
    n_invalid: usize,
    /// Number of attempts that failed with an error.
    n_failed: usize,
    /// Number of cases skipped because a requirement is missing on this host or does not exist.
    n_skipped: usize,
    /// Number of valid records that missed their expectation.
    n_missed: usize,
    /// Median goodput, bit/s; null if no record is valid.
    goodput_median_bps: Option<f64>,
    /// Smallest goodput, bit/s.
    goodput_min_bps: Option<f64>,
    /// Largest goodput, bit/s.
    goodput_max_bps: Option<f64>,
    /// Mean goodput, bit/s.
    goodput_mean_bps: Option<f64>,
    /// Standard deviation over the repetitions (n - 1), bit/s; null for a single one.
    goodput_sd_bps: Option<f64>,
    /// 95 % confidence interval of the mean by the percentile bootstrap, bit/s; null for fewer than five repetitions.
    goodput_mean_interval_bps: Option<[f64; 2]>,
    /// Goodput predicted by models of Reno; null if nothing is lost, if the loss pattern has no model, or if several flows or streams are counted.
    loss_models: Option<LossModels>,
    /// Rows of the source's published table; empty if there is none.
    published_rows: &'a [PublishedRow],
    /// Median of the model's goodput, bit/s; null if no model applies.
    expected_median_bps: Option<f64>,
    /// Median ratio of each record's goodput to its model's goodput.
    model_ratio_median: Option<f64>,
    /// Goodput published by the source of the experiment, bit/s: one figure, or lowest and highest; null if none.
    published_bps: Option<Published>,
    /// Smallest idle round-trip time, nanoseconds.
    rtt_idle_min_ns: Option<u64>,
    /// Median of the records' windows on the wire, bytes.
    on_the_wire_median_bytes: Option<f64>,
    /// How often each limit ranked first among the flows of valid records, most frequent first.
    limits: Vec<LimitCount>,
}

/// Goodput predicted by two models from the losses.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LossModels {
    /// Payload of a full segment.
    mss_bytes: u64,
    /// Smallest idle round-trip time.
    rtt_ns: u64,
    /// Share of data segments lost.
    loss: f64,
    /// Timeout T0 of PFTK: the round trip plus 200 ms.
    timeout_ns: u64,
    /// Constant C of the Mathis model.
    c: f64,
    /// Goodput by Mathis et al., bit/s.
    mathis_bps: f64,
    /// Goodput by PFTK, bit/s.
    pftk_bps: f64,
}

/// A limit and the number of flows in which it ranked first, over valid repetitions.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LimitCount {
    /// What limits the flow.
    limit: Limit,
    /// Number of flows.
    n: usize,
}

/// Whether the point has flows; a user's own programs have no goodput to summarise.
fn has_flows(point: &Point<'_>) -> bool {
    point.records.iter().all(|record| record.programs.is_empty())
}

/// Returns a record with the bounds it broke, its findings in words, the time spent by its flows and notes on window shortfalls.
pub(crate) fn record_json(record: &Record) -> Value {
    let mut value = value!(record);
    value["fidelity"]["broken"] = record.fidelity.broken.iter().map(breach::text).collect();
    value["fidelity"]["cause"] = breach::causes(&[&record.fidelity]).into();
    value["fidelity"]["next"] = virtual_clock::command(record).into();
    value["window"]["note"] = worded_shortfall(record.window.note.as_ref());
    for (i, flow) in record.flows.iter().enumerate() {
        complete(&mut value["flows"][i], flow, flow.received_bytes, Facts::emulated(record, i));
    }
    value
}

/// Returns a measurement with caveats and findings in words and the time spent per direction: `docs/measurement.md`, `docs/measurement.schema.json`.
pub fn measurement_json(measurement: &Measurement) -> Value {
    let mut value = value!(measurement);
    value["caveats"] = worded(&measurement.caveats);
    for (i, direction) in measurement.directions.iter().enumerate() {
        let facts = Facts::measured(measurement, direction.direction);
        complete(&mut value["directions"][i], direction, direction.bytes, facts);
    }
    value
}

/// Puts a transfer's window shortfall and findings into words, and adds its ratios and the time spent.
fn complete(value: &mut Value, transfer: &Transfer, bytes: u64, facts: Option<Facts>) {
    value["window"]["note"] = worded_shortfall(transfer.window.note.as_ref());
    value["findings"] = finding::all_json(&transfer.findings);
    let segments = Segments::of(transfer, bytes);
    value["retransmit_ratio"] = value!(segments.map(Segments::retransmit_ratio));
    value["loss_ratio"] = value!(transfer.loss_ratio(bytes));
    value["time_spent"] = time_spent::json(facts.as_ref());
}

/// Returns the result of `bdp ping`, with caveats in words: `docs/ping.md`, `docs/ping.schema.json`.
pub fn ping_json(ping: &Ping) -> Value {
    let mut value = value!(ping);
    value["method"] = method_words(&ping.method).into();
    value["caveats"] = worded(&ping.caveats);
    value
}

/// Returns the result of `bdp path`, with its conclusions in words: `docs/path.md`, `docs/path.schema.json`.
pub fn path_json(report: &PathReport) -> Value {
    let mut value = value!(report);
    value["method"]["text"] = method_of_hops(&report.method).into();
    if let Some(method) = &report.flows_method {
        value["flows_method"]["text"] = method_of_hops(method).into();
    }
    let sentences =
        sentences(report).into_iter().map(|(about, _, text)| value!({"about": about, "text": text}));
    value["verdict"] = sentences.collect();
    value
}

/// Returns the result of `bdp selftest`, with caveats in words: `docs/selftest.schema.json`.
pub fn instrument_json(found: &Instrument) -> Value {
    let mut value = value!(found);
    value["caveats"] = worded(&found.caveats);
    value
}

fn summary<'a>(point: &Point<'a>) -> Summary<'a> {
    let goodput = point.goodput_bps();
    let repeated = Repeated::of(point);
    let moments = repeated.map(|repeated| repeated.moments);
    let models = repeated.and_then(|repeated| repeated.models);
    Summary {
        scenario: point.scenario,
        params: point.params,
        n_valid: point.count(Ending::Valid),
        n_invalid: point.count(Ending::Invalid),
        n_failed: point.count(Ending::Failed),
        n_skipped: point.count(Ending::Skipped),
        n_missed: point.missed().count(),
        goodput_median_bps: goodput.map(|g| g.median),
        goodput_min_bps: goodput.map(|g| g.min),
        goodput_max_bps: goodput.map(|g| g.max),
        goodput_mean_bps: moments.map(|m| m.mean),
        goodput_sd_bps: moments.and_then(|m| m.sd),
        goodput_mean_interval_bps: repeated.and_then(|repeated| repeated.mean_interval),
        loss_models: models.map(|m| LossModels {
            mss_bytes: m.mss_bytes,
            rtt_ns: m.rtt.as_ns(),
            loss: m.loss,
            timeout_ns: m.timeout.as_ns(),
            c: m.c(),
            mathis_bps: m.mathis_bps,
            pftk_bps: m.pftk_bps,
        }),
        published_rows: point.records.first().map_or(&[][..], |r| &r.case.published_rows),
        expected_median_bps: point.expected_bps().map(|e| e.median),
        model_ratio_median: point.model_ratio().map(|r| r.median),
        published_bps: point.published_bps(),
        rtt_idle_min_ns: point.rtt_idle_min_ns(),
        on_the_wire_median_bytes: point.on_the_wire_bytes().map(|w| w.median),
        limits: limits(point),
    }
}

/// Counts how often each limit ranked first among the flows of valid repetitions, most frequent first.
fn limits(point: &Point<'_>) -> Vec<LimitCount> {
    let mut all: Vec<LimitCount> = Vec::new();
    let found = point.valid().flat_map(|record| &record.flows).filter_map(|flow| flow.findings.first());
    for limit in found.map(|finding| finding.limit) {
        match all.iter_mut().find(|one| one.limit == limit) {
            Some(one) => one.n += 1,
            None => all.push(LimitCount { limit, n: 1 }),
        }
    }
    all.sort_by_key(|one| std::cmp::Reverse(one.n));
    all
}
