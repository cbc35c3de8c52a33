//! When probes are due, and waiting for that to the microsecond.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bdp_model::probes::ping::PingRequest;
use bdp_sys::{clock, process};

use bdp_flow::pause::stop_check_ns;

/// How long before a moment to spin: a virtual machine takes up to that long to wake.
const SPIN_BEFORE_NS: u64 = 80_000;
/// How long to spin after a send, in case the answer arrives.
pub(super) const SPIN_AFTER_NS: u64 = 50_000;

/// The turns of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    /// When the first probe is due, including warm-up.
    pub(super) start_ns: u64,
    /// Interval; 0 for a closed loop.
    pub(super) interval_ns: u64,
    /// Number of probes, including warm-up.
    probes: Option<u64>,
    /// End of the schedule: no probe is sent from then on.
    end_ns: Option<u64>,
}

impl Schedule {
    /// Creates a schedule that starts at a moment.
    pub(super) fn new(request: &PingRequest, start_ns: u64) -> Self {
        let interval_ns = request.interval.as_ns();
        let warm_up_ns = interval_ns * request.warm_up;
        Self {
            start_ns,
            interval_ns,
            probes: request.count.map(|count| count.saturating_add(request.warm_up)),
            end_ns: request.duration.map(|duration| start_ns + warm_up_ns + duration.as_ns()),
        }
    }

    /// Returns when a turn is due, given the number of probes sent and the time `now`; `None` if the schedule has
    /// ended. A skipped turn sent nothing, and another replaces it.
    pub(super) fn due(&self, turn: u64, sent: u64, now_ns: u64) -> Option<u64> {
        let due = match self.interval_ns {
            0 => now_ns,
            interval => self.start_ns + turn * interval,
        };
        let in_count = self.probes.is_none_or(|probes| sent < probes);
        (in_count && self.end_ns.is_none_or(|end| due < end)).then_some(due)
    }
}

/// Whether a wait may spin: with a single processor, the answering program needs it.
pub(super) fn may_spin() -> bool {
    process::allowed_cpus().len() > 1
}

/// Waits until a moment of the monotonic clock, asleep except for the last part; returns false if `stop` was raised
/// before.
pub(super) fn wait_exactly(moment_ns: u64, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        let left = moment_ns.saturating_sub(clock::monotonic_ns());
        if left == 0 {
            return true;
        }
        if left > SPIN_BEFORE_NS {
            std::thread::sleep(Duration::from_nanos((left - SPIN_BEFORE_NS).min(stop_check_ns())));
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Returns how long a wait for another event may sleep before `moment_ns`; 0 if it must spin.
pub(super) fn sleep_before(moment_ns: u64, now_ns: u64) -> u64 {
    let left = moment_ns.saturating_sub(now_ns);
    if left > SPIN_BEFORE_NS { (left - SPIN_BEFORE_NS).min(stop_check_ns()) } else { 0 }
}
