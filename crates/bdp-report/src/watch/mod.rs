//! Sockets of other programs: a live table, scrolling lines, one socket in detail, and the final summary.

mod json;
mod metrics;

use bdp_model::finding::{Fact, Finding, Limit};
use bdp_model::units::Nanos;
use bdp_model::watch::{Role, SocketName, SocketReading, SocketTotal, WatchInterval, WatchSummary};

use crate::finding::{confidence, rate, subject, time as duration};
use crate::grid::{Align, Cell, Column, cut, render, tame, width, wrap};
use crate::measurement::conclusion::finding_lines;
use crate::number::{percent, size, three_digits};
use crate::spark::spark;
use crate::style::{Style, Tint};

pub use json::{watch_interval_json, watch_summary_json};
pub use metrics::prometheus_of_watch;

/// Most sockets shown in a summary; the JSON has all.
const SHOWN: usize = 20;

/// Returns the table of the live display: a row for each socket, with the selected one marked. No line exceeds the style's width.
pub fn watch_table(sockets: &[&SocketReading], selected: Option<usize>, style: &Style) -> String {
    let column = |head, align, of: &dyn Fn(&SocketReading) -> String| {
        Column::new(head, align, sockets.iter().map(|s| Cell::plain(of(s))).collect())
    };
    let marks =
        (0..sockets.len()).map(|i| Cell::tinted(if selected == Some(i) { ">" } else { "" }, Tint::Strong));
    let mut columns = vec![
        Column::new(["", ""], Align::Left, marks.collect()),
        column(["", "program"], Align::Left, &|s| program(&s.name)),
        column(["", "remote"], Align::Left, &|s| s.name.remote.to_string()),
        column(["out", "Mbit/s"], Align::Point, &|s| three_digits(s.sent_bps / 1e6)),
        column(["in", "Mbit/s"], Align::Point, &|s| three_digits(s.received_bps / 1e6)),
        column(["RTT", "ms"], Align::Point, &|s| milliseconds(s.rtt_ns)),
        column(["min", "ms"], Align::Point, &|s| milliseconds(s.min_rtt_ns)),
        column(["", "cwnd"], Align::Point, &|s| or_dash(s.cwnd_segments)),
        column(["", "window"], Align::Left, &|s| or_dash(window(s).map(|bytes| size(bytes as f64)))),
        column(["", "retr"], Align::Point, &|s| or_dash(s.retransmits)),
    ];
    let limit = |s: &&SocketReading| {
        let (text, tint) = limit(s);
        Cell::tinted(text, tint)
    };
    let mut limits = Column::new(["", "limited by"], Align::Left, sockets.iter().map(limit).collect());
    // Columns dropped on a narrow terminal, least important first; the rest of the limit's text is dropped last.
    const EXPENDABLE: [&str; 5] = ["cwnd", "min ms", "window", "retr", "RTT ms"];
    const LEAST_LIMIT: usize = 24;
    let taken = |columns: &[Column]| crate::grid::total_width(columns) + 2;
    for name in EXPENDABLE {
        if taken(&columns) + LEAST_LIMIT <= style.columns() {
            break;
        }
        columns.retain(|column| column.heading() != name);
    }
    limits.narrow(style.columns().saturating_sub(taken(&columns)).max(10), style);
    columns.push(limits);
    let text = render(&columns, &[], style);
    text.lines().map(|line| fit(line, style) + "\n").collect()
}

/// Returns one socket in detail: all figures, the rate of the last intervals, and the evidence.
pub fn watch_detail(socket: &SocketReading, rates_bps: &[f64], style: &Style) -> String {
    let line = |lead: &str, words: &str| wrap(&format!("{lead:<10}"), Tint::Faint, words, style);
    let chart = Style { width: style.width.saturating_sub(22).max(40), ..*style };
    let recent = &rates_bps[rates_bps.len().saturating_sub(chart.columns())..];
    let largest = recent.iter().copied().fold(0.0, f64::max);
    let rates = format!("{} now, {} at most", rate(socket.sent_bps + socket.received_bps), rate(largest));
    let mut text = wrap("", Tint::Strong, &title(&socket.name), style) + &line("rate", &rates);
    text.push_str(&format!("{:10}{}\n", "", spark(recent, &chart)));
    // The finding comes first if a short terminal has room for it.
    if let Some(finding) = &socket.finding {
        text.push_str(&finding_lines(arrow(socket.role), finding, "", style));
        text.push('\n');
    }
    detail(socket).iter().for_each(|(lead, words)| text.push_str(&line(lead, words)));
    text
}

