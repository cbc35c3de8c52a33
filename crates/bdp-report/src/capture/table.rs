//! Last part of every table of flows: limits, and the number of further flows.

use bdp_model::capture::ExplainedFlow;

use super::words::limit;
use crate::grid::{Align, Cell, Column, render, total_width};
use crate::style::Style;

/// Returns the table with each flow's limit as the last column, as wide as the terminal allows.
pub(super) fn with_limits(
    mut columns: Vec<Column>,
    shown: &[&ExplainedFlow],
    more: usize,
    style: &Style,
) -> String {
    let limits = shown.iter().map(|found| {
        let (text, tint) = limit(found);
        Cell::tinted(text, tint)
    });
    let mut limits = Column::new(["", "limited by"], Align::Left, limits.collect());
    limits.narrow(style.columns().saturating_sub(total_width(&columns) + 2).max(16), style);
    columns.push(limits);
    let mut text = render(&columns, &[], style);
    if more > 0 {
        text.push_str(&format!("and {more} more with fewer bytes; --top shows more\n"));
    }
    text
}
