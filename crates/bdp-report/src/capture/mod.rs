//! The flows of a capture: a line of what was read, a table of flows, and one flow by itself.

mod datagrams;
pub(crate) mod flow;
mod json;
mod words;

use bdp_model::capture::{ExplainedFlow, ReadCapture};
use bdp_model::finding::Limit;

use crate::grid::{Align, Cell, Column, render, tame, total_width};
use crate::style::{Style, Tint};

pub(crate) use datagrams::{are_known, has_streams};
pub use json::{CAPTURE_SCHEMA, captures_json};
pub(crate) use words::{caveats, ends, figures, read, words};

/// What to print of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// Rows of the table at the most.
    pub rows: usize,
    /// The flow to print by itself, by its number in the table.
    pub flow: Option<usize>,
}

/// Each capture: its table of flows, or the one flow that is asked for. A single flow of which something is known is printed by itself, too.
pub fn captures_text(captures: &[ReadCapture], shown: Shown, style: &Style) -> String {
    let mut text = String::new();
    for capture in captures {
        text.push_str(&heading(capture, style));
        match shown.flow.and_then(|number| Some((number, capture.flows.get(number.checked_sub(1)?)?))) {
            Some((number, found)) => text.push_str(&flow::text(number, found, style)),
            None if shown.flow.is_some() => {}
            None => {
                text.push_str(&table(&capture.flows, shown.rows, style));
                if let Some((number, found)) = only(&capture.flows) {
                    text.push('\n');
                    text.push_str(&flow::text(number, found, style));
                }
            }
        }
    }
    text
}

/// The one flow that could be explained; where there is none, the one whose datagrams say something.
fn only(flows: &[ExplainedFlow]) -> Option<(usize, &ExplainedFlow)> {
    let explained = |found: &ExplainedFlow| found.findings.iter().any(|all| !all.is_empty());
    let only = |is_meant: &dyn Fn(&ExplainedFlow) -> bool| {
        let mut meant = flows.iter().enumerate().filter(|(_, found)| is_meant(found));
        let (index, found) = meant.next()?;
        meant.next().is_none().then_some((index + 1, found))
    };
    if flows.iter().any(explained) { only(&explained) } else { only(&datagrams::are_known) }
}

/// `slow.pcapng: 47715 packets, 45.9 MiB in 7.01 s, 3 flows`, and what is wrong with it.
fn heading(capture: &ReadCapture, style: &Style) -> String {
    let mut text = format!("{}: {}\n", tame(&capture.name), read(capture));
    for caveat in caveats(capture) {
        text.push_str(&crate::grid::wrap("  ", Tint::Doubtful, &caveat, style));
    }
    text
}

fn table(flows: &[ExplainedFlow], rows: usize, style: &Style) -> String {
    if flows.is_empty() {
        return String::new();
    }
    let shown = &flows[..flows.len().min(rows)];
    let column = |head, align, of: &dyn Fn(&ExplainedFlow) -> String| {
        Column::new(head, align, shown.iter().map(|found| Cell::plain(of(found))).collect())
    };
    let numbers = (1..=shown.len()).map(|number| Cell::plain(number.to_string())).collect();
    let mut columns = vec![
        Column::new(["", "#"], Align::Point, numbers),
        column(["", "flow"], Align::Left, &ends),
        column(["", "Mbit/s"], Align::Point, &|found| figures(found).mbps),
        column(["", "MB"], Align::Point, &|found| figures(found).megabytes),
        column(["", "s"], Align::Point, &|found| figures(found).seconds),
        column(["RTT ms", "min"], Align::Point, &|found| figures(found).rtt_min_ms),
        column(["", "retr"], Align::Point, &|found| figures(found).retransmissions),
    ];
    if shown.iter().any(has_streams) {
        columns.push(column(["lost", "%"], Align::Point, &|found| figures(found).lost_percent));
        columns.push(column(["jitter", "ms"], Align::Point, &|found| figures(found).jitter_ms));
    }
    let limits = shown.iter().map(|found| {
        let (text, tint) = limit(found);
        Cell::tinted(text, tint)
    });
    let mut limits = Column::new(["", "limited by"], Align::Left, limits.collect());
    limits.narrow(style.columns().saturating_sub(total_width(&columns) + 2).max(16), style);
    columns.push(limits);
    let mut text = render(&columns, &[], style);
    let more = flows.len() - shown.len();
    if more > 0 {
        text.push_str(&format!("and {more} more with fewer bytes; --top shows more\n"));
    }
    text
}

/// What limits the main way of a flow, in a few words.
fn limit(found: &ExplainedFlow) -> (String, Tint) {
    let Some(finding) = found.findings[found.main_direction()].first() else {
        return ("-".to_owned(), Tint::None);
    };
    (words(finding), if finding.limit == Limit::Unknown { Tint::None } else { Tint::Doubtful })
}
