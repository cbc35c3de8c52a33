//! Progress of a run of cases and its remaining time, on standard error.

use std::io::IsTerminal;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bdp_model::record::Record;
use bdp_model::units::format_bps;
use bdp_run::Event;
use bdp_run::case::key::key;
use indicatif::{ProgressBar, ProgressStyle};

use crate::lab::list::short_time;
use crate::output;

/// Without a terminal: longest silence while a case runs.
const SILENCE: Duration = Duration::from_secs(30);
/// Fraction of the plan (one in this many) that must have ended before its pace predicts the rest.
const TELLING: u32 = 10;
/// Largest factor by which a machine is assumed slower than estimated.
const SLOWEST: f64 = 100.0;
/// Update interval of the remaining time.
const LOOK: Duration = Duration::from_secs(1);

/// A bar with the remaining time on a terminal; elsewhere a line for each case, and one from time to time during a long case.
pub struct Progress {
    bar: Option<ProgressBar>,
    shared: Arc<Shared>,
    clock: Option<JoinHandle<()>>,
    /// Whether the first round began; what is planned after it is added.
    began: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    over: Condvar,
}

/// State shared with the countdown thread.
#[derive(Default)]
struct State {
    done: usize,
    planned: usize,
    /// When the last case ends, by the estimate and the pace so far.
    ends: Option<Instant>,
    said: Option<Instant>,
    began: Option<Instant>,
    /// Estimated time of everything that has ended, and of everything left.
    ended: Duration,
    left: Duration,
    is_over: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Notes a new plan, of which this much is left.
    fn plan(&mut self, left: Duration, now: Instant) -> Duration {
        self.began.get_or_insert(now);
        self.left = left;
        self.expect(now)
    }

    /// Notes that this much of the planned work is left.
    fn advance(&mut self, left: Duration, now: Instant) -> Duration {
        self.ended += self.left.saturating_sub(left);
        self.left = left;
        self.expect(now)
    }

    /// The remaining time: a machine slower than estimated is assumed to stay so.
    fn expect(&mut self, now: Instant) -> Duration {
        let took = self.began.map_or(Duration::ZERO, |began| now.saturating_duration_since(began));
        let pace = match self.ended >= (self.ended + self.left) / TELLING {
            true if !self.ended.is_zero() => (took.as_secs_f64() / self.ended.as_secs_f64()).max(1.0),
            _ => 1.0,
        };
        let left = self.left.mul_f64(pace.min(SLOWEST));
        self.ends = now.checked_add(left);
        self.said = Some(now);
        left
    }

    fn left(&self, now: Instant) -> Option<Duration> {
        self.ends.map(|ends| ends.saturating_duration_since(now))
    }

    /// The line about a running case after a long silence.
    fn line(&mut self, now: Instant) -> Option<String> {
        let said = self.said?;
        if self.done >= self.planned || now.saturating_duration_since(said) < SILENCE {
            return None;
        }
        self.said = Some(now);
        Some(format!("case {} of {}, {}", self.done + 1, self.planned, words(self.left(now)?)))
    }
}

/// `0:41 left`.
fn words(left: Duration) -> String {
    let seconds = left.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0) => "longer than expected".to_owned(),
        (0, minutes, seconds) => format!("{minutes}:{seconds:02} left"),
        (hours, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02} left"),
    }
}

