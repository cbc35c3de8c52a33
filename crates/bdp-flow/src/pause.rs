//! Waits that end early when a workload is stopped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bdp_sys::clock;

static LOOKS_SELDOM: AtomicBool = AtomicBool::new(false);

/// How often a waiting workload looks whether it shall stop, in nanoseconds.
pub fn stop_check_ns() -> u64 {
    if looks_seldom() { 1_000_000_000 } else { 50_000_000 }
}

/// The same before a workload has begun. In a guest hundreds of them that look at the same moments would wake there one after the other, a microsecond
/// apart, and keep from its moment what is due then: they sleep until they have something to do.
pub fn idle_check_ns() -> u64 {
    if looks_seldom() { 86_400_000_000_000 } else { stop_check_ns() }
}

/// Has this process look once a second. For guests, where a second without work takes no time and a look does.
pub fn look_seldom() {
    LOOKS_SELDOM.store(true, Ordering::Relaxed);
}

/// Whether this process is a guest's, where system calls are dear and threads are not.
pub fn looks_seldom() -> bool {
    LOOKS_SELDOM.load(Ordering::Relaxed)
}

/// Sleeps until a moment of the monotonic clock; false where `stop` was raised before.
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
