//! Two stored runs compared, point by point; as text and as JSON.

use std::collections::BTreeMap;

use bdp_model::comparison::{Better, Comparison, Interval, LEAST_RUNS, Verdict};
use bdp_model::measurement::Measurement;
use bdp_model::record::{Record, RttReport};
use serde::Serialize;
use serde_json::{Value, json};

use crate::grid::{Align, Cell, Column, render, tame, total_width, wrap};
use crate::number::three_digits;
use crate::style::{Style, Tint};

/// Version of the document's shape; a reader refuses a larger major number.
pub const COMPARISON_SCHEMA: &str = "bdp.comparison/1";

/// What is compared of each point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Goodput, bit/s.
    GoodputBps,
    /// Median of the idle round trips of a run.
    RttIdleNs,
    /// 95th percentile of the loaded round trips of a run.
    RttLoadedP95Ns,
    /// Retransmitted segments of a run.
    Retransmits,
}

impl Metric {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GoodputBps => "goodput Mbit/s",
            Self::RttIdleNs => "RTT idle ms",
            Self::RttLoadedP95Ns => "RTT loaded p95 ms",
            Self::Retransmits => "retransmits",
        }
    }

    const fn better(self) -> Better {
        match self {
            Self::GoodputBps => Better::Higher,
            Self::RttIdleNs | Self::RttLoadedP95Ns | Self::Retransmits => Better::Lower,
        }
    }

    /// In the unit of [`Metric::name`].
    pub(crate) fn printed(self, value: f64) -> String {
        match self {
            Self::GoodputBps => three_digits(value / 1e6),
            Self::RttIdleNs | Self::RttLoadedP95Ns => three_digits(value / 1e6),
            Self::Retransmits => format!("{value:.0}"),
        }
    }
}

/// Stands between the name of a point and that of one of its paths.
const OF_PATH: &str = ": ";

