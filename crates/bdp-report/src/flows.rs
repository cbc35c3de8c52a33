//! A row for each flow of lab cases with several flows.

use bdp_model::record::FlowRecord;

use crate::grid::{Cell, Column, columns_of, drop_to_fit, narrow_to_fit, not_shown, render, tame};
use crate::number::{RateUnit, three_digits};
use crate::style::{Style, Tint};
use crate::summary::{Point, Spread};
use crate::varied::varied;

/// Most flows of a point with a row each; of more, only the slowest, median and fastest are printed.
const MOST_ROWS: usize = 16;
/// Width to which names are truncated on narrow terminals.
const CUT: usize = 12;

/// Returns the columns and the rows preceded by a gap: medians over the valid repetitions; `None` if every case has one flow, whose row is
/// that of its case.
pub(crate) fn columns(
    points: &[Point<'_>],
    unit: RateUnit,
    style: &Style,
) -> Option<(Vec<Column>, Vec<usize>)> {
    let mut rows: Vec<[Cell; 6]> = Vec::new();
    let mut breaks = Vec::new();
    for point in points.iter().filter(|point| point.valid().any(|record| record.flows.len() > 1)) {
        if !rows.is_empty() {
            breaks.push(rows.len());
        }
        let varied = varied(point, style, None);
        let case = format!("{} {varied}", tame(point.scenario)).trim().to_owned();
        for (index, row) in rows_of(point, unit).into_iter().enumerate() {
            let case = if index == 0 { Cell::tinted(&case, Tint::Strong) } else { Cell::default() };
            let [flow, goodput, retransmits, rtt, lost] = row;
            rows.push([case, flow, goodput, retransmits, rtt, lost]);
        }
    }
    if rows.is_empty() {
        return None;
    }
    let heads = [
        ["", "flows of"],
        ["", "flow"],
        ["here", unit.name],
        ["", "retrans"],
        ["RTT ms", "loaded"],
        ["", "lost"],
    ];
    Some((columns_of(heads, &rows, 2), breaks))
}

/// Returns the table as text; empty if there are no columns.
pub(crate) fn flows(points: &[Point<'_>], unit: RateUnit, style: &Style) -> String {
    let Some((mut columns, breaks)) = self::columns(points, unit, style) else { return String::new() };
    let hidden = drop_to_fit(&mut columns, &[("loaded", "RTT"), ("retrans", "retrans")], style);
    for index in [0, 1] {
        narrow_to_fit(&mut columns, index, CUT, style);
    }
    render(&columns, &breaks, style) + &not_shown(&hidden, style)
}

/// Returns flow, goodput, retransmits, round trip under load, and loss.
fn rows_of(point: &Point<'_>, unit: RateUnit) -> Vec<[Cell; 5]> {
    let count = point.valid().map(|record| record.flows.len()).max().unwrap_or(0);
    let middle = |index: usize, of: &dyn Fn(&FlowRecord) -> Option<f64>| {
        let values = point.valid().filter_map(|record| of(record.flows.get(index)?));
        Spread::of(values).map(|spread| spread.median)
    };
    let goodputs: Vec<Option<f64>> =
        (0..count).map(|index| middle(index, &|flow| Some(flow.goodput_bps))).collect();
    let number = |value: Option<f64>, format: &dyn Fn(f64) -> String| {
        Cell::plain(value.map_or_else(|| "-".to_owned(), format))
    };
    if count > MOST_ROWS {
        let Some(spread) = Spread::of(goodputs.into_iter().flatten()) else { return Vec::new() };
        let row = |name: String, bps: f64| {
            let [retransmits, rtt, lost] = [(); 3].map(|()| Cell::default());
            [Cell::plain(name), Cell::plain(unit.format(bps)), retransmits, rtt, lost]
        };
        return vec![
            row(format!("slowest of {count}"), spread.min),
            row("median".to_owned(), spread.median),
            row("fastest".to_owned(), spread.max),
        ];
    }
    let mut rows = Vec::new();
    for (index, goodput) in goodputs.into_iter().enumerate() {
        let Some(flow) = point.valid().find_map(|record| record.flows.get(index)) else { continue };
        let retransmits = middle(index, &|flow| flow.retransmits.map(|n| n as f64));
        let loaded = middle(index, &|flow| flow.rtt_ns.loaded.map(|rtt| rtt.p50 as f64));
        let lost = middle(index, &|flow| flow.udp.as_ref().map(|udp| udp.loss_ratio));
        rows.push([
            Cell::plain(format!("{} {} -> {}", index + 1, tame(&flow.from), tame(&flow.to))),
            number(goodput, &|bps| unit.format(bps)),
            number(retransmits, &|n| format!("{n:.0}")),
            number(loaded, &|ns| three_digits(ns / 1e6)),
            lost.map_or_else(Cell::default, |ratio| Cell::plain(crate::number::loss(ratio))),
        ]);
    }
    rows
}
