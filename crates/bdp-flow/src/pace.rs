//! Paces the bytes given to a stream, so that a rate holds from its first byte on.
//!
//! The kernel's pacing lets the first ten segments of a connection go at once, 640 kB with loopback's segments, and
//! at a low rate a socket accepts bytes for many seconds, which still leave when a test is over. A stream with such a
//! rate is therefore also given its bytes when they are due.

use bdp_model::units::Rate;

/// Faster streams are left to the kernel: ten segments are little to them, and the calls would be many.
const FASTEST_BPS: u64 = 1_000_000_000;
/// Time span of the rate that is due at once, at least one Ethernet segment.
const TOGETHER_NS: u64 = 2_000_000;
const LEAST_BYTES: u64 = 1448;
/// How much of what it missed a stream may make up for.
const SLACK_NS: u64 = 20_000_000;

/// The pace of one stream.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    rate: Rate,
    began_ns: u64,
    given_bytes: u64,
    together_bytes: u64,
}

impl Pace {
    /// Returns the pace of a stream that begins now, in writes of up to `length` bytes, or of exactly that many if
    /// `whole`; `None` if the kernel alone paces it.
    pub fn of(rate_bps: u64, now_ns: u64, length: usize, whole: bool) -> Option<Self> {
        let together = u128::from(rate_bps) * u128::from(TOGETHER_NS) / 8 / 1_000_000_000;
        let least = if whole { length as u64 } else { LEAST_BYTES.min(length as u64) };
        (1..=FASTEST_BPS).contains(&rate_bps).then(|| Self {
            rate: Rate::bps(rate_bps),
            began_ns: now_ns,
            given_bytes: 0,
            together_bytes: u64::try_from(together).unwrap_or(u64::MAX).max(least),
        })
    }

    /// Whether so much is due at once that spreading it evenly would delay its end for long.
    pub fn is_coarse(&self) -> bool {
        self.rate.serialisation(self.together_bytes).as_ns() > SLACK_NS
    }

    /// Returns when more is due.
    pub fn due_ns(&self) -> u64 {
        self.began_ns.saturating_add(self.rate.serialisation(self.given_bytes).as_ns())
    }

    /// Returns how many bytes may be written now. A stream that is far behind, delayed by the path or the machine,
    /// forfeits the rest.
    pub fn allowed(&mut self, now_ns: u64) -> usize {
        let due_ns = self.due_ns();
        if due_ns > now_ns {
            return 0;
        }
        self.began_ns += (now_ns - due_ns).saturating_sub(SLACK_NS);
        let behind_ns = (now_ns - due_ns).min(SLACK_NS);
        let behind = u128::from(self.rate.as_bps()) * u128::from(behind_ns) / 8 / 1_000_000_000;
        usize::try_from(behind).unwrap_or(usize::MAX).saturating_add(self.together_bytes as usize)
    }

    /// Notes the bytes that the kernel accepted.
    pub fn give(&mut self, bytes: usize) {
        self.given_bytes += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Returns the bytes given to a writer that asks whenever more is due, late by up to `late_ns`, until the end.
    fn given(rate_bps: u64, late_ns: u64, end_ns: u64) -> u64 {
        let mut pace = Pace::of(rate_bps, 7, 128 << 10, false).unwrap();
        let (mut now, mut turn) = (7, 0_u64);
        while now < 7 + end_ns {
            let bytes = pace.allowed(now);
            assert!(bytes > 0);
            pace.give(bytes);
            turn += 1;
            now = pace.due_ns().max(now) + late_ns * (turn % 3) / 2;
        }
        pace.given_bytes
    }

    #[test]
    fn a_rate_holds_from_the_first_byte_on_however_late_the_timer_is() {
        for (rate_bps, late_ns) in [(1_000_000, 0), (1_000_000, 15_000_000), (100_000_000, 3_000_000)] {
            for seconds in [1, 10] {
                let bps = given(rate_bps, late_ns, seconds * SECOND) as f64 * 8.0 / seconds as f64;
                let part = bps / rate_bps as f64;
                assert!((0.98..1.04).contains(&part), "{rate_bps} {late_ns} {seconds}: {part}");
            }
        }
        let mut pace = Pace::of(1_000_000, 0, 128 << 10, false).unwrap();
        assert_eq!(pace.allowed(0), 1448);
        let mut whole = Pace::of(1_000_000, 0, 128 << 10, true).unwrap();
        assert_eq!(whole.allowed(0), 128 << 10);
        whole.give(128 << 10);
        assert_eq!(whole.due_ns(), 1_048_576_000);
    }

    #[test]
    fn what_was_missed_for_long_is_not_made_up_for() {
        let mut pace = Pace::of(100_000_000, 0, 128 << 10, false).unwrap();
        let together = pace.allowed(0);
        pace.give(together);
        let later = pace.allowed(5 * SECOND);
        assert_eq!(later, 250_000 + together);
        pace.give(later);
        assert_eq!(pace.allowed(5 * SECOND), 0);
    }

    #[test]
    fn the_kernel_paces_fast_streams_alone() {
        assert!(Pace::of(2_000_000_000, 0, 128 << 10, false).is_none());
        assert!(Pace::of(0, 0, 128 << 10, false).is_none());
        assert_eq!(Pace::of(8000, 0, 100, false).unwrap().allowed(0), 100);
    }
}
