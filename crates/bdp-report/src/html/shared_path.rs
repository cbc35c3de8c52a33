//! Flows and transfers that share a path, in the terminal's tables.

use maud::{Markup, html};

use super::overview::TEXT;
use super::page::{note, numbers, table, words};
use crate::grid::{Align, Column};
use crate::number::RateUnit;
use crate::summary::Point;

/// Returns the tables of flows, paths and transfers that have content, and the seeds of repetitions.
pub(crate) fn tables(points: &[Point<'_>]) -> Markup {
    let unit = RateUnit::fitting(points.iter().filter_map(|p| p.goodput_bps()).map(|g| g.max));
    html! {
        @if let Some((columns, _)) = crate::flows::columns(points, unit, &TEXT) {
            (of_columns("Flows, medians of the repetitions", &columns))
        }
        @if let Some([paths, transfers]) = crate::traffic::tables(points, unit, &TEXT) {
            (of_columns("The shared path, medians of the repetitions", &paths))
            (of_columns("Transfers, medians of the repetitions", &transfers))
            @for line in crate::traffic::seeds(points, &TEXT) { (note(format!("Seeds, {line}"))) }
        }
    }
}

fn of_columns(caption: &str, columns: &[Column]) -> Markup {
    let heads = columns.iter().map(|column| match column.align {
        Align::Left => words(column.heading()),
        Align::Point => numbers(column.heading()),
    });
    let mut cells: Vec<_> = columns.iter().map(Column::texts).collect();
    let rows = std::iter::from_fn(|| {
        let row: Vec<&str> = cells.iter_mut().filter_map(Iterator::next).collect();
        (!row.is_empty()).then_some(row)
    });
    table(caption, &heads.collect::<Vec<_>>(), rows)
}
