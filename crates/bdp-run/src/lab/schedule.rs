//! Schedules cases: when each runs and what runs in parallel; INVALID cases run again; each record is durable before
//! the next case.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use bdp_flow::session::error::SessionError;
use bdp_model::case::CaseSpec;
use bdp_model::case::route::Route;
use bdp_model::case::stack::Clock;
use bdp_model::record::Record;
use bdp_store::Store;

use crate::case::key::key;
use crate::lab::stage::{Lab, LabStage, Stage};
use crate::lab::turn::{Demand, SHARED_SEGMENTS_PER_SECOND, Turn, again};
use crate::{Event, Result, RunError};

/// Default attempts at a case until it is recorded as INVALID.
pub const ATTEMPTS: u32 = 4;
/// More cases than these side by side bring nothing on any machine.
const MOST_JOBS: usize = 256;

/// Options of a run.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Cases to run in parallel; `None` for as many as remain faithful, 1 for one at a time with a spinning driver.
    pub jobs: Option<usize>,
    /// Attempts at a case until it is recorded as INVALID; `None` for [`ATTEMPTS`].
    pub attempts: Option<u32>,
    /// Attempts that an earlier start of this run made at cases that it did not settle, by [`key`].
    pub made: HashMap<String, u32>,
}

/// Where records are stored.
pub struct Keep<'a> {
    /// The store.
    pub store: &'a mut dyn Store,
    /// The run's id in the store.
    pub run: String,
}

