//! Two runs compared, point by point: goodput, round trips, retransmits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::comparison::{Better, Comparison, Verdict};
use crate::measurement::Measurement;
use crate::plain::one_line as tame;
use crate::record::{Record, RttReport};

/// What is compared of each point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
}

impl Metric {
    const fn better(self) -> Better {
        match self {
            Self::GoodputBps => Better::Higher,
            Self::RttIdleNs | Self::RttLoadedP95Ns | Self::Retransmits => Better::Lower,
        }
    }
}

/// Stands between the name of a point and that of one of its paths.
const OF_PATH: &str = ": ";

/// The values of one run, one for each repetition that counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcomes(Vec<PointOutcomes>);

/// The values of one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct PointOutcomes {
    point: String,
    values: BTreeMap<Metric, Vec<f64>>,
}

impl Outcomes {
    /// Of the valid records of a lab run. A point is named by its scenario and parameters.
    pub fn of_records<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut all = Self::default();
        for record in records.into_iter().filter(|r| r.valid) {
            let point = named(&record.scenario, &record.params);
            all.add(&point, Metric::GoodputBps, record.goodput_bps);
            let paths = paths(record);
            for (path, rtt_ns) in &paths {
                let point = if paths.len() > 1 { format!("{point}{OF_PATH}{path}") } else { point.clone() };
                all.add(&point, Metric::RttIdleNs, rtt_ns.idle.as_ref().map(|s| s.p50 as f64));
                let loaded = rtt_ns.loaded.as_ref().and_then(|s| s.p95.map(|ns| ns as f64));
                all.add(&point, Metric::RttLoadedP95Ns, loaded);
            }
            let retransmits: Option<u64> = record.flows.iter().map(|f| f.retransmits).sum();
            all.add(&point, Metric::Retransmits, retransmits.map(|n| n as f64));
        }
        all
    }

    /// Of measurements with what was varied. A point is named by its direction and parameters, not by the host, so that
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
            }
        }
        all
    }

    /// The points, in the order in which they came.
    pub fn points(&self) -> Vec<&str> {
        self.0.iter().map(|one| one.point.as_str()).collect()
    }

    /// Names its only point anew, with the paths of that point, so that two runs of one point each can be compared whatever they
    /// are called.
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

    fn add(&mut self, point: &str, metric: Metric, value: Option<f64>) {
        let index = self.0.iter().position(|one| one.point == point).unwrap_or_else(|| {
            self.0.push(PointOutcomes { point: point.to_owned(), values: BTreeMap::new() });
            self.0.len() - 1
        });
        if let Some(value) = value {
            self.0[index].values.entry(metric).or_default().push(value);
        }
    }
}

/// The round trips of a record, by the hosts between which they were measured: those of its flows, once for each pair of hosts.
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

/// One metric of one point on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The point.
    pub point: String,
    /// What is compared.
    pub metric: Metric,
    /// Which way is better.
    pub better: Better,
    /// The two sides and what follows.
    #[serde(flatten)]
    pub comparison: Comparison,
    /// Whether a regression here fails the comparison.
    pub judged: bool,
    /// Whether b is worse beyond the interval and the threshold.
    pub regressed: bool,
}

/// Everything that both runs have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// By point as they came in the first run, then by metric.
    pub rows: Vec<Row>,
    /// Points of the first run alone.
    pub only_a: Vec<String>,
    /// Points of the second run alone.
    pub only_b: Vec<String>,
}

impl Compared {
    /// Compares b with a. A judged metric that is worse by more than `threshold` (a share) has regressed.
    pub fn of(a: &Outcomes, b: &Outcomes, judged: &[Metric], threshold: f64) -> Self {
        let mut rows = Vec::new();
        for left in &a.0 {
            let Some(right) = b.at(&left.point) else { continue };
            for (&metric, values) in &left.values {
                let better = metric.better();
                let other = right.values.get(&metric);
                let Some(comparison) = other.and_then(|other| Comparison::of(values, other, better)) else {
                    continue;
                };
                let judged = judged.contains(&metric);
                let regressed = judged && comparison.regressed(threshold);
                rows.push(Row { point: left.point.clone(), metric, better, comparison, judged, regressed });
            }
        }
        let only = |these: &Outcomes, others: &Outcomes| -> Vec<String> {
            these.points().into_iter().filter(|p| others.at(p).is_none()).map(str::to_owned).collect()
        };
        Self { rows, only_a: only(a, b), only_b: only(b, a) }
    }

    /// Whether something that is judged had too few runs, and nothing regressed that had enough.
    pub fn unknown(&self) -> bool {
        let few = |r: &Row| r.judged && r.comparison.verdict == Verdict::TooFewRuns;
        !self.regressed() && self.rows.iter().any(few)
    }

    /// Whether anything that is judged regressed.
    pub fn regressed(&self) -> bool {
        self.rows.iter().any(|r| r.regressed)
    }
}
