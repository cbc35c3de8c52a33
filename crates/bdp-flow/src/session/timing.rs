//! When a measurement was made, and how long it took.

use std::time::Instant;

use bdp_model::measurement::Measurement;
use bdp_sys::clock;

/// The start of a measurement.
#[derive(Debug, Clone, Copy)]
pub struct Started {
    unix_ms: u64,
    /// By the monotonic clock.
    pub at: Instant,
}

impl Started {
    /// Returns the start of a measurement now.
    pub fn now() -> Self {
        Self { unix_ms: clock::unix_ms(), at: Instant::now() }
    }

    /// Adds the times to a finished measurement.
    pub fn note(self, measurement: Measurement) -> Measurement {
        let took_ms = u64::try_from(self.at.elapsed().as_millis()).unwrap_or(u64::MAX);
        Measurement { started_unix_ms: self.unix_ms, took_ms, ..measurement }
    }
}
