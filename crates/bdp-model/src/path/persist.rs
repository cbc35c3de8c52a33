//! A receive window that shrinks below one segment after the handshake. The sender then has a window, data, and segments
//! that don't fit: silly window avoidance (RFC 9293, section 3.8.6.2.1) holds them back until the persist timer
//! (section 3.8.6.1) lets one window's worth go. A flow of one small segment a timer is what is left.

use crate::units::Nanos;

/// Linux's persist timer is never shorter than this, its smallest retransmission timeout (`TCP_RTO_MIN`).
pub const TIMER: Nanos = Nanos::millis(200);

/// Goodput in bit/s of a window of `window_bytes`, smaller than one segment: `W x 8 / (200 ms + 2 RTT)`.
///
/// Linux arms the timer when an acknowledgement arrives, one RTT after what it acknowledges was sent, and the timer's
/// length holds another (`RTO = srtt + 200 ms`). Linux 6.18 took 213, 288 and 578 ms at RTTs of 2.5, 40 and 173 ms,
/// where this formula has 205, 280 and 546 ms: the kernel's ticks are what is left.
pub fn rate_bps(window_bytes: u64, rtt: Nanos) -> f64 {
    window_bytes as f64 * 8.0 / (TIMER + rtt + rtt).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measured on Linux 6.18 on a path of a few milliseconds, with the window field bounded on the path. The kernel's
    /// clock ticks add to the timer, never subtract, so the model may be above the measurement and not below.
    #[test]
    fn agrees_with_the_measurement() {
        for (window_bytes, measured_bps) in [(576, 22e3), (1000, 38e3), (1447, 56e3)] {
            let model = rate_bps(window_bytes, Nanos::micros(2550));
            assert!((1.0..1.05).contains(&(model / measured_bps)), "{window_bytes} B: {model}");
        }
    }

    /// Periods of one window on longer paths, measured there too.
    #[test]
    fn the_period_grows_by_two_round_trips() {
        for (rtt_ms, measured_ms) in [(2.5, 213.0), (40.0, 288.0), (173.0, 578.0)] {
            let model_ms = 576.0 * 8.0 / rate_bps(576, Nanos::from_secs_f64(rtt_ms / 1e3)) * 1e3;
            let ratio: f64 = measured_ms / model_ms;
            assert!((1.0..1.06).contains(&ratio), "{rtt_ms} ms: {model_ms}");
        }
    }
}
