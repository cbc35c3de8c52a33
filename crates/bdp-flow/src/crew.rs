//! The threads of one end of a flow: each has a share of the streams, and the first leads.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bdp_model::flow::payload::CpuList;
use bdp_sys::process;

use crate::error::{FlowError, Result};
use crate::worker::Worker;

/// Number of threads, and the processors they run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crew {
    threads: usize,
    cpus: Vec<usize>,
}

impl Crew {
    /// Returns one thread, placed by the system.
    pub const fn alone() -> Self {
        Self { threads: 1, cpus: Vec::new() }
    }

    /// Returns a thread for each stream, up to the number of processors; they are pinned to `cpus` in turn, if any
    /// are given.
    pub fn of(streams: usize, cpus: &[u32]) -> Self {
        let cpus: Vec<usize> = cpus.iter().map(|&cpu| cpu as usize).collect();
        let places = if cpus.is_empty() { process::allowed_cpus().len() } else { cpus.len() };
        Self { threads: streams.min(places).max(1), cpus }
    }

    /// Like `of`, for an optional list.
    pub fn listed(streams: usize, cpus: Option<&CpuList>) -> Self {
        Self::of(streams, cpus.map_or(&[], CpuList::numbers))
    }

    /// Returns the number of threads.
    pub const fn threads(&self) -> usize {
        self.threads
    }

    /// Runs the first share on the calling thread as leader and the other shares on threads of their own, until the
    /// leader returns or one of them fails: `over` is then raised, which all of them check.
    pub fn run<T>(
        &self,
        streams: usize,
        over: &AtomicBool,
        lead: impl FnOnce(Range<usize>) -> Result<T>,
        follow: impl Fn(Range<usize>) -> Result<()> + Sync,
    ) -> Result<T> {
        let shares = shares(streams, self.threads);
        thread::scope(|scope| {
            // Also if a thread cannot be started: the scope waits for those that were.
            let _raised_at_last = Raise(over);
            let follow = &follow;
            let mut followers = Vec::new();
            for (i, share) in shares.iter().enumerate().skip(1) {
                let share = share.clone();
                let work = move || {
                    let outcome = self.keep_place(i).and_then(|()| follow(share));
                    if outcome.is_err() {
                        over.store(true, Ordering::Relaxed);
                    }
                    outcome
                };
                followers.push(Worker::start(scope, work)?);
            }
            let outcome = self.keep_place(0).and_then(|()| lead(shares[0].clone()));
            over.store(true, Ordering::Relaxed);
            let mut failed = None;
            for follower in followers {
                failed = failed.or(follower.join().err());
            }
            failed.map_or(outcome, Err)
        })
    }

    fn keep_place(&self, thread: usize) -> Result<()> {
        process::sharpen_timers();
        if self.cpus.is_empty() {
            return Ok(());
        }
        keep_to(&[self.cpus[thread % self.cpus.len()]])
    }
}

/// Pins the calling thread, and threads that it starts later, to these processors, if any are given.
pub fn keep_to_listed(cpus: Option<&CpuList>) -> Result<()> {
    let Some(cpus) = cpus else { return Ok(()) };
    keep_to(&cpus.numbers().iter().map(|&cpu| cpu as usize).collect::<Vec<_>>())
}

fn keep_to(cpus: &[usize]) -> Result<()> {
    // The kernel accepts a list if at least one of its processors exists.
    let allowed = process::allowed_cpus();
    let missing = cpus.iter().find(|cpu| !allowed.contains(cpu));
    let refused = |cpu: usize, why: &str| {
        FlowError::Refused(format!(
            "cannot pin a thread to processor {cpu} ({why}); allowed processors: {allowed:?}"
        ))
    };
    if let Some(&cpu) = missing {
        return Err(refused(cpu, "it is not one of them"));
    }
    process::pin(0, cpus).map_err(|e| refused(cpus.first().copied().unwrap_or(0), &e.source.to_string()))
}

/// Raises a flag when it goes.
struct Raise<'a>(&'a AtomicBool);

impl Drop for Raise<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Parts of a flow's streams, of sizes that differ by one at most.
fn shares(streams: usize, threads: usize) -> Vec<Range<usize>> {
    let threads = threads.clamp(1, streams.max(1));
    (0..threads).map(|i| i * streams / threads..(i + 1) * streams / threads).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stream_is_in_one_share() {
        for (streams, threads) in [(1, 1), (2, 8), (8, 3), (1000, 7), (0, 2)] {
            let shares = shares(streams, threads);
            assert_eq!(
                shares.iter().flat_map(Clone::clone).collect::<Vec<_>>(),
                (0..streams).collect::<Vec<_>>()
            );
            let sizes: Vec<_> = shares.iter().map(ExactSizeIterator::len).collect();
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
        }
    }

    #[test]
    fn the_leader_ends_it_and_a_follower_that_fails_does_too() {
        let crew = Crew { threads: 3, cpus: Vec::new() };
        let over = AtomicBool::new(false);
        let wait = || {
            while !over.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        };
        let led = crew.run(
            3,
            &over,
            |share| Ok(share.len()),
            |_| {
                wait();
                Ok(())
            },
        );
        assert_eq!(led.unwrap(), 1);
        over.store(false, Ordering::Relaxed);
        let failed = crew.run(
            3,
            &over,
            |_| {
                wait();
                Ok(())
            },
            |share| if share.start == 2 { Err(FlowError::Refused("so".to_owned())) } else { Ok(()) },
        );
        assert_eq!(failed.unwrap_err().to_string(), "so");
    }

    #[test]
    fn a_thread_for_each_stream_up_to_the_processors() {
        let processors = process::allowed_cpus().len();
        assert_eq!(Crew::of(1, &[]).threads(), 1);
        assert_eq!(Crew::of(1000, &[]).threads(), processors);
        assert_eq!(Crew::of(1000, &[0, 0, 0]).threads(), 3);
    }
}
