//! The flows of a capture: a line of what was read, a table of flows, and one flow by itself.

pub(crate) mod flow;
mod json;

use bdp_model::capture::{
    CaptureSummary, ExplainedFlow, FlowProtocol, ReadCapture, UnreadPackets, WhyUnread,
};
use bdp_model::finding::{Finding, Limit};

use crate::finding::{confidence, subject};
use crate::grid::{Align, Cell, Column, render, tame, total_width};
use crate::number::three_digits;
use crate::style::{Style, Tint};

pub use json::{CAPTURE_SCHEMA, captures_json};

/// What to print of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// Rows of the table at the most.
    pub rows: usize,
    /// The flow to print by itself, by its number in the table.
    pub flow: Option<usize>,
}

/// Each capture: its table of flows, or the one flow that is asked for. A single flow that carries data is printed by itself, too.
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

/// The one flow that could be explained.
fn only(flows: &[ExplainedFlow]) -> Option<(usize, &ExplainedFlow)> {
    let mut explained =
        flows.iter().enumerate().filter(|(_, found)| found.findings.iter().any(|all| !all.is_empty()));
    let (index, found) = explained.next()?;
    explained.next().is_none().then_some((index + 1, found))
}

/// `slow.pcapng: 47715 packets, 45.9 MiB in 7.01 s, 3 flows`, and what is wrong with it.
fn heading(capture: &ReadCapture, style: &Style) -> String {
    let mut text = format!("{}: {}\n", tame(&capture.name), read(capture));
    for caveat in caveats(capture) {
        text.push_str(&crate::grid::wrap("  ", Tint::Doubtful, &caveat, style));
    }
    text
}

/// `47715 packets, 45.9 MiB in 7.01 s, 3 flows`.
pub(crate) fn read(capture: &ReadCapture) -> String {
    let CaptureSummary { packets, bytes, duration_ns, .. } = capture.summary;
    let flows = capture.flows.len();
    format!(
        "{packets} packets, {} in {} s, {flows} flow{}",
        crate::number::size(bytes as f64),
        three_digits(duration_ns as f64 / 1e9),
        if flows == 1 { "" } else { "s" },
    )
}

/// What limits what can be known of a capture.
pub(crate) fn caveats(capture: &ReadCapture) -> Vec<String> {
    let CaptureSummary { cut, dropped, out_of_time, filtered, flows_left_out, began_at_ns, packets, .. } =
        capture.summary;
    let mut all = Vec::new();
    all.extend(
        capture.broke.as_ref().map(|why| format!("reading ended early: {why}; what was read before counts")),
    );
    if packets > 0 && began_at_ns.is_none() {
        all.push("the packets have no times: nothing that depends on them is known".to_owned());
    }
    let mut counted = |count: u64, what: &str| {
        if count > 0 {
            all.push(format!("{count} {what}"));
        }
    };
    counted(filtered, "packets left out by the filter");
    counted(dropped, "packets dropped by the capturing program: losses in the flows may be its own");
    counted(cut, "packets cut short: only their beginning was kept, and payloads were not looked at");
    counted(
        out_of_time,
        "packets with a time before that of an earlier packet; their order in the file counts",
    );
    counted(flows_left_out, "packets of further flows left out: too many flows");
    all.extend(capture.summary.unread.iter().map(unread));
    all
}

fn unread(unread: &UnreadPackets) -> String {
    let UnreadPackets { why, number, packets } = unread;
    let number = number.unwrap_or(0);
    match why {
        WhyUnread::LinkType => format!("{packets} packets of link type {number}, which bdp does not read"),
        WhyUnread::NotIp => format!("{packets} packets that are not IP (Ethernet type {number:#06x})"),
        WhyUnread::Cut => format!("{packets} packets of which too little was kept"),
        WhyUnread::Malformed => format!("{packets} packets whose headers contradict themselves"),
        WhyUnread::Fragment => format!("{packets} fragments, which have no ports"),
    }
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

/// The figures of a flow's main way, as the table has them; a dash for what is not known.
pub(crate) struct Figures {
    /// Mbit/s.
    pub mbps: String,
    /// MB of payload.
    pub megabytes: String,
    /// From the first packet to the last.
    pub seconds: String,
    /// The least round trip, ms.
    pub rtt_min_ms: String,
    /// Segments.
    pub retransmissions: String,
}

/// The figures of a flow's main way.
pub(crate) fn figures(found: &ExplainedFlow) -> Figures {
    let way = &found.flow.directions[found.main_direction()];
    let dash = || "-".to_owned();
    let (of_rate, of_time) = (|bps: f64| three_digits(bps / 1e6), |ns: u64| three_digits(ns as f64 / 1e6));
    Figures {
        mbps: way.goodput_bps.map_or_else(dash, of_rate),
        megabytes: three_digits(way.payload_bytes as f64 / 1e6),
        seconds: three_digits((found.flow.to_ns - found.flow.from_ns) as f64 / 1e9),
        rtt_min_ms: way.tcp.as_ref().and_then(|data| data.rtt_min_ns).map_or_else(dash, of_time),
        retransmissions: way.tcp.as_ref().map_or_else(dash, |data| data.retransmissions.segments.to_string()),
    }
}

/// `198.18.0.1:48946 -> 198.18.0.2:35193`, from who sent most.
pub(crate) fn ends(found: &ExplainedFlow) -> String {
    let (a, b) = (&found.flow.a, &found.flow.b);
    let (from, to) = if found.main_direction() == 0 { (a, b) } else { (b, a) };
    match found.flow.protocol {
        FlowProtocol::Tcp => format!("{from} -> {to}"),
        FlowProtocol::Udp => format!("{from} -> {to} udp"),
        FlowProtocol::Icmp => format!("{} -> {} icmp", from.ip(), to.ip()),
        FlowProtocol::Other => format!("{} -> {}", from.ip(), to.ip()),
    }
}

/// What limits the main way of a flow, in a few words.
fn limit(found: &ExplainedFlow) -> (String, Tint) {
    let Some(finding) = found.findings[found.main_direction()].first() else {
        return ("-".to_owned(), Tint::None);
    };
    (words(finding), if finding.limit == Limit::Unknown { Tint::None } else { Tint::Doubtful })
}

/// What a finding is about, and how sure it is.
pub(crate) fn words(finding: &Finding) -> String {
    match finding.limit {
        Limit::Unknown => "unknown".to_owned(),
        _ => format!("{} ({})", subject(finding), confidence(finding.confidence)),
    }
}
