//! How busy the threads of one flow are: one that uses all of its processor limits the flow, however idle the others are.

use std::sync::atomic::{AtomicU64, Ordering};

use bdp_sys::{clock, process};

/// Processor time / wall clock of the busiest of the threads that were watched.
#[derive(Debug, Default)]
pub struct Busiest {
    /// The bits of a number that is not negative: they are in the order of the numbers.
    bits: AtomicU64,
}

impl Busiest {
    /// Does the work on the calling thread, and notes what it used.
    pub fn watch<T>(&self, work: impl FnOnce() -> T) -> T {
        let (began, used) = (clock::monotonic_ns(), process::thread_cpu_time_ns());
        let outcome = work();
        let used = process::thread_cpu_time_ns().saturating_sub(used);
        let elapsed = clock::monotonic_ns().saturating_sub(began).max(1);
        self.note(used as f64 / elapsed as f64);
        outcome
    }

    fn note(&self, share: f64) {
        self.bits.fetch_max(share.max(0.0).to_bits(), Ordering::Relaxed);
    }

    /// Of all that ended so far.
    pub fn share(&self) -> f64 {
        f64::from_bits(self.bits.load(Ordering::Relaxed))
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
        assert_eq!(busiest.share(), 0.0);
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
}
