//! Flows and transfers that share a path, in the terminal's tables.

use super::overview::TEXT;
use super::page::{head, numbers, words};
use crate::grid::{Align, Column};
use crate::markup::Markup;
use crate::number::RateUnit;
use crate::summary::Point;

/// Writes the tables of flows, paths and transfers that have content, and the seeds of repetitions.
pub(crate) fn tables(m: &mut Markup, points: &[Point<'_>]) {
    let unit = RateUnit::fitting(points.iter().filter_map(|p| p.goodput_bps()).map(|g| g.max));
    if let Some((columns, _)) = crate::flows::columns(points, unit, &TEXT) {
        table(m, "Flows, medians of the repetitions", &columns);
    }
    let Some([paths, transfers]) = crate::traffic::tables(points, unit, &TEXT) else { return };
    table(m, "The shared path, medians of the repetitions", &paths);
    table(m, "Transfers, medians of the repetitions", &transfers);
    for line in crate::traffic::seeds(points, &TEXT) {
        m.leaf("p", &[("class", "note")], &format!("Seeds, {line}"));
        m.line();
    }
}

fn table(m: &mut Markup, caption: &str, columns: &[Column]) {
    let mut cells: Vec<_> = columns.iter().map(Column::texts).collect();
    m.element("div", &[("class", "scroll")], |m| {
        m.element("table", &[], |m| {
            m.leaf("caption", &[], caption);
            let heads = columns.iter().map(|column| match (column.align, column.heading()) {
                (Align::Left, text) => words(&text),
                (Align::Point, text) => numbers(text),
            });
            head(m, &heads.collect::<Vec<_>>());
            m.element("tbody", &[], |m| row_by_row(m, columns, &mut cells));
        });
    });
    m.line();
}

fn row_by_row<'a>(m: &mut Markup, columns: &[Column], cells: &mut [impl Iterator<Item = &'a str>]) {
    loop {
        let row: Vec<&str> = cells.iter_mut().filter_map(Iterator::next).collect();
        if row.is_empty() {
            return;
        }
        m.element("tr", &[], |m| {
            for (column, text) in columns.iter().zip(row) {
                let class = if column.align == Align::Point { "n" } else { "w" };
                m.leaf("td", &[("class", class)], text);
            }
        });
        m.line();
    }
}
