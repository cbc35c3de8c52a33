//! Comparison of two stored runs, point by point, as text and as JSON.

use bdp_model::measurement::labels::Labels;
use bdp_model::statistics::comparison::{Interval, LEAST_RUNS, Regression, Verdict};
use bdp_model::sweep::run_comparison::{Compared, Metric, Row};
use serde::Serialize;
use serde_json::{Value, json};

use crate::grid::{Align, Cell, Column, narrow_to_fit, render, total_width, wrap};
use crate::number::three_digits;
use crate::style::{Style, Tint};

/// Name and version of the schema; readers refuse a larger major version.
pub const COMPARISON_SCHEMA: &str = "bdp.comparison/1";

/// Names and formatted values of metrics.
pub(crate) trait MetricText {
    /// Name of the metric, with its unit.
    fn name(self) -> &'static str;
    /// Formats a value in the unit given by [`MetricText::name`].
    fn printed(self, value: f64) -> String;
}

impl MetricText for Metric {
    fn name(self) -> &'static str {
        match self {
            Self::GoodputBps => "goodput Mbit/s",
            Self::RttIdleNs => "RTT idle ms",
            Self::RttLoadedP95Ns => "RTT loaded p95 ms",
            Self::Retransmits => "retransmits",
            Self::RetransmitRatio => "retransmits %",
            Self::LossRatio => "loss %",
        }
    }

    fn printed(self, value: f64) -> String {
        match self {
            Self::GoodputBps => three_digits(value / 1e6),
            Self::RttIdleNs | Self::RttLoadedP95Ns => three_digits(value / 1e6),
            Self::Retransmits => format!("{value:.0}"),
            Self::RetransmitRatio | Self::LossRatio => three_digits(value * 100.0),
        }
    }
}

/// A comparison of runs as text and as JSON.
pub trait ComparedText {
    /// Returns the rows as a table, followed by sentences on what remains open.
    fn table(&self, threshold: f64, style: &Style) -> String;
    /// Returns the conclusions and open questions, one sentence each.
    fn sentences(&self, threshold: f64) -> Vec<String>;
    /// Returns the document of `--json`: `docs/compare.md`. `a` and `b` identify the runs.
    fn json(&self, a: &Side<'_>, b: &Side<'_>, threshold: f64) -> Value;
}

