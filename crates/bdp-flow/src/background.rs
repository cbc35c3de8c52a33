//! Work on a flow, in the background of the thread that leads the test: on a thread of its own, with visible
//! progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use bdp_sys::tcp_info::TcpInfo;

use crate::error::{FlowError, Result};
use crate::meter::{ArrivalReading, Meter};

/// The work: before it starts, while it runs, and until its result is collected. Dropping it stops it and waits.
pub struct Background<T> {
    stop: Arc<AtomicBool>,
    failed: Arc<AtomicBool>,
    meter: Arc<Meter>,
    work: Option<JoinHandle<Result<T>>>,
    shown: u64,
    shown_streams: Vec<u64>,
}

/// What a flow has moved between two moments.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Bytes of all its streams.
    pub bytes: u64,
    /// Bytes of each stream, in order; empty if unknown.
    pub streams: Vec<u64>,
    /// Counts so far of each stream of received datagrams.
    pub arrivals: Vec<ArrivalReading>,
    /// Payload size of sent datagrams; 0 if none are sent.
    pub datagram_bytes: u64,
}

impl<T> Default for Background<T> {
    fn default() -> Self {
        Self {
            stop: Arc::default(),
            failed: Arc::default(),
            meter: Arc::default(),
            work: None,
            shown: 0,
            shown_streams: Vec::new(),
        }
    }
}

impl<T: Send + 'static> Background<T> {
    /// Starts the work. It sees the stop flag, and shows what it has moved.
    pub fn start(
        &mut self,
        work: impl FnOnce(&AtomicBool, &Meter) -> Result<T> + Send + 'static,
    ) -> Result<()> {
        let (stop, failed) = (Arc::clone(&self.stop), Arc::clone(&self.failed));
        let meter = Arc::clone(&self.meter);
        self.work = Some(crate::worker::start(move || {
            let outcome = work(&stop, &meter);
            failed.store(outcome.is_err(), Ordering::Relaxed);
            outcome
        })?);
        Ok(())
    }
}

impl<T> Background<T> {
    /// Returns the bytes so far.
    pub fn bytes(&self) -> u64 {
        self.meter.bytes()
    }

    /// Returns when the last byte was read, by the monotonic clock; 0 before the end and if none was read.
    pub fn last_byte_ns(&self) -> u64 {
        self.meter.last_byte_ns()
    }

    /// Returns the bytes since the previous call. If the streams' bytes are known, they are their sum, both of the
    /// same instant.
    pub fn moved_since(&mut self) -> Passed {
        let (now, datagram_bytes) = (self.meter.streams(), self.meter.datagram_bytes());
        if now.is_empty() {
            let now = self.meter.bytes();
            let bytes = now.saturating_sub(self.shown);
            self.shown = self.shown.max(now);
            return Passed { bytes, arrivals: self.meter.arrivals(), datagram_bytes, ..Passed::default() };
        }
        self.shown_streams.resize(now.len(), 0);
        let moved = |(now, shown): (u64, &mut u64)| {
            // For a connection that was reset, the kernel reports zeros.
            let since = now.saturating_sub(*shown);
            *shown += since;
            since
        };
        let streams: Vec<u64> = now.into_iter().zip(&mut self.shown_streams).map(moved).collect();
        let bytes = streams.iter().sum();
        self.shown += bytes;
        Passed { bytes, streams, arrivals: self.meter.arrivals(), datagram_bytes }
    }

    /// Returns the kernel's report of each stream sent from here.
    pub fn sender_infos(&self) -> Vec<TcpInfo> {
        self.meter.infos()
    }

    /// Whether the work has not started or has ended.
    pub fn is_finished(&self) -> bool {
        self.work.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Whether the work failed; [`Background::finish`] returns the reason.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Stops the work now.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Waits for the end, and returns the result.
    pub fn finish(&mut self) -> Result<T> {
        let work = self.work.take().ok_or_else(|| FlowError::Refused("a flow ended twice".to_owned()))?;
        work.join().unwrap_or_else(|_| Err(FlowError::Refused("the thread of a flow panicked".to_owned())))
    }
}

impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        self.stop();
        if let Some(work) = self.work.take() {
            let _ = work.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moved_is_what_its_streams_moved() {
        let mut work = Background::<()>::default();
        work.meter.set(500);
        assert_eq!(work.moved_since(), Passed { bytes: 500, ..Passed::default() });
        // A total of a later moment than the streams' bytes is not that of the same line.
        work.meter.set(2000);
        work.meter.set_streams([300, 400]);
        assert_eq!(work.moved_since(), Passed { bytes: 700, streams: vec![300, 400], ..Passed::default() });
        work.meter.set_streams([0, 450]);
        assert_eq!(work.moved_since(), Passed { bytes: 50, streams: vec![0, 50], ..Passed::default() });
        work.meter.set_streams([310, 450]);
        assert_eq!(work.moved_since(), Passed { bytes: 10, streams: vec![10, 0], ..Passed::default() });
    }
}
