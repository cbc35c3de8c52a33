//! Goodput of each stream of a measurement, where there are several.

use bdp_model::measurement::{Direction, DirectionResult};
use bdp_model::stats::median;

use super::arrow;
use super::interval_lines::MOST_STREAM_ROWS;
use crate::grid::{Align, Cell, Column, render};
use crate::number::RateUnit;
use crate::style::Style;

/// A row for each stream with a column for each direction; of many streams the smallest, the median and the largest. Empty where
/// no direction has more than one.
pub(super) fn streams(directions: &[(Direction, &DirectionResult)], unit: RateUnit, style: &Style) -> String {
    let rates = |d: &DirectionResult| d.stream_goodput_bps.clone();
    let most = directions.iter().map(|(_, d)| d.stream_goodput_bps.len()).max().unwrap_or(0);
    if most <= 1 {
        return String::new();
    }
    let is_each = style.every_stream || most <= MOST_STREAM_ROWS;
    let names: Vec<Cell> = if is_each {
        (1..=most).map(|number| Cell::plain(number.to_string())).collect()
    } else {
        ["min", "median", "max"].map(Cell::plain).into()
    };
    let mut columns = vec![Column::new(["", "stream"], Align::Left, names)];
    for (way, direction) in directions {
        let mut rates = rates(direction);
        if !is_each {
            let middle = median(&mut rates);
            // Sorted by then.
            rates = [rates.first().copied(), middle, rates.last().copied()].into_iter().flatten().collect();
        }
        let mut cells: Vec<Cell> = rates.into_iter().map(|bps| Cell::plain(unit.format(bps))).collect();
        cells.resize(if is_each { most } else { 3 }, Cell::plain("-"));
        columns.push(Column::new([arrow(*way, style), unit.name], Align::Point, cells));
    }
    render(&columns, &[], style)
}
