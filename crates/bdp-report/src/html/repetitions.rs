//! Repetitions as dots, with median and range next to each row.

use bdp_model::statistics::comparison::Interval;
use maud::{Markup, html};

use super::overview::TEXT;
use super::page::{Heading, note, numbers, table, words};
use crate::chart::{Axis, Chart, Marks, Panel, Series, Unit};
use crate::number::RateUnit;
use crate::repeated::{self, MOMENTS, Of, Table};
use crate::summary::{Ending, Point, Spread, ending};
use crate::varied::varied;

/// Returns the figures of all repetitions, with loss models and published values; nothing if there are too few repetitions.
pub(crate) fn tables(points: &[Point<'_>]) -> Markup {
    html! {
        @for of in Table::all(points, &TEXT) {
            @let caption = format!("Repetitions of {}, {}", of.scenario, of.unit.name);
            (table(&caption, &headings(), of.rows.iter().map(|row| cells(row, of.unit))))
            @for text in &of.notes { (note(text)) }
        }
    }
}

fn headings() -> Vec<Heading> {
    let moments = MOMENTS.into_iter().map(numbers);
    [words("varied"), numbers("n")]
        .into_iter()
        .chain(moments)
        .chain([numbers("95 %: mean lies in")])
        .collect()
}

fn cells(row: &repeated::Row, unit: RateUnit) -> Vec<String> {
    let whose = match row.of {
        Of::Ours => "",
        Of::Model => " (model)",
        Of::Source => " (published)",
    };
    let figures = row.moments().into_iter().map(|figure| figure.map(|bps| unit.format(bps)));
    let first = [Some(format!("{}{whose}", row.name)), row.n.map(|n| n.to_string())];
    let last = row.interval.map(|ends| repeated::interval(ends, unit));
    first.into_iter().chain(figures).chain([last]).map(Option::unwrap_or_default).collect()
}

/// Most rows; the table has all.
const MOST_ROWS: usize = 24;
/// Ratio of values above which a logarithmic axis is needed.
const LOGARITHMIC_FROM: f64 = 20.0;

/// A row: name, values, which of them are valid, and the model's figure.
pub(crate) struct Row {
    pub name: String,
    pub values_bps: Vec<(f64, bool)>,
    pub model_bps: Option<f64>,
}

/// Returns the chart of a lab run; `None` if nothing was repeated.
pub(crate) fn chart(points: &[Point<'_>], title: &str) -> Option<Chart> {
    let rows = points.iter().map(|point| {
        let what = varied(point, &TEXT, Some("segment"));
        let values = point.records.iter().filter(|r| matches!(ending(r), Ending::Valid | Ending::Invalid));
        Row {
            name: if what.is_empty() { point.scenario.to_owned() } else { what },
            values_bps: values.filter_map(|r| Some((r.goodput_bps?, r.valid))).collect(),
            model_bps: point.expected_bps().map(|e| e.median),
        }
    });
    of_rows(rows.collect(), title)
}

impl Row {
    fn counting(&self) -> impl Iterator<Item = f64> {
        self.values_bps.iter().filter(|v| v.1).map(|v| v.0)
    }

    /// Returns the confidence interval of the median, as a sentence.
    fn interval(&self, unit: RateUnit) -> Option<String> {
        let counting: Vec<f64> = self.counting().collect();
        let interval = Interval::of_median(&counting)?;
        Some(format!(
            "{}: the median lies between {} and {} {} with {} % confidence ({} runs).",
            self.name,
            unit.format(interval.low),
            unit.format(interval.high),
            unit.name,
            (interval.confidence * 100.0).floor(),
            counting.len()
        ))
    }

    fn description(&self, unit: RateUnit) -> String {
        let words = Spread::of(self.counting()).map_or_else(
            || "none counts".to_owned(),
            |s| format!("{} to {}, median {}", unit.format(s.min), unit.format(s.max), unit.format(s.median)),
        );
        format!("{}: {words} {}", self.name, unit.name)
    }
}

/// Returns the chart of any rows; `None` if none has several values.
pub(crate) fn of_rows(mut rows: Vec<Row>, title: &str) -> Option<Chart> {
    for row in &mut rows {
        row.values_bps.retain(|(bps, _)| bps.is_finite() && *bps > 0.0);
    }
    rows.retain(|row| row.values_bps.len() > 1);
    if rows.is_empty() {
        return None;
    }
    let shown = &rows[..rows.len().min(MOST_ROWS)];
    let values = || shown.iter().flat_map(|row| row.values_bps.iter().map(|v| v.0));
    let (low, high) = values().fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
    let unit = RateUnit::fitting([high]);
    let named = Unit::Named(unit.name, unit.bps);
    let x = if high > LOGARITHMIC_FROM * low {
        Axis::logarithmic(values(), named, 6)
    } else {
        let room = ((high - low) * 0.06).max(high * 0.002);
        Axis::linear([(low - room).max(0.0), high + room], named, 6)
    };
    let names = shown.iter().map(|row| [row.name.clone(), String::new()]).collect();
    let mut notes = Vec::new();
    if rows.len() > shown.len() {
        let (shown, all) = (shown.len(), rows.len());
        notes.push(format!("The first {shown} of {all} repeated points; the table has all."));
    }
    notes.extend(shown.iter().filter_map(|row| row.interval(unit)));
    Some(Chart {
        heading: "Repetitions".to_owned(),
        title: format!("{title}: repetitions"),
        description: shown.iter().map(|row| row.description(unit)).collect::<Vec<_>>().join("; "),
        panels: vec![Panel::rows(names, series(shown, &x))],
        x,
        notes,
        zoom: None,
    })
}

fn series(rows: &[Row], x: &Axis) -> Vec<Series> {
    let (mut dots, mut crosses, mut medians, mut ranges, mut models) =
        <(Vec<_>, Vec<_>, Vec<_>, Vec<_>, Vec<_>)>::default();
    for (row, y) in rows.iter().zip((0u32..).map(f64::from)) {
        for &(bps, counts) in &row.values_bps {
            if counts { &mut dots } else { &mut crosses }.push([bps, y]);
        }
        if let Some(spread) = Spread::of(row.counting()) {
            ranges.push([[spread.min, y], [spread.max, y]]);
            medians.push([spread.median, y]);
        }
        models.extend(row.model_bps.filter(|&model| x.holds(model)).map(|model| [model, y]));
    }
    let all = [
        Series::new("here-dot", "one repetition", Marks::Dots(3.2, dots)),
        Series::new("hollow-line", "median", Marks::Ticks(7.0, medians)),
        Series::new("range", "smallest to largest", Marks::Spans(ranges)),
        Series::new("model", "model", Marks::Ticks(9.0, models)),
        Series::new("cross", "INVALID: counts for nothing", Marks::Crosses(crosses)),
    ];
    all.into_iter().filter(|series| !series.is_empty()).collect()
}
