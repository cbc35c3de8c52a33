//! Time-sequence graph: data sent, data acknowledged, and the edge of the receive window.

use bdp_model::capture::{CapturedData, TracePoint};

use super::plot::{Fit, Place, Plot, Unit, room_for};
use crate::finding::size;
use crate::html::page::Figure;
use crate::number::three_digits;

/// Returns the figure; `None` without readings.
pub(super) fn figure(data: &CapturedData, seconds: f64, name: &str) -> Option<Figure<'static>> {
    let trace = &data.trace;
    let sent = trace.iter().map(|point| point.sent_bytes).max().filter(|&bytes| bytes > 0)? as f64;
    let edge = trace.iter().filter_map(|point| point.window_edge_bytes).max().unwrap_or(0) as f64;
    let mut plot = Plot::new(seconds, room_for(sent, edge), Unit::Bytes, Fit::Both);
    let curve = |value: fn(&TracePoint) -> Option<u64>| {
        trace.iter().map(move |point| (point.at_ns as f64 / 1e9, value(point).map(|bytes| bytes as f64)))
    };
    plot.curve(
        curve(|point| point.window_edge_bytes),
        "model",
        "window to",
        "end of the receive window",
        Place::AsFarAsThereIsRoom,
    );
    plot.curve(curve(|point| Some(point.sent_bytes)), "here", "sent", "sent", Place::Within);
    plot.curve(
        curve(|point| Some(point.acked_bytes)),
        "third",
        "acknowledged",
        "acknowledged",
        Place::Within,
    );
    let closed = data
        .closed_windows
        .iter()
        .map(|closed| [closed.from_ns as f64 / 1e9, closed.to_ns as f64 / 1e9, closed.acked_bytes as f64]);
    let times = match data.closed_windows.len() {
        1 => "once".to_owned(),
        n => format!("{n} times"),
    };
    let meaning = format!("receive window closed ({times})");
    plot.stretches(closed, "closed-window", &meaning);
    let again = data.retransmitted_at.iter().map(|&(at, byte)| [at as f64 / 1e9, byte as f64]);
    let (drawn, all) = (data.retransmitted_at.len() as u64, data.retransmissions.segments);
    plot.marks(again, "retransmitted", &format!("retransmission ({all} segments in all)"));
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
    Some(plot.finish(
        "Time and sequence",
        &format!("{name}: bytes sent and acknowledged over time"),
        &description,
        notes,
    ))
}

/// Most retransmissions with a time.
const MARKS: u64 = 1000;
