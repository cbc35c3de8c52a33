//! Time-sequence graph: data sent, data acknowledged, and the edge of the receive window.

use bdp_model::capture::{CapturedData, TracePoint};

use super::curves::curve;
use crate::chart::{Chart, Fit, Marks, Series, Unit, room_for};
use crate::finding::size;
use crate::number::three_digits;

/// Returns the chart; `None` without readings.
pub(super) fn chart(data: &CapturedData, seconds: f64, name: &str) -> Option<Chart> {
    let trace = &data.trace;
    let sent = trace.iter().map(|point| point.sent_bytes).max().filter(|&bytes| bytes > 0)? as f64;
    let edge = trace.iter().filter_map(|point| point.window_edge_bytes).max().unwrap_or(0) as f64;
    let points = |value: fn(&TracePoint) -> Option<u64>| {
        let point = |point: &TracePoint| (point.at_ns as f64 / 1e9, value(point).map(|bytes| bytes as f64));
        trace.iter().map(point).collect()
    };
    let closed = data
        .closed_windows
        .iter()
        .map(|closed| [closed.from_ns, closed.to_ns].map(|ns| [ns as f64 / 1e9, closed.acked_bytes as f64]));
    let times = match data.closed_windows.len() {
        1 => "once".to_owned(),
        n => format!("{n} times"),
    };
    let again = data.retransmitted_at.iter().map(|&(at, byte)| [at as f64 / 1e9, byte as f64]);
    let (drawn, all) = (data.retransmitted_at.len() as u64, data.retransmissions.segments);
    let window =
        curve("model", "window to", "end of the receive window", points(|point| point.window_edge_bytes));
    let meaning = format!("retransmission ({all} segments in all)");
    let series = vec![
        Series { is_cut: true, ..window },
        curve("here", "sent", "sent", points(|point| Some(point.sent_bytes))),
        curve("third", "acknowledged", "acknowledged", points(|point| Some(point.acked_bytes))),
        Series::new(
            "closed-window",
            format!("receive window closed ({times})"),
            Marks::Spans(closed.collect()),
        ),
        Series::new("retransmitted", meaning, Marks::Dots(0.0, again.collect())),
    ];
    let mut notes = Vec::new();
    // A mark stands for a packet, which may be several segments.
    if drawn >= MARKS {
        let until = data.retransmitted_at.last().map_or(0.0, |last| last.0 as f64 / 1e9);
        notes.push(format!(
            "The first {drawn} retransmissions are marked, those up to {} s; later ones are not.",
            three_digits(until)
        ));
    }
    if edge > room_for(sent, edge) {
        notes.push(format!(
            "The end of the receive window comes to {} after the first byte, above what is drawn.",
            size(edge)
        ));
    }
    let description = format!(
        "{} sent and {} acknowledged over time; {all} segments retransmitted, the receive window closed {times}.",
        size(sent),
        size(data.acked_bytes as f64),
    );
    let title = format!("{name}: bytes sent and acknowledged over time");
    let y = (seconds, room_for(sent, edge), Unit::Bytes);
    let words = ["Time and sequence".to_owned(), title, description];
    Some(Chart::zooming(words, y, Fit::Both, series).noted(notes))
}

/// Most retransmissions with a time.
const MARKS: u64 = 1000;
