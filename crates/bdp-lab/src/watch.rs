//! Use of the processors during a case: by its hosts, and by other programs.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bdp_model::record::HostFidelity;
use bdp_model::record::breach::OtherProgram;
use bdp_sys::clock;
use bdp_sys::schedule::{self, ProcessTime, ThreadTime};

/// Interval of readings of the hosts' threads: waiting after a thread's last reading is not seen.
const INTERVAL: Duration = Duration::from_millis(100);
/// Share of one processor below which a program is not named.
const WORTH_NAMING: f64 = 0.02;
/// Maximum number of programs named.
const MOST_NAMED: usize = 4;

/// First and last reading of each thread, by the index of its host and its id.
type Readings = BTreeMap<(usize, u32), [ThreadTime; 2]>;

/// Monitors the hosts of a case.
#[derive(Debug)]
pub struct Watch {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Readings>>,
    hosts: Vec<(String, u32)>,
    before: Vec<ProcessTime>,
    begun_ns: u64,
}

/// Observed use of the processors.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Watched {
    /// Each host of the case.
    pub hosts: Vec<HostFidelity>,
    /// Programs outside bdp that used the processors most, in descending order.
    pub others: Vec<OtherProgram>,
}

impl Watch {
    /// Starts to watch hosts, by name and process.
    pub fn start(hosts: Vec<(String, u32)>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let processes: Vec<u32> = hosts.iter().map(|(_, process)| *process).collect();
        let stop = Arc::clone(&over);
        let read = move || {
            let mut seen = Readings::new();
            loop {
                let last = stop.load(Ordering::Relaxed);
                for (host, &process) in processes.iter().enumerate() {
                    for now in schedule::thread_times(process) {
                        seen.entry((host, now.thread)).or_insert([now; 2])[1] = now;
                    }
                }
                if last {
                    return seen;
                }
                std::thread::park_timeout(INTERVAL);
            }
        };
        // Without the thread the case is judged by everything else.
        let thread = std::thread::Builder::new().name("bdp-watch".to_owned()).spawn(read).ok();
        Self { over, thread, hosts, before: schedule::process_times(), begun_ns: clock::monotonic_ns() }
    }

    /// Ends it; returns the observations.
    pub fn finish(mut self) -> Watched {
        self.over.store(true, Ordering::Relaxed);
        let elapsed_ns = clock::monotonic_ns().saturating_sub(self.begun_ns).max(1);
        let seen = self.thread.take().and_then(|thread| {
            thread.thread().unpark();
            thread.join().ok()
        });
        let seen = seen.unwrap_or_default();
        let hosts = self.hosts.iter().enumerate().map(|(i, (name, _))| {
            let threads = seen.iter().filter(|((host, _), _)| *host == i).map(|(_, times)| *times);
            host_share(name, threads, elapsed_ns)
        });
        let others = others(&self.before, &schedule::process_times(), std::process::id(), elapsed_ns);
        Watched { hosts: hosts.collect(), others }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// A host's share of the processors, from its threads' first and last readings.
fn host_share(name: &str, threads: impl Iterator<Item = [ThreadTime; 2]>, elapsed_ns: u64) -> HostFidelity {
    let share = |ns: u64| ns as f64 / elapsed_ns as f64;
    let mut host = HostFidelity { name: name.to_owned(), ..Default::default() };
    for [first, last] in threads {
        let running = share(last.running_ns.saturating_sub(first.running_ns));
        host.running += running;
        host.busiest_thread = host.busiest_thread.max(running);
        host.waiting = host.waiting.max(share(last.waiting_ns.saturating_sub(first.waiting_ns)));
    }
    host
}

/// Programs that are neither `own` nor started by it, by their use between two readings.
fn others(before: &[ProcessTime], after: &[ProcessTime], own: u32, elapsed_ns: u64) -> Vec<OtherProgram> {
    let mut family = HashSet::from([own]);
    // A child may be listed before its parent.
    loop {
        let known = family.len();
        family.extend(
            after.iter().filter(|p| family.contains(&p.parent)).map(|p| p.process).collect::<Vec<_>>(),
        );
        if family.len() == known {
            break;
        }
    }
    let mut others: Vec<OtherProgram> = after
        .iter()
        .filter(|p| !family.contains(&p.process))
        .map(|p| {
            let earlier = before.iter().find(|b| b.process == p.process).map_or(0, |b| b.running_ns);
            OtherProgram {
                name: p.name.clone(),
                process: p.process,
                processors: p.running_ns.saturating_sub(earlier) as f64 / elapsed_ns as f64,
            }
        })
        .filter(|other| other.processors >= WORTH_NAMING)
        .collect();
    others.sort_by(|a, b| b.processors.total_cmp(&a.processors));
    others.truncate(MOST_NAMED);
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greediest_others_are_named_and_the_family_is_not() {
        let process = |process, parent, name: &str, ms: u64| ProcessTime {
            process,
            parent,
            name: name.to_owned(),
            running_ns: ms * 1_000_000,
        };
        let before = [process(1, 0, "init", 500), process(30, 1, "rustc", 1_000)];
        let after = [
            process(1, 0, "init", 505),
            // A grandchild before its parent.
            process(12, 11, "bdp", 900),
            process(11, 10, "bdp", 900),
            process(10, 1, "bdp", 900),
            process(30, 1, "rustc", 1_600),
            process(31, 1, "stress", 950),
        ];
        let named = others(&before, &after, 10, 1_000_000_000);
        let shares: Vec<_> = named.iter().map(|o| (o.name.as_str(), o.processors)).collect();
        assert_eq!(shares, [("stress", 0.95), ("rustc", 0.6)]);
    }

    #[test]
    fn a_host_waits_as_long_as_the_thread_that_waits_longest() {
        let time = |thread, running_ns, waiting_ns| ThreadTime { thread, running_ns, waiting_ns };
        let threads = [[time(1, 100, 10), time(1, 500, 60)], [time(2, 0, 0), time(2, 300, 200)]];
        let host = host_share("far", threads.into_iter(), 1_000);
        assert_eq!((host.running, host.busiest_thread, host.waiting), (0.7, 0.4, 0.2));
    }
}
