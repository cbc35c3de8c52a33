//! When probes are due, and waiting for that to the microsecond.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bdp_model::probes::ProbeTimes;
use bdp_model::probes::flight::Schedule;
use bdp_model::probes::ping::PingRequest;
use bdp_model::units::Nanos;
use bdp_sys::{clock, process};

use bdp_flow::pause::stop_check_ns;

/// How long before a moment to spin: a virtual machine takes up to that long to wake.
const SPIN_BEFORE_NS: u64 = 80_000;
/// How long to spin after a send, in case the answer arrives.
pub(super) const SPIN_AFTER_NS: u64 = 50_000;

/// Returns the schedule of a request that starts at a moment, including warm-up.
pub(super) fn schedule(request: &PingRequest, start_ns: u64) -> Schedule {
    let interval_ns = request.interval.as_ns();
    let end_ns = |duration: Nanos| start_ns + interval_ns * request.warm_up + duration.as_ns();
    Schedule {
        start_ns,
        times: (interval_ns > 0).then(|| ProbeTimes::within(0, interval_ns, 0)),
        count: request.count.map(|count| count.saturating_add(request.warm_up)),
        end_ns: request.duration.map_or(u64::MAX, end_ns),
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
