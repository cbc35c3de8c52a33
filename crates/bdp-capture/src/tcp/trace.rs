//! How the numbers of a way went on over time, from its first byte of data.

use bdp_model::capture::{ClosedWindow, TracePoint};

use super::half::HalfConnection;

/// A point of each reading.
pub(super) fn of(way: &HalfConnection) -> Vec<TracePoint> {
    let Some(from) = way.first_data_at else { return Vec::new() };
    let readings = way.series.iter().filter(|(at, _)| *at >= from);
    readings
        .map(|(at, reading)| TracePoint {
            at_ns: at - from,
            sent_bytes: reading.sent,
            acked_bytes: reading.acked,
            window_edge_bytes: reading.window.map(|window| reading.acked + window),
            in_flight_bytes: reading.in_flight,
        })
        .collect()
}

/// When each of the first retransmissions passed, and its first byte.
pub(super) fn retransmissions(way: &HalfConnection) -> Vec<(u64, u64)> {
    let from = way.first_data_at.unwrap_or(0);
    way.retransmitted_at.iter().map(|&(at, byte)| (at.saturating_sub(from), byte)).collect()
}

/// The first times that the receive window was closed since there was data.
pub(super) fn closed_windows(way: &HalfConnection) -> Vec<ClosedWindow> {
    let from = way.first_data_at.unwrap_or(0);
    let since = |&(began, ended, acked): &(u64, u64, u64)| ClosedWindow {
        from_ns: began.saturating_sub(from),
        to_ns: ended - from,
        acked_bytes: acked,
    };
    way.closed.iter().filter(|closed| closed.1 >= from).map(since).collect()
}
