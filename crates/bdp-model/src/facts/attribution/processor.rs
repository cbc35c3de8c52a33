//! Whether a transfer waits for an end's processor.

use super::super::Facts;
use crate::finding::threshold::{
    BUSY_THREAD, LONG_ENOUGH, PROCESSOR_WANTED, STOLEN, THROTTLED, THROTTLED_ALONE,
};
use crate::measurement::ends::Task;

/// An end's use of its processor over the whole transfer.
#[derive(Default)]
pub(super) struct Processor {
    /// Time of the busiest thread / time.
    cpu: f64,
    /// Its quota throttled it for a good part of the time.
    is_throttled: bool,
    /// A thread was runnable nearly all the time, and a full path was not what kept it waiting: what looks like a queue is its own delay.
    pub(super) binds: bool,
}

impl Processor {
    pub(super) fn of(facts: &Facts, task: Task, path_is_full: bool) -> Self {
        // A shorter transfer has not waited for anything yet.
        if facts.duration_ns < LONG_ENOUGH.as_ns() {
            return Self::default();
        }
        let (end, cpu) = match task {
            Task::Sending => (&facts.sender, facts.sender_thread()),
            Task::Receiving => (&facts.receiver, facts.receiver_thread()),
        };
        let throttled = end.throttled().unwrap_or(0.0);
        let is_taken = throttled >= THROTTLED || end.steal().is_some_and(|steal| steal >= STOLEN);
        let wanted = facts.waited_for_processor(task).is_some_and(|waited| cpu + waited >= PROCESSOR_WANTED);
        Self { cpu, is_throttled: throttled >= THROTTLED_ALONE, binds: wanted && (is_taken || !path_is_full) }
    }

    pub(super) fn is_full(&self, ran: Option<f64>) -> bool {
        ran.unwrap_or(self.cpu) >= BUSY_THREAD
    }

    /// Whether a thread was runnable all the time: the parts of an interval in which it ran, and in which it was ready to run.
    pub(super) fn is_wanted(&self, ran: Option<f64>, waited: Option<f64>) -> bool {
        let ran = ran.unwrap_or(self.cpu);
        match waited {
            Some(waited) => ran + waited >= PROCESSOR_WANTED,
            None => self.is_full(Some(ran)) || self.is_throttled,
        }
    }
}
