//! The jobs that the page started, running and ended.

use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use bdp_run::job::Outcome;
use bdp_run::{EVENT_SCHEMA, Event};
use bdp_sys::clock;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

use crate::event_log::{EventLog, Role};
use crate::{Asked, Host, JobResult, Refused, RefusedBy};

/// Most ended jobs that are kept; their runs stay in the store.
const MOST_ENDED: usize = 50;

/// All jobs, oldest first.
pub struct Jobs {
    host: Arc<dyn Host>,
    all: Mutex<Table>,
    running: watch::Sender<usize>,
}

#[derive(Default)]
struct Table {
    jobs: VecDeque<Arc<RunningJob>>,
    last: u64,
}

/// A job that the page started.
pub struct RunningJob {
    /// Its number.
    pub id: u64,
    key: String,
    command: String,
    notes: Vec<String>,
    kind: String,
    started_unix_ms: u64,
    /// Its events.
    pub log: EventLog,
    cancel: AtomicBool,
    progress: Mutex<JobProgress>,
    answered: Condvar,
}

#[derive(Default)]
struct JobProgress {
    outcome: Option<Outcome>,
    /// The open question.
    question: Option<Value>,
    /// Number of the last question, from 1.
    asked: u64,
    answer: Option<bool>,
}

/// A job in a list.
#[derive(Serialize)]
pub struct JobState<'a> {
    id: String,
    command: &'a str,
    notes: &'a [String],
    kind: &'a str,
    started_unix_ms: u64,
    state: &'static str,
    question: Option<Value>,
    outcome: Option<Outcome>,
}

impl Jobs {
    /// No jobs yet.
    pub fn new(host: Arc<dyn Host>) -> Self {
        Self { host, all: Mutex::default(), running: watch::Sender::new(0) }
    }

    /// Starts a job, unless one with this key was started before: then returns that, and whether this one is new.
    /// One job runs at a time, since two would measure each other.
    pub fn start(&self, asked: Asked, key: String) -> Result<(Arc<RunningJob>, bool), Refused> {
        let mut table = lock(&self.all);
        if let Some(known) = table.jobs.iter().find(|job| !key.is_empty() && job.key == key) {
            return Ok((known.clone(), false));
        }
        if let Some(running) = table.jobs.iter().find(|job| !job.is_over()) {
            return Err(Refused::new(
                RefusedBy::Busy,
                format!("'{}' is running: stop it first, or wait for its end", running.command),
            ));
        }
        table.last += 1;
        let kind = asked.job.to_json()["job"].as_str().unwrap_or_default().to_owned();
        let job = Arc::new(RunningJob {
            id: table.last,
            key,
            command: asked.command.clone(),
            notes: asked.notes.clone(),
            kind,
            started_unix_ms: clock::unix_ms(),
            log: EventLog::new(),
            cancel: AtomicBool::new(false),
            progress: Mutex::default(),
            answered: Condvar::new(),
        });
        let (host, begun, running) = (self.host.clone(), job.clone(), self.running.clone());
        let thread = thread::Builder::new().name(format!("bdp-job-{}", job.id));
        self.running.send_modify(|running| *running += 1);
        let run = move || {
            begun.run(&*host, asked);
            running.send_modify(|running| *running -= 1);
        };
        thread.spawn(run).map_err(|error| {
            self.running.send_modify(|running| *running -= 1);
            Refused::new(RefusedBy::Environment, format!("cannot start a thread for the job: {error}"))
        })?;
        table.jobs.push_back(job.clone());
        while table.jobs.len() > MOST_ENDED && table.jobs[0].is_over() {
            table.jobs.pop_front();
        }
        Ok((job, true))
    }

    /// All jobs, newest first.
    pub fn list(&self) -> Vec<Arc<RunningJob>> {
        lock(&self.all).jobs.iter().rev().cloned().collect()
    }

