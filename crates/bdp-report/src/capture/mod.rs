//! Text report of a capture: a summary line, a table of flows, and one flow in detail.

mod attempts;
mod datagrams;
pub(crate) mod flow;
mod json;
pub(crate) mod pair;
mod table;
mod words;

use bdp_model::capture::pair::CapturePair;
use bdp_model::capture::{ExplainedFlow, ReadCapture};

use crate::grid::{Align, Cell, Column, tame};
use crate::style::{Style, Tint};

use self::pair::Paired;
use self::table::with_limits;
use self::words::limit;

pub(crate) use attempts::attempts;
pub(crate) use datagrams::{are_known, has_streams};
pub use json::{CAPTURE_SCHEMA, CapturesDocument, captures_json};
pub(crate) use words::{caveats, ends, figures, read, words};

/// What to print of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// Most rows of the table.
    pub rows: usize,
    /// Flow to print in detail, by its number in the table.
    pub flow: Option<usize>,
}

/// Returns each capture with its table of flows, or the selected flow. A single flow with a result is printed in detail too. The
/// comparison of two captures of one path is printed once, below both.
pub fn captures_text(captures: &[ReadCapture], pairs: &[CapturePair], shown: Shown, style: &Style) -> String {
    let mut text = String::new();
    for (index, capture) in captures.iter().enumerate() {
        text.push_str(&heading(capture, style));
        let flows = own_flows(index, capture, pairs);
        match shown.flow {
            Some(number) => {
                let found = flows.iter().find(|(own, _)| *own == number);
                text.extend(found.map(|(number, found)| flow::text(*number, found, style)));
            }
            None => {
                text.push_str(&table(&flows, shown.rows, style));
                if let Some((number, found)) = only(&flows) {
                    text.push('\n');
                    text.push_str(&flow::text(number, found, style));
                }
            }
        }
    }
    for paired in pairs.iter().filter_map(|pair| Paired::of(captures, pair)) {
        text.push_str(&pair_text(&paired, shown, style));
    }
    text
}

/// Returns the flows of a capture that no pair explains, with their numbers.
fn own_flows<'a>(
    index: usize,
    capture: &'a ReadCapture,
    pairs: &[CapturePair],
) -> Vec<(usize, &'a ExplainedFlow)> {
    let is_paired = |number: usize| {
        let places =
            pairs.iter().filter_map(|pair| Some((pair, pair.captures.iter().position(|&i| i == index)?)));
        places.into_iter().any(|(pair, place)| pair.connections.iter().any(|one| one.flows[place] == number))
    };
    let numbered = capture.flows.iter().enumerate().map(|(i, found)| (i + 1, found));
    numbered.filter(|(number, _)| !is_paired(*number)).collect()
}

/// Returns two captures of one path: the connections that passed both, and the only or selected one in detail (numbered as in the first).
fn pair_text(paired: &Paired<'_>, shown: Shown, style: &Style) -> String {
    let connections = &paired.pair.connections;
    let mut text = String::new();
    if shown.flow.is_none() {
        text.push_str(&format!("\n{}\n", paired.title()));
        for caveat in paired.caveats() {
            text.push_str(&crate::grid::wrap("  ", Tint::Doubtful, &caveat, style));
        }
        text.push_str(&pair::table(paired, shown.rows, style));
    }
    let asked = match (shown.flow, connections.as_slice()) {
        (Some(number), all) => all.iter().find(|one| one.flows[0] == number),
        (None, [one]) => Some(one),
        (None, _) => None,
    };
    if let Some((connection, found)) = asked.and_then(|one| Some((one, paired.flow(one)?))) {
        text.push('\n');
        text.push_str(&flow::text(connection.flows[0], found, style));
        text.push_str(&pair::between(paired, connection, style));
    }
    text
}

/// Returns a capture in a line: its largest flow and what limits it.
pub fn capture_line(capture: &ReadCapture, style: &Style) -> String {
    crate::grid::wrap("capture  ", Tint::Faint, &capture_words(capture), style)
}

/// Returns a capture in words: its largest flow and what limits it.
pub fn capture_words(capture: &ReadCapture) -> String {
    let mut words = format!("{}: {} packets", tame(&capture.name), capture.summary.packets);
    if capture.flows.is_empty() {
        words.extend(attempts(capture).first().map(|kind| format!("; {kind}")));
    }
    if let Some(found) = capture.flows.first() {
        let figures = figures(found);
        words.push_str(&format!("; {}, {} Mbit/s", ends(found), figures.mbps));
        if found.flow.tcp.is_some() {
            words.push_str(&format!(
                ", RTT {} ms, {} retransmits",
                figures.rtt_min_ms, figures.retransmissions
            ));
        }
        words.push_str(&format!(", limited by: {}", limit(found).0));
    }
    words
}

/// Returns the only flow that could be explained, or else the only one whose datagrams reveal something.
fn only<'a>(flows: &[(usize, &'a ExplainedFlow)]) -> Option<(usize, &'a ExplainedFlow)> {
    let explained = |found: &ExplainedFlow| found.findings.iter().any(|all| !all.is_empty());
    let only = |is_meant: &dyn Fn(&ExplainedFlow) -> bool| {
        let mut meant = flows.iter().filter(|(_, found)| is_meant(found));
        let &only = meant.next()?;
        meant.next().is_none().then_some(only)
    };
    if flows.iter().any(|(_, found)| explained(found)) {
        only(&explained)
    } else {
        only(&datagrams::are_known)
    }
}

/// Returns `slow.pcapng: 47715 packets, 45.9 MiB in 7.01 s, 3 flows`, with any problems.
fn heading(capture: &ReadCapture, style: &Style) -> String {
    let mut text = format!("{}: {}\n", tame(&capture.name), read(capture));
    for kind in attempts(capture) {
        text.push_str(&crate::grid::wrap("  ", Tint::Strong, &kind, style));
    }
    for caveat in caveats(capture) {
        text.push_str(&crate::grid::wrap("  ", Tint::Doubtful, &caveat, style));
    }
    text
}

fn table(flows: &[(usize, &ExplainedFlow)], rows: usize, style: &Style) -> String {
    if flows.is_empty() {
        return String::new();
    }
    let shown = &flows[..flows.len().min(rows)];
    let column = |head, align, of: &dyn Fn(&ExplainedFlow) -> String| {
        Column::new(head, align, shown.iter().map(|(_, found)| Cell::plain(of(found))).collect())
    };
    let numbers = shown.iter().map(|(number, _)| Cell::plain(number.to_string())).collect();
    let mut columns = vec![
        Column::new(["", "#"], Align::Point, numbers),
        column(["", "flow"], Align::Left, &ends),
        column(["", "Mbit/s"], Align::Point, &|found| figures(found).mbps),
        column(["", "MB"], Align::Point, &|found| figures(found).megabytes),
        column(["", "s"], Align::Point, &|found| figures(found).seconds),
        column(["RTT ms", "min"], Align::Point, &|found| figures(found).rtt_min_ms),
        column(["", "retr"], Align::Point, &|found| figures(found).retransmissions),
    ];
    if shown.iter().any(|(_, found)| has_streams(found)) {
        columns.push(column(["lost", "%"], Align::Point, &|found| figures(found).lost_percent));
        columns.push(column(["jitter", "ms"], Align::Point, &|found| figures(found).jitter_ms));
    }
    let more = flows.len() - shown.len();
    let found: Vec<&ExplainedFlow> = shown.iter().map(|(_, found)| *found).collect();
    with_limits(columns, &found, more, style)
}
