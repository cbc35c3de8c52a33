//! Runs cases: progress on standard error, records to the store, the table or JSON to standard output.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use bdp_model::case::CaseSpec;
use bdp_model::measurement::labels::Labels;
use bdp_model::record::Record;
use bdp_run::job::context::{Context, StoreAt};
use bdp_run::job::{Ended, Job, Results};
use bdp_run::lab::{LabPlan, RefinedSweep};
use bdp_run::{CaptureOrder, Event, RunError, asks_for_captures};
use bdp_scenario::{PlanOptions, Scenario};
use bdp_store::{RunKind, SqliteStore};
use serde_json::Value;

use crate::absurd;
use crate::exit;
use crate::lab::{progress::Progress, source};
use crate::output;
use crate::{command_line, interrupt, reach};

/// Cases to run, and the run that they belong to.
pub struct Work {
    plan: LabPlan,
    run: Option<String>,
}

/// Default folder of the captures that a scenario requests.
const CAPTURE_FOLDER: &str = "bdp-captures";

impl Work {
    /// Plans the cases of all scenarios, in a random order determined by the seed, one block for each repetition.
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
        absurd::note_links(&cases);
        let seed = options.seed.or(scenarios.first().map(|s| s.seed)).unwrap_or(1);
        Ok(Self { plan: LabPlan::new(&scenarios, cases, seed, command_line::typed()), run: None })
    }

    /// Resumes the newest unfinished run of the same cases, if there is one.
    pub fn resume(&mut self) {
        self.plan.resume = true;
    }

    /// Limits the attempts at a case, after which it is INVALID.
    pub fn limit_attempts(&mut self, attempts: u32) {
        self.plan.attempts = Some(attempts);
    }

    /// Captures into `folder`; without one, the captures that the scenarios request, into a default folder.
    pub fn capture(&mut self, folder: Option<PathBuf>) -> anyhow::Result<()> {
        self.plan.capture = capture_order(folder, &self.plan.cases)?;
        Ok(())
    }

    /// Makes it a sweep, with points added where its curves bend.
    pub fn as_sweep(&mut self, refine: Option<RefinedSweep>) {
        self.plan.kind = RunKind::Sweep;
        self.plan.refine = refine;
    }

    /// Sets the run's name and labels.
    pub fn call(&mut self, label: Option<String>, labels: Labels) {
        (self.plan.label, self.plan.labels) = (label, labels);
    }

    /// The run's id in the store.
    pub fn run_id(&self) -> Option<&str> {
        self.run.as_deref()
    }

    /// Limits the cases that run in parallel.
    pub fn limit_jobs(&mut self, jobs: Option<u32>) {
        self.plan.jobs = jobs.map(|jobs| jobs as usize);
    }

    /// The job that runs the unsettled cases.
    pub fn job(&self) -> Job {
        Job::Lab(Box::new(self.plan.clone()))
    }

    /// Runs the unsettled cases. Returns every record of the run, including those of an earlier start; on an error, the records so far with it.
    pub fn run(
        &mut self,
        store: Option<&mut SqliteStore>,
    ) -> Result<Vec<Record>, (Vec<Record>, anyhow::Error)> {
        let mut progress = None;
        let mut watch = |event: Event<'_>| match event {
            Event::Resumed { run, done, planned } => {
                output::note(&format!("resuming run {run}: {done} of {planned} cases are done"));
            }
            Event::NothingToResume => {
                output::note("no unfinished run of these cases in the store; starting a new one");
            }
            Event::Entered { run, done, planned } => {
                let typed = command_line::typed();
                interrupt::set_last_words(Some(match run {
                    Some(_) => format!("the results so far are stored; '{typed} --resume' continues"),
                    None => "this run is not stored".to_owned(),
                }));
                // Its thread must not be the first.
                progress = Some(Progress::new(done, planned));
            }
            event => progress.iter_mut().for_each(|progress| progress.show(&event)),
        };
        let never = AtomicBool::new(false);
        let context = Context::new(&crate::guest::commands, &mut watch, &never);
        let ended = self.job().run(context.storing(store.map(StoreAt::of)));
        progress.iter_mut().for_each(Progress::end);
        interrupt::set_last_words(None);
        self.run = ended.run;
        let Results::Records(records) = ended.results else { return Ok(Vec::new()) };
        match ended.result {
            Ok(()) => Ok(records),
            Err(error) => Err((records, refusal(error))),
        }
    }
}

/// Captures of these cases into `folder`; without one, those that the scenarios request, into a default folder.
pub fn capture_order(folder: Option<PathBuf>, cases: &[CaseSpec]) -> anyhow::Result<Option<CaptureOrder>> {
    if reach::is_narrow() {
        return Ok(None);
    }
    let everywhere = folder.is_some();
    let folder = match folder {
        Some(folder) => folder,
        None if cases.iter().any(asks_for_captures) => PathBuf::from(CAPTURE_FOLDER),
        None => return Ok(None),
    };
    // Checked now, and not after the first case has run for a while.
    std::fs::create_dir_all(&folder).map_err(|error| {
        let folder = folder.display();
        exit::environment(format!(
            "create the folder '{folder}' for captures: {error}; choose another with --capture"
        ))
    })?;
    Ok(Some(CaptureOrder { folder, everywhere }))
}

/// Prints the records in the requested form; a table ends with the command that prints it again.
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

/// The document of an ended run; `None` if it has no record.
pub fn document(ended: &Ended) -> Option<Value> {
    let records = ended.results.records();
    (!records.is_empty()).then(|| bdp_report::json(records, ended.run.as_deref()))
}

fn refusal(error: RunError) -> anyhow::Error {
    match error {
        // Earlier measurements that could be stored are not repeated.
        RunError::Store(error @ (bdp_store::Error::Full { .. } | bdp_store::Error::Sqlite { .. })) => {
            exit::environment(format!("{error}; '{} --resume' then continues", command_line::typed()))
        }
        RunError::Case(_) => error.into(),
        error => crate::refusal::of(error),
    }
}
