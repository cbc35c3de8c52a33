//! How many lines a server writes about those whom it turns away: so many in a while, and of the rest how many they were.

use std::time::{Duration, Instant};

/// The while.
pub(super) const WHILE: Duration = Duration::from_secs(10);
/// Lines of one.
const MOST: u32 = 20;

/// Counts them.
#[derive(Debug, Default)]
pub(super) struct LogLimiter {
    since: Option<Instant>,
    told: u32,
    untold: u64,
}

impl LogLimiter {
    /// Whether one more is told of.
    pub(super) fn admits(&mut self, now: Instant) -> bool {
        if self.is_over(now) {
            // What is untold still is taken by whoever asks next.
            (self.since, self.told) = (Some(now), 0);
        }
        self.since.get_or_insert(now);
        let tells = self.told < MOST;
        if tells {
            self.told += 1;
        } else {
            self.untold += 1;
        }
        tells
    }

    /// How many were not told of, once the while is over; nothing where there was none.
    pub(super) fn take_untold(&mut self, now: Instant) -> Option<u64> {
        if self.untold == 0 || !self.is_over(now) {
            return None;
        }
        (self.since, self.told) = (None, 0);
        Some(std::mem::take(&mut self.untold))
    }

    fn is_over(&self, now: Instant) -> bool {
        self.since.is_some_and(|since| now.saturating_duration_since(since) >= WHILE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_some_lines_and_a_count() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut limiter = LogLimiter::default();
        let told = (0..5000).filter(|&ms| limiter.admits(at(ms))).count();
        assert_eq!(told, MOST as usize);
        assert_eq!(limiter.take_untold(at(9_999)), None, "the while is not over");
        assert_eq!(limiter.take_untold(at(10_000)), Some(5000 - u64::from(MOST)));
        assert_eq!(limiter.take_untold(at(30_000)), None);
        assert!(limiter.admits(at(30_001)));
    }

    #[test]
    fn a_few_are_all_told_of() {
        let start = Instant::now();
        let mut limiter = LogLimiter::default();
        for second in 0..100 {
            assert!(limiter.admits(start + Duration::from_secs(second)));
        }
        assert_eq!(limiter.take_untold(start + Duration::from_secs(200)), None);
    }

    #[test]
    fn what_nobody_asked_for_in_time_is_not_lost() {
        let start = Instant::now();
        let mut limiter = LogLimiter::default();
        assert_eq!((0..30).filter(|_| limiter.admits(start)).count(), 20);
        assert!(limiter.admits(start + WHILE));
        assert_eq!(limiter.take_untold(start + 2 * WHILE), Some(10));
    }
}
