//! Goodput of each stream of a transfer, if there are several.

use super::page::{head, numbers, words};
use crate::markup::Markup;
use crate::measurement::stream_rows;
use crate::number::RateUnit;

/// Writes a table with a column for each named transfer; nothing if none has several streams.
pub(crate) fn table(m: &mut Markup, transfers: &[(String, &[f64])]) {
    let rates: Vec<&[f64]> = transfers.iter().map(|(_, rates)| *rates).collect();
    let Some((names, columns)) = stream_rows(&rates, false) else { return };
    let unit = RateUnit::fitting(rates.iter().flat_map(|rates| rates.iter().copied()));
    let heads = transfers.iter().map(|(name, _)| numbers(format!("{name}, {}", unit.name)));
    m.element("div", &[("class", "scroll")], |m| {
        m.element("table", &[], |m| {
            m.leaf("caption", &[], "Goodput of each stream");
            head(m, &[words("stream")].into_iter().chain(heads).collect::<Vec<_>>());
            m.element("tbody", &[], |m| {
                for (row, name) in names.iter().enumerate() {
                    m.element("tr", &[], |m| {
                        m.leaf("td", &[], name);
                        for column in &columns {
                            let rate =
                                column.get(row).map_or_else(|| "–".to_owned(), |&bps| unit.format(bps));
                            m.leaf("td", &[("class", "n")], &rate);
                        }
                    });
                }
            });
        });
    });
    m.line();
}