/// The values of one run: by point and metric, one value for each repetition that counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcomes {
    by_point: BTreeMap<(String, Metric), Vec<f64>>,
    order: Vec<String>,
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
    pub fn points(&self) -> &[String] {
        &self.order
    }

    /// Names its only point anew, with the paths of that point, so that two runs of one point each can be compared whatever they
    /// are called.
    pub fn rename_only(&mut self, name: &str) {
        let Some(only) = self.order.first().cloned() else { return };
        let path = |point: &str| {
            let rest = point.strip_prefix(&only)?;
            (rest.is_empty() || rest.starts_with(OF_PATH)).then(|| format!("{name}{rest}"))
        };
        let Some(order) = self.order.iter().map(|point| path(point)).collect() else { return };
        self.order = order;
        let taken = std::mem::take(&mut self.by_point);
        self.by_point = taken
            .into_iter()
            .filter_map(|((point, metric), values)| Some(((path(&point)?, metric), values)))
            .collect();
    }

    fn add(&mut self, point: &str, metric: Metric, value: Option<f64>) {
        if !self.order.iter().any(|p| p == point) {
            self.order.push(point.to_owned());
        }
        if let Some(value) = value {
            self.by_point.entry((point.to_owned(), metric)).or_default().push(value);
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// By point as they came in the first run, then by metric.
    pub rows: Vec<Row>,
    /// Points of the first run alone.
    pub only_a: Vec<String>,
    /// Points of the second run alone.
    pub only_b: Vec<String>,
}

impl Compared {
    /// Holds b against a. A judged metric that is worse by more than `threshold` (a share) has regressed.
    pub fn of(a: &Outcomes, b: &Outcomes, judged: &[Metric], threshold: f64) -> Self {
        let mut rows = Vec::new();
        for point in a.order.iter().filter(|p| b.order.contains(p)) {
            for metric in [Metric::GoodputBps, Metric::RttIdleNs, Metric::RttLoadedP95Ns, Metric::Retransmits]
            {
                let key = (point.clone(), metric);
                let (Some(left), Some(right)) = (a.by_point.get(&key), b.by_point.get(&key)) else {
                    continue;
                };
                let Some(comparison) = Comparison::of(left, right, metric.better()) else { continue };
                let judged = judged.contains(&metric);
                let regressed = judged && comparison.regressed(threshold);
                rows.push(Row {
                    point: point.clone(),
                    metric,
                    better: metric.better(),
                    comparison,
                    judged,
                    regressed,
                });
            }
        }
        let only = |these: &Outcomes, others: &Outcomes| -> Vec<String> {
            these.order.iter().filter(|p| !others.order.contains(p)).cloned().collect()
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

    /// The rows as a table, and in sentences what they leave open.
    pub fn table(&self, threshold: f64, style: &Style) -> String {
        let rows = &self.rows;
        let each = |cell: &dyn Fn(&Row) -> Cell| rows.iter().map(cell).collect::<Vec<_>>();
        let names = rows.iter().enumerate().map(|(i, row)| {
            let first = i == 0 || rows[i - 1].point != row.point;
            if first { Cell::tinted(row.point.clone(), Tint::Strong) } else { Cell::default() }
        });
        let spread = |row: &Row, values: &bdp_model::comparison::Values| match values.n {
            1 => "-".to_owned(),
            _ => format!("{}..{}", row.metric.printed(values.min), row.metric.printed(values.max)),
        };
        let mut columns = vec![
            Column::new(["", "case"], Align::Left, names.collect()),
            Column::new(["", "what"], Align::Left, each(&|r| Cell::plain(r.metric.name()))),
            Column::new(
                ["A", "median"],
                Align::Point,
                each(&|r| Cell::plain(r.metric.printed(r.comparison.a.p50))),
            ),
            Column::new(["", "min..max"], Align::Point, each(&|r| Cell::plain(spread(r, &r.comparison.a)))),
            Column::new(
                ["B", "median"],
                Align::Point,
                each(&|r| Cell::plain(r.metric.printed(r.comparison.b.p50))),
            ),
            Column::new(["", "min..max"], Align::Point, each(&|r| Cell::plain(spread(r, &r.comparison.b)))),
            Column::new(
                ["n", "A/B"],
                Align::Point,
                each(&|r| Cell::plain(format!("{}/{}", r.comparison.a.n, r.comparison.b.n))),
            ),
            Column::new(["", "effect"], Align::Left, each(&|r| Cell::plain(effect(r)))),
            Column::new(["", ""], Align::Left, each(&verdict)),
        ];
        // The spread is in the JSON too.
        for _ in 0..2 {
            if total_width(&columns) > style.columns() {
                let at = columns.iter().rposition(|c| c.head == ["", "min..max"]);
                if let Some(at) = at {
                    columns.remove(at);
                }
            }
        }
        if total_width(&columns) > style.columns() {
            let excess = total_width(&columns) - style.columns();
            let most = columns[0].width().saturating_sub(excess).max(12);
            columns[0].narrow(most, style);
        }
        let mut text = render(&columns, &[], style);
        text.push('\n');
        for line in self.sentences(threshold) {
            text.push_str(&wrap("", Tint::None, &line, style));
        }
        text
    }

    pub(crate) fn sentences(&self, threshold: f64) -> Vec<String> {
        let mut lines = Vec::new();
        let worse: Vec<&Row> = self.rows.iter().filter(|r| r.regressed).collect();
        match worse.len() {
            0 if self.unknown() => {
                lines.push(format!("whether anything regressed beyond {} is unknown", share(threshold)));
            }
            0 => lines.push(format!("no regression beyond {}", share(threshold))),
            1 => lines.push(format!(
                "REGRESSED beyond {}: {}, {}",
                share(threshold),
                worse[0].point,
                worse[0].metric.name()
            )),
            n => lines.push(format!("REGRESSED beyond {}: {n} rows", share(threshold))),
        }
        let few = |r: &&Row| r.judged && r.comparison.verdict == Verdict::TooFewRuns;
        if let Some(row) = self.rows.iter().find(few) {
            let (a, b) = (row.comparison.a.n, row.comparison.b.n);
            lines.push(format!(
                "unknown with {a} and {b} runs: an interval and a verdict need {LEAST_RUNS} runs on each side"
            ));
        }
        for (points, which) in [(&self.only_a, "A"), (&self.only_b, "B")] {
            match points.as_slice() {
                [] => {}
                [only] => lines.push(format!("only in {which}: {only}")),
                [first, rest @ ..] => lines.push(format!("only in {which}: {first} and {} more", rest.len())),
            }
        }
        lines
    }

    /// The document of `--json`: `docs/compare.md`. `a` and `b` say which runs they are.
    pub fn json(&self, a: &Value, b: &Value, threshold: f64) -> Value {
        json!({
            "schema": COMPARISON_SCHEMA,
            "bdp": env!("CARGO_PKG_VERSION"),
            "run": null,
            "a": a,
            "b": b,
            "threshold": threshold,
            "regressed": (!self.unknown()).then(|| self.regressed()),
            "comparisons": self.rows,
            "only_a": self.only_a,
            "only_b": self.only_b,
        })
    }
}

/// `-12.3 % (-14 to -10)`, with the confidence where it is not 95 %.
pub(crate) fn effect(row: &Row) -> String {
    let c = &row.comparison;
    let sure = |i: &Interval| match i.confidence {
        confidence if confidence < 0.95 => format!(", {:.0} % sure", (confidence * 100.0).floor()),
        _ => String::new(),
    };
    match (c.effect, &c.effect_interval, &c.difference_interval) {
        (Some(effect), Some(i), _) => {
            format!(
                "{} ({} to {}{})",
                signed_share(effect),
                signed_share(i.low),
                signed_share(i.high),
                sure(i)
            )
        }
        (Some(effect), None, _) => signed_share(effect),
        (None, _, Some(i)) => {
            let printed =
                |v: f64| format!("{}{}", if v < 0.0 { "-" } else { "+" }, row.metric.printed(v.abs()));
            format!("{} ({} to {}{})", printed(c.difference), printed(i.low), printed(i.high), sure(i))
        }
        (None, _, None) if c.difference == 0.0 => "0".to_owned(),
        (None, _, None) => {
            format!(
                "{}{}",
                if c.difference < 0.0 { "-" } else { "+" },
                row.metric.printed(c.difference.abs())
            )
        }
    }
}

fn verdict(row: &Row) -> Cell {
    match row.comparison.verdict {
        _ if row.regressed => Cell::tinted("REGRESSED", Tint::Bad),
        Verdict::Better => Cell::tinted("better", Tint::Good),
        Verdict::Worse => Cell::tinted("worse", Tint::Doubtful),
        // A sentence below says how many are needed.
        Verdict::TooFewRuns => Cell::plain("unknown"),
        other => Cell::plain(other.words()),
    }
}

fn share(share: f64) -> String {
    format!("{} %", bdp_model::units::significant(share * 100.0))
}

fn signed_share(share: f64) -> String {
    let value = share * 100.0;
    let sign = if value < 0.0 { "-" } else { "+" };
    match value.abs() {
        v if v < 0.05 => "0 %".to_owned(),
        v if v < 9.95 => format!("{sign}{v:.1} %"),
        v => format!("{sign}{v:.0} %"),
    }
}