impl ComparedText for Compared {
    fn table(&self, threshold: f64, style: &Style) -> String {
        let rows = &shown(self);
        let each = |cell: &dyn Fn(&Row) -> Cell| rows.iter().map(|&row| cell(row)).collect::<Vec<_>>();
        let names = rows.iter().enumerate().map(|(i, row)| {
            let first = i == 0 || rows[i - 1].point != row.point;
            if first { Cell::tinted(row.point.clone(), Tint::Strong) } else { Cell::default() }
        });
        let spread = |row: &Row, values: &bdp_model::statistics::comparison::Values| match values.n {
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
        // The JSON has the spread too.
        for _ in 0..2 {
            if total_width(&columns) > style.columns() {
                let at = columns.iter().rposition(|c| c.head == ["", "min..max"]);
                if let Some(at) = at {
                    columns.remove(at);
                }
            }
        }
        narrow_to_fit(&mut columns, 0, 12, style);
        let mut text = render(&columns, &[], style);
        text.push('\n');
        for line in self.sentences(threshold) {
            text.push_str(&wrap("", Tint::None, &line, style));
        }
        text
    }

    fn sentences(&self, threshold: f64) -> Vec<String> {
        let mut lines = Vec::new();
        let worse: Vec<&Row> = self.rows.iter().filter(|r| r.regressed).collect();
        match worse.len() {
            0 if self.any(Regression::Unknown) => {
                lines.push(format!(
                    "whether anything regressed beyond {} is unknown",
                    threshold_words(threshold)
                ));
            }
            0 if self.any(Regression::Inconclusive) => lines.extend(inconclusive(&self.rows, threshold)),
            0 => lines.push(format!("no regression beyond {}", threshold_words(threshold))),
            1 => lines.push(format!(
                "REGRESSED beyond {}: {}, {}",
                threshold_words(threshold),
                worse[0].point,
                worse[0].metric.name()
            )),
            n => lines.push(format!("REGRESSED beyond {}: {n} rows", threshold_words(threshold))),
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

    fn json(&self, a: &Side<'_>, b: &Side<'_>, threshold: f64) -> Value {
        json!(Document {
            schema: COMPARISON_SCHEMA,
            bdp: env!("CARGO_PKG_VERSION"),
            run: (),
            a,
            b,
            threshold,
            regressed: (!self.is_open()).then(|| self.regressed()),
            comparisons: &self.rows,
            only_a: &self.only_a,
            only_b: &self.only_b,
        })
    }
}

/// Comparison of two runs.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// Name and version of the schema.
    #[cfg_attr(feature = "schema", schemars(extend("const" = COMPARISON_SCHEMA)))]
    schema: &'static str,
    /// Version of bdp that wrote the document.
    bdp: &'static str,
    /// Always null: a comparison is not stored; `a` and `b` name their runs.
    run: (),
    /// The baseline run.
    a: &'a Side<'a>,
    /// The run compared with the baseline.
    b: &'a Side<'a>,
    /// Relative change for the worse from which a figure counts as a regression.
    #[cfg_attr(feature = "schema", schemars(range(max = 1)))]
    threshold: f64,
    /// Whether any figure regressed; null if unknown.
    regressed: Option<bool>,
    /// Comparison of each figure at each point.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    comparisons: &'a [Row],
    /// Points only in `a`.
    only_a: &'a [String],
    /// Points only in `b`.
    only_b: &'a [String],
}

/// One of the compared runs.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Side<'a> {
    /// The run's id in the store.
    pub run: &'a str,
    /// The run's label.
    pub label: Option<&'a str>,
    /// The run's labels, by name.
    pub labels: &'a Labels,
    /// Kind of run.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["lab", "measure", "sweep", "exec"])))]
    pub kind: &'a str,
    /// Scenario or host of the run.
    #[cfg_attr(feature = "schema", schemars(extend("minLength" = 0)))]
    pub scenario: &'a str,
    /// Start time, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Setting compared with `--by`, for example congestion=reno.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting: Option<&'a str>,
}

/// Returns the rows to show: of ratios, only those judged, changed, or about datagrams, for which no other row exists.
fn shown(compared: &Compared) -> Vec<&Row> {
    let counted: Vec<&str> = compared
        .rows
        .iter()
        .filter(|row| row.metric == Metric::Retransmits)
        .map(|row| row.point.as_str())
        .collect();
    let is_shown = |row: &&Row| match row.metric {
        Metric::RetransmitRatio | Metric::LossRatio => {
            row.judged
                || matches!(row.comparison.verdict, Verdict::Better | Verdict::Worse)
                || row.metric == Metric::LossRatio && !counted.contains(&row.point.as_str())
        }
        _ => true,
    };
    compared.rows.iter().filter(is_shown).collect()
}

/// Returns a sentence if a confidence interval includes both regression and no regression.
fn inconclusive(rows: &[Row], threshold: f64) -> Option<String> {
    let open: Vec<&Row> =
        rows.iter().filter(|row| row.regression == Some(Regression::Inconclusive)).collect();
    let first = open.first()?;
    let more = match open.len() {
        1 => String::new(),
        n => format!(", and {} more rows", n - 1),
    };
    Some(format!(
        "inconclusive: {}, {}, {} holds a regression beyond {} and none{more}; more runs narrow the interval",
        first.point,
        first.metric.name(),
        effect(first),
        threshold_words(threshold)
    ))
}

/// Returns `-12.3 % (-14 to -10)`, with the confidence level if it is not 95 %.
pub(crate) fn effect(row: &Row) -> String {
    let c = &row.comparison;
    if c.exact {
        return exact_effect(row);
    }
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

/// Returns the difference, and its variation between repetitions if there is any.
fn exact_effect(row: &Row) -> String {
    let c = &row.comparison;
    let signed = |v: f64| format!("{}{}", if v < 0.0 { "-" } else { "+" }, row.metric.printed(v.abs()));
    let (text, range) = match (c.effect, c.effect_interval) {
        (Some(effect), Some(i)) => (signed_share(effect), (signed_share(i.low), signed_share(i.high))),
        _ if c.difference == 0.0 => ("0".to_owned(), ("0".to_owned(), "0".to_owned())),
        _ => {
            let i = c.difference_interval.map_or((0.0, 0.0), |i| (i.low, i.high));
            (signed(c.difference), (signed(i.0), signed(i.1)))
        }
    };
    match range {
        (low, high) if low == high => format!("{text} (exact)"),
        (low, high) => format!("{text} ({low} to {high}, exact)"),
    }
}

fn verdict(row: &Row) -> Cell {
    let tint = match row.comparison.verdict {
        _ if row.regressed => Tint::Bad,
        Verdict::Better => Tint::Good,
        Verdict::Worse => Tint::Doubtful,
        _ => Tint::None,
    };
    Cell::tinted(verdict_words(row), tint)
}

/// Returns the verdict on a row in words.
pub(crate) fn verdict_words(row: &Row) -> &'static str {
    let c = &row.comparison;
    match c.verdict {
        _ if row.regressed => "REGRESSED",
        // The sentence below the table gives the number of runs needed.
        Verdict::TooFewRuns => "unknown",
        Verdict::NoDifferenceShown if row.regression == Some(Regression::Inconclusive) => "inconclusive",
        Verdict::NoDifferenceShown if c.effect_interval.is_some_and(|i| i.is_negligible()) => "no difference",
        Verdict::NoDifferenceShown if c.exact && c.difference == 0.0 => "no difference",
        verdict => verdict.words(),
    }
}

/// A threshold as it is typed: `5 %`.
fn threshold_words(threshold: f64) -> String {
    format!("{} %", bdp_model::units::significant(threshold * 100.0))
}

fn signed_share(share: f64) -> String {
    let value = share * 100.0;
    let sign = if value < 0.0 { "-" } else { "+" };
    match value.abs() {
        0.0 => "0 %".to_owned(),
        // Enough decimals to show that the difference is not zero.
        v if v < 0.05 => format!("{sign}{v:.*} %", (1.0 - v.log10().floor()).clamp(2.0, 6.0) as usize),
        v if v < 9.95 => format!("{sign}{v:.1} %"),
        v => format!("{sign}{v:.0} %"),
    }
}
