//! Passes events to the log: a bounded queue, and one thread that writes. A log that nobody reads, such as a full
//! pipe, blocks that thread alone: events beyond the queue are dropped and counted, and the count is logged once
//! reading resumes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::counters::Counters;
use super::event::Event;
use bdp_flow::error::FlowError;
use bdp_flow::lock::lock;

/// Events that may wait to be written.
const ROOM: usize = 1024;

/// The queue.
pub(super) struct LogQueue {
    /// `None` once closed.
    events: Mutex<Option<SyncSender<Event>>>,
    dropped: Arc<AtomicU64>,
    counters: Arc<Counters>,
    /// Closed by the thread when everything is written.
    written: Mutex<Receiver<()>>,
}

impl LogQueue {
    /// Starts the thread that calls `write`.
    pub(super) fn start(
        counters: Arc<Counters>,
        write: impl Fn(&Event) + Send + 'static,
    ) -> Result<Self, FlowError> {
        let (events, waiting) = sync_channel(ROOM);
        let (writing, written) = sync_channel::<()>(0);
        let dropped = Arc::new(AtomicU64::new(0));
        let so_far = Arc::clone(&dropped);
        bdp_flow::worker::start(move || {
            let _writing = writing;
            for event in waiting {
                write(&event);
                let count = so_far.swap(0, Ordering::Relaxed);
                if count > 0 {
                    write(&Event::LinesDropped { count });
                }
            }
        })?;
        Ok(Self { events: Mutex::new(Some(events)), dropped, counters, written: Mutex::new(written) })
    }

    /// Queues an event; never blocks.
    pub(super) fn push(&self, event: Event) {
        let taken = lock(&self.events).as_ref().is_some_and(|events| events.try_send(event).is_ok());
        if !taken {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            self.counters.note_line_dropped();
        }
    }

    /// Closes the queue, and waits this long for its events to be written.
    pub(super) fn finish(&self, patience: Duration) {
        drop(lock(&self.events).take());
        // An end of the thread closes the channel; nothing is ever sent.
        let _ = lock(&self.written).recv_timeout(patience);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn log_that_nobody_reads_holds_up_nobody_and_drops_are_counted() {
        let counters = Arc::new(Counters::default());
        let (unblock, blocked) = sync_channel::<()>(0);
        let lines = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&lines);
        let queue = LogQueue::start(Arc::clone(&counters), move |event| {
            if matches!(event, Event::TurnedAway { .. }) {
                // As long as nobody reads; for good once the reader is there.
                let _ = blocked.recv();
            }
            lock(&into).push(event.clone());
        })
        .unwrap();
        let away =
            |why: u32| Event::TurnedAway { peer: "127.0.0.1:1".parse().unwrap(), why: why.to_string() };
        (0..10_000).for_each(|number| queue.push(away(number)));
        let since = Instant::now();
        queue.finish(Duration::from_millis(20));
        assert!(since.elapsed() < Duration::from_secs(5), "nobody waits for the reader for ever");
        let dropped = counters.counted().lines_dropped;
        // The one that is being written has left the queue, if its thread ran.
        assert!((10_000 - ROOM as u64 - 1..=10_000 - ROOM as u64).contains(&dropped), "{dropped}");
        drop(unblock);
        queue.finish(Duration::from_secs(60));
        let lines = lock(&lines);
        assert_eq!(lines.len() as u64, 10_000 - dropped + 1);
        assert_eq!(lines[1], Event::LinesDropped { count: dropped });
    }
}
