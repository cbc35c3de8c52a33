//! Comparison of two runs, point by point: goodput, round trips, retransmits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::facts::segments::Segments;
use crate::measurement::Measurement;
use crate::plain::one_line as tame;
use crate::record::{Record, RttReport};
use crate::statistics::comparison::{Better, Comparison, Regression};

/// A compared quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Goodput, bit/s.
    GoodputBps,
    /// Median of the idle round trips of a run.
    RttIdleNs,
    /// 95th percentile of the loaded round trips of a run.
    RttLoadedP95Ns,
    /// Retransmits in a run.
    Retransmits,
    /// Retransmits in a run, as a share of the segments sent.
    RetransmitRatio,
    /// Datagrams or segments lost in a run, as a share of those sent.
    LossRatio,
}

impl Metric {
    /// All metrics.
    pub const ALL: [Self; 6] = [
        Self::GoodputBps,
        Self::RttIdleNs,
        Self::RttLoadedP95Ns,
        Self::Retransmits,
        Self::RetransmitRatio,
        Self::LossRatio,
    ];

    /// Returns it in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::GoodputBps => "goodput",
            Self::RttIdleNs => "idle round trip",
            Self::RttLoadedP95Ns => "loaded round trip",
            Self::Retransmits => "retransmits",
            Self::RetransmitRatio => "retransmit ratio",
            Self::LossRatio => "loss",
        }
    }

    const fn better(self) -> Better {
        match self {
            Self::GoodputBps => Better::Higher,
            Self::RttIdleNs
            | Self::RttLoadedP95Ns
            | Self::Retransmits
            | Self::RetransmitRatio
            | Self::LossRatio => Better::Lower,
        }
    }
}

/// Separates the name of a point from that of one of its paths.
const OF_PATH: &str = ": ";

/// The values of one run, one for each valid repetition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcomes(Vec<PointOutcomes>);

/// The values of one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PointOutcomes {
    /// Name of the point.
    point: String,
    /// Values of each metric.
    values: BTreeMap<Metric, Vec<f64>>,
    /// Whether its values have no noise because all of it ran under the virtual clock.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    exact: bool,
}

impl Outcomes {
    /// Collects the valid records of a lab run. A point is named by its scenario and parameters.
    pub fn of_records<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut all = Self::default();
        for record in records.into_iter().filter(|r| r.valid) {
            let point = named(&record.scenario, &record.params);
            all.add(&point, Metric::GoodputBps, record.goodput_bps);
            let paths = paths(record);
            let points =
                |path: &str| if paths.len() > 1 { format!("{point}{OF_PATH}{path}") } else { point.clone() };
            if !record.case.clock.is_real() {
                all.is_exact(&point);
                paths.iter().for_each(|(path, _)| all.is_exact(&points(path)));
            }
            for (path, rtt_ns) in &paths {
                let point = points(path);
                all.add(&point, Metric::RttIdleNs, rtt_ns.idle.as_ref().map(|s| s.p50 as f64));
                let loaded = rtt_ns.loaded.as_ref().and_then(|s| s.p95.map(|ns| ns as f64));
                all.add(&point, Metric::RttLoadedP95Ns, loaded);
            }
            let retransmits: Option<u64> = record.flows.iter().map(|f| f.retransmits).sum();
            all.add(&point, Metric::Retransmits, retransmits.map(|n| n as f64));
            let tcp = record.flows.iter().filter(|flow| flow.udp.is_none());
            let segments = Segments::together(tcp.map(|flow| Segments::of(flow, flow.received_bytes)));
            all.add(&point, Metric::RetransmitRatio, segments.map(Segments::retransmit_ratio));
            all.add(&point, Metric::LossRatio, record.loss_ratio());
        }
        all
    }

    /// Collects measurements with their varied parameters. A point is named by direction and parameters, not by host, so that
    /// paths can be compared.
    pub fn of_measurements<'a>(
        measurements: impl IntoIterator<Item = (&'a BTreeMap<String, Value>, &'a Measurement)>,
    ) -> Self {
        let mut all = Self::default();
        for (params, measurement) in measurements {
            for direction in &measurement.directions {
                let point = named(direction.direction.name(), params);
                all.add(&point, Metric::GoodputBps, Some(direction.goodput_bps));
                all.add(&point, Metric::RttIdleNs, measurement.rtt_idle_ns.as_ref().map(|s| s.p50 as f64));
                let loaded = direction.rtt_ns.loaded.as_ref().and_then(|s| s.p95.map(|ns| ns as f64));
                all.add(&point, Metric::RttLoadedP95Ns, loaded);
                all.add(&point, Metric::Retransmits, direction.retransmits.map(|n| n as f64));
                let ratio = Segments::of(direction, direction.bytes).map(Segments::retransmit_ratio);
                all.add(&point, Metric::RetransmitRatio, ratio);
                all.add(&point, Metric::LossRatio, direction.loss_ratio(direction.bytes));
            }
        }
        all
    }

    /// Returns the points, in order of appearance.
    pub fn points(&self) -> Vec<&str> {
        self.0.iter().map(|one| one.point.as_str()).collect()
    }

    /// Renames its only point and that point's paths, so that two runs of one point each can be compared regardless of
    /// their names.
    pub fn rename_only(&mut self, name: &str) {
        let Some(only) = self.0.first().map(|one| one.point.clone()) else { return };
        let path = |one: &PointOutcomes| {
            let rest = one.point.strip_prefix(&only)?;
            (rest.is_empty() || rest.starts_with(OF_PATH)).then(|| format!("{name}{rest}"))
        };
        let Some(names) = self.0.iter().map(path).collect::<Option<Vec<_>>>() else { return };
        for (one, name) in self.0.iter_mut().zip(names) {
            one.point = name;
        }
    }

    fn at(&self, point: &str) -> Option<&PointOutcomes> {
        self.0.iter().find(|one| one.point == point)
    }

    fn at_or_new(&mut self, point: &str) -> &mut PointOutcomes {
        let index = self.0.iter().position(|one| one.point == point).unwrap_or_else(|| {
            let values = BTreeMap::new();
            self.0.push(PointOutcomes { point: point.to_owned(), values, exact: false });
            self.0.len() - 1
        });
        &mut self.0[index]
    }

    fn is_exact(&mut self, point: &str) {
        self.at_or_new(point).exact = true;
    }

    fn add(&mut self, point: &str, metric: Metric, value: Option<f64>) {
        let one = self.at_or_new(point);
        if let Some(value) = value {
            one.values.entry(metric).or_default().push(value);
        }
    }
}

