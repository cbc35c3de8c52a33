//! Chooses which sessions are logged: a number of them per period, each with its start and end, and of the rest only
//! how many there were.

use std::collections::HashSet;
use std::time::Instant;

use super::log_limiter::LogLimiter;

/// Chooses the sessions to log.
#[derive(Debug, Default)]
pub(super) struct SessionLog {
    limiter: LogLimiter,
    /// Running sessions whose start was logged.
    logged: HashSet<u32>,
}

impl SessionLog {
    /// Whether to log the start of this session.
    pub(super) fn begins(&mut self, session: u32, now: Instant) -> bool {
        let admitted = self.limiter.admits(now);
        if admitted {
            self.logged.insert(session);
        }
        admitted
    }

    /// Whether to log its end.
    pub(super) fn ends(&mut self, session: u32) -> bool {
        self.logged.remove(&session)
    }

    /// Returns how many were not logged, once the period is over.
    pub(super) fn take_omitted(&mut self, now: Instant) -> Option<u64> {
        self.limiter.take_omitted(now)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn flood_of_sessions_is_some_pairs_of_lines_and_a_count() {
        let start = Instant::now();
        let mut log = SessionLog::default();
        let begun: Vec<u32> = (1..=500).filter(|&session| log.begins(session, start)).collect();
        assert_eq!(begun, (1..=20).collect::<Vec<_>>());
        let ended: Vec<u32> = (1..=500).filter(|&session| log.ends(session)).collect();
        assert_eq!(ended, begun);
        assert!(log.logged.is_empty());
        assert_eq!(log.take_omitted(start + Duration::from_secs(10)), Some(480));
    }
}