/// Returns the figures of a socket, each with its name.
fn detail(socket: &SocketReading) -> Vec<(&'static str, String)> {
    let time = |ns: Option<u64>| known(ns.map(|ns| duration(Nanos(ns))));
    let bytes = |bytes: Option<u64>| known(bytes.map(|bytes| size(bytes as f64)));
    let delivery = known(socket.delivery_rate_bps.map(|bps| rate(bps as f64)));
    let app = if socket.app_limited == Some(true) { ", limited by the application" } else { "" };
    let (sent, received) = (size(socket.sent_bytes as f64), size(socket.received_bytes as f64));
    let role = match socket.role {
        Role::Sending => "sending",
        Role::Receiving => "receiving",
        Role::Quiet => "quiet",
    };
    let windows = format!(
        "congestion {} segments ({}), {} in flight, ssthresh {}; receive window there {}, here {}",
        known(socket.cwnd_segments),
        known(socket.congestion_control.as_deref()),
        known(socket.in_flight_segments),
        socket.ssthresh_segments.map_or_else(|| "none yet".to_owned(), |n| n.to_string()),
        bytes(socket.send_window_bytes),
        bytes(socket.receive_window_bytes)
    );
    let buffers = format!(
        "{} to be acknowledged of {}, {} never sent; {} unread of {}",
        size(f64::from(socket.queued_bytes)),
        bytes(socket.send_buffer_bytes.map(u64::from)),
        bytes(socket.not_sent_bytes),
        size(f64::from(socket.unread_bytes)),
        bytes(socket.receive_buffer_bytes.map(u64::from))
    );
    let losses = format!(
        "{} retransmits ({} since the connection began), {} out of order",
        known(socket.retransmits),
        known(socket.retransmits_total),
        known(socket.out_of_order)
    );
    let limited = socket.limited.map(|limited| {
        format!(
            "busy {}, limited by the receive window {}, by the send buffer {}",
            percent(limited.busy),
            percent(limited.rwnd_limited),
            percent(limited.sndbuf_limited)
        )
    });
    let mut rows = vec![
        ("bytes", format!("{sent} acknowledged, {received} received, since it is watched")),
        ("state", format!("{}, {role}; user {}", socket.state.name(), socket.name.user)),
        ("RTT", format!("{}, {} at least", time(socket.rtt_ns), time(socket.min_rtt_ns))),
        ("window", windows),
        ("buffers", buffers),
        ("losses", losses),
    ];
    rows.extend(limited.map(|words| ("time", words)));
    rows.push(("delivery", delivery + app));
    rows
}

fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "unknown".to_owned(), |value| value.to_string())
}

/// Returns the heading of [`watch_lines`].
pub fn watch_heading() -> String {
    format!(
        "{:>6}  {:<18}  {:<24}  {:>9}  {:>7}  {:>7}  {:>9}  {:>5}  {}\n",
        "s", "program", "remote", "Mbit/s", "RTT ms", "min ms", "window", "retr", "limited by"
    )
}

/// Returns a line for each of the `most` sockets with the most traffic in an interval, in descending order.
pub fn watch_lines(interval: &WatchInterval, most: usize, style: &Style) -> String {
    let mut sockets: Vec<&SocketReading> =
        interval.sockets.iter().filter(|s| s.role != Role::Quiet).collect();
    sockets.sort_by(|a, b| (b.sent_bps + b.received_bps).total_cmp(&(a.sent_bps + a.received_bps)));
    let mut text = String::new();
    let at = format!("{:>6.1}", interval.at_ns as f64 / 1e9);
    for socket in sockets.iter().take(most) {
        let (limit, tint) = limit(socket);
        let remote = format!("{} {}", arrow(socket.role), socket.name.remote);
        text.push_str(&format!(
            "{at}  {:<18}  {:<24}  {:>9}  {:>7}  {:>7}  {:>9}  {:>5}  {}\n",
            cut(&program(&socket.name), 18, style),
            cut(&remote, 24, style),
            three_digits(socket.sent_bps.max(socket.received_bps) / 1e6),
            milliseconds(socket.rtt_ns),
            milliseconds(socket.min_rtt_ns),
            or_dash(window(socket).map(|bytes| size(bytes as f64))),
            or_dash(socket.retransmits),
            style.paint(tint, &limit),
        ));
    }
    let more = sockets.len().saturating_sub(most);
    if more > 0 {
        text.push_str(&format!("{at}  and {more} more that moved\n"));
    }
    if sockets.is_empty() {
        let quiet = match interval.sockets.len() {
            0 => "no connection".to_owned(),
            1 => "1 connection, quiet".to_owned(),
            n => format!("{n} connections, quiet"),
        };
        text.push_str(&format!("{at}  {quiet}\n"));
    }
    text
}