/// Returns the round trips of a record, once for each pair of hosts with flows.
fn paths(record: &Record) -> Vec<(String, &RttReport)> {
    let mut pairs: Vec<[&str; 2]> = Vec::new();
    let mut paths = Vec::new();
    for flow in &record.flows {
        let mut pair = [flow.from.as_str(), flow.to.as_str()];
        pair.sort_unstable();
        if !pairs.contains(&pair) {
            pairs.push(pair);
            paths.push((tame(&format!("{}->{}", flow.from, flow.to)), &flow.rtt_ns));
        }
    }
    if paths.is_empty() {
        paths.push((String::new(), &record.rtt_ns));
    }
    paths
}

fn named(first: &str, params: &BTreeMap<String, Value>) -> String {
    let mut name = tame(first);
    for (path, value) in params {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        name.push_str(&format!(" {}={}", tame(path), tame(&value)));
    }
    name
}

/// Comparison of one metric of one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// Name of the point.
    pub point: String,
    /// Metric compared.
    pub metric: Metric,
    /// Whether higher or lower values are better.
    pub better: Better,
    /// The comparison and its verdict.
    #[serde(flatten)]
    pub comparison: Comparison,
    /// Whether a regression of this metric fails the comparison.
    pub judged: bool,
    /// Whether b is worse beyond the interval and the threshold.
    pub regressed: bool,
    /// Result of the regression check; null if the metric is not judged.
    #[serde(default)]
    pub regression: Option<Regression>,
}

/// Comparison of all points that both runs have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compared {
    /// Rows by point, in the order of the first run, then by metric.
    pub rows: Vec<Row>,
    /// Points of the first run only.
    pub only_a: Vec<String>,
    /// Points of the second run only.
    pub only_b: Vec<String>,
}

impl Compared {
    /// Compares b with a. A judged metric that is worse by more than `threshold` (a share) counts as regressed.
    pub fn of(a: &Outcomes, b: &Outcomes, judged: &[Metric], threshold: f64) -> Self {
        let mut rows = Vec::new();
        for left in &a.0 {
            let Some(right) = b.at(&left.point) else { continue };
            for (&metric, values) in &left.values {
                let better = metric.better();
                let other = right.values.get(&metric);
                let compare = if left.exact && right.exact { Comparison::of_exact } else { Comparison::of };
                let Some(comparison) = other.and_then(|other| compare(values, other, better)) else {
                    continue;
                };
                let judged = judged.contains(&metric);
                let regression = judged.then(|| comparison.regression(better, threshold));
                let regressed = regression == Some(Regression::Regressed);
                let point = left.point.clone();
                rows.push(Row { point, metric, better, comparison, judged, regressed, regression });
            }
        }
        let only = |these: &Outcomes, others: &Outcomes| -> Vec<String> {
            these.points().into_iter().filter(|p| others.at(p).is_none()).map(str::to_owned).collect()
        };
        Self { rows, only_a: only(a, b), only_b: only(b, a) }
    }

    /// Whether no judged metric regressed, but some are uncertain: too few runs, or an interval that allows both.
    pub fn is_open(&self) -> bool {
        !self.regressed() && (self.any(Regression::Unknown) || self.any(Regression::Inconclusive))
    }

    /// Whether any judged metric has this result.
    pub fn any(&self, regression: Regression) -> bool {
        self.rows.iter().any(|row| row.regression == Some(regression))
    }

    /// Whether any judged metric regressed.
    pub fn regressed(&self) -> bool {
        self.rows.iter().any(|r| r.regressed)
    }
}
