//! The table of repetitions: statistics of each point and the confidence interval of its mean, with loss models and published figures.

use bdp_model::case::PublishedRow;
use bdp_model::statistics::{LEAST_RESAMPLED, median};
use bdp_model::sweep::repeated::{CONFIDENCE, LossModels, Repeated, SEGMENTS_PER_ACK, TIMEOUT_MIN};

use crate::grid::{Align, Cell, Column, narrow_to_fit, not_shown, render, tame, total_width, wrap};
use crate::number::{RateUnit, percent, three_digits};
use crate::style::{Style, Tint};
use crate::summary::Point;
use crate::varied::varied;

/// The repetitions of one scenario.
pub(crate) struct Table<'a> {
    pub scenario: &'a str,
    pub unit: RateUnit,
    pub rows: Vec<Row>,
    /// Notes needed to read the table.
    pub notes: Vec<String>,
}

/// A row: measured, modelled or published. Values are in bit/s.
#[derive(Default)]
pub(crate) struct Row {
    pub name: String,
    pub of: Of,
    pub n: Option<usize>,
    pub min: Option<f64>,
    pub mean: Option<f64>,
    pub max: Option<f64>,
    pub sd: Option<f64>,
    pub interval: Option<[f64; 2]>,
}

/// Source of the figures.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    #[default]
    Ours,
    Model,
    Source,
}

