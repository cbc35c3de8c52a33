//! Socket metrics for Prometheus. Because ports change, sockets of one program to one remote address form one series.

use std::collections::BTreeMap;

use bdp_model::statistics::median;
use bdp_model::watch::{Role, SocketReading, WatchInterval};

use crate::prometheus::{Metric, Page, Series, escaped, one};

/// Most series; those with the least traffic are omitted.
const MOST: usize = 1000;

/// Returns the metrics of the last interval.
pub fn prometheus_of_watch(interval: &WatchInterval, bdp: &str) -> String {
    let mut groups: BTreeMap<String, Vec<&SocketReading>> = BTreeMap::new();
    for socket in &interval.sockets {
        let program = socket.name.holder.as_ref().map_or("", |holder| holder.name.as_str());
        let labels = format!("program=\"{}\",remote=\"{}\"", escaped(program), socket.name.remote.ip());
        groups.entry(labels).or_default().push(socket);
    }
    let carried = |all: &[&SocketReading]| all.iter().map(|s| s.sent_bps + s.received_bps).sum::<f64>();
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|a, b| carried(&b.1).total_cmp(&carried(&a.1)));
    groups.truncate(MOST);
    let mut page = Page::of("watch", [String::new()], bdp);
    page.metrics(&groups, &metrics());
    let limited = groups.iter().flat_map(|(labels, all)| {
        let mut counts: BTreeMap<String, f64> = BTreeMap::new();
        for socket in all.iter().filter(|s| s.role != Role::Quiet) {
            // The name used in JSON.
            let limit = socket.finding.as_ref().and_then(|f| serde_json::to_value(f.limit).ok());
            if let Some(limit) = limit.as_ref().and_then(|limit| limit.as_str()) {
                *counts.entry(limit.to_owned()).or_default() += 1.0;
            }
        }
        counts.into_iter().map(move |(limit, count)| (format!("{labels},limit=\"{limit}\""), count))
    });
    page.family("bdp_watch_limited_sockets", "Connections, by what limits them.", limited);
    page.into_text()
}

/// Metrics of sockets with one program and remote address.
fn metrics<'a>() -> [Metric<Vec<&'a SocketReading>>; 8] {
    [
        ("bdp_watch_sockets", "Connections.", |all| one(all.len() as f64)),
        (
            "bdp_watch_sent_bits_per_second",
            "Bytes acknowledged by the other end x 8 / time, in the last interval.",
            |all| sum(all, |s| s.sent_bps),
        ),
        ("bdp_watch_received_bits_per_second", "Bytes received x 8 / time, in the last interval.", |all| {
            sum(all, |s| s.received_bps)
        }),
        ("bdp_watch_retransmits", "TCP segments retransmitted in the last interval.", |all| {
            sum(all, |s| s.retransmits.unwrap_or(0) as f64)
        }),
        ("bdp_watch_unread_bytes", "Bytes received that the program has not read.", |all| {
            sum(all, |s| f64::from(s.unread_bytes))
        }),
        ("bdp_watch_queued_bytes", "Bytes written by the program that are not acknowledged.", |all| {
            sum(all, |s| f64::from(s.queued_bytes))
        }),
        ("bdp_watch_rtt_seconds", "Smoothed round trip, median.", |all| middle(all, |s| s.rtt_ns)),
        ("bdp_watch_rtt_min_seconds", "Smallest round trip of the last minutes, median.", |all| {
            middle(all, |s| s.min_rtt_ns)
        }),
    ]
}

fn sum(all: &[&SocketReading], of: fn(&SocketReading) -> f64) -> Series {
    one(all.iter().map(|socket| of(socket)).sum::<f64>())
}

fn middle(all: &[&SocketReading], of: fn(&SocketReading) -> Option<u64>) -> Series {
    one(median(&mut all.iter().filter_map(|s| of(s)).map(|ns| ns as f64 * 1e-9).collect::<Vec<_>>()))
}
