//! A queue too short for one congestion-controlled flow: after each loss of a full queue the window falls below the bandwidth-delay
//! product, and the link idles until it has grown again.
//!
//! Appenzeller, Keslassy and McKeown, "Sizing Router Buffers", SIGCOMM 2004: Reno needs a queue of one bandwidth-delay product, and `n`
//! unsynchronised flows one of `1 / sqrt(n)` of it. The means below integrate one cycle from loss to loss, in units of the product.

use super::window::Congestion;

/// Share of the window that CUBIC keeps at a loss (RFC 9438, section 4.6).
const CUBIC_KEEPS: f64 = 0.7;

/// The share of the link's rate that `streams` flows use with a queue of `share` bandwidth-delay products; 1 if it is long enough, `None`
/// without a model.
pub fn used_share(congestion: Congestion, share: f64, streams: u32) -> Option<f64> {
    // Window at which the queue overflows; unsynchronised flows even each other out.
    let top = 1.0 + share.max(0.0) * f64::from(streams.max(1)).sqrt();
    match congestion {
        Congestion::Reno if top >= 2.0 => Some(1.0),
        Congestion::Reno => Some(0.75 * top * top / (top * top - top + 1.0)),
        Congestion::Cubic if CUBIC_KEEPS * top >= 1.0 => Some(1.0),
        Congestion::Cubic => {
            let falls = (1.0 - CUBIC_KEEPS) * top;
            // Part of the cycle, counted from its end, at which the window fills the link.
            let full = ((top - 1.0) / falls).cbrt();
            Some(1.0 - (1.0 - top) * (1.0 - full) - falls / 4.0 * (1.0 - full.powi(4)))
        }
        Congestion::Bbr | Congestion::Unmodelled => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_queue_the_mean_of_the_sawtooth_is_left() {
        assert_eq!(used_share(Congestion::Reno, 0.0, 1), Some(0.75));
        assert!((used_share(Congestion::Cubic, 0.0, 1).unwrap() - 0.925).abs() < 1e-12);
        assert_eq!(used_share(Congestion::Bbr, 0.0, 1), None);
    }

    #[test]
    fn enough_queue_fills_the_link_and_more_queue_is_never_worse() {
        for (congestion, enough) in [(Congestion::Reno, 1.0), (Congestion::Cubic, 3.0 / 7.0)] {
            assert_eq!(used_share(congestion, enough + 1e-9, 1), Some(1.0));
            assert!(used_share(congestion, enough - 1e-4, 1).unwrap() > 0.999);
            let shares = (0..=100).map(|n| used_share(congestion, enough * f64::from(n) / 100.0, 1).unwrap());
            assert!(shares.collect::<Vec<_>>().is_sorted(), "{congestion:?}");
            // Sixteen flows need a quarter of it.
            assert_eq!(used_share(congestion, enough / 4.0 + 1e-9, 16), Some(1.0));
        }
    }
}
