//! Reno with timeouts, after Padhye, Firoiu, Towsley and Kurose, "Modeling TCP Throughput: A Simple Model and its
//! Empirical Validation", SIGCOMM 1998, the approximate model:
//!
//! `B = MSS / (RTT sqrt(2bp/3) + T0 min(1, 3 sqrt(3bp/8)) p (1 + 32 p^2))`
//!
//! and the full model, after the same authors' "Modeling TCP Reno Performance: A Simple Model and Its Empirical Validation",
//! IEEE/ACM ToN 8(2), 2000, equations 21, 24, 28 and 29 (there: the send rate B(p)).
//!
//! The first bound there, `W_max / RTT`, is left to the caller: see [`super::window`].

use super::solve_for_loss;
use crate::units::Nanos;

/// Parameters of the two ends besides MSS, RTT and loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ends {
    /// b, segments acknowledged by one ACK: 2 with delayed ACKs.
    pub segments_per_ack: f64,
    /// T0, the first retransmission timeout of a series.
    pub timeout: Nanos,
}

/// Rate in bit/s with loss probability `loss`; infinite without loss.
pub fn rate_bps(mss_bytes: u64, rtt: Nanos, loss: f64, ends: Ends) -> f64 {
    mss_bytes as f64 * 8.0 / seconds_per_segment(rtt, loss, ends)
}

/// Mean seconds between segments: the denominator of the formula.
fn seconds_per_segment(rtt: Nanos, loss: f64, ends: Ends) -> f64 {
    let b = ends.segments_per_ack;
    let avoidance = rtt.as_secs_f64() * (2.0 * b * loss / 3.0).sqrt();
    let timeout_share = (3.0 * (3.0 * b * loss / 8.0).sqrt()).min(1.0);
    avoidance + ends.timeout.as_secs_f64() * timeout_share * loss * (1.0 + 32.0 * loss * loss)
}

/// Send rate in bit/s by the full model, with a window not limited by the receiver; infinite without loss. A share of 1 - p of it
/// arrives.
pub fn full_rate_bps(mss_bytes: u64, rtt: Nanos, loss: f64, ends: Ends) -> f64 {
    let (p, b) = (loss, ends.segments_per_ack);
    if p <= 0.0 {
        return f64::INFINITY;
    }
    let window = mean_window(p, b);
    let timeouts = timeout_share(p, window);
    let segments = (1.0 - p) / p + window + timeouts / (1.0 - p);
    let backoff =
        1.0 + p + 2.0 * p.powi(2) + 4.0 * p.powi(3) + 8.0 * p.powi(4) + 16.0 * p.powi(5) + 32.0 * p.powi(6);
    let seconds = rtt.as_secs_f64() * (b / 2.0 * window + 1.0)
        + timeouts * ends.timeout.as_secs_f64() * backoff / (1.0 - p);
    mss_bytes as f64 * 8.0 * segments / seconds
}

/// E\[W\], the mean window at a loss, segments (equation 13).
fn mean_window(p: f64, b: f64) -> f64 {
    let constant = (2.0 + b) / (3.0 * b);
    constant + (8.0 * (1.0 - p) / (3.0 * b * p) + constant * constant).sqrt()
}

/// Q(w), the share of losses that end in a timeout (equation 24).
fn timeout_share(p: f64, window: f64) -> f64 {
    let arrives = 1.0 - p;
    let three = 1.0 - arrives.powi(3);
    let share =
        three * (1.0 + arrives.powi(3) * (1.0 - arrives.powf(window - 3.0))) / (1.0 - arrives.powf(window));
    share.min(1.0)
}

/// Loss probability at which the model gives `rate_bps`; `None` if it gives that rate at any loss.
pub fn tolerated_loss(mss_bytes: u64, rtt: Nanos, target_bps: f64, ends: Ends) -> Option<f64> {
    solve_for_loss(target_bps, |loss| rate_bps(mss_bytes, rtt, loss, ends))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::vectors::{LOSSES, MSS_BYTES, RTT, assert_mbps};

    const ENDS: Ends = Ends { segments_per_ack: 2.0, timeout: Nanos::millis(400) };

    #[test]
    fn gives_the_vectors() {
        for (loss, mbps) in LOSSES.into_iter().zip(["3.17", "10.11", "31.98", "101.2"]) {
            assert_mbps(rate_bps(MSS_BYTES, RTT, loss, ENDS), mbps);
        }
    }

    /// By hand for p = 5 %, b = 2, RTT 200 ms and T0 400 ms: E[W] 5.744, Q 0.622, 25.4 segments in 1.625 s.
    #[test]
    fn the_full_model_gives_what_its_terms_give() {
        assert!((mean_window(0.05, 2.0) - 5.743_5).abs() < 1e-3);
        assert!((timeout_share(0.05, 5.743_5) - 0.621_9).abs() < 1e-3, "{}", timeout_share(0.05, 5.743_5));
        assert_eq!(timeout_share(0.05, 2.0), 1.0);
        let rate = full_rate_bps(1448, Nanos::millis(200), 0.05, ENDS);
        assert!((rate / 1448.0 / 8.0 - 15.63).abs() < 0.02, "{rate}");
        assert_eq!(full_rate_bps(1448, Nanos::millis(200), 0.0, ENDS), f64::INFINITY);
        // With rare losses the approximation is close.
        let (full, approximate) = (full_rate_bps(1448, RTT, 1e-5, ENDS), rate_bps(1448, RTT, 1e-5, ENDS));
        assert!((full / approximate - 1.0).abs() < 0.02, "{full} {approximate}");
    }

    /// At p = 0.5 the share of losses that end in a timeout is held at 1; without the bound it would be 1.84.
    #[test]
    fn the_share_of_timeouts_is_at_most_one() {
        let expected = 1460.0 * 8.0 / (0.1 * (2.0f64 / 3.0).sqrt() + 0.4 * 0.5 * 9.0);
        assert!((rate_bps(MSS_BYTES, RTT, 0.5, ENDS) / expected - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_inverse_inverts() {
        for loss in [0.2, 0.05, 1e-3, 1e-6, 1e-12] {
            let rate = rate_bps(MSS_BYTES, RTT, loss, ENDS);
            let back = tolerated_loss(MSS_BYTES, RTT, rate, ENDS).unwrap();
            assert!((back / loss - 1.0).abs() < 1e-9, "{loss}: {back}");
        }
    }
}
