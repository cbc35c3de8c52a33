//! Sequence numbers of a direction over time, from its first byte of data.

use bdp_model::capture::{ClosedWindow, TracePoint};

use super::half::HalfConnection;

/// Returns a point for each reading.
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

/// Returns the time and first byte of each of the first retransmissions.
pub(super) fn retransmissions(way: &HalfConnection) -> Vec<(u64, u64)> {
    let from = way.first_data_at.unwrap_or(0);
    way.retransmitted_at.iter().map(|&(at, byte)| (at.saturating_sub(from), byte)).collect()
}

/// Returns the first periods with a closed receive window since there was data.
pub(super) fn closed_windows(way: &HalfConnection) -> Vec<ClosedWindow> {
    let from = way.first_data_at.unwrap_or(0);
    let since = |&(began, ended, acked): &(u64, u64, u64)| ClosedWindow {
        from_ns: began.saturating_sub(from),
        to_ns: ended - from,
        acked_bytes: acked,
    };
    way.closed.iter().filter(|closed| closed.1 >= from).map(since).collect()
}

#[cfg(test)]
mod tests {
    use super::super::half::Reading;
    use super::*;

    #[test]
    fn times_count_from_the_first_byte_of_data() {
        let mut way = HalfConnection::default();
        assert!(of(&way).is_empty());
        way.first_data_at = Some(5_000_000);
        let reading =
            Reading { sent: 3000, acked: 1000, in_flight: 2000, window: Some(4000), ..Reading::default() };
        way.series.push(1_000_000, Reading::default());
        way.series.push(6_000_000, reading);
        way.series.push(9_000_000, Reading { window: None, ..reading });
        way.retransmitted_at.push((7_000_000, 1000));
        // One ended before there was data; the next one extends into it.
        way.closed.extend([(0, 4_000_000, 0), (4_500_000, 8_000_000, 1000)]);
        let known = TracePoint {
            at_ns: 1_000_000,
            sent_bytes: 3000,
            acked_bytes: 1000,
            window_edge_bytes: Some(5000),
            in_flight_bytes: 2000,
        };
        assert_eq!(of(&way), [known, TracePoint { at_ns: 4_000_000, window_edge_bytes: None, ..known }]);
        assert_eq!(retransmissions(&way), [(2_000_000, 1000)]);
        let closed = ClosedWindow { from_ns: 0, to_ns: 3_000_000, acked_bytes: 1000 };
        assert_eq!(closed_windows(&way), [closed]);
    }
}
