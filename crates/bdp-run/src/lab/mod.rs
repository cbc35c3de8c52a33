//! Runs cases of scenarios on the lab as one run: stores and claims it, resumes an interrupted one, and adds points
//! where a curve bends.

mod claim;
pub mod schedule;
pub(crate) mod stage;
mod turn;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bdp_lab::{LabCommands, machine};
use bdp_model::case::CaseSpec;
use bdp_model::measurement::labels::Labels;
use bdp_model::record::Record;
use bdp_model::sweep::record_curves::curves;
use bdp_scenario::{PlanOptions, Scenario, Traces, shuffle};
use bdp_store::{NewRun, RunKind};
use bdp_sys::clock;
use serde::{Deserialize, Serialize};

use crate::case::key::digest;
use crate::case::runner::CaseRunner;
use crate::guest::Guests;
use crate::job::context::StoreAt;
use crate::sweep::refine::{Refinement, Rounds};
use crate::{CaptureOrder, Event, Result, RunError};
use claim::Claim;
use schedule::{Keep, RunOptions};

/// A plan of cases to run on the lab.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LabPlan {
    /// The kind under which the run is listed: lab or sweep.
    pub kind: RunKind,
    /// The user's name for it.
    pub label: Option<String>,
    /// The user's labels, by name.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Names of the scenarios.
    pub scenarios: Vec<String>,
    /// The text of their files, concatenated.
    pub text: String,
    /// Digest that identifies this plan.
    pub digest: String,
    /// The cases, in execution order.
    pub cases: Vec<CaseSpec>,
    /// Cases to run in parallel; `None` for as many as remain faithful.
    pub jobs: Option<usize>,
    /// Attempts at a case until it is recorded as INVALID; `None` for the default.
    pub attempts: Option<u32>,
    /// What to capture.
    pub capture: Option<CaptureOrder>,
    /// The sweep whose curve is refined with more points.
    pub refine: Option<RefinedSweep>,
    /// Whether to resume the newest unfinished run of the same cases, if there is one.
    #[serde(default)]
    pub resume: bool,
    /// The command that repeats the run.
    pub command: String,
}

/// A sweep within a scenario to which points are added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RefinedSweep {
    /// Name of the scenario.
    pub scenario: String,
    /// The scenario's file.
    pub text: String,
    /// The traces that the scenario names.
    #[serde(default, skip_serializing_if = "Traces::is_empty")]
    pub traces: Traces,
    /// The part of the scenario that is run.
    pub options: PlanOptions,
    /// The parameter to which values are added; one that `options` vary.
    pub path: String,
    /// The parameter's values so far, in bytes or as a count.
    pub asked: Vec<u64>,
}

/// An unfinished run being resumed. Nobody else can resume it meanwhile.
#[derive(Debug)]
struct Resumed {
    /// The run's id.
    run: String,
    /// Keys of the settled cases.
    settled: HashSet<String>,
    claim: Claim,
    /// Attempts made at cases that are not settled.
    made: HashMap<String, u32>,
    before: Vec<Record>,
}

/// The result of a lab plan.
#[derive(Debug)]
pub struct LabRun {
    /// The id of the stored run; `None` if nothing is stored.
    pub run: Option<String>,
    /// Every record, including those of an earlier start, in the order of the scenarios.
    pub records: Vec<Record>,
    /// Whether it completed.
    pub result: Result<()>,
}

impl LabPlan {
    /// Plans these cases, given in natural order; `seed` shuffles their order within each repetition.
    pub fn new(scenarios: &[Scenario], mut cases: Vec<CaseSpec>, seed: u64, command: String) -> Self {
        let digest = digest(&cases);
        shuffle(&mut cases, seed);
        let texts: Vec<&str> = scenarios.iter().map(Scenario::text).collect();
        Self {
            kind: RunKind::Lab,
            label: None,
            labels: Labels::NONE,
            scenarios: scenarios.iter().map(|s| s.name.clone()).collect(),
            text: texts.join("\n"),
            digest,
            cases,
            jobs: None,
            attempts: None,
            capture: None,
            refine: None,
            resume: false,
            command,
        }
    }

    /// Claims the newest unfinished run of the same cases; `None` if there is none.
    fn take_up(&self, at: Option<&StoreAt<'_>>) -> Result<Option<Resumed>> {
        let Some(at) = at else {
            let text = "no store to resume from; omit --resume";
            return Err(RunError::Request(text.to_owned()));
        };
        let store = &at.store;
        let Some(run) = store.unfinished(&self.scenarios.join(" "), &self.digest)? else { return Ok(None) };
        // Claimed before its records are read: from now on nobody else adds any.
        let claim = Claim::to(&run.id, &at.path)?;
        let settled = store.settled_keys(&run.id)?;
        let mut made: HashMap<String, u32> = HashMap::new();
        let mut before = Vec::new();
        for (key, record) in store.records(&run.id)? {
            if !settled.contains(&key) && record.lost_its_guest() {
                // Runs again as the same attempt: the same draws, which no record has used.
                continue;
            }
            if !settled.contains(&key) {
                let made = made.entry(key).or_default();
                *made = record.attempt.max(*made);
            }
            before.push(record);
        }
        Ok(Some(Resumed { run: run.id, settled, claim, made, before }))
    }

