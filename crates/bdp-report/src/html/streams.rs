//! Goodput of each stream of a transfer, if there are several.

use maud::Markup;

use super::page::{numbers, table, words};
use crate::measurement::stream_rows;
use crate::number::RateUnit;

/// Returns a table with a column for each named transfer; nothing if none has several streams.
pub(crate) fn of_transfers(transfers: &[(String, &[f64])]) -> Markup {
    let rates: Vec<&[f64]> = transfers.iter().map(|(_, rates)| *rates).collect();
    let Some((names, columns)) = stream_rows(&rates, false) else { return Markup::default() };
    let unit = RateUnit::fitting(rates.iter().flat_map(|rates| rates.iter().copied()));
    let mut heads = vec![words("stream")];
    heads.extend(transfers.iter().map(|(name, _)| numbers(format!("{name}, {}", unit.name))));
    let rows = names.into_iter().enumerate().map(|(row, name)| {
        let rate =
            |column: &Vec<f64>| column.get(row).map_or_else(|| "–".to_owned(), |&bps| unit.format(bps));
        std::iter::once(name).chain(columns.iter().map(rate)).collect::<Vec<String>>()
    });
    table("Goodput of each stream", &heads, rows)
}
