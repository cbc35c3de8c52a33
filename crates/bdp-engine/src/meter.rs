//! Bytes that a flow has moved so far, for others to look at while it runs.

use std::sync::atomic::{AtomicU64, Ordering};

/// A count that one thread sets and others read.
#[derive(Debug, Default)]
pub struct Meter(AtomicU64);

impl Meter {
    /// Shows `bytes` from now on.
    pub fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// What was shown last.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