    /// Runs the cases that are not settled, on hosts and guests that `agents` create. Every record is durable before
    /// another case takes its place. Once `cancel` is raised, no further case begins.
    pub fn run(
        &self,
        agents: LabCommands,
        at: Option<StoreAt<'_>>,
        watch: &mut dyn FnMut(Event<'_>),
        cancel: &AtomicBool,
    ) -> LabRun {
        let planned = self.cases.len();
        let resumed = match self.resume.then(|| self.take_up(at.as_ref())).transpose() {
            Ok(resumed) => resumed.flatten(),
            Err(error) => return LabRun { run: None, records: Vec::new(), result: Err(error) },
        };
        match &resumed {
            Some(Resumed { run, settled, .. }) => {
                watch(Event::Resumed { run: Cow::Borrowed(run), done: settled.len(), planned });
            }
            None if self.resume => watch(Event::NothingToResume),
            None => {}
        }
        machine::prepare();
        // Before the run is stored: a run that could not even begin cannot be resumed.
        let by_real_clock = self.cases.iter().any(|case| case.clock.is_real());
        let obstacle = if by_real_clock { machine::obstacle(&agents.host) } else { None };
        let guests = match obstacle {
            Some(obstacle) => Err(obstacle.into()),
            None => Guests::for_cases(&agents.keeper, &self.cases, self.capture.clone()),
        };
        let guests = match guests {
            Ok(guests) => guests.map(Arc::new),
            Err(error) => {
                let run = resumed.map(|resumed| resumed.run);
                return LabRun { run, records: Vec::new(), result: Err(error) };
            }
        };
        let (known, settled, made, before) = match resumed {
            Some(Resumed { run, settled, claim, made, before }) => {
                (Some((run, claim)), settled, made, before)
            }
            None => Default::default(),
        };
        let (keep, _claim) = match at.map(|at| self.enter(known, at)).transpose() {
            Ok(entered) => entered.unzip(),
            Err(error) => return LabRun { run: None, records: Vec::new(), result: Err(error) },
        };
        let run = keep.as_ref().map(|keep: &Keep<'_>| keep.run.clone());
        watch(Event::Entered { run: run.as_deref().map(Cow::Borrowed), done: settled.len(), planned });
        let mut rounds = Rounds {
            runner: Arc::new(CaseRunner::new(agents.host).capturing(self.capture.clone())),
            guests,
            settled,
            options: RunOptions { jobs: self.jobs, attempts: self.attempts, made },
            keep,
            before,
            cancel,
        };
        let mut refinement =
            self.refine.as_ref().map(|sweep| (Refinement::of(sweep.asked.iter().copied()), sweep));
        let mut next = |records: &[Record]| match &mut refinement {
            Some((refinement, sweep)) => sweep.next(refinement, records),
            None => Ok(Vec::new()),
        };
        let (new, mut result) = rounds.run(&self.cases, &mut next, watch);
        rounds.guests.iter().for_each(|guests| guests.close());
        if let (Ok(()), Some(keep), false) =
            (&result, &mut rounds.keep, new.iter().any(Record::lost_its_guest))
        {
            // Every record is stored; only marking the run as finished can fail.
            result = keep.store.finish_run(&keep.run, clock::unix_ms()).map_err(RunError::from);
        }
        let mut records = rounds.before;
        records.extend(new);
        // In the order in which the scenarios were named, whatever the execution order.
        records.sort_by_key(|r| self.scenarios.iter().position(|name| *name == r.scenario));
        LabRun { run, records, result }
    }

    fn enter<'a>(&self, known: Option<(String, Claim)>, at: StoreAt<'a>) -> Result<(Keep<'a>, Claim)> {
        let (run, claim) = match known {
            Some(known) => known,
            None => {
                let run = at.store.begin_run(&NewRun {
                    id: None,
                    kind: self.kind,
                    label: self.label.clone(),
                    labels: self.labels.clone(),
                    scenario: self.scenarios.join(" "),
                    scenario_text: self.text.clone(),
                    plan_digest: self.digest.clone(),
                    planned: u32::try_from(self.cases.len()).unwrap_or(u32::MAX),
                    command: self.command.clone(),
                    bdp: env!("CARGO_PKG_VERSION").to_owned(),
                    started_unix_ms: clock::unix_ms(),
                })?;
                let claim = Claim::to(&run, &at.path)?;
                (run, claim)
            }
        };
        Ok((Keep { store: at.store, run }, claim))
    }
}

impl RefinedSweep {
    /// Returns the cases that these records call for; none if the knee of every curve is known well enough.
    fn next(&self, refinement: &mut Refinement, records: &[Record]) -> Result<Vec<CaseSpec>> {
        let new = refinement.next(&curves(records));
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let refused = |error: bdp_scenario::ScenarioError| RunError::Case(error.to_string());
        let scenario = Scenario::parse_with(&self.scenario, &self.text, self.traces.clone(), &self.options)
            .map_err(refused)?;
        let mut options = self.options.clone();
        for (_, values) in options.vary.iter_mut().filter(|(path, _)| *path == self.path) {
            *values = new.iter().map(u64::to_string).collect();
        }
        let mut cases = scenario.plan(&options).map_err(refused)?;
        shuffle(&mut cases, options.seed.unwrap_or(scenario.seed));
        Ok(cases)
    }
}
