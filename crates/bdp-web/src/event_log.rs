//! The events of one job, kept so that any number of readers can follow it from any point, each at its own speed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// Most bytes of events that are kept of a job that runs.
const MOST_BYTES: usize = 64 << 20;
/// Most bytes of readings that are kept of one that has ended.
const MOST_ENDED: usize = 2 << 20;

/// One event of a stream, numbered from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Its number.
    pub number: u64,
    /// Its JSON text.
    pub text: Arc<str>,
    /// What it is.
    pub role: Role,
}

/// What an event is to a reader who comes late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// One of many readings; a late reader can do with fewer.
    Reading,
    /// A step of the job.
    Step,
    /// The outcome, after which nothing follows.
    Outcome,
}

/// The log. Writers never wait for readers.
#[derive(Debug)]
pub struct EventLog {
    kept: Mutex<Kept>,
    newest: watch::Sender<u64>,
    most_bytes: usize,
}

#[derive(Debug, Default)]
struct Kept {
    events: VecDeque<LoggedEvent>,
    bytes: usize,
    last: u64,
}

impl EventLog {
    /// An empty log.
    pub fn new() -> Self {
        Self::with_room(MOST_BYTES)
    }

    fn with_room(most_bytes: usize) -> Self {
        Self { kept: Mutex::default(), newest: watch::Sender::new(0), most_bytes }
    }

    /// Adds an event.
    pub fn add(&self, text: String, role: Role) {
        let mut kept = self.lock();
        kept.last += 1;
        kept.bytes += text.len();
        let number = kept.last;
        kept.events.push_back(LoggedEvent { number, text: text.into(), role });
        if kept.bytes > self.most_bytes && role == Role::Reading {
            let half = kept.events.len() / 2;
            kept.thin(half);
        }
        while role == Role::Outcome && kept.bytes > MOST_ENDED {
            let all = kept.events.len();
            kept.thin(all);
            if kept.events.len() == all {
                break;
            }
        }
        drop(kept);
        self.newest.send_replace(number);
    }

    /// The first event after this number.
    pub fn after(&self, number: u64) -> Option<LoggedEvent> {
        let kept = self.lock();
        let at = kept.events.partition_point(|event| event.number <= number);
        kept.events.get(at).cloned()
    }

    /// Number of the newest event, as it changes.
    pub fn follow(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Drops every second reading among the oldest events, this many: their curve stays, more coarsely.
    fn thin(&mut self, oldest: usize) {
        let mut keep = false;
        let mut index = 0;
        self.events.retain(|event| {
            index += 1;
            if index > oldest || event.role != Role::Reading {
                return true;
            }
            keep = !keep;
            keep
        });
        self.bytes = self.events.iter().map(|event| event.text.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(log: &EventLog, mut after: u64) -> Vec<LoggedEvent> {
        let mut events = Vec::new();
        while let Some(event) = log.after(after) {
            after = event.number;
            events.push(event);
        }
        events
    }

    #[test]
    fn a_reader_goes_on_where_it_stopped() {
        let log = EventLog::new();
        for text in ["a", "b", "c"] {
            log.add(text.to_owned(), Role::Step);
        }
        let rest: Vec<_> =
            all(&log, 1).into_iter().map(|event| (event.number, event.text.to_string())).collect();
        assert_eq!(rest, [(2, "b".to_owned()), (3, "c".to_owned())]);
        assert!(all(&log, 3).is_empty());
        assert_eq!(*log.follow().borrow(), 3);
    }

    #[test]
    fn a_long_job_keeps_its_steps_and_fewer_readings() {
        let log = EventLog::with_room(10_000);
        log.add("begin".to_owned(), Role::Step);
        for _ in 0..1000 {
            log.add("x".repeat(100), Role::Reading);
        }
        log.add("end".to_owned(), Role::Outcome);
        let big = EventLog::new();
        (0..500).for_each(|_| big.add("y".repeat(100_000), Role::Reading));
        big.add("end".to_owned(), Role::Outcome);
        let bytes: usize = all(&big, 0).iter().map(|event| event.text.len()).sum();
        assert!((1 << 20..=MOST_ENDED).contains(&bytes), "{bytes}");
        let events = all(&log, 0);
        let bytes: usize = events.iter().map(|event| event.text.len()).sum();
        assert!(bytes <= 10_000 + 103, "{bytes}");
        assert!(events.windows(2).all(|two| two[0].number < two[1].number));
        assert_eq!(events.first().map(|event| &*event.text), Some("begin"));
        assert_eq!(events.last().map(|event| event.role), Some(Role::Outcome));
        assert!(events.len() > 50, "{}", events.len());
    }
}
