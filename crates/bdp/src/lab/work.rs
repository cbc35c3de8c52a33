//! The running of cases: progress on standard error, records to the store, the table or JSON to standard output.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bdp_lab::machine;
use bdp_model::record::Record;
use bdp_model::scenario::{CaseSpec, PlanOptions, Scenario, shuffle};
use bdp_model::units::format_bps;
use bdp_run::schedule::{Keep, digest, key};
use bdp_run::{CaptureOrder, Conductor, Event, RunError, RunOptions, asks_for_captures};
use bdp_store::{NewRun, RunKind, SqliteStore, Store};
use bdp_sys::clock;
use indicatif::{ProgressBar, ProgressStyle};

use crate::exit::{self, Exit};
use crate::interrupt;
use crate::lab::claim::Claim;
use crate::lab::{list::short_time, source};
use crate::output;
use crate::store::refuse;

/// Given every record so far, the cases that are wanted beside those that were planned.
pub type Follow = Box<dyn FnMut(&[Record]) -> anyhow::Result<Vec<CaseSpec>>>;

/// Cases to run, and the run that they belong to.
pub struct Work {
    kind: RunKind,
    label: Option<String>,
    follow: Option<Follow>,
    scenarios: Vec<String>,
    texts: String,
    digest: String,
    planned: usize,
    cases: Vec<CaseSpec>,
    run: Option<String>,
    claim: Option<Claim>,
    settled: HashSet<String>,
    /// Attempts made at cases that are not settled.
    made: HashMap<String, u32>,
    before: Vec<Record>,
    attempts: Option<u32>,
    capture: Option<CaptureOrder>,
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
        let digest = digest(&cases);
        let seed = options.seed.or(scenarios.first().map(|s| s.seed)).unwrap_or(1);
        shuffle(&mut cases, seed);
        let texts: Vec<&str> = scenarios.iter().map(Scenario::text).collect();
        Ok(Self {
            kind: RunKind::Lab,
            label: None,
            follow: None,
            texts: texts.join("\n"),
            scenarios: scenarios.iter().map(|s| s.name.clone()).collect(),
            digest,
            planned: cases.len(),
            cases,
            run: None,
            claim: None,
            settled: HashSet::new(),
            made: HashMap::new(),
            before: Vec::new(),
            attempts: None,
            capture: None,
        })
    }

    /// Takes up the newest unfinished run of the same cases.
    pub fn resume(&mut self, store: Option<&mut SqliteStore>) -> anyhow::Result<()> {
        let store =
            store.ok_or_else(|| exit::usage("there is no store to resume from; leave out --resume"))?;
        let Some(run) = store.unfinished(&self.scenarios.join(" "), &self.digest).map_err(refuse)? else {
            output::note("no unfinished run of these cases is stored; starting a new one");
            return Ok(());
        };
        // Before its records are read: from now on nobody adds any.
        self.claim = Some(Claim::to(&run.id, store.path())?);
        self.settled = store.settled_keys(&run.id).map_err(refuse)?;
        for (key, record) in store.records(&run.id).map_err(refuse)? {
            if !self.settled.contains(&key) {
                let made = self.made.entry(key).or_default();
                *made = record.attempt.max(*made);
            }
            self.before.push(record);
        }
        output::note(&format!(
            "resuming run {}: {} of {} cases are done",
            run.id,
            self.settled.len(),
            self.planned
        ));
        self.run = Some(run.id);
        Ok(())
    }

    /// Gives a case up as INVALID after so many attempts.
    pub fn limit_attempts(&mut self, attempts: u32) {
        self.attempts = Some(attempts);
    }

    /// Captures into `folder`; without one, what the scenarios ask for, into a folder of its own.
    pub fn capture(&mut self, folder: Option<PathBuf>) -> anyhow::Result<()> {
        let everywhere = folder.is_some();
        let folder = match folder {
            Some(folder) => folder,
            None if self.cases.iter().any(asks_for_captures) => PathBuf::from(CAPTURE_FOLDER),
            None => return Ok(()),
        };
        // Now, and not when the first case has run for a while.
        std::fs::create_dir_all(&folder).map_err(|error| {
            let folder = folder.display();
            exit::environment(format!(
                "make the folder '{folder}' for captures: {error}; name another by --capture"
            ))
        })?;
        self.capture = Some(CaptureOrder { folder, everywhere });
        Ok(())
    }

    /// Makes it a sweep, with what is to follow on its outcomes.
    pub fn as_sweep(&mut self, label: Option<String>, follow: Option<Follow>) {
        self.kind = RunKind::Sweep;
        self.label = label;
        self.follow = follow;
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
        let refused = |error| (Vec::new(), error);
        machine::prepare();
        let command = crate::agent::command();
        // Before the run is entered: one that could not even begin is nothing to go on with.
        if let Some(obstacle) = machine::obstacle(&command) {
            return Err(refused(refusal(obstacle.into())));
        }
        let mut keep = match store {
            Some(store) => Some(self.enter(store).map_err(refused)?),
            None => None,
        };
        interrupt::set_last_words(Some(match keep {
            Some(_) => format!("what was measured is stored, and '{} --resume' goes on", command_line()),
            None => "this run is not stored".to_owned(),
        }));
        let conductor = Arc::new(Conductor::new(command).capturing(self.capture.clone()));
        let mut progress = Progress::new(self.settled.len(), self.planned);
        let options = RunOptions { jobs, attempts: self.attempts, made: std::mem::take(&mut self.made) };
        let mut follow = self.follow.take();
        let (new, outcome) = bdp_run::refine::run_on(
            &conductor,
            &self.cases,
            &self.settled,
            &options,
            keep.as_mut(),
            &self.before,
            &mut |records| match &mut follow {
                Some(follow) => follow(records).map_err(|error| RunError::Case(format!("{error:#}"))),
                None => Ok(Vec::new()),
            },
            &mut |e| progress.show(&e),
        );
        progress.end();
        let finished = match (&outcome, &mut keep) {
            (Ok(()), Some(keep)) => keep.store.finish_run(&keep.run, clock::unix_ms()).map_err(refuse),
            _ => Ok(()),
        };
        interrupt::set_last_words(None);
        let mut records = std::mem::take(&mut self.before);
        records.extend(new);
        // In the order in which they were named, whatever order they ran in.
        records.sort_by_key(|r| self.scenarios.iter().position(|name| *name == r.scenario));
        match (outcome, finished) {
            (Ok(()), Ok(())) => Ok(records),
            (Err(error), _) => Err((records, refusal(error))),
            // Every record is stored; what failed was to write down that the run is over.
            (_, Err(error)) => Err((records, error)),
        }
    }

    fn enter<'a>(&mut self, store: &'a mut SqliteStore) -> anyhow::Result<Keep<'a>> {
        let run = match &self.run {
            Some(run) => run.clone(),
            None => store
                .begin_run(&NewRun {
                    id: None,
                    kind: self.kind,
                    label: self.label.clone(),
                    scenario: self.scenarios.join(" "),
                    scenario_text: self.texts.clone(),
                    plan_digest: self.digest.clone(),
                    planned: u32::try_from(self.planned).unwrap_or(u32::MAX),
                    command: command_line(),
                    bdp: env!("CARGO_PKG_VERSION").to_owned(),
                    started_unix_ms: clock::unix_ms(),
                })
                .map_err(refuse)?,
        };
        if self.claim.is_none() {
            self.claim = Some(Claim::to(&run, store.path())?);
        }
        self.run = Some(run.clone());
        Ok(Keep { store, run })
    }
}

