//! Reno with timeouts, after Padhye, Firoiu, Towsley and Kurose, "Modeling TCP Throughput: A Simple Model and its
//! Empirical Validation", SIGCOMM 1998, section 2.3, the approximate model:
//!
//! `B = MSS / (RTT sqrt(2bp/3) + T0 min(1, 3 sqrt(3bp/8)) p (1 + 32 p^2))`
//!
//! Its first bound, `W_max / RTT`, is left to the caller: see [`super::window`].

use super::solve_for_loss;
use crate::units::Nanos;

/// What the model knows of the two ends beside MSS, RTT and loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ends {
    /// b, segments that one ACK acknowledges: 2 with delayed ACKs.
    pub segments_per_ack: f64,
    /// T0, first retransmission timeout of a series.
    pub timeout: Nanos,
}

/// Rate in bit/s under loss probability `loss`; infinite where nothing is lost.
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

/// Loss probability at which the model gives `rate_bps`; `None` where it gives that rate at any loss.
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