impl<'a> Table<'a> {
    /// Returns a table for each scenario with a point that has enough repetitions for an interval.
    pub fn all(points: &[Point<'a>], style: &Style) -> Vec<Self> {
        points
            .chunk_by(|a, b| a.scenario == b.scenario)
            .filter_map(|points| Self::of(points, style))
            .collect()
    }

    fn of(points: &[Point<'a>], style: &Style) -> Option<Self> {
        let repeated: Vec<(&Point<'_>, Repeated)> =
            points.iter().filter_map(|point| Some((point, Repeated::of(point)?))).collect();
        repeated.iter().find(|(_, repeated)| repeated.moments.n >= LEAST_RESAMPLED)?;
        let mut rows: Vec<Row> = repeated.iter().map(|(point, found)| ours(point, found, style)).collect();
        let mut models: Vec<LossModels> = Vec::new();
        for found in repeated.iter().filter_map(|(_, repeated)| repeated.models) {
            if !models.iter().any(|known| alike(known, &found)) {
                models.push(found);
            }
        }
        for model in &models {
            let number = if models.len() > 1 { format!(", {}", conditions(model)) } else { String::new() };
            for (name, bps) in [("Mathis", model.mathis_bps), ("PFTK", model.pftk_bps)] {
                let name = format!("{name}{number}");
                rows.push(Row { name, of: Of::Model, mean: Some(bps), ..Row::default() });
            }
        }
        let mut published: Vec<&PublishedRow> = Vec::new();
        for row in points.iter().flat_map(|p| &p.records).flat_map(|r| &r.case.published_rows) {
            if !published.contains(&row) {
                published.push(row);
            }
        }
        rows.extend(published.into_iter().map(source));
        // The unit fits the median row: an outlier has more digits, so that the other rows keep theirs.
        let unit = RateUnit::fitting(median(&mut rows.iter().filter_map(|row| row.mean).collect::<Vec<_>>()));
        Some(Self { scenario: points.first()?.scenario, unit, notes: notes(&rows, &models), rows })
    }
}

/// Statistics in the order of the columns.
impl Row {
    pub fn moments(&self) -> [Option<f64>; 4] {
        [self.min, self.mean, self.max, self.sd]
    }
}

fn ours(point: &Point<'_>, found: &Repeated, style: &Style) -> Row {
    let moments = &found.moments;
    Row {
        name: varied(point, style, None),
        of: Of::Ours,
        n: Some(moments.n),
        min: Some(moments.min),
        mean: Some(moments.mean),
        max: Some(moments.max),
        sd: moments.sd,
        interval: found.mean_interval,
    }
}

fn source(row: &PublishedRow) -> Row {
    Row {
        name: tame(&row.name),
        of: Of::Source,
        n: None,
        min: row.min_bps,
        mean: row.mean_bps,
        max: row.max_bps,
        sd: row.sd_bps,
        interval: None,
    }
}

/// Whether two sets of conditions are printed alike.
fn alike(a: &LossModels, b: &LossModels) -> bool {
    conditions(a) == conditions(b)
}

fn conditions(model: &LossModels) -> String {
    let rtt = three_digits(model.rtt.as_ns() as f64 / 1e6);
    format!("loss {}, RTT {rtt} ms, MSS {}", percent(model.loss), model.mss_bytes)
}

fn notes(rows: &[Row], models: &[LossModels]) -> Vec<String> {
    let mut notes = vec![format!(
        "mean lies in: with {} confidence, by the percentile bootstrap; sd: standard deviation of the repetitions.",
        percent(CONFIDENCE)
    )];
    for model in models {
        let pattern = if model.periodic { "periodic" } else { "independent" };
        notes.push(format!(
            "Models of Reno for {}: Mathis with C = {} ({pattern} loss, delayed ACKs); PFTK, the full model less what is \
             lost, with b = {SEGMENTS_PER_ACK} and T0 = RTT + {} ms = {} ms.",
            conditions(model),
            model.c(),
            TIMEOUT_MIN.as_ns() / 1_000_000,
            three_digits(model.timeout.as_ns() as f64 / 1e6),
        ));
    }
    if rows.iter().any(|row| row.of == Of::Source) {
        notes.push("Published rows stand there for orientation.".to_owned());
    }
    notes
}

/// Returns the tables as text; empty if nothing has enough repetitions.
pub(crate) fn repeated(points: &[Point<'_>], style: &Style) -> String {
    let tables: Vec<String> = Table::all(points, style).iter().map(|table| text(table, style)).collect();
    tables.join("\n")
}

/// Headings of the columns, in the order in which they are dropped.
const GIVEN_UP: [&str; 5] = ["n", "sd", "mean lies in", "min", "max"];
/// Characters of a name that are kept while a column can still be dropped.
const NAME_LEAST: usize = 16;

fn text(table: &Table<'_>, style: &Style) -> String {
    let title = format!("{}, {} of goodput over all repetitions", tame(table.scenario), table.unit.name);
    let mut out = wrap("repeated  ", Tint::Strong, &title, style);
    let mut columns = columns(table);
    let mut hidden: Vec<&str> = Vec::new();
    for name in GIVEN_UP {
        let excess = total_width(&columns).saturating_sub(style.columns());
        if excess == 0 || columns[0].width().saturating_sub(excess) >= NAME_LEAST {
            break;
        }
        columns.retain(|column| column.head[1] != name);
        hidden.push(name);
    }
    narrow_to_fit(&mut columns, 0, 1, style);
    let breaks: Vec<usize> =
        (1..table.rows.len()).filter(|&i| table.rows[i].of != table.rows[i - 1].of).collect();
    out.push_str(&render(&columns, &breaks, style));
    out.push_str(&not_shown(&hidden, style));
    out.push('\n');
    for note in &table.notes {
        out.push_str(&wrap("", Tint::Faint, note, style));
    }
    out
}

/// Headings of the numeric columns after name and count.
pub(crate) const MOMENTS: [&str; 4] = ["min", "mean", "max", "sd"];

fn columns(table: &Table<'_>) -> Vec<Column> {
    let rows = &table.rows;
    let name = |row: &Row| match row.of {
        Of::Source => format!("{} (published)", row.name),
        Of::Model => format!("{} (model)", row.name),
        Of::Ours => row.name.clone(),
    };
    let cells = |cell: &dyn Fn(&Row) -> String| rows.iter().map(|row| Cell::plain(cell(row))).collect();
    let figure = |figure: Option<f64>| figure.map_or_else(String::new, |bps| table.unit.format(bps));
    let mut columns = vec![
        Column::new(["", "varied"], Align::Left, cells(&name)),
        Column::new(["", "n"], Align::Point, cells(&|row| row.n.map_or_else(String::new, |n| n.to_string()))),
    ];
    for (i, head) in MOMENTS.into_iter().enumerate() {
        columns.push(Column::new(["", head], Align::Point, cells(&|row| figure(row.moments()[i]))));
    }
    let interval = |row: &Row| row.interval.map_or_else(String::new, |ends| interval(ends, table.unit));
    columns.push(Column::new(["95 %:", "mean lies in"], Align::Point, cells(&interval)));
    columns
}

/// Formats both ends of an interval.
pub(crate) fn interval([low, high]: [f64; 2], unit: RateUnit) -> String {
    format!("{}-{}", unit.format(low), unit.format(high))
}