/// The command that was typed; `--resume` is left out, as it is added again.
pub fn command_line() -> String {
    let rest = std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned());
    let rest = rest.filter(|a| a != "--resume").map(|a| output::quote(&a));
    std::iter::once("bdp".to_owned()).chain(rest).collect::<Vec<_>>().join(" ")
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

/// The exit code that follows from the records: a case that could not run, then a missed expectation, then a point of
/// which no repetition was valid.
pub fn outcome_of(records: &[Record]) -> Exit {
    if records.iter().any(|r| r.error.is_some()) {
        return Exit::Environment;
    }
    if records.iter().any(|r| r.valid && r.expectation.as_ref().is_some_and(|e| e.met == Some(false))) {
        return Exit::Missed;
    }
    let mut points: BTreeMap<String, bool> = BTreeMap::new();
    for record in records {
        let point = format!("{} {:?}", record.scenario, record.params);
        *points.entry(point).or_default() |= record.valid;
    }
    if points.values().all(|&valid| valid) { Exit::Done } else { Exit::Invalid }
}

fn refusal(error: RunError) -> anyhow::Error {
    match error {
        // What was measured before and could be stored is not measured again.
        RunError::Store(error @ (bdp_store::Error::Full { .. } | bdp_store::Error::Sqlite { .. })) => {
            exit::environment(format!("{error}; '{} --resume' then goes on", command_line()))
        }
        RunError::Store(error) => refuse(error),
        RunError::Case(_) => error.into(),
        RunError::Lab(_) | RunError::Engine(_) | RunError::Session(_) => exit::environment(error.to_string()),
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
            format!("{key}: INVALID (attempt {}): {}", record.attempt, record.fidelity.why_invalid())
        }
        (None, Some(goodput)) => format!("{key}: {}", format_bps(goodput)),
        (None, None) => key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of one point, from a stored one.
    fn record(valid: bool, error: Option<&str>, met: Option<bool>) -> Record {
        let text = include_str!("../../../bdp-store/tests/it/record.json");
        let mut record: Record = serde_json::from_str(text).unwrap();
        record.valid = valid;
        record.error = error.map(str::to_owned);
        if let Some(expectation) = &mut record.expectation {
            expectation.met = met;
        }
        record
    }

    #[test]
    fn the_gravest_record_decides_the_exit_code() {
        let (kept, missed) = (record(true, None, Some(true)), record(true, None, Some(false)));
        let (invalid, failed) = (record(false, None, None), record(false, Some("it broke"), None));
        let exit = |records: &[&Record]| outcome_of(&records.iter().map(|&r| r.clone()).collect::<Vec<_>>());
        assert_eq!(exit(&[&kept]), Exit::Done);
        assert_eq!(exit(&[&kept, &missed]), Exit::Missed);
        assert_eq!(exit(&[&kept, &missed, &failed]), Exit::Environment);
        // An INVALID attempt beside a valid one of the same point was made good.
        assert_eq!(exit(&[&invalid, &kept]), Exit::Done);
        assert_eq!(exit(&[&invalid, &invalid]), Exit::Invalid);
        assert_eq!(exit(&[&invalid, &missed]), Exit::Missed);
        let elsewhere = Record { scenario: "another".to_owned(), ..kept.clone() };
        assert_eq!(exit(&[&invalid, &elsewhere]), Exit::Invalid);
        // What an INVALID attempt says of its expectation is not heard.
        assert_eq!(exit(&[&record(false, None, Some(false)), &kept]), Exit::Done);
    }
}
