//! The running of cases: progress on standard error, records to the store, the table or JSON to standard output.

use std::collections::HashSet;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use bdp_model::record::Record;
use bdp_model::scenario::{PlanOptions, Scenario};
use bdp_model::units::format_bps;
use bdp_run::case_key::key;
use bdp_run::job::Ending;
use bdp_run::lab::{LabPlan, LabRun, RefinedSweep, Resumed, StoreAt};
use bdp_run::{CaptureOrder, Event, RunError, asks_for_captures};
use bdp_store::{RunKind, SqliteStore};
use indicatif::{ProgressBar, ProgressStyle};

use crate::exit::{self, Exit};
use crate::lab::{list::short_time, source};
use crate::output;
use crate::store::refuse;
use crate::{command_line, interrupt};

/// Cases to run, and the run that they belong to.
pub struct Work {
    plan: LabPlan,
    resumed: Option<Resumed>,
    run: Option<String>,
}

/// Where the captures go that a scenario asks for, where no folder was named.
const CAPTURE_FOLDER: &str = "bdp-captures";

impl Work {
    /// Plans the cases of all scenarios, in a random order that the seed decides, a block for each repetition.
    pub fn plan(scenarios: Vec<Scenario>, options: &PlanOptions) -> anyhow::Result<Self> {
        let mut cases = Vec::new();
        let mut names = HashSet::new();
        for scenario in &scenarios {
            if !names.insert(&scenario.name) {
                let name = &scenario.name;
                return Err(exit::usage(format!(
                    "{name} is given twice; '{name} --repetitions N' repeats it"
                )));
            }
            cases.extend(source::plan(scenario, options)?);
        }
        let seed = options.seed.or(scenarios.first().map(|s| s.seed)).unwrap_or(1);
        Ok(Self {
            plan: LabPlan::new(&scenarios, cases, seed, command_line::typed()),
            resumed: None,
            run: None,
        })
    }

    /// Takes up the newest unfinished run of the same cases.
    pub fn resume(&mut self, store: Option<&mut SqliteStore>) -> anyhow::Result<()> {
        let store =
            store.ok_or_else(|| exit::usage("there is no store to resume from; leave out --resume"))?;
        let path = store.path().to_owned();
        let Some(resumed) = self.plan.resume(&StoreAt { store, path: &path }).map_err(refusal)? else {
            output::note("no unfinished run of these cases is stored; starting a new one");
            return Ok(());
        };
        let (done, planned) = (resumed.settled.len(), self.plan.cases.len());
        output::note(&format!("resuming run {}: {done} of {planned} cases are done", resumed.run));
        self.run = Some(resumed.run.clone());
        self.resumed = Some(resumed);
        Ok(())
    }

    /// Gives a case up as INVALID after so many attempts.
    pub fn limit_attempts(&mut self, attempts: u32) {
        self.plan.attempts = Some(attempts);
    }

    /// Captures into `folder`; without one, what the scenarios ask for, into a folder of its own.
    pub fn capture(&mut self, folder: Option<PathBuf>) -> anyhow::Result<()> {
        let everywhere = folder.is_some();
        let folder = match folder {
            Some(folder) => folder,
            None if self.plan.cases.iter().any(asks_for_captures) => PathBuf::from(CAPTURE_FOLDER),
            None => return Ok(()),
        };
        // Now, and not when the first case has run for a while.
        std::fs::create_dir_all(&folder).map_err(|error| {
            let folder = folder.display();
            exit::environment(format!(
                "make the folder '{folder}' for captures: {error}; name another by --capture"
            ))
        })?;
        self.plan.capture = Some(CaptureOrder { folder, everywhere });
        Ok(())
    }

    /// Makes it a sweep, with points that are added where its curves bend.
    pub fn as_sweep(&mut self, label: Option<String>, refine: Option<RefinedSweep>) {
        self.plan.kind = RunKind::Sweep;
        self.plan.label = label;
        self.plan.refine = refine;
    }

    /// The run's id in the store.
    pub fn run_id(&self) -> Option<&str> {
        self.run.as_deref()
    }

