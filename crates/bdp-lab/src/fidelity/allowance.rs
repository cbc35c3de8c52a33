//! The host overhead of a round trip on undisturbed machines.

use bdp_model::units::Nanos;

/// What hosts and wake-ups add to a round trip on an undisturbed machine; not counted as harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Two stacks, the echo thread, and the driver's wake-ups.
    pub round_trip: Nanos,
    /// As `round_trip`, with the waiting thread, between idle processors, which take longer to wake.
    pub idle: Nanos,
    /// Timer lateness of the thread that sends a probe.
    pub sending: Nanos,
    /// Reading and releasing, over all links there and back.
    pub packets: Nanos,
}

impl Allowance {
    /// Allowance of a round trip over this many links.
    pub(super) fn of(links: usize, rtt_configured: Nanos) -> Self {
        let further = links.max(1) as u64 - 1;
        let of_rtt = part(rtt_configured, 0.005);
        Self {
            round_trip: Nanos::micros(90 + 50 * further) + of_rtt,
            idle: Nanos::micros(300 + 50 * further) + of_rtt,
            sending: Nanos::micros(100),
            packets: Nanos::micros(40 * (1 + further)),
        }
    }
}

/// A fraction of a time.
pub(super) fn part(whole: Nanos, fraction: f64) -> Nanos {
    Nanos((whole.as_ns() as f64 * fraction) as u64)
}