impl Progress {
    /// Starts with the cases that an earlier start has settled. Starts threads.
    pub fn new(done: usize, planned: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(planned as u64);
            let style = ProgressStyle::with_template("{wide_msg}\n[{bar:40}] {pos}/{len} cases  {prefix}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
            bar.set_position(done as u64);
            bar.enable_steady_tick(Duration::from_millis(500));
            bar
        });
        let shared = Arc::new(Shared::default());
        *shared.lock() = State { done, planned, ..State::default() };
        let clock = std::thread::Builder::new().name("bdp-progress".to_owned()).spawn({
            let (shared, bar) = (Arc::clone(&shared), bar.clone());
            move || count_down(&shared, bar.as_ref())
        });
        // Without it the remaining time is printed when a case ends.
        Self { bar, shared, clock: clock.ok(), began: false }
    }

    /// Shows an event.
    pub fn show(&mut self, event: &Event<'_>) {
        let now = Instant::now();
        let mut state = self.shared.lock();
        match event {
            Event::Planned { cases, time } => {
                if std::mem::replace(&mut self.began, true) {
                    state.planned += cases;
                }
                let left = state.plan(time.to_duration(), now);
                match &self.bar {
                    Some(bar) => {
                        bar.set_length(state.planned as u64);
                        bar.set_prefix(words(left));
                    }
                    None => {
                        let s = if *cases == 1 { "" } else { "s" };
                        output::note(&format!("{cases} case{s}, about {}", short_time(time.to_duration())));
                    }
                }
            }
            Event::CaseStarted { key, attempt } => {
                if let Some(bar) = &self.bar {
                    let again = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
                    bar.set_message(format!("{key}{again}"));
                }
            }
            Event::CaseEnded { record, settled, left } => {
                state.done += usize::from(*settled);
                let left = state.advance(left.to_duration(), now);
                match &self.bar {
                    Some(bar) => {
                        bar.set_position(state.done as u64);
                        bar.set_prefix(words(left));
                    }
                    None => {
                        let left = match state.done < state.planned {
                            true => format!(" ({})", words(left)),
                            false => String::new(),
                        };
                        output::note(&format!("{}/{} {}{left}", state.done, state.planned, ended(record)));
                    }
                }
            }
            _ => {}
        }
    }

    /// Shows nothing from here on.
    pub fn end(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.over.notify_all();
        if let Some(clock) = self.clock.take() {
            let _ = clock.join();
        }
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Counts the remaining time down until the run is over.
fn count_down(shared: &Shared, bar: Option<&ProgressBar>) {
    let mut state = shared.lock();
    while !state.is_over {
        let waited = shared.over.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner);
        state = waited.0;
        let now = Instant::now();
        match bar {
            _ if state.is_over => {}
            Some(bar) => state.left(now).into_iter().for_each(|left| bar.set_prefix(words(left))),
            None => state.line(now).into_iter().for_each(|line| output::note(&line)),
        }
    }
}

fn ended(record: &Record) -> String {
    let key = key(&record.case);
    match (&record.error, record.goodput_bps) {
        (Some(error), _) => format!("{key}: FAILED: {error}"),
        (None, None) if record.skipped.is_some() => {
            format!("{key}: SKIPPED: {}", record.skipped.as_deref().unwrap_or_default())
        }
        (None, Some(_)) if !record.valid => {
            format!(
                "{key}: INVALID (attempt {}): {}",
                record.attempt,
                bdp_report::why_invalid(&record.fidelity)
            )
        }
        (None, Some(goodput)) => format!("{key}: {}", format_bps(goodput)),
        (None, None) => key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_minutes_and_seconds() {
        let said = [41, 61, 600, 3_661, 0].map(|seconds| words(Duration::from_secs(seconds)));
        assert_eq!(said, ["0:41 left", "1:01 left", "10:00 left", "1:01:01 left", "longer than expected"]);
    }

    #[test]
    fn a_case_that_takes_minutes_is_spoken_of_every_half_minute() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut state = State { done: 2, planned: 12, ..State::default() };
        assert_eq!(state.line(at(40)), None, "before anything is planned");
        state.plan(Duration::from_secs(71), start);
        let said: Vec<_> = (0..100).filter_map(|second| Some((second, state.line(at(second))?))).collect();
        let wanted = [(30, "0:41 left"), (60, "0:11 left"), (90, "longer than expected")];
        assert_eq!(said, wanted.map(|(second, left)| (second, format!("case 3 of 12, {left}"))));
        // The end of a case printed a line.
        state.advance(Duration::from_secs(50), at(100));
        assert_eq!((state.line(at(129)), state.line(at(130)).is_some()), (None, true));
        state.done = 12;
        assert_eq!(state.line(at(200)), None);
    }

    #[test]
    fn a_slow_machine_goes_on_to_be_slow() {
        let start = Instant::now();
        let after = |state: &mut State, left, now| {
            state.advance(Duration::from_secs(left), start + Duration::from_secs(now)).as_secs()
        };
        let mut state = State { planned: 10, ..State::default() };
        assert_eq!(state.plan(Duration::from_secs(100), start), Duration::from_secs(100));
        assert_eq!(after(&mut state, 95, 50), 95, "too little has ended to tell");
        assert_eq!(after(&mut state, 50, 200), 200, "four times as long");
        assert_eq!(after(&mut state, 0, 400), 0);
        // Being faster than estimated predicts nothing.
        let mut state = State { planned: 10, ..State::default() };
        state.plan(Duration::from_secs(100), start);
        assert_eq!(after(&mut state, 50, 5), 50);
    }
}
