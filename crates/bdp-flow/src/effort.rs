//! How busy the threads of one flow are: one that uses all of its processor limits the flow, however idle the others
//! are.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use bdp_sys::schedule::OwnWait;
use bdp_sys::{clock, process};

use crate::lock::lock;
use crate::pause::looks_seldom;

/// Processor time / wall clock of the busiest watched thread.
#[derive(Debug, Default)]
pub struct Busiest {
    /// The bits of a non-negative number, which sort like the numbers.
    bits: AtomicU64,
    threads: Mutex<Vec<Account>>,
}

/// This process's processor time as a share of the time since a moment.
#[derive(Debug, Clone, Copy)]
pub struct ProcessShare {
    began_ns: u64,
    cpu_ns: u64,
}

impl ProcessShare {
    /// Begins at this time of the monotonic clock.
    pub fn begin(now_ns: u64) -> Self {
        Self { began_ns: now_ns, cpu_ns: process::cpu_time_ns() }
    }

    /// Returns the share until now; above 1 with several processors.
    pub fn until_now(self) -> f64 {
        let elapsed = (clock::monotonic_ns() - self.began_ns).max(1);
        (process::cpu_time_ns() - self.cpu_ns) as f64 / elapsed as f64
    }
}

/// Processor use of a flow's threads so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Processor time of all threads.
    pub cpu_ns: u64,
    /// Processor time of the busiest thread.
    pub busiest_cpu_ns: u64,
    /// Longest time that a thread was ready to run while others used its processor.
    pub run_wait_ns: u64,
}

/// A thread's times, which any thread can read.
#[derive(Debug)]
struct Account {
    times: OwnWait,
    /// Readings at the start of its work and the latest: time on a processor, and time waiting for one.
    began_ns: (u64, u64),
    last_ns: (u64, u64),
}

impl Busiest {
    /// Runs the work on the calling thread, and records what it used.
    pub fn watch<T>(&self, work: impl FnOnce() -> T) -> T {
        self.follow();
        let (began, used) = (clock::monotonic_ns(), process::thread_cpu_time_ns());
        let outcome = work();
        let used = process::thread_cpu_time_ns().saturating_sub(used);
        let elapsed = clock::monotonic_ns().saturating_sub(began).max(1);
        self.note(used as f64 / elapsed as f64);
        outcome
    }

    /// In a guest nothing takes time.
    fn follow(&self) {
        if looks_seldom() {
            return;
        }
        let times = OwnWait::of_this_thread();
        if let Some(began_ns) = times.times_ns() {
            lock(&self.threads).push(Account { times, began_ns, last_ns: began_ns });
        }
    }

    fn note(&self, share: f64) {
        self.bits.fetch_max(share.max(0.0).to_bits(), Ordering::Relaxed);
    }

    /// Returns the share of the busiest thread that has ended.
    pub fn share(&self) -> f64 {
        f64::from_bits(self.bits.load(Ordering::Relaxed))
    }

    /// Returns the use of all watched threads so far, including those still at work; `None` if the kernel keeps no
    /// account, and in guests.
    pub fn spent(&self) -> Option<Spent> {
        let mut threads = lock(&self.threads);
        let of = |thread: &mut Account| {
            // One that has ended stays at what it was.
            thread.last_ns = thread.times.times_ns().unwrap_or(thread.last_ns);
            let since = |now: u64, began: u64| now.saturating_sub(began);
            (since(thread.last_ns.0, thread.began_ns.0), since(thread.last_ns.1, thread.began_ns.1))
        };
        let spent = |sum: Spent, (cpu_ns, wait_ns): (u64, u64)| Spent {
            cpu_ns: sum.cpu_ns + cpu_ns,
            busiest_cpu_ns: sum.busiest_cpu_ns.max(cpu_ns),
            run_wait_ns: sum.run_wait_ns.max(wait_ns),
        };
        (!threads.is_empty()).then(|| threads.iter_mut().map(of).fold(Spent::default(), spent))
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_busiest_thread_counts_and_not_the_sum() {
        let busiest = Busiest::default();
        assert_eq!((busiest.share(), busiest.spent()), (0.0, None));
        for share in [0.25, 0.25, 0.31, 0.25] {
            busiest.note(share);
        }
        assert_eq!(busiest.share(), 0.31);
    }

    #[test]
    fn only_the_watched_thread_is_counted() {
        let busiest = Busiest::default();
        let over = std::sync::atomic::AtomicBool::new(false);
        thread::scope(|scope| {
            // Busy all the time, and not of this flow.
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            busiest.watch(|| thread::sleep(Duration::from_millis(50)));
            over.store(true, Ordering::Relaxed);
        });
        assert!(busiest.share() < 0.5, "{}", busiest.share());
        let begun = process::thread_cpu_time_ns();
        busiest.watch(|| while process::thread_cpu_time_ns() < begun + 2_000_000 {});
        assert!(busiest.share() > 0.0, "{}", busiest.share());
    }

    #[test]
    fn another_thread_can_read_what_threads_use_while_they_work() {
        let busiest = Busiest::default();
        let over = std::sync::atomic::AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                busiest.watch(|| {
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            });
            while busiest.spent().is_none_or(|spent| spent.cpu_ns < 20_000_000) {
                thread::sleep(Duration::from_millis(1));
            }
            over.store(true, Ordering::Relaxed);
        });
        // It has ended, and what it used is known.
        let spent = busiest.spent().unwrap();
        assert!(spent.cpu_ns >= 20_000_000 && spent.busiest_cpu_ns == spent.cpu_ns, "{spent:?}");
    }
}
