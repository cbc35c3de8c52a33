//! Limits log lines of one kind, such as refusals: logs a number of them per period, and counts the rest.

use std::time::{Duration, Instant};

/// The period.
pub(super) const WHILE: Duration = Duration::from_secs(10);
/// Lines of one.
const MOST: u32 = 20;

/// Counts lines of one kind.
#[derive(Debug, Default)]
pub(super) struct LogLimiter {
    since: Option<Instant>,
    logged: u32,
    omitted: u64,
}

impl LogLimiter {
    /// Whether one more is logged.
    pub(super) fn admits(&mut self, now: Instant) -> bool {
        if self.is_over(now) {
            // The omitted count has not been taken yet.
            (self.since, self.logged) = (Some(now), 0);
        }
        self.since.get_or_insert(now);
        let admitted = self.logged < MOST;
        if admitted {
            self.logged += 1;
        } else {
            self.omitted += 1;
        }
        admitted
    }

    /// Returns how many were omitted, once the period is over; `None` if none were.
    pub(super) fn take_omitted(&mut self, now: Instant) -> Option<u64> {
        if self.omitted == 0 || !self.is_over(now) {
            return None;
        }
        (self.since, self.logged) = (None, 0);
        Some(std::mem::take(&mut self.omitted))
    }

    fn is_over(&self, now: Instant) -> bool {
        self.since.is_some_and(|since| now.saturating_duration_since(since) >= WHILE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flood_of_refusals_is_limited_and_counted() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut limiter = LogLimiter::default();
        let logged = (0..5000).filter(|&ms| limiter.admits(at(ms))).count();
        assert_eq!(logged, MOST as usize);
        assert_eq!(limiter.take_omitted(at(9_999)), None, "the while is not over");
        assert_eq!(limiter.take_omitted(at(10_000)), Some(5000 - u64::from(MOST)));
        assert_eq!(limiter.take_omitted(at(30_000)), None);
        assert!(limiter.admits(at(30_001)));
    }

    #[test]
    fn few_refusals_are_all_logged() {
        let start = Instant::now();
        let mut limiter = LogLimiter::default();
        for second in 0..100 {
            assert!(limiter.admits(start + Duration::from_secs(second)));
        }
        assert_eq!(limiter.take_omitted(start + Duration::from_secs(200)), None);
    }

    #[test]
    fn omitted_count_is_kept_until_it_is_taken() {
        let start = Instant::now();
        let mut limiter = LogLimiter::default();
        assert_eq!((0..30).filter(|_| limiter.admits(start)).count(), 20);
        assert!(limiter.admits(start + WHILE));
        assert_eq!(limiter.take_omitted(start + 2 * WHILE), Some(10));
    }
}
