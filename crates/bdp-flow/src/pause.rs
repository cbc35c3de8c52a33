//! Waits that end early when a workload is stopped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bdp_sys::clock;

static LOOKS_SELDOM: AtomicBool = AtomicBool::new(false);

/// Returns how often a waiting workload checks whether to stop, in nanoseconds.
pub fn stop_check_ns() -> u64 {
    if looks_seldom() { 1_000_000_000 } else { 50_000_000 }
}

/// Returns how often a workload that has not begun checks whether to stop. In a guest, hundreds that check at the
/// same moment would wake one after the other, a microsecond apart, and delay what is due then: they sleep until they
/// have something to do.
pub fn idle_check_ns() -> u64 {
    if looks_seldom() { 86_400_000_000_000 } else { stop_check_ns() }
}

/// Makes this process check once a second. For guests, where a second without work takes no time but a check does.
pub fn look_seldom() {
    LOOKS_SELDOM.store(true, Ordering::Relaxed);
}

/// Whether this process runs in a guest, where system calls are expensive and threads are not.
pub fn looks_seldom() -> bool {
    LOOKS_SELDOM.load(Ordering::Relaxed)
}

/// Sleeps until a moment of the monotonic clock; returns false if `stop` was raised before.
pub fn wait_until(moment: u64, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        match moment.saturating_sub(clock::monotonic_ns()) {
            0 => return true,
            left => std::thread::sleep(Duration::from_nanos(left.min(idle_check_ns()))),
        }
    }
}
