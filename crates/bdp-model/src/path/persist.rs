//! A receive window that shrinks below one segment after the handshake. The sender then has a window, data, and segments
//! that don't fit: silly window avoidance (RFC 9293, section 3.8.6.2.1) holds them back until the persist timer
//! (section 3.8.6.1) releases one window of data. The result is one small segment per timer.

use crate::units::Nanos;

/// Linux's shortest persist timer, its minimum retransmission timeout (`TCP_RTO_MIN`).
pub const TIMER: Nanos = Nanos::millis(200);

/// Fewest segments that Linux queues as one buffer (`net.ipv4.tcp_min_tso_segs`).
const QUEUED_SEGMENTS: u64 = 2;

/// Goodput in bit/s with a window of `window_bytes`, smaller than one segment of `mss_bytes`.
///
/// Each timer cuts one window off a queued buffer of two segments. The remainder is smaller than a window
/// and follows without waiting, one round trip later. So `2 MSS` take `n = floor(2 MSS / W)` timers: two for both W = 1000 and
/// W = 1448 bytes, which therefore reach the same rate. Captured on Linux 6.18 with W = 1000: 1000, 1000 and 896 bytes at
/// 0, 208 and 211 ms.
pub fn rate_bps(window_bytes: u64, mss_bytes: u64, rtt: Nanos) -> f64 {
    let queued = QUEUED_SEGMENTS * mss_bytes;
    let Some(timers) = queued.checked_div(window_bytes) else { return 0.0 };
    let rest = if queued.is_multiple_of(window_bytes) { Nanos::ZERO } else { rtt };
    queued as f64 * 8.0 / (timers as f64 * period(rtt).as_secs_f64() + rest.as_secs_f64())
}

/// Time between timers: `200 ms + 2 RTT`.
///
/// Linux arms the timer when an acknowledgement arrives, one RTT after the acknowledged data was sent, and the timer's
/// length includes another (`RTO = srtt + 200 ms`).
pub fn period(rtt: Nanos) -> Nanos {
    TIMER + rtt + rtt
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goodput on Linux 6.18 with the window field bounded on the path, MSS 1448: three seconds each, so a window or two
    /// more or less.
    #[test]
    fn agrees_with_the_measurement() {
        for (rtt_us, window_bytes, measured_bps) in [
            (2_650, 576, 23_040.0),
            (2_650, 1000, 56_730.0),
            (2_650, 1447, 57_920.0),
            (41_200, 576, 16_900.0),
            (41_200, 1000, 38_600.0),
            (41_200, 1447, 38_600.0),
        ] {
            let ratio = measured_bps / rate_bps(window_bytes, 1448, Nanos::micros(rtt_us));
            assert!((0.98..1.07).contains(&ratio), "{window_bytes} B at {rtt_us} us: {ratio}");
        }
    }

    /// Periods measured there. The kernel's ticks add to the timer and never subtract.
    #[test]
    fn the_period_grows_by_two_round_trips() {
        for (rtt_ms, measured_ms) in [(2.5, 213.0), (40.0, 288.0), (173.0, 578.0)] {
            let ratio: f64 = measured_ms / period(Nanos::from_secs_f64(rtt_ms / 1e3)).as_millis_f64();
            assert!((1.0..1.06).contains(&ratio), "{rtt_ms} ms: {ratio}");
        }
    }

    #[test]
    fn no_window_no_rate() {
        assert_eq!(rate_bps(0, 1448, Nanos::millis(1)), 0.0);
    }
}
