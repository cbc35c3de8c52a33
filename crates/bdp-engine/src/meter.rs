//! Bytes that a flow has moved so far, for others to look at while it runs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A count that one thread sets and others read.
#[derive(Debug, Default)]
pub struct Meter {
    bytes: AtomicU64,
    streams: Mutex<Vec<u64>>,
}

impl Meter {
    /// Shows `bytes` from now on.
    pub fn set(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// What was shown last.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Shows the bytes of each stream from now on, in order; they are those of the last sample.
    pub fn set_streams(&self, bytes: impl IntoIterator<Item = u64>) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.clear();
        streams.extend(bytes);
    }

    /// What was shown last of each stream; empty where that is not told.
    pub fn streams(&self) -> Vec<u64> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