    /// The job with this number.
    pub fn get(&self, id: &str) -> Result<Arc<RunningJob>, Refused> {
        let found = lock(&self.all).jobs.iter().find(|job| job.id.to_string() == id).cloned();
        found.ok_or_else(|| {
            Refused::new(
                RefusedBy::Missing,
                "no such job: the page of bdp was started again; its runs are in the history",
            )
        })
    }

    /// Cancels every job; each ends by itself.
    pub fn cancel_all(&self) {
        lock(&self.all).jobs.iter().for_each(|job| job.cancel());
    }

    /// Waits until no job runs.
    pub async fn all_ended(&self) {
        // The sender lives as long as this.
        let _ = self.running.subscribe().wait_for(|&running| running == 0).await;
    }
}

impl RunningJob {
    fn run(&self, host: &dyn Host, asked: Asked) {
        let mut watch = |event: Event<'_>, mut told: Value| {
            if matches!(event, Event::Question { .. }) {
                // It is asked next.
                told["question"]["number"] = (lock(&self.progress).asked + 1).into();
            }
            let role =
                if matches!(event, Event::Progress { .. } | Event::Probes { .. } | Event::Sockets { .. }) {
                    Role::Reading
                } else {
                    Role::Step
                };
            self.log.add(told.to_string(), role);
        };
        let mut answer = |question: Value| self.ask(question);
        let run = || host.run(asked, &mut watch, &mut answer, &self.cancel);
        // A bug of one job ends only that job; the panic hook has printed it.
        let JobResult { outcome, document } =
            panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
                JobResult::failed(
                    "internal error in bdp, printed where 'bdp page' runs; please report it".to_owned(),
                )
            });
        if let Some(document) = document {
            let head = format!(r#"{{"schema":"{EVENT_SCHEMA}","event":"result","document":"#);
            self.log.add(format!("{head}{document}}}"), Role::Step);
        }
        let text = outcome.to_json().to_string();
        // Together: whoever has the outcome finds the job over, and whoever finds it over finds the outcome.
        let mut progress = lock(&self.progress);
        progress.outcome = Some(outcome);
        self.log.add(text, Role::Outcome);
    }

    /// Waits for the answer of whoever watches; no if the job is cancelled meanwhile.
    fn ask(&self, mut question: Value) -> bool {
        let mut progress = lock(&self.progress);
        progress.asked += 1;
        question["number"] = progress.asked.into();
        progress.question = Some(question);
        progress.answer = None;
        while progress.answer.is_none() && !self.cancel.load(Ordering::Relaxed) {
            progress = self.answered.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
        progress.question = None;
        progress.answer.take().unwrap_or(false)
    }

    /// Whether it changes settings.
    pub fn is_fix(&self) -> bool {
        self.kind == "fix"
    }

    /// Answers the open question, if it has this number.
    pub fn answer(&self, number: u64, yes: bool) -> Result<(), Refused> {
        let mut progress = lock(&self.progress);
        let refused = |why| Err(Refused::new(RefusedBy::Usage, why));
        if progress.question.is_none() || progress.answer.is_some() {
            return refused("the job asks nothing now: it was answered before");
        }
        if number != progress.asked {
            return refused("the job asks another question now: read it, and answer that one");
        }
        progress.answer = Some(yes);
        drop(progress);
        self.answered.notify_all();
        Ok(())
    }

    /// Ends the job early; what it has measured is kept.
    pub fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
        // A question may be waiting; without the lock its thread could miss this.
        drop(lock(&self.progress));
        self.answered.notify_all();
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        lock(&self.progress).outcome.is_some()
    }

    /// The job in brief.
    pub fn state(&self) -> JobState<'_> {
        let progress = lock(&self.progress);
        JobState {
            id: self.id.to_string(),
            command: &self.command,
            notes: &self.notes,
            kind: &self.kind,
            started_unix_ms: self.started_unix_ms,
            state: if progress.outcome.is_some() { "ended" } else { "running" },
            question: progress.question.clone(),
            outcome: progress.outcome.clone(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
