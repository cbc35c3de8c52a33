//! The throughput equation of TCP Friendly Rate Control, RFC 5348, section 3.1:
//!
//! `X = s / (R sqrt(2bp/3) + t_RTO (3 sqrt(3bp/8)) p (1 + 32 p^2))`, with b = 1 and t_RTO = 4 R as recommended there.
//!
//! It is the model of [`super::pftk`] without the limit on the share of timeouts, so it falls faster from p = 0.3 on.

use super::solve_for_loss;
use crate::units::Nanos;

/// b, segments acknowledged by one ACK: RFC 5348 recommends 1.
const SEGMENTS_PER_ACK: f64 = 1.0;

/// t_RTO in round trips: RFC 5348 recommends 4.
const TIMEOUT_ROUND_TRIPS: f64 = 4.0;

/// Rate in bit/s with the loss event rate `loss`; infinite without loss.
pub fn rate_bps(segment_bytes: u64, rtt: Nanos, loss: f64) -> f64 {
    let r = rtt.as_secs_f64();
    let b = SEGMENTS_PER_ACK;
    let avoidance = r * (2.0 * b * loss / 3.0).sqrt();
    let timeouts = TIMEOUT_ROUND_TRIPS * r * 3.0 * (3.0 * b * loss / 8.0).sqrt() * loss;
    segment_bytes as f64 * 8.0 / (avoidance + timeouts * (1.0 + 32.0 * loss * loss))
}

/// Loss event rate at which the equation gives `rate_bps`; `None` if it gives that rate at any loss.
pub fn tolerated_loss(segment_bytes: u64, rtt: Nanos, target_bps: f64) -> Option<f64> {
    solve_for_loss(target_bps, |loss| rate_bps(segment_bytes, rtt, loss))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::vectors::{LOSSES, MSS_BYTES, RTT, assert_mbps};

    /// The last vector circulates as 143.1. The equation gives 143.049, which rounds to 143.0: printed here as it comes out.
    #[test]
    fn gives_the_vectors() {
        for (loss, mbps) in LOSSES.into_iter().zip(["4.48", "14.29", "45.23", "143.0"]) {
            assert_mbps(rate_bps(MSS_BYTES, RTT, loss), mbps);
        }
    }

    #[test]
    fn the_inverse_inverts() {
        for loss in [0.2, 1e-3, 1e-6] {
            let rate = rate_bps(MSS_BYTES, RTT, loss);
            let back = tolerated_loss(MSS_BYTES, RTT, rate).unwrap();
            assert!((back / loss - 1.0).abs() < 1e-9, "{loss}: {back}");
        }
    }

    /// Twice the round trip, half the rate: R is a common factor of the denominator.
    #[test]
    fn rate_is_inverse_to_the_round_trip() {
        let near = rate_bps(MSS_BYTES, Nanos::millis(10), 0.01);
        let far = rate_bps(MSS_BYTES, Nanos::millis(20), 0.01);
        assert!((near / far - 2.0).abs() < 1e-12);
    }
}
