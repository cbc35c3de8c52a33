//! Work on a flow that goes on behind whoever leads the test: on a thread of its own, with what it has moved to look at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use bdp_sys::tcp_info::TcpInfo;

use crate::EngineError;
use crate::meter::Meter;

/// The work, before it starts, while it goes on and until it is asked what it came to. Dropped, it is ended and waited for.
pub(crate) struct Background<T> {
    stop: Arc<AtomicBool>,
    failed: Arc<AtomicBool>,
    meter: Arc<Meter>,
    work: Option<JoinHandle<Result<T, EngineError>>>,
    shown: u64,
    shown_streams: Vec<u64>,
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
    /// Starts it. It sees when it is to end, and shows what it has moved.
    pub(crate) fn start(
        &mut self,
        work: impl FnOnce(&AtomicBool, &Meter) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<(), EngineError> {
        let (stop, failed) = (Arc::clone(&self.stop), Arc::clone(&self.failed));
        let meter = Arc::clone(&self.meter);
        self.work = Some(crate::agent::start(move || {
            let outcome = work(&stop, &meter);
            failed.store(outcome.is_err(), Ordering::Relaxed);
            outcome
        })?);
        Ok(())
    }
}

impl<T> Background<T> {
    /// Bytes so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.meter.bytes()
    }

    /// When the last byte was read, by the monotonic clock; 0 before the end, and where none was.
    pub(crate) fn last_byte_ns(&self) -> u64 {
        self.meter.last_byte_ns()
    }

    /// Bytes since this was asked last.
    pub(crate) fn bytes_since(&mut self) -> u64 {
        let now = self.meter.bytes();
        now.saturating_sub(std::mem::replace(&mut self.shown, now))
    }

    /// Bytes of each stream since this was asked last; empty where that is not told.
    pub(crate) fn stream_bytes_since(&mut self) -> Vec<u64> {
        let now = self.meter.streams();
        let before = |stream: usize| self.shown_streams.get(stream).copied().unwrap_or(0);
        let since = now.iter().enumerate().map(|(i, bytes)| bytes.saturating_sub(before(i))).collect();
        self.shown_streams = now;
        since
    }

    /// What the kernel tells of each stream that is sent from here.
    pub(crate) fn sender_infos(&self) -> Vec<TcpInfo> {
        self.meter.infos()
    }

    /// Whether nothing goes on, or no more.
    pub(crate) fn is_finished(&self) -> bool {
        self.work.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Whether it could not be carried out; [`Background::finish`] tells why.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Ends it, as of now.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Waits for its end.
    pub(crate) fn finish(&mut self) -> Result<T, EngineError> {
        let work = self.work.take().ok_or_else(|| EngineError::Refused("a flow ended twice".to_owned()))?;
        work.join().unwrap_or_else(|_| Err(EngineError::Refused("the thread of a flow panicked".to_owned())))
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
