//! Round trips of a server that answers no probes, measured by handshakes.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bdp_flow::handshakes::{self, MOST_UNDER_WAY};
use bdp_flow::lock::lock;
use bdp_flow::probe_flow;
use bdp_flow::session::error::SessionError;
use bdp_flow::session::peer::Probes;
use bdp_model::probes::ProbeTimes;
use bdp_model::probes::flight::Schedule;
use bdp_model::units::Nanos;
use bdp_sys::{clock, process};
use bdp_wire::control::{ProbeSample, Probed};

/// Interval of handshakes that measure the round trip: someone else's server must not be burdened.
pub(super) const INTERVAL: Nanos = Nanos::millis(250);
/// How long a handshake may take: time for two more SYNs, which Linux sends after one second and after three.
const PATIENCE: Nanos = Nanos::secs(5);
/// How long late answers are awaited at the end, at least.
const LATE: Duration = Duration::from_secs(1);
/// Interval at which arrivals are checked.
const LOOK: Duration = Duration::from_millis(5);

/// Measures round trips by handshakes of its own, continuously. Dropping it ends it.
pub(super) struct Prober {
    probes: Arc<Mutex<Vec<ProbeSample>>>,
    stop: Arc<AtomicBool>,
}

impl Prober {
    /// Starts measuring.
    pub(super) fn start(address: SocketAddr) -> Result<Self, SessionError> {
        let (probes, stop) = (Arc::<Mutex<Vec<ProbeSample>>>::default(), Arc::<AtomicBool>::default());
        let (on_thread, stopped) = (Arc::clone(&probes), Arc::clone(&stop));
        // Another stream of times for each measurement.
        let times = Some(ProbeTimes::new(clock::unix_ns(), INTERVAL.as_ns()));
        let schedule = Schedule { start_ns: clock::monotonic_ns(), times, count: None, end_ns: u64::MAX };
        // Nobody waits for it: a handshake may take its full time limit.
        drop(bdp_flow::worker::start(move || {
            process::sharpen_timers();
            // Without a free descriptor, there are no round trips.
            let mut note = |number, sample| probe_flow::enter(&mut lock(&on_thread), number, sample);
            let _ = handshakes::run(address, schedule, PATIENCE, MOST_UNDER_WAY, &stopped, &mut note);
        })?);
        Ok(Self { probes, stop })
    }

    /// Waits for late answers to handshakes sent before a moment: a second, or twice the longest round trip so far.
    pub(super) fn await_answers(&self, until_ns: u64, cancel: &AtomicBool) {
        let since = Instant::now();
        let longest = || self.probed().round_trips_ns().max().unwrap_or(0);
        let patience = || PATIENCE.to_duration().min(LATE.max(Duration::from_nanos(2 * longest())));
        while !self.is_complete(until_ns) && since.elapsed() < patience() && !cancel.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
        }
    }
}

impl Probes for Prober {
    fn probed(&self) -> Probed {
        Probed { probes: lock(&self.probes).clone(), awaited_until_ns: clock::monotonic_ns() }
    }

    fn patience(&self) -> Nanos {
        PATIENCE
    }

    fn last_ns(&self) -> Option<u64> {
        lock(&self.probes).iter().rev().find_map(|probe| probe.rtt_ns)
    }

    fn smallest_ns(&self) -> Option<u64> {
        lock(&self.probes).iter().filter_map(|probe| probe.rtt_ns).min()
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
