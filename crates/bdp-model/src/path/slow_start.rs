//! Time that slow start takes to fill a window: RFC 5681, section 3.1, from the initial window of RFC 6928.
//!
//! Assumes no loss, and a sender that does not leave slow start early, as Linux's cubic may (HyStart, RFC 9406).

use crate::units::Nanos;

/// Initial window of RFC 6928, in segments.
pub const INITIAL_WINDOW_SEGMENTS: u64 = 10;

/// Growth of the window per round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Growth {
    /// By every acknowledged segment, so it doubles: an ACK for each segment, or counted bytes (RFC 3465), as in Linux.
    #[default]
    PerSegment,
    /// By one segment for each ACK of two segments, so it grows by half.
    PerDelayedAck,
}

/// The cost of slow start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowStart {
    /// Round trips until the window is reached, without the handshake.
    pub round_trips: u32,
    /// Duration of these round trips.
    pub time: Nanos,
    /// Segments sent in this time.
    pub sent_segments: u128,
    /// Further segments that a full window would have sent in this time.
    pub missed_segments: u128,
}

/// Slow start from `initial_segments` (at least 1) to `window_segments`, one window per round trip.
pub fn reach_window(initial_segments: u64, window_segments: u64, rtt: Nanos, growth: Growth) -> SlowStart {
    let mut window = initial_segments.max(1);
    let mut sent: u128 = 0;
    let mut round_trips: u32 = 0;
    while window < window_segments {
        sent += u128::from(window);
        round_trips += 1;
        window = window.saturating_add(match growth {
            Growth::PerSegment => window,
            Growth::PerDelayedAck => window.div_ceil(2),
        });
    }
    SlowStart {
        round_trips,
        time: Nanos(rtt.as_ns().saturating_mul(u64::from(round_trips))),
        sent_segments: sent,
        missed_segments: u128::from(window_segments) * u128::from(round_trips) - sent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Nanos = Nanos::millis(173);

    /// 10, 20, 40, ... 1280, 2560: eight doublings pass 1494 segments, the product of 100 Mbit/s and 173 ms.
    #[test]
    fn doubles_each_round_trip() {
        let start = reach_window(10, 1494, RTT, Growth::PerSegment);
        assert_eq!(start.round_trips, 8);
        assert_eq!(start.time, Nanos::millis(8 * 173));
        assert_eq!(start.sent_segments, 10 * 255);
        assert_eq!(start.missed_segments, 8 * 1494 - 2550);
    }

    /// 10, 15, 23, 35, 53, 80, 120, 180, 270, 405, 608, 912, 1368, 2052.
    #[test]
    fn grows_by_half_where_acks_are_delayed_and_counted() {
        assert_eq!(reach_window(10, 1494, RTT, Growth::PerDelayedAck).round_trips, 13);
        assert_eq!(reach_window(1, 5, RTT, Growth::PerDelayedAck).round_trips, 3);
    }

    #[test]
    fn the_window_may_be_there_at_once() {
        for window in [0, 1, 10] {
            let start = reach_window(10, window, RTT, Growth::PerSegment);
            assert_eq!((start.round_trips, start.sent_segments, start.missed_segments), (0, 0, 0));
        }
        assert_eq!(reach_window(10, 11, RTT, Growth::PerSegment).round_trips, 1);
    }

    #[test]
    fn the_largest_window_ends() {
        assert_eq!(reach_window(0, u64::MAX, Nanos(u64::MAX), Growth::PerSegment).round_trips, 64);
        assert!(reach_window(0, u64::MAX, RTT, Growth::PerDelayedAck).round_trips < 120);
    }
}
