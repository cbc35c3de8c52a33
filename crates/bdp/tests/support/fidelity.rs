//! Whether this machine kept time while a figure was taken. A machine that pauses, or whose processors are taken by others,
//! spoils a rate and says nothing about bdp.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::inside::is_inside;
use super::untested::not_judged;
use bdp_sys::process;

/// The longest that a thread may wake late on any processor while a figure is taken that is judged.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// The largest share of that time in which a task waited for a processor.
const MOST_WAITING: f64 = 0.1;
/// How long a watching thread sleeps at a time.
const STEP: Duration = Duration::from_millis(2);

/// Watches the machine from its start to `end`.
pub struct Watch {
    began: Instant,
    waited_before: Option<Duration>,
    is_over: Arc<AtomicBool>,
    sleepers: Vec<JoinHandle<Duration>>,
}

/// What a watch saw: whether figures of that time can be judged.
#[must_use]
pub struct Timing {
    what: String,
    paused: Option<String>,
    crowded: Option<String>,
    /// Once for all figures of that time.
    is_told: Cell<bool>,
}

/// Takes a figure under a watch.
pub fn timed<T>(what: &str, take: impl FnOnce() -> T) -> (T, Timing) {
    let watch = Watch::start();
    let taken = take();
    (taken, watch.end(what))
}

impl Watch {
    /// Starts with a thread on each processor.
    pub fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        // The clock of a guest stands still while anything runs.
        let watched = if is_inside() { Vec::new() } else { process::allowed_cpus() };
        let sleepers = watched
            .into_iter()
            .map(|cpu| {
                let is_over = Arc::clone(&is_over);
                thread::spawn(move || {
                    // Where a thread cannot be kept to a processor it watches the one that it is on.
                    let _ = process::pin(0, &[cpu]);
                    longest_pause(&is_over)
                })
            })
            .collect();
        Self { began: Instant::now(), waited_before: waited(), is_over, sleepers }
    }

    /// Ends it: what was watched, as it is named where it can't be judged.
    pub fn end(self, what: &str) -> Timing {
        let time = self.began.elapsed();
        let waiting = self.waited_before.zip(waited()).map(|(before, after)| after.saturating_sub(before));
        self.is_over.store(true, Ordering::Relaxed);
        let pauses = self.sleepers.into_iter().map(|sleeper| sleeper.join().unwrap());
        Timing {
            what: what.to_owned(),
            paused: paused(pauses.max().unwrap_or_default()),
            crowded: crowded(waiting.unwrap_or_default(), time),
            is_told: Cell::new(false),
        }
    }
}

impl Timing {
    /// Judges a figure, such as a rate that was asked for, where the machine had time for it; prints that it is not judged
    /// where it had not.
    pub fn judge(&self, judge: impl FnOnce()) {
        self.judge_unless(self.paused.as_ref().or(self.crowded.as_ref()), judge);
    }

    /// Judges a figure more narrowly in a guest, where time is exact.
    pub fn judge_exactly(&self, judge: impl FnOnce()) {
        if is_inside() {
            judge();
        }
    }

    /// Judges a time in which flows take all the processors that they get: where none of these paused.
    pub fn judge_time(&self, judge: impl FnOnce()) {
        self.judge_unless(self.paused.as_ref(), judge);
    }

    fn judge_unless(&self, trouble: Option<&String>, judge: impl FnOnce()) {
        match trouble {
            None => judge(),
            Some(why) if !self.is_told.replace(true) => not_judged(&self.what, why),
            Some(_) => {}
        }
    }
}

/// How late the thread woke at most, of short sleeps.
fn longest_pause(is_over: &AtomicBool) -> Duration {
    let mut longest = Duration::ZERO;
    while !is_over.load(Ordering::Relaxed) {
        let slept = Instant::now();
        thread::sleep(STEP);
        longest = longest.max(slept.elapsed().saturating_sub(STEP));
    }
    longest
}

/// For how long in all some task of this machine has waited for a processor; `None` of a kernel that does not count it.
fn waited() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/pressure/cpu").ok()?;
    let total = text.lines().next()?.rsplit_once("total=")?.1;
    Some(Duration::from_micros(total.parse().ok()?))
}

/// Why figures can't be judged after a pause, with its length last and in brackets; `None` where they can.
fn paused(longest: Duration) -> Option<String> {
    let (most, found) = (LONGEST_PAUSE.as_millis(), longest.as_millis());
    (longest > LONGEST_PAUSE).then(|| format!("a processor paused for more than {most} ms ({found} ms)"))
}

/// The same of the time in which tasks waited for a processor.
fn crowded(waiting: Duration, time: Duration) -> Option<String> {
    let share = waiting.as_secs_f64() / time.as_secs_f64().max(f64::MIN_POSITIVE);
    let (most, found) = (MOST_WAITING * 100.0, share * 100.0);
    (share > MOST_WAITING)
        .then(|| format!("tasks waited for a processor for more than {most:.0} % of the time ({found:.0} %)"))
}

#[test]
fn pauses_and_waiting_beyond_their_bounds_are_not_judged() {
    let (second, ms) = (Duration::from_secs(1), Duration::from_millis);
    assert_eq!((paused(ms(20)), crowded(ms(100), second)), (None, None));
    assert!(paused(ms(21)).unwrap().ends_with("(21 ms)"));
    assert!(crowded(ms(500), second).unwrap().ends_with("(50 %)"));
    assert_eq!(crowded(Duration::ZERO, Duration::ZERO), None);
}
