//! Goodput of each stream of a measurement, if there are several.

use bdp_model::measurement::{Direction, DirectionResult};
use bdp_model::record::{StreamReport, StreamTime};
use bdp_model::statistics::median;

use super::arrow;
use super::interval_lines::MOST_STREAM_ROWS;
use crate::grid::{Align, Cell, Column, render};
use crate::number::RateUnit;
use crate::style::Style;

/// Most streams with a row each in the short form, which fits on a screen.
const SHORT: usize = 4;

/// Returns a row for each stream with columns for each direction: goodput and the sender's kernel counters. For many streams, smallest, median and
/// largest goodput. Empty if no direction has several streams.
pub(super) fn streams(directions: &[(Direction, &DirectionResult)], unit: RateUnit, style: &Style) -> String {
    let rates: Vec<&[f64]> = directions.iter().map(|(_, d)| d.stream_goodput_bps.as_slice()).collect();
    let most = if style.details { MOST_STREAM_ROWS } else { SHORT };
    let Some((names, rates)) = stream_rows_up_to(&rates, style.every_stream, most) else {
        return String::new();
    };
    let rows = names.len();
    let mut columns =
        vec![Column::new(["", "stream"], Align::Left, names.into_iter().map(Cell::plain).collect())];
    for ((way, direction), rates) in directions.iter().zip(rates) {
        // With many streams, the rows are not single streams.
        let are_streams = [direction.stream_goodput_bps.len(), direction.streams.len()] == [rates.len(); 2];
        let mut column = |head, align, mut cells: Vec<Cell>| {
            cells.resize(rows, Cell::plain("-"));
            columns.push(Column::new(head, align, cells));
        };
        let goodput = rates.into_iter().map(|bps| Cell::plain(unit.format(bps))).collect();
        column([arrow(*way, style), unit.name], Align::Point, goodput);
        if !are_streams {
            continue;
        }
        let of_each = |cell: &dyn Fn(&StreamReport) -> String| {
            direction.streams.iter().map(|stream| Cell::plain(cell(stream))).collect()
        };
        column(["", "retrans"], Align::Point, of_each(&|stream| count(stream.retransmits)));
        let counted = |stream: &StreamReport| stream.time().map_or_else(|| "-".to_owned(), longest);
        column(["", "kernel counts"], Align::Left, of_each(&counted));
    }
    render(&columns, &[], style)
}

fn count(count: Option<u64>) -> String {
    count.map_or_else(|| "-".to_owned(), |count| count.to_string())
}

/// Returns the kernel's state with the longest time, and that time.
fn longest(time: StreamTime) -> String {
    let parts = [
        ("congestion window", time.congestion_window),
        ("no data to send", time.idle),
        ("receive window", time.receive_window),
        ("send buffer", time.send_buffer),
    ];
    let longest = parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    longest.map_or_else(String::new, |(what, share)| format!("{what} {:.0} %", 100.0 * share))
}

/// Returns row names, and the rates for each transfer: every stream, or smallest, median and largest of many.
/// `None` if no transfer has several streams.
pub(crate) fn stream_rows(transfers: &[&[f64]], every: bool) -> Option<(Vec<String>, Vec<Vec<f64>>)> {
    stream_rows_up_to(transfers, every, MOST_STREAM_ROWS)
}

/// Like `stream_rows`, with every stream if there are at most `rows`.
fn stream_rows_up_to(transfers: &[&[f64]], every: bool, rows: usize) -> Option<(Vec<String>, Vec<Vec<f64>>)> {
    let most = transfers.iter().map(|rates| rates.len()).max().filter(|&most| most > 1)?;
    if every || most <= rows {
        let names = (1..=most).map(|number| number.to_string()).collect();
        return Some((names, transfers.iter().map(|rates| rates.to_vec()).collect()));
    }
    let condensed = |rates: &&[f64]| {
        let mut rates = rates.to_vec();
        let middle = median(&mut rates);
        // Sorted at this point.
        [rates.first().copied(), middle, rates.last().copied()].into_iter().flatten().collect()
    };
    Some((["min", "median", "max"].map(str::to_owned).into(), transfers.iter().map(condensed).collect()))
}