/// Returns the final summary: each socket with its bytes, mean rate, limits with their share of time, and the evidence.
pub fn watch_summary(summary: &WatchSummary, style: &Style) -> String {
    let seconds = summary.took_ns as f64 / 1e9;
    let of = |n: u64, one: &str, many: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {many}") };
    let mut text = wrap(
        "watched  ",
        Tint::Faint,
        &format!(
            "{seconds:.1} s, {}, {} that carried data, {}",
            of(summary.seen, "connection", "connections"),
            // A failed connection has a finding although it carried no data.
            summary.sockets.iter().filter(|t| t.last.sent_bytes + t.last.received_bytes > 0).count(),
            of(summary.samples, "sample", "samples")
        ),
        style,
    );
    for total in summary.sockets.iter().take(SHOWN) {
        text.push('\n');
        text.push_str(&total_lines(total, style));
    }
    let more = summary.sockets.len().saturating_sub(SHOWN);
    if more > 0 {
        text.push_str(&wrap(
            "",
            Tint::None,
            &format!("\nand {more} more that carried less; --json has them"),
            style,
        ));
    }
    let taken = |ns: u64| percent(ns as f64 / summary.took_ns.max(1) as f64);
    text.push('\n');
    text.push_str(&wrap(
        "cost     ",
        Tint::Faint,
        &format!(
            "{} of a processor in user mode, {} in the kernel",
            taken(summary.user_ns),
            taken(summary.system_ns)
        ),
        style,
    ));
    if summary.incomplete > 0 {
        let text_of =
            format!("{} of {} readings failed or may lack sockets", summary.incomplete, summary.samples);
        text.push_str(&wrap("NOTE     ", Tint::Doubtful, &text_of, style));
    }
    text
}

fn total_lines(total: &SocketTotal, style: &Style) -> String {
    let seconds = (total.watched_ns as f64 / 1e9).max(1e-9);
    let (last, mean) = (&total.last, |bytes: u64| rate(bytes as f64 * 8.0 / seconds));
    let mut words: Vec<String> = Vec::new();
    for (bytes, what) in [(last.sent_bytes, "sent"), (last.received_bytes, "received")] {
        if bytes > 0 {
            words.push(format!("{} {what}, {} on average", size(bytes as f64), mean(bytes)));
        }
    }
    words.push(format!("{seconds:.1} s{}", if total.ended { ", ended" } else { "" }));
    words.extend(total.retransmits.filter(|&n| n > 0).map(|n| format!("{n} retransmits")));
    let mut text = wrap("", Tint::Strong, &title(&last.name), style);
    text.push_str(&wrap("  ", Tint::None, &words.join("; "), style));
    let way = arrow(last.role);
    for (index, share) in total.limits.iter().enumerate() {
        let agreement = format!(", {} of the time", percent(share.share));
        if index == 0 {
            text.push_str(&finding_lines(way, &share.finding, &agreement, style));
        } else {
            text.push_str(&wrap(
                &format!("{way}          "),
                Tint::None,
                &format!("also {}{agreement}", tame(&words_of(&share.finding))),
                style,
            ));
        }
    }
    text
}

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn milliseconds(ns: Option<u64>) -> String {
    or_dash(ns.map(|ns| three_digits(ns as f64 / 1e6)))
}

/// `curl 4242  192.0.2.1:40000 -> 198.51.100.7:443`.
fn title(name: &SocketName) -> String {
    format!("{}  {} - {}", program(name), name.local, name.remote)
}

fn program(name: &SocketName) -> String {
    match &name.holder {
        Some(holder) => format!("{} {}", tame(&holder.name), holder.pid),
        None if name.inode == 0 => "(no program)".to_owned(),
        None => format!("(user {})", name.user),
    }
}

fn arrow(role: Role) -> &'static str {
    match role {
        Role::Sending => "->",
        Role::Receiving => "<-",
        Role::Quiet => "--",
    }
}

/// Returns the receive window that applies to the data.
fn window(socket: &SocketReading) -> Option<u64> {
    match socket.role {
        Role::Receiving => socket.receive_window_bytes,
        _ => socket.send_window_bytes,
    }
}

/// Returns what limits a socket in a few words, used for sorting and searching.
pub fn watch_limit(socket: &SocketReading) -> String {
    limit(socket).0
}

/// Returns what limits a socket in a few words, with its tint.
fn limit(socket: &SocketReading) -> (String, Tint) {
    match &socket.finding {
        Some(finding) => {
            let tint = if finding.limit == Limit::Unknown { Tint::Doubtful } else { Tint::None };
            (tame(&words_of(finding)), tint)
        }
        None if socket.role == Role::Quiet => ("(quiet)".to_owned(), Tint::Faint),
        None => ("(too few samples yet)".to_owned(), Tint::Faint),
    }
}

fn words_of(finding: &Finding) -> String {
    if finding.limit == Limit::Unknown {
        // For a receiver at least this end is known.
        let is_elsewhere = finding.observed(Fact::ReaderKeepsUp).is_some();
        return if is_elsewhere { "unknown: the sender or the path" } else { "unknown" }.to_owned();
    }
    format!("{} ({})", subject(finding), confidence(finding.confidence))
}

/// Truncates a line to the style's width; colour codes do not count.
fn fit(line: &str, style: &Style) -> String {
    if width(line) <= style.columns() || style.colour {
        line.to_owned()
    } else {
        cut(line, style.columns(), style)
    }
}
