//! Reno under light loss, after Mathis, Semke, Mahdavi and Ott, "The Macroscopic Behavior of the TCP Congestion
//! Avoidance Algorithm", ACM CCR 27(3), 1997, equation 3: `BW = MSS / RTT x C / sqrt(p)`.
//!
//! Congestion avoidance alone: no timeouts, no limit by the receiver's window, many round trips between losses.
//!
//! C depends on the pattern of losses and on how the window grows (table 1 there): 1.22 for periodic and 1.31 for independent
//! loss where each segment that is acknowledged counts, 0.87 and 0.93 where each acknowledgement counts and only every
//! second segment has one. Linux counts segments (RFC 3465, `tcp_cong_avoid_ai`), so delayed acknowledgements
//! do not slow it down and the first two apply.

use super::rate_of_segments_bps;
use crate::units::Nanos;

/// C of most rules of thumb, which give the order of magnitude only.
pub const C_ONE: f64 = 1.0;

/// C for periodic loss and an ACK for every segment: sqrt(3/2), printed as 1.22.
pub const C_PERIODIC: f64 = 1.224_744_871_391_589;

/// C for independent loss and an ACK for every segment: the mean window of AIMD(1, 1/2) under Poisson losses is 1.3098 / sqrt(p),
/// printed as 1.31.
pub const C_INDEPENDENT: f64 = 1.309_8;

/// C for periodic loss if every second segment is acknowledged and acknowledgements are counted (table 1 there).
pub const C_PERIODIC_DELAYED: f64 = 0.87;

/// C for independent loss if every second segment is acknowledged and acknowledgements are counted.
pub const C_INDEPENDENT_DELAYED: f64 = 0.93;

/// Goodput in bit/s with loss probability `loss`; infinite without loss.
pub fn rate_bps(mss_bytes: u64, rtt: Nanos, loss: f64, c: f64) -> f64 {
    rate_of_segments_bps(window_segments(loss, c), mss_bytes, rtt)
}

/// Mean congestion window in segments, `C / sqrt(p)`.
pub fn window_segments(loss: f64, c: f64) -> f64 {
    c / loss.sqrt()
}

/// Loss probability at which the model gives `rate_bps`; `None` if it gives that rate at any loss.
pub fn tolerated_loss(mss_bytes: u64, rtt: Nanos, rate_bps: f64, c: f64) -> Option<f64> {
    let loss = (rate_of_segments_bps(c, mss_bytes, rtt) / rate_bps).powi(2);
    (loss < 1.0).then_some(loss)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::vectors::{LOSSES, MSS_BYTES, RTT, assert_mbps};

    #[test]
    fn c_of_one_gives_the_vectors() {
        for (loss, mbps) in LOSSES.into_iter().zip(["3.69", "11.68", "36.94", "116.8"]) {
            assert_mbps(rate_bps(MSS_BYTES, RTT, loss, C_ONE), mbps);
        }
    }

    /// These vectors are those of C = sqrt(3/2). They do NOT follow from C = 1.22 taken literally, which gives
    /// 4.51, 14.25, 45.06 and 142.5: "1.22" in the head of such a table is the rounded name of the constant.
    #[test]
    fn c_of_periodic_loss_gives_the_vectors() {
        for (loss, mbps) in LOSSES.into_iter().zip(["4.52", "14.31", "45.24", "143.1"]) {
            assert_mbps(rate_bps(MSS_BYTES, RTT, loss, C_PERIODIC), mbps);
        }
        assert_mbps(rate_bps(MSS_BYTES, RTT, 1e-3, 1.22), "4.51");
    }

    #[test]
    fn constants_are_those_of_the_paper() {
        assert_eq!(C_PERIODIC, 1.5f64.sqrt());
    }

    #[test]
    fn the_inverse_inverts() {
        for loss in LOSSES {
            let rate = rate_bps(MSS_BYTES, RTT, loss, C_PERIODIC);
            let back = tolerated_loss(MSS_BYTES, RTT, rate, C_PERIODIC).unwrap();
            assert!((back / loss - 1.0).abs() < 1e-12, "{loss}: {back}");
        }
        assert_eq!(tolerated_loss(MSS_BYTES, RTT, 1000.0, C_PERIODIC), None);
    }
}
