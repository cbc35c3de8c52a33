//! Watches the TCP sockets of other programs: samples them at the requested rate and explains them once an interval.
//!
//! `tracker` remembers and explains, and knows no clock; sockets and time come from a `world`: this machine's kernel,
//! or a script in tests.

mod account;
mod arrivals;
mod facts;
mod flight;
mod history;
mod kernel;
mod own;
mod processes;
mod socket;
mod stall;
mod tracker;
mod turns;
mod world;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use bdp_model::measurement::HostFacts;
use bdp_model::units::Nanos;
use bdp_model::watch::{WatchInterval, WatchSummary, WatchTarget};
use serde::{Deserialize, Serialize};

use crate::{Event, RunError};
use tracker::Tracker;
use world::World;

pub use kernel::{SUBCOMMAND, serve};
pub use own::{AT_LIMIT, OwnConnection, READING_BYTES};

/// A plan to watch sockets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchPlan {
    /// The sockets to watch; a socket that matches any of these is watched.
    pub targets: Vec<WatchTarget>,
    /// Time between two reports.
    #[serde(rename = "interval_ns", with = "bdp_model::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub interval: Nanos,
    /// Samples per second.
    pub samples_per_second: u32,
    /// How long to watch; `None` until cancelled or until no watched socket is left.
    #[serde(rename = "duration_ns", with = "bdp_model::units::nanoseconds::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub duration: Option<Nanos>,
}

/// The result of a watch plan.
#[derive(Debug)]
pub struct Watched {
    /// What was observed; `None` if nothing could be watched.
    pub summary: Option<WatchSummary>,
    /// Whether watching succeeded, or the error that prevented or ended it.
    pub result: Result<(), RunError>,
}

impl WatchPlan {
    /// Watches the sockets. `cancel` ends it; the summary then covers the time so far.
    pub fn run(&self, watch: &mut dyn FnMut(Event<'_>), cancel: &AtomicBool) -> Watched {
        match kernel::Kernel::open(&self.targets) {
            Ok(mut kernel) => {
                let host = bdp_flow::host::Baseline::take(std::net::Ipv4Addr::LOCALHOST.into()).facts();
                self.run_in(&mut kernel, host, watch, cancel)
            }
            Err(error) => Watched { summary: None, result: Err(error) },
        }
    }

    fn run_in(
        &self,
        world: &mut impl World,
        host: HostFacts,
        watch: &mut dyn FnMut(Event<'_>),
        cancel: &AtomicBool,
    ) -> Watched {
        let (user, system) = bdp_sys::process::cpu_times_ns();
        let mut tracker = Tracker::new(host);
        let mut summary = WatchSummary::default();
        let period_ns = 1_000_000_000 / u64::from(self.samples_per_second.max(1));
        let interval_ns = self.interval.as_ns().max(period_ns);
        let until_ns = self.duration.map_or(u64::MAX, Nanos::as_ns);
        let mut report_ns = interval_ns.min(until_ns);
        let (mut samples, mut incomplete) = (0, 0);
        let mut notes = world.refresh(&tracker);
        let mut everything = true;
        let mut result = Ok(());
        loop {
            let now_ns = world.now_ns();
            let over = cancel.load(Ordering::Relaxed) || now_ns >= until_ns;
            tracker.begin(now_ns);
            let listed = world.list(everything, &mut |network, report, wanted| {
                tracker.observe(network, report, wanted);
            });
            samples += 1;
            let has_failed = listed.is_err();
            match listed {
                Ok(complete) => {
                    incomplete += u32::from(!complete);
                    tracker.finish(complete);
                    if everything {
                        world.narrow(&tracker);
                    }
                }
                // After a failed later sample others may succeed; if the first one fails, none will.
                Err(error) if summary.samples == 0 && samples == 1 => {
                    return Watched { summary: None, result: Err(error.into()) };
                }
                Err(error) => {
                    incomplete += 1;
                    notes.push(error.to_string());
                    if incomplete == samples && samples > 1 {
                        result = Err(error.into());
                    }
                }
            }
            // After a failed sample the set of sockets is unknown.
            everything = has_failed;
            let left = tracker.open() == 0 && world.is_over();
            if now_ns >= report_ns || over || left || result.is_err() {
                look_at_holders(&mut tracker, world);
                let interval = WatchInterval { samples, incomplete, notes, ..tracker.interval(now_ns) };
                watch(Event::Sockets { interval: Cow::Borrowed(&interval) });
                summary.samples += u64::from(samples);
                summary.incomplete += u64::from(incomplete);
                (samples, incomplete) = (0, 0);
                if over || left || result.is_err() {
                    break;
                }
                tracker.next_interval();
                notes = world.refresh(&tracker);
                everything = true;
                // Reports that were missed, for example while the machine paused, are skipped.
                while report_ns <= now_ns {
                    report_ns += interval_ns;
                }
                report_ns = report_ns.min(until_ns.max(now_ns + 1));
            }
            let due = (now_ns / period_ns + 1) * period_ns;
            world.wait_until(due.min(until_ns), cancel);
        }
        summary.took_ns = world.now_ns();
        summary.seen = tracker.seen();
        summary.sockets = tracker.totals(summary.took_ns);
        let (user_now, system_now) = bdp_sys::process::cpu_times_ns();
        summary.user_ns = user_now.saturating_sub(user);
        summary.system_ns = system_now.saturating_sub(system);
        Watched { summary: Some(summary), result }
    }
}

/// Looks up the processes that hold sockets whose owner is unknown, and what is known of these processes.
fn look_at_holders(tracker: &mut Tracker, world: &mut impl World) {
    let unknown = tracker.without_holder();
    if !unknown.is_empty() {
        for (socket, holder) in world.holders(&unknown).into_iter().flatten() {
            tracker.set_holder(socket, holder);
        }
    }
    tracker.look_at_holders(world);
}

#[cfg(test)]
mod tests;
