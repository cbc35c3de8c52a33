//! Where attempts run and time passes: the lab, or a substitute in tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use bdp_lab::{Driver, Pace};
use bdp_model::record::Record;

use crate::case::runner::CaseRunner;
use crate::guest::Guests;
use crate::lab::turn::{Demand, Turn};
use crate::{Result, RunError};

/// The result of an attempt, with the ticket under which it was started.
pub(crate) type Ended = (u64, Result<Record>);

/// Runs attempts in parallel.
pub(crate) trait Stage {
    /// Time since the stage was made.
    fn now(&self) -> Duration;

    /// Begins an attempt. It ends by itself, whatever happens in it.
    fn begin(&mut self, ticket: u64, turn: &Turn);

    /// Waits for the next attempt to end, no longer than `longest`.
    fn next_end(&mut self, longest: Option<Duration>) -> Option<Ended>;

    /// Whether no further attempt is wanted.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// What runs cases: hosts of this machine by its clock, or guests for cases with the virtual clock.
#[derive(Clone, Copy)]
pub(crate) struct Lab<'a> {
    pub(crate) runner: &'a Arc<CaseRunner>,
    pub(crate) guests: Option<&'a Arc<Guests>>,
    pub(crate) cancel: &'a AtomicBool,
}

/// The lab: a thread for each attempt, one driver for those that share.
pub(crate) struct LabStage<'a> {
    cancel: &'a AtomicBool,
    runner: Arc<CaseRunner>,
    guests: Option<Arc<Guests>>,
    shared: Arc<Driver>,
    done: Sender<Ended>,
    ended: Receiver<Ended>,
    made: Instant,
}

impl<'a> LabStage<'a> {
    pub(crate) fn new(lab: Lab<'a>) -> Result<Self> {
        let shared = Arc::new(Driver::start(Pace::Share)?);
        let (done, ended) = channel();
        let (runner, guests) = (Arc::clone(lab.runner), lab.guests.cloned());
        Ok(Self { cancel: lab.cancel, guests, runner, shared, done, ended, made: Instant::now() })
    }
}

impl Stage for LabStage<'_> {
    fn now(&self) -> Duration {
        self.made.elapsed()
    }

    fn begin(&mut self, ticket: u64, turn: &Turn) {
        let (runner, shared) = (Arc::clone(&self.runner), Arc::clone(&self.shared));
        let (done, turn) = (self.done.clone(), turn.clone());
        let guests = self.guests.clone();
        let work = move || {
            let work = std::panic::AssertUnwindSafe(|| match &guests {
                _ if turn.case.runs_in_steps() && !turn.case.needs_guest() => {
                    runner.run_in_steps(&turn.case, turn.attempt, None)
                }
                Some(guests) if turn.demand == Demand::Processor => Ok(guests.run(&turn.case, turn.attempt)),
                _ => run_case(&runner, &turn, &shared),
            });
            let outcome = std::panic::catch_unwind(work)
                .unwrap_or_else(|_| Err(RunError::Case("a thread of bdp panicked".to_owned())));
            // If the receiver has gone, the run was given up.
            let _ = done.send((ticket, outcome));
        };
        if let Err(error) = thread::Builder::new().name("bdp-case".to_owned()).spawn(work) {
            let operation = "start a thread for a case (use a smaller --jobs or raise the limit 'ulimit -u')";
            let refused = bdp_flow::error::FlowError::Io { operation, source: error };
            let _ = self.done.send((ticket, Err(refused.into())));
        }
    }

    fn next_end(&mut self, longest: Option<Duration>) -> Option<Ended> {
        match longest {
            Some(longest) => self.ended.recv_timeout(longest).ok(),
            // This end holds a sender too, so the channel is never disconnected.
            None => self.ended.recv().ok(),
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}

fn run_case(runner: &CaseRunner, turn: &Turn, shared: &Driver) -> Result<Record> {
    match turn.demand {
        Demand::Shared(_) | Demand::Processor => runner.run(&turn.case, turn.attempt, shared),
        Demand::Alone => {
            let own = Driver::start(Pace::Spin)?;
            runner.run(&turn.case, turn.attempt, &own)
        }
    }
}
