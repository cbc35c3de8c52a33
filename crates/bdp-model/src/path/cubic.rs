//! CUBIC under periodic loss: the mean window of RFC 9438, section 5,
//! `W = (C (3 + beta) / (4 (1 - beta)))^(1/4) x RTT^(3/4) / p^(3/4)`, with C = 0.4 and beta = 0.7: the factor is 1.054.
//!
//! If Reno's window is larger, CUBIC follows its Reno-friendly estimate (section 4.3): a lower bound of the window.

use super::rate_of_segments_bps;
use crate::units::Nanos;

/// C of RFC 9438, section 5.1, in segments per second cubed.
const C: f64 = 0.4;

/// Multiplicative decrease of RFC 9438, section 4.6.
const BETA: f64 = 0.7;

/// Goodput in bit/s with loss probability `loss`, lower bound included; infinite without loss.
pub fn rate_bps(mss_bytes: u64, rtt: Nanos, loss: f64) -> f64 {
    rate_of_segments_bps(window_segments(rtt, loss), mss_bytes, rtt)
}

/// Goodput in bit/s with this probability of independent loss; infinite without loss.
pub fn independent_rate_bps(mss_bytes: u64, rtt: Nanos, loss: f64) -> f64 {
    rate_of_segments_bps(independent_window_segments(rtt, loss), mss_bytes, rtt)
}

/// Mean congestion window in segments with independent loss, for which the RFC has no formula: the same powers of RTT and p, with the factors of a
/// random distance between losses. The factor of the cubic function with fast convergence (RFC 9438, section 4.7) comes from the simulation in
/// `tests/loss_models.rs`; without it, it would be 1.29, for which Poojary and Sharma, "An Asymptotic Approximation of TCP CUBIC" (2015), derive an
/// expression. The factor of the Reno-friendly estimate is the mean of AIMD(0.529, 0.7) with Poisson losses.
pub fn independent_window_segments(rtt: Nanos, loss: f64) -> f64 {
    (1.19 * (rtt.as_secs_f64() / loss).powf(0.75)).max(1.274 / loss.sqrt())
}

/// Mean congestion window in segments: the larger of the cubic and the Reno-friendly window.
pub fn window_segments(rtt: Nanos, loss: f64) -> f64 {
    cubic_window_segments(rtt, loss).max(reno_friendly_window_segments(loss))
}

/// Mean window of the cubic function alone, without the lower bound, in segments.
pub fn cubic_window_segments(rtt: Nanos, loss: f64) -> f64 {
    factor() * (rtt.as_secs_f64() / loss).powf(0.75)
}

/// Mean window of the Reno-friendly estimate in segments: AIMD with alpha = 3 (1 - beta) / (1 + beta), with which
/// `sqrt(alpha (1 + beta) / (2 (1 - beta) p))` is Reno's own sqrt(3 / (2p)).
pub fn reno_friendly_window_segments(loss: f64) -> f64 {
    let alpha = 3.0 * (1.0 - BETA) / (1.0 + BETA);
    (alpha * (1.0 + BETA) / (2.0 * (1.0 - BETA) * loss)).sqrt()
}

/// Loss probability at which the model gives `rate_bps`; `None` if it gives that rate at any loss.
///
/// The window is the larger of two, and so is the tolerated loss.
pub fn tolerated_loss(mss_bytes: u64, rtt: Nanos, rate_bps: f64) -> Option<f64> {
    let window = rate_bps / rate_of_segments_bps(1.0, mss_bytes, rtt);
    let by_cubic = rtt.as_secs_f64() * (factor() / window).powf(4.0 / 3.0);
    let by_reno = (reno_friendly_window_segments(1.0) / window).powi(2);
    let loss = by_cubic.max(by_reno);
    (loss < 1.0).then_some(loss)
}

/// The constant before RTT and p: 1.054.
fn factor() -> f64 {
    (C * (3.0 + BETA) / (4.0 * (1.0 - BETA))).powf(0.25)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::vectors::{LOSSES, MSS_BYTES, RTT, assert_mbps, assert_prints};

    #[test]
    fn the_cubic_function_gives_the_vectors() {
        let vectors = [("3.89", "33.3"), ("21.89", "187"), ("123.1", "1054"), ("692", "5926")];
        for (loss, (mbps, segments)) in LOSSES.into_iter().zip(vectors) {
            let window = cubic_window_segments(RTT, loss);
            assert_prints(window, segments);
            assert_mbps(rate_of_segments_bps(window, MSS_BYTES, RTT), mbps);
        }
    }

    /// The vector at p = 1e-3, 3.89 Mbit/s with 33.3 segments, is the cubic function WITHOUT its floor. With the floor,
    /// which is what a sender obeys, it is Reno's 38.7 segments and 4.52 Mbit/s; the other vectors are above the floor.
    #[test]
    fn the_floor_rules_at_the_largest_loss_of_the_vectors_only() {
        assert_prints(window_segments(RTT, 1e-3), "38.7");
        assert_mbps(rate_bps(MSS_BYTES, RTT, 1e-3), "4.52");
        for loss in [1e-4, 1e-5, 1e-6] {
            assert_eq!(window_segments(RTT, loss), cubic_window_segments(RTT, loss));
        }
    }

    /// RFC 9438, section 5.1, the columns for C = 0.4. The RFC prints Reno's window as 1.2 / sqrt(p) after RFC 3649, which
    /// is 2 % below sqrt(3 / (2p)), so in rows where the floor rules the table is compared with that much room.
    #[test]
    fn agrees_with_the_tables_of_the_rfc() {
        let far = [12.0, 38.0, 187.0, 1054.0, 5926.0, 33_325.0, 187_400.0];
        let near = [12.0, 38.0, 120.0, 379.0, 1200.0, 5926.0, 33_325.0];
        for (rtt, column) in [(Nanos::millis(100), far), (Nanos::millis(10), near)] {
            for (exponent, printed) in (2..=8).zip(column) {
                let loss = 10f64.powi(-exponent);
                let window = window_segments(rtt, loss);
                if cubic_window_segments(rtt, loss) >= reno_friendly_window_segments(loss) {
                    assert!((window - printed).abs() < 1.0, "{rtt} {loss}: {window} for {printed}");
                } else {
                    let floor = 1.2 / 1.5f64.sqrt() * window;
                    assert!((floor - printed).abs() < 1.0, "{rtt} {loss}: {floor} for {printed}");
                }
            }
        }
    }

    /// RFC 9438, section 5.2: loss that CUBIC tolerates with 1500-byte packets at 100 ms.
    #[test]
    fn tolerates_the_loss_of_the_rfc() {
        for (mbps, printed) in [(10.0, 2.9e-4), (100.0, 1.4e-5), (1000.0, 6.3e-7), (10_000.0, 2.9e-8)] {
            let loss = tolerated_loss(1500, RTT, mbps * 1e6).unwrap();
            assert!((loss / printed - 1.0).abs() < 0.05, "{mbps} Mbit/s: {loss} for {printed}");
        }
    }

    #[test]
    fn the_inverse_inverts() {
        for loss in [1e-2, 1e-3, 1e-4, 1e-7] {
            let back = tolerated_loss(MSS_BYTES, RTT, rate_bps(MSS_BYTES, RTT, loss)).unwrap();
            assert!((back / loss - 1.0).abs() < 1e-9, "{loss}: {back}");
        }
    }
}
