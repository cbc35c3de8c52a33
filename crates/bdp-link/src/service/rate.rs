//! A wire of constant rate.

use bdp_model::units::{Nanos, Rate};

/// End of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Finish {
    /// Rounded down to whole nanoseconds.
    pub at: Nanos,
    /// Remaining work, done before the next nanosecond.
    pub left: u64,
}

/// When work that starts at `start` is finished.
pub(super) fn finish(rate: Rate, start: Nanos, work: u128) -> Option<Finish> {
    let rate = rate.as_bps();
    let (took, left) = match u64::try_from(work) {
        // Every packet that exists fits here: one machine division.
        Ok(work) => (work.checked_div(rate)?, work % rate),
        Err(_) => {
            let rate = u128::from(rate);
            // Less than the rate, which came from a u64.
            (u64::try_from(work.checked_div(rate)?).ok()?, (work % rate) as u64)
        }
    };
    Some(Finish { at: Nanos(start.as_ns().checked_add(took)?), left })
}

/// Work that is done from one instant to a later one.
pub(super) fn capacity(rate: Rate, from: Nanos, to: Nanos) -> u128 {
    u128::from(to.saturating_sub(from).as_ns()) * u128::from(rate.as_bps())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::work::work;

    #[test]
    fn no_drift_at_awkward_rates() {
        for (rate, bits) in
            [(3, 8), (7, 1), (999_999_937, 12_304), (33_333_333, 12_304), (2_147_483_659, 320)]
        {
            let mut wire = Finish { at: Nanos::ZERO, left: 0 };
            for n in 1..=10_000u64 {
                wire = finish(Rate::bps(rate), wire.at, work(bits) + u128::from(wire.left)).expect("ends");
                let exact = u128::from(n) * u128::from(bits) * 1_000_000_000 / u128::from(rate);
                assert_eq!(u128::from(wire.at.as_ns()), exact, "packet {n} at {rate} bit/s");
            }
        }
    }

    #[test]
    fn work_beyond_the_clock_never_finishes() {
        assert_eq!(finish(Rate::bps(0), Nanos::ZERO, work(8)), None);
        assert_eq!(finish(Rate::bps(1), Nanos::ZERO, work(u64::MAX)), None);
        assert_eq!(finish(Rate::bps(1), Nanos(u64::MAX), work(1)), None);
        assert!(finish(Rate::bps(u64::MAX), Nanos::ZERO, work(u64::MAX)).is_some());
    }
}
