//! Models of what a path allows, one per file, with assumptions and sources.
//!
//! | module | answers |
//! |---|---|
//! | [`window`] | bytes in flight for a rate, rate of a window, and the goodput that a case of the lab must reach |
//! | [`mathis`], [`pftk`], [`tfrc`], [`cubic`] | rate under a loss probability, and the loss that a rate tolerates |
//! | [`loss`] | the loss patterns that these models cover |
//! | [`overhead`] | the share of a link's rate left after headers |
//! | [`shallow_queue`] | the share of a link's rate used with a queue shorter than the bandwidth-delay product |
//! | [`slow_start`] | how long a connection takes to fill its window |
//! | [`delayed_ack`] | the cost of delayed acknowledgements with a small window |
//! | [`persist`] | rate of a window smaller than one segment |
//! | [`udp`] | the arrival rate of datagrams sent at a rate |
//! | [`turns`] | the share of a half-duplex medium's rate left for data |

pub mod cubic;
pub mod delayed_ack;
pub mod loss;
pub mod mathis;
pub mod overhead;
pub mod persist;
pub mod pftk;
pub mod shallow_queue;
pub mod slow_start;
pub mod tfrc;
pub mod turns;
pub mod udp;
pub mod window;

use crate::units::Nanos;

/// The rate of `segments` of `mss_bytes` payload in flight, one window per round trip, bit/s.
///
/// Infinite if the round trip is zero.
fn rate_of_segments_bps(segments: f64, mss_bytes: u64, rtt: Nanos) -> f64 {
    segments * mss_bytes as f64 * 8.0 / rtt.as_secs_f64()
}

/// Largest loss probability at which a model still gives `rate_bps`, for a model whose rate falls as loss rises.
///
/// Bisects the logarithm of the probability. `None` if the model gives the rate at any loss.
fn solve_for_loss(rate_bps: f64, model_bps: impl Fn(f64) -> f64) -> Option<f64> {
    /// Far below any loss that matters: at 1 Pbit/s and 10 s a segment in 1e24 would do.
    const LOG10_SMALLEST: f64 = -40.0;
    if model_bps(1.0) >= rate_bps {
        return None;
    }
    let (mut low, mut high) = (LOG10_SMALLEST, 0.0);
    // 60 halvings of 40 decades leave less than the rounding error of the logarithm.
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if model_bps(10f64.powf(middle)) >= rate_bps {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(10f64.powf(low))
}

/// What the tests of the models share: the path of their vectors and a comparison by printed digits.
#[cfg(test)]
mod vectors {
    use crate::units::Nanos;

    pub const MSS_BYTES: u64 = 1460;
    pub const RTT: Nanos = Nanos::millis(100);
    pub const LOSSES: [f64; 4] = [1e-3, 1e-4, 1e-5, 1e-6];

    /// Asserts that `bps` prints as `mbps` when rounded to as many decimals.
    #[track_caller]
    pub fn assert_mbps(bps: f64, mbps: &str) {
        assert_prints(bps / 1e6, mbps);
    }

    /// Asserts that `value` prints as `text` when rounded to as many decimals.
    #[track_caller]
    pub fn assert_prints(value: f64, text: &str) {
        let decimals = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        assert_eq!(format!("{value:.decimals$}"), text, "{value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bisection_finds_the_loss_of_a_known_function() {
        let found = solve_for_loss(1e9, |p| 1e6 / p.sqrt()).unwrap();
        assert!((found / 1e-6 - 1.0).abs() < 1e-9, "{found}");
    }

    #[test]
    fn a_rate_that_any_loss_allows_has_no_bound() {
        assert_eq!(solve_for_loss(1.0, |p| 10.0 / p), None);
    }
}
