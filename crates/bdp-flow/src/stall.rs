//! Detects stalled flows. A stopped program keeps its connections, since its kernel answers for it: only the lack of
//! progress shows it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bdp_model::units::Nanos;

use crate::error::{FlowError, Result};
use crate::meter::Meter;

/// How long a flow that has begun may go without progress.
pub const STALL: Nanos = Nanos::secs(10);
/// Bytes of the largest segment that a kernel makes.
pub const LARGEST_SEGMENT: u64 = 65_536;
/// Interval of checks, and so the longest delay of a raised flag.
const LOOK: Duration = Duration::from_millis(20);
/// Interval of checks if each stream is guarded separately.
pub const RARE_LOOK: Duration = Duration::from_millis(100);
/// Most time counted per check: time in which this process did not run either is no stall of the other end.
const LONGEST_LOOK: Duration = Duration::from_millis(200);

/// Returns how long a flow may go without progress if its bytes are read once an interval and each stream is limited
/// to a rate, if any: the kernel paces segments, which are large with offloads.
pub fn patience(interval: Nanos, rate_bps: Option<u64>) -> Nanos {
    patience_between(LARGEST_SEGMENT, rate_bps).max(Nanos(interval.as_ns().saturating_mul(3)))
}

/// Returns how long a flow may go without progress if a program moves this many bytes at once, limited to this rate
/// per stream, if any: several times the interval of two writes, or of two datagrams, one of which may be lost.
pub fn patience_between(bytes: u64, rate_bps: Option<u64>) -> Nanos {
    let gap_ns = |rate: u64| u128::from(bytes) * 8 * 1_000_000_000 / u128::from(rate.max(1));
    let gaps_ns = rate_bps.map_or(0, |rate| 4 * gap_ns(rate));
    STALL.max(Nanos(u64::try_from(gaps_ns).unwrap_or(u64::MAX)))
}

/// Runs a flow's work, which shows its bytes by the meter; ends it if they do not change for `longest` after they
/// have begun. The work gets a flag of its own, which follows `stop`.
pub fn guard<T>(
    meter: &Meter,
    stop: &AtomicBool,
    longest: Nanos,
    work: impl FnOnce(&AtomicBool) -> Result<T>,
) -> Result<T> {
    guard_by(LOOK, meter, stop, longest, work)
}

/// Like `guard`, with this interval of checks: each costs a wake-up.
pub fn guard_by<T>(
    look: Duration,
    meter: &Meter,
    stop: &AtomicBool,
    longest: Nanos,
    work: impl FnOnce(&AtomicBool) -> Result<T>,
) -> Result<T> {
    let (halt, over) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let watch = || {
            let mut still = Still::once_begun(longest.to_duration());
            let mut looked = Instant::now();
            while !over.load(Ordering::Relaxed) {
                std::thread::park_timeout(look);
                let since = looked.elapsed();
                looked = Instant::now();
                let is_stalled = still.look(meter.bytes(), since);
                if is_stalled || stop.load(Ordering::Relaxed) {
                    halt.store(true, Ordering::Relaxed);
                    return is_stalled;
                }
            }
            false
        };
        let watching = std::thread::Builder::new()
            .spawn_scoped(scope, watch)
            .map_err(FlowError::io("start a thread (raise the limit 'ulimit -u')"))?;
        let done = work(&halt);
        over.store(true, Ordering::Relaxed);
        watching.thread().unpark();
        match watching.join() {
            Ok(true) => Err(FlowError::Stalled { within: longest }),
            _ => done,
        }
    })
}

/// How long a count has not changed.
#[derive(Debug)]
pub struct Still {
    bytes: u64,
    time: Duration,
    longest: Duration,
    /// Whether a count of zero is no stall: something else watches for flows that do not begin.
    is_to_begin: bool,
}

impl Still {
    /// Creates it for a count that may stay 0 indefinitely.
    fn once_begun(longest: Duration) -> Self {
        Self { bytes: 0, time: Duration::ZERO, longest, is_to_begin: true }
    }

    /// Creates it for a count that must change from now on.
    pub fn from_now(longest: Duration) -> Self {
        Self { is_to_begin: false, ..Self::once_begun(longest) }
    }

    /// Checks the count, this long after the previous check; returns whether it has not changed for too long.
    pub fn look(&mut self, bytes: u64, since: Duration) -> bool {
        if bytes != self.bytes || bytes == 0 && self.is_to_begin {
            (self.bytes, self.time) = (bytes, Duration::ZERO);
        } else {
            self.time += since.min(LONGEST_LOOK);
        }
        self.time >= self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_begun_and_stands_still_is_stalled() {
        let step = Duration::from_millis(100);
        let mut still = Still::once_begun(Duration::from_secs(1));
        assert!((0..100).all(|_| !still.look(0, step)), "nothing has begun");
        assert!((1..100).all(|bytes| !still.look(bytes, step)), "it moves");
        assert!((0..9).all(|_| !still.look(99, step)));
        assert!(!still.look(100, step), "it went on");
        assert!((0..9).all(|_| !still.look(100, step)));
        assert!(still.look(100, step));
        let mut still = Still::from_now(Duration::from_secs(1));
        assert!((0..9).all(|_| !still.look(0, step)) && still.look(0, step), "it was to begin");
    }

    #[test]
    fn slow_flows_and_rare_samples_have_their_time() {
        assert_eq!(patience(Nanos::millis(100), None), STALL);
        assert_eq!(patience(Nanos::secs(60), Some(1_000_000_000)), Nanos::secs(180));
        assert!(patience(Nanos::millis(100), Some(10_000)) > Nanos::secs(200));
        assert_eq!(patience_between(128 << 10, None), STALL);
        assert_eq!(patience_between(1_460, Some(1_000_000)), STALL);
        // One of 1,460 bytes each 11.68 s.
        assert_eq!(patience_between(1_460, Some(1_000)), Nanos::millis(46_720));
        assert_eq!(patience_between(u64::MAX, Some(1)), Nanos(u64::MAX));
    }

    #[test]
    fn time_in_which_this_process_was_stopped_too_counts_for_nothing() {
        let mut still = Still::once_begun(Duration::from_secs(1));
        assert!(!still.look(7, Duration::from_secs(60)) && !still.look(7, Duration::from_secs(60)));
    }

    #[test]
    fn work_that_stalls_is_ended_and_other_work_is_not() {
        let meter = Meter::default();
        let stop = AtomicBool::new(false);
        let wait = |halt: &AtomicBool| {
            meter.set(5);
            while !halt.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(5)
        };
        let stalled = guard(&meter, &stop, Nanos::millis(200), wait);
        assert!(matches!(stalled, Err(FlowError::Stalled { .. })), "{stalled:?}");
        assert_eq!(guard(&meter, &stop, Nanos::secs(100), |_| Ok(7)).unwrap(), 7);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(guard(&meter, &stop, Nanos::secs(100), wait).unwrap(), 5, "it was asked to end");
    }
}