    /// Runs what is not settled. Gives every record of the run, those of an earlier start included; on an error, what
    /// there is beside it.
    pub fn run(
        &mut self,
        jobs: Option<usize>,
        store: Option<&mut SqliteStore>,
    ) -> Result<Vec<Record>, (Vec<Record>, anyhow::Error)> {
        self.plan.jobs = jobs;
        let resumed = self.resumed.take();
        let done = resumed.as_ref().map_or(0, |resumed| resumed.settled.len());
        let planned = self.plan.cases.len();
        let mut progress = None;
        let path = store.as_ref().map(|store| store.path().to_owned());
        let at = store.zip(path.as_deref()).map(|(store, path)| StoreAt { store, path });
        let mut watch = |event: Event<'_>| match event {
            Event::Entered { run } => {
                interrupt::set_last_words(Some(match run {
                    Some(_) => {
                        format!(
                            "what was measured is stored, and '{} --resume' goes on",
                            command_line::typed()
                        )
                    }
                    None => "this run is not stored".to_owned(),
                }));
                // Its thread must not be the first.
                progress = Some(Progress::new(done, planned));
            }
            event => progress.iter_mut().for_each(|progress| progress.show(&event)),
        };
        let LabRun { run, records, result } = self.plan.run(crate::agent::command(), resumed, at, &mut watch);
        progress.iter_mut().for_each(Progress::end);
        interrupt::set_last_words(None);
        self.run = run;
        match result {
            Ok(()) => Ok(records),
            Err(error) => Err((records, refusal(error))),
        }
    }
}

/// Prints the records as they were asked for; a table ends with the command that prints it again.
pub fn print(
    records: &[Record],
    run: Option<&str>,
    as_json: bool,
    again: Option<&str>,
) -> anyhow::Result<()> {
    if as_json {
        output::print(&format!("{:#}\n", bdp_report::json(records, run)))?;
    } else {
        let mut text = bdp_report::table(records, &output::style());
        if let Some(again) = again {
            text.push_str(&format!("{again} prints it again\n"));
        }
        output::print(&text)?;
    }
    Ok(())
}

/// The exit code that follows from the records.
pub fn outcome_of(records: &[Record]) -> Exit {
    match Ending::of(records) {
        Ending::Done | Ending::Cancelled => Exit::Done,
        Ending::Missed => Exit::Missed,
        Ending::Invalid => Exit::Invalid,
        Ending::Failed => Exit::Environment,
    }
}

fn refusal(error: RunError) -> anyhow::Error {
    match error {
        // What was measured before and could be stored is not measured again.
        RunError::Store(error @ (bdp_store::Error::Full { .. } | bdp_store::Error::Sqlite { .. })) => {
            exit::environment(format!("{error}; '{} --resume' then goes on", command_line::typed()))
        }
        RunError::Store(error) => refuse(error),
        RunError::Case(_) => error.into(),
        RunError::Lab(_) | RunError::Engine(_) | RunError::Session(_) | RunError::Claimed { .. } => {
            exit::environment(error.to_string())
        }
    }
}

/// A bar with the time left on a terminal, a line for each case elsewhere.
struct Progress {
    bar: Option<ProgressBar>,
    done: usize,
    planned: usize,
    /// Whether the first round began; what is planned after it comes on top.
    began: bool,
}

impl Progress {
    fn new(done: usize, planned: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(planned as u64);
            let style = ProgressStyle::with_template("{wide_msg}\n[{bar:40}] {pos}/{len} cases  {prefix}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
            bar.set_position(done as u64);
            bar.enable_steady_tick(Duration::from_millis(500));
            bar
        });
        Self { bar, done, planned, began: false }
    }

    fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Planned { cases, time } => {
                if std::mem::replace(&mut self.began, true) {
                    self.planned += cases;
                }
                match &self.bar {
                    Some(bar) => {
                        bar.set_length(self.planned as u64);
                        bar.set_prefix(format!("about {} left", short_time(*time)));
                    }
                    None => output::note(&format!("{cases} cases, about {}", short_time(*time))),
                }
            }
            Event::CaseStarted { key, attempt } => {
                if let Some(bar) = &self.bar {
                    let again = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
                    bar.set_message(format!("{key}{again}"));
                }
            }
            Event::CaseEnded { record, settled, left } => {
                self.done += usize::from(*settled);
                match &self.bar {
                    Some(bar) => {
                        bar.set_position(self.done as u64);
                        bar.set_prefix(format!("about {} left", short_time(*left)));
                    }
                    None => output::note(&format!("{}/{} {}", self.done, self.planned, ended(record))),
                }
            }
            _ => {}
        }
    }

    fn end(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn ended(record: &Record) -> String {
    let key = key(&record.case);
    match (&record.error, record.goodput_bps) {
        (Some(error), _) => format!("{key}: FAILED: {error}"),
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