/// Runs cases block by block, one block per repetition, in the given order within it, except that cases that need the
/// machine to themselves run either before or after all others of the block, whichever kind comes first. Cases whose
/// key is in `settled` are skipped. Every record goes to `keep` before another case takes its place, and then to
/// `tell`; records are returned in order of completion. On an error the measured results are returned alongside.
pub(crate) fn run(
    lab: Lab<'_>,
    cases: &[CaseSpec],
    settled: &HashSet<String>,
    options: &RunOptions,
    keep: Option<&mut Keep<'_>>,
    tell: &mut dyn FnMut(Event<'_>),
) -> (Vec<Record>, Result<()>) {
    match LabStage::new(lab) {
        Ok(mut stage) => Schedule::new(cases, settled, options).run_pending(&mut stage, keep, tell),
        Err(error) => (Vec::new(), Err(error)),
    }
}

/// Returns how long these cases take if nothing goes wrong.
pub fn usual_time(cases: &[CaseSpec]) -> Duration {
    Schedule::new(cases, &HashSet::new(), &RunOptions::default()).time_left()
}

struct Schedule {
    waiting: VecDeque<Turn>,
    jobs: usize,
    attempts: u32,
    running: HashMap<u64, Turn>,
    next_ticket: u64,
    /// An error that would affect every case and therefore ends the run.
    fatal: Option<RunError>,
}

impl Schedule {
    fn new(cases: &[CaseSpec], settled: &HashSet<String>, options: &RunOptions) -> Self {
        let jobs = options.jobs.unwrap_or(MOST_JOBS).clamp(1, MOST_JOBS);
        let mut waiting: Vec<Turn> = cases
            .iter()
            .map(|case| (key(case), case))
            .filter(|(key, _)| !settled.contains(key))
            .map(|(key, case)| {
                let attempt = 1 + options.made.get(&key).copied().unwrap_or(0);
                let demand = match case.clock {
                    Clock::Virtual => Demand::Processor,
                    Clock::Real if jobs == 1 => Demand::Alone,
                    Clock::Real => Demand::of(case).at_attempt(attempt),
                };
                Turn { case: case.clone(), attempt, demand, not_before: Duration::ZERO }
            })
            .collect();
        let mut first_is_alone = HashMap::new();
        for turn in waiting.iter().filter(|turn| turn.attempt == 1) {
            let (block, is_alone) = turn.place();
            first_is_alone.entry(block).or_insert(is_alone);
        }
        // Cases tried before run last, as in the run that tried them.
        waiting.sort_by_key(|turn| {
            let (block, is_alone) = turn.place();
            (turn.attempt > 1, block, first_is_alone.get(&block).is_some_and(|&first| first != is_alone))
        });
        Self {
            waiting: waiting.into(),
            jobs,
            attempts: options.attempts.unwrap_or(ATTEMPTS).max(1),
            running: HashMap::new(),
            next_ticket: 0,
            fatal: None,
        }
    }

    fn left(&self) -> usize {
        self.waiting.len() + self.running.len()
    }

    /// Cases alone add up; cases side by side take as long as their demands fill the driver.
    fn time_left(&self) -> Duration {
        let mut alone = 0.0;
        let mut shared = 0.0;
        let mut longest: f64 = 0.0;
        for w in self.waiting.iter().chain(self.running.values()) {
            let time = usual_seconds(&w.case);
            match w.demand {
                Demand::Alone => alone += time,
                Demand::Processor => alone += guest_seconds(&w.case) / self.jobs.min(processors()) as f64,
                Demand::Shared(part) => {
                    let share = (part / SHARED_SEGMENTS_PER_SECOND).max(1.0 / self.jobs as f64);
                    shared += time * share;
                    longest = longest.max(time);
                }
            }
        }
        Duration::from_secs_f64(alone + shared.max(longest))
    }

    /// Runs everything; if cancelled, or if an error would affect every case, ends early, once running cases have ended.
    fn run_pending(
        mut self,
        stage: &mut dyn Stage,
        mut keep: Option<&mut Keep<'_>>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> (Vec<Record>, Result<()>) {
        let mut records = Vec::new();
        tell(Event::Planned { cases: self.left(), time: self.time_left().into() });
        loop {
            // One moment for both, or a pause that ends between them would be waited for without an end.
            let now = stage.now();
            if stage.is_cancelled() {
                self.fatal.get_or_insert(SessionError::Cancelled.into());
            }
            if self.fatal.is_none() {
                self.start_what_fits(now, stage, tell);
            }
            if self.running.is_empty() && (self.fatal.is_some() || self.waiting.is_empty()) {
                return (records, self.fatal.map_or(Ok(()), Err));
            }
            let Some((ticket, outcome)) = stage.next_end(self.nap(now)) else { continue };
            let Some(turn) = self.running.remove(&ticket) else { continue };
            match outcome {
                Ok(record) => {
                    let settled = self.note(stage.now(), turn, &record, &mut keep);
                    let left = self.time_left().into();
                    tell(Event::CaseEnded { record: Cow::Borrowed(&record), settled, left });
                    records.push(record);
                }
                Err(error) => {
                    self.fatal.get_or_insert(error);
                }
            }
        }
    }

    /// Keeps a record, and queues the case again if another attempt is due. Returns whether it is settled.
    fn note(&mut self, now: Duration, turn: Turn, record: &Record, keep: &mut Option<&mut Keep<'_>>) -> bool {
        // By the virtual clock another attempt would have the same result.
        let last = turn.attempt >= self.attempts || !turn.case.clock.is_real();
        let settled = record.valid || record.error.is_some() || record.skipped.is_some() || last;
        if let Some(keep) = keep
            && let Err(error) =
                keep.store.append(&keep.run, &key(&turn.case), record, settled && !record.lost_its_guest())
        {
            self.fatal.get_or_insert(error.into());
        }
        if !settled && self.fatal.is_none() {
            self.waiting.push_back(again(turn, now));
        }
        settled
    }

    fn start_what_fits(&mut self, now: Duration, stage: &mut dyn Stage, tell: &mut dyn FnMut(Event<'_>)) {
        while let Some(turn) = self.next_that_fits(now) {
            tell(Event::CaseStarted { key: key(&turn.case).into(), attempt: turn.attempt });
            let ticket = self.next_ticket;
            self.next_ticket += 1;
            stage.begin(ticket, &turn);
            self.running.insert(ticket, turn);
        }
    }

    fn next_that_fits(&mut self, now: Duration) -> Option<Turn> {
        let alone = |t: &Turn| t.demand == Demand::Alone;
        if self.running.len() >= self.jobs || self.running.values().any(alone) {
            return None;
        }
        let guests = self.running.values().filter(|t| t.demand == Demand::Processor).count();
        let others = self.running.len() > guests;
        let used: f64 =
            self.running.values().map(|t| if let Demand::Shared(part) = t.demand { part } else { 0.0 }).sum();
        // No case of a later block runs before one of this: otherwise drift would separate repetitions.
        let place = self.waiting.iter().find(|t| t.attempt == 1).map(Turn::place);
        let index = self.waiting.iter().position(|t| {
            t.not_before <= now
                && (t.attempt > 1 || place == Some(t.place()))
                && match t.demand {
                    Demand::Alone => self.running.is_empty(),
                    Demand::Processor => !others && guests < processors(),
                    Demand::Shared(_) if guests > 0 => false,
                    Demand::Shared(part) => used == 0.0 || used + part <= SHARED_SEGMENTS_PER_SECOND,
                }
        })?;
        self.waiting.remove(index)
    }

    /// Returns how long to wait for an end before checking back-offs again; `None` if there are none.
    fn nap(&self, now: Duration) -> Option<Duration> {
        self.waiting
            .iter()
            .map(|t| t.not_before)
            .filter(|&moment| moment > now)
            .min()
            .map(|moment| moment - now)
    }
}

/// Guests that run side by side without taking a processor from each other.
fn processors() -> usize {
    bdp_sys::process::allowed_cpus().len().max(1)
}

/// Seconds of a processor that a guest takes for a case: to boot, and for each segment on each link.
fn guest_seconds(case: &CaseSpec) -> f64 {
    let last_end = case.flows.iter().map(|f| f.span().end).max().unwrap_or_default();
    let segments = Demand::segments_per_second(case).min(1e6) * last_end.as_secs_f64();
    0.5 + segments * 40e-6
}

/// Seconds that a case takes when nothing goes wrong.
fn usual_seconds(case: &CaseSpec) -> f64 {
    let last_end = case.flows.iter().map(|f| f.span().end).max().unwrap_or_default();
    let rtt = case.flows.iter().filter_map(|f| Some(Route::of(case, f)?.delay())).max().unwrap_or_default();
    let calibrating = case.flows.iter().filter(|f| f.spec.window.is_some()).count() as f64 * 0.7;
    (case.idle + last_end).as_secs_f64() + 6.0 * rtt.as_secs_f64() + calibrating + 0.3
}

#[cfg(test)]
mod tests;
