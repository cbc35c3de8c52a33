//! When probes are due, and waiting for that to the microsecond.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bdp_model::ping::PingRequest;
use bdp_sys::{clock, process};

use bdp_flow::pause::stop_check_ns;

/// Before a moment the processor is kept for so long: waking up takes a virtual machine up to that.
const SPIN_BEFORE_NS: u64 = 80_000;
/// After sending the processor is kept for so long, in wait for the answer.
pub(super) const SPIN_AFTER_NS: u64 = 50_000;

/// The turns of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    /// When the first probe is due, warm-up included.
    pub(super) start_ns: u64,
    /// 0: a closed loop.
    pub(super) interval_ns: u64,
    /// Probes, warm-up included.
    probes: Option<u64>,
    /// No probe is sent from then on.
    end_ns: Option<u64>,
}

impl Schedule {
    /// From a moment on.
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

    /// When a turn is due, given how many probes were sent and that it is `now`; `None` where there is none so late. A turn
    /// that was left out sent nothing, and another comes in its place.
    pub(super) fn due(&self, turn: u64, sent: u64, now_ns: u64) -> Option<u64> {
        let due = match self.interval_ns {
            0 => now_ns,
            interval => self.start_ns + turn * interval,
        };
        let in_count = self.probes.is_none_or(|probes| sent < probes);
        (in_count && self.end_ns.is_none_or(|end| due < end)).then_some(due)
    }
}

/// Whether a wait may keep the processor: where there is but one, the answering program needs it.
pub(super) fn may_spin() -> bool {
    process::allowed_cpus().len() > 1
}

/// Waits until a moment of the monotonic clock, asleep but for the last of it; false where `stop` was raised before.
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

/// How long a wait for something else that may end sooner may sleep, before `moment_ns` is to be met; 0 where it is
/// to keep the processor.
pub(super) fn sleep_before(moment_ns: u64, now_ns: u64) -> u64 {
    let left = moment_ns.saturating_sub(now_ns);
    if left > SPIN_BEFORE_NS { (left - SPIN_BEFORE_NS).min(stop_check_ns()) } else { 0 }
}
