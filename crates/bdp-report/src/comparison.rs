//! Two stored runs compared, point by point; as text and as JSON.

use bdp_model::comparison::{Interval, LEAST_RUNS, Verdict};
use bdp_model::run_comparison::{Compared, Metric, Row};
use serde_json::{Value, json};

use crate::grid::{Align, Cell, Column, render, total_width, wrap};
use crate::number::three_digits;
use crate::style::{Style, Tint};

/// Version of the document's shape; a reader refuses a larger major number.
pub const COMPARISON_SCHEMA: &str = "bdp.comparison/1";

/// Metrics in words and numbers.
pub(crate) trait MetricText {
    /// In words, with the unit.
    fn name(self) -> &'static str;
    /// In the unit of [`MetricText::name`].
    fn printed(self, value: f64) -> String;
}

impl MetricText for Metric {
    fn name(self) -> &'static str {
        match self {
            Self::GoodputBps => "goodput Mbit/s",
            Self::RttIdleNs => "RTT idle ms",
            Self::RttLoadedP95Ns => "RTT loaded p95 ms",
            Self::Retransmits => "retransmits",
        }
    }

    fn printed(self, value: f64) -> String {
        match self {
            Self::GoodputBps => three_digits(value / 1e6),
            Self::RttIdleNs | Self::RttLoadedP95Ns => three_digits(value / 1e6),
            Self::Retransmits => format!("{value:.0}"),
        }
    }
}

/// A comparison of runs as text and as JSON.
pub trait ComparedText {
    /// The rows as a table, and in sentences what they leave open.
    fn table(&self, threshold: f64, style: &Style) -> String;
    /// What follows, and what is left open, a sentence each.
    fn sentences(&self, threshold: f64) -> Vec<String>;
    /// The document of `--json`: `docs/compare.md`. `a` and `b` say which runs they are.
    fn json(&self, a: &Value, b: &Value, threshold: f64) -> Value;
}

impl ComparedText for Compared {
    fn table(&self, threshold: f64, style: &Style) -> String {
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

    fn sentences(&self, threshold: f64) -> Vec<String> {
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

    fn json(&self, a: &Value, b: &Value, threshold: f64) -> Value {
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
