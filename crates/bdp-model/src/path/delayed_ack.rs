//! The cost of delayed acknowledgements with a window of few segments.
//!
//! A receiver acknowledges every second full segment at once and may delay the acknowledgement of a single one until
//! the next arrives or a timer expires (RFC 9293, section 3.8.6.3; RFC 5681, section 4.2). So of `n` segments in flight at most one
//! waits at a time: for the first of the next window, a round trip later, or for the timer, whichever comes first. Whether
//! it waits depends on where a kernel sets PSH, when the application reads and how segments pair up: Linux 6.1,
//! 6.12 and 7.2 differ, and all are within the range (`benches/virtual/few-segments.toml`).

use crate::units::Nanos;

/// Linux's shortest delayed acknowledgement timer (`TCP_DELACK_MIN`).
pub const TIMER: Nanos = Nanos::millis(40);

/// Longest time for a window of this many whole segments that takes `turn` without a delayed acknowledgement.
pub fn longest_turn(segments: u64, turn: Nanos) -> Nanos {
    match segments {
        0 | 1 => turn + TIMER,
        // The others continue meanwhile: only the waiting one's share is lost.
        _ => turn + Nanos(turn.min(TIMER).as_ns() / (segments - 1)),
    }
}

/// Lowest rate with this many whole segments in flight, bit/s.
pub fn least_bps(segments: u64, mss_bytes: u64, turn: Nanos) -> f64 {
    super::rate_of_segments_bps(segments as f64, mss_bytes, longest_turn(segments, turn))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_the_segments_waits() {
        let near = Nanos::millis(2);
        // Two of three in each round trip.
        assert_eq!(longest_turn(3, near), Nanos::millis(3));
        assert_eq!(longest_turn(5, near), Nanos::micros(2_500));
        // A lone segment waits for the timer.
        assert_eq!(longest_turn(1, near), Nanos::millis(42));
        // Far away the timer ends before the next window comes.
        assert_eq!(longest_turn(3, Nanos::millis(200)), Nanos::millis(220));
        assert_eq!(longest_turn(u64::MAX, near), near);
    }
}
