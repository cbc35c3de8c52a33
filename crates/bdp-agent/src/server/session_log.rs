//! Which sessions have lines in the log: so many in a while, each with its beginning and its end, and of the rest how many
//! they were.

use std::collections::HashSet;
use std::time::Instant;

use super::log_limiter::LogLimiter;

/// Decides it.
#[derive(Debug, Default)]
pub(super) struct SessionLog {
    limiter: LogLimiter,
    /// Those that go on and whose beginning was logged.
    logged: HashSet<u32>,
}

impl SessionLog {
    /// Whether the beginning of this session is logged.
    pub(super) fn begins(&mut self, session: u32, now: Instant) -> bool {
        let admitted = self.limiter.admits(now);
        if admitted {
            self.logged.insert(session);
        }
        admitted
    }

    /// Whether its end is.
    pub(super) fn ends(&mut self, session: u32) -> bool {
        self.logged.remove(&session)
    }

    /// How many have no lines, once the while is over.
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
