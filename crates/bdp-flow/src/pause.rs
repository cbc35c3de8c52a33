//! Waits that end early when a workload is stopped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bdp_sys::clock;

/// How often a waiting workload looks whether it shall stop.
pub const STOP_CHECK_NS: u64 = 50_000_000;

/// Sleeps until a moment of the monotonic clock; false where `stop` was raised before.
pub fn wait_until(moment: u64, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        match moment.saturating_sub(clock::monotonic_ns()) {
            0 => return true,
            left => std::thread::sleep(Duration::from_nanos(left.min(STOP_CHECK_NS))),
        }
    }
}
