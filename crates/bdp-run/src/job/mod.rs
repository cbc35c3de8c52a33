//! A job, requested by a command line, a page or a fleet, and its outcome. Both are plain data with a JSON form.

pub mod context;
mod document;
pub(crate) mod event;

use std::sync::atomic::Ordering;

use bdp_model::measurement::Measurement;
use bdp_model::measurement::expectation::Judgement;
use bdp_model::probes::hops::PathReport;
use bdp_model::probes::ping::Ping;
use bdp_model::record::Record;
use bdp_model::statistics::comparison::Regression;
use bdp_model::sweep::points::points;
use bdp_model::sweep::run_comparison::Compared;
use bdp_model::tuning::Rehearsal;
use bdp_model::twin::TwinReport;
use bdp_model::watch::WatchSummary;
use bdp_store::StoredMeasurement;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::compare::ComparePlan;
use crate::lab::LabPlan;
use crate::measure::MeasurePlan;
use crate::measure::baseline::Against;
use crate::pcap::{Captures, PcapPlan};
use crate::probes::path::PathPlan;
use crate::probes::ping::PingPlan;
use crate::sweep::SweepPlan;
use crate::tuning::fix::{FixPlan, Fixed};
use crate::tuning::verify::{Verified, VerifyPlan};
use crate::twin::TwinPlan;
use crate::twin::rehearse::RehearsePlan;
use crate::watch::WatchPlan;
use crate::{Result, RunError};
use context::Context;

/// Version of the job schema.
pub const JOB_SCHEMA: &str = "bdp.job/1";
/// Version of the outcome schema.
pub const OUTCOME_SCHEMA: &str = "bdp.outcome/1";

/// Work of one kind. Credentials are not part of its JSON: whoever runs it has them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "job", rename_all = "snake_case")]
pub enum Job {
    /// Measurements to a host.
    Measure(Box<MeasurePlan>),
    /// Round trips to an address.
    Ping(Box<PingPlan>),
    /// The hops of a path.
    Path(Box<PathPlan>),
    /// A sweep: measurements to a host with varied parameters.
    Sweep(Box<SweepPlan>),
    /// Cases of scenarios on the lab.
    Lab(Box<LabPlan>),
    /// A comparison of two runs.
    Compare(Box<ComparePlan>),
    /// Watching sockets of other programs.
    Watch(WatchPlan),
    /// Explaining captures.
    Pcap(Box<PcapPlan>),
    /// The emulated twin of a measured path.
    Twin(Box<TwinPlan>),
    /// A plan of settings on the twin of its path.
    Rehearse(Box<RehearsePlan>),
    /// A measurement repeated after a change, and compared.
    Verify(Box<VerifyPlan>),
    /// The whole loop to a host.
    Fix(Box<FixPlan>),
}

/// The outcome of a job in brief.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "JobOutcome"))]
pub struct Outcome {
    /// The id of the stored run; `None` if nothing is stored.
    pub run: Option<String>,
    /// How it ended.
    pub ending: Ending,
    /// Number of results: records, measurements, hops, compared rows, sockets, captures, twins, variants, verdicts.
    pub kept: usize,
    /// The verdict on each expectation.
    pub expectations: Vec<Judgement>,
    /// The figures compared with the baseline.
    pub baseline: Vec<Against>,
    /// The error that kept the job from completing.
    pub error: Option<String>,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Completed as planned.
    Done,
    /// An expectation or a prediction was missed, goodput regressed, payload was corrupted in transit, a twin differs from
    /// its measurement, or a rehearsal found no better change.
    Missed,
    /// Every repetition of a case was INVALID.
    Invalid,
    /// The environment was unsuitable, or a case could not run.
    Failed,
    /// Cancelled before its end.
    Cancelled,
}

/// The results of a job.
#[derive(Debug)]
pub enum Results {
    /// Records of the lab.
    Records(Vec<Record>),
    /// Repeated measurements.
    Measurements(Vec<Measurement>),
    /// Points of a sweep to a host.
    Points(Vec<StoredMeasurement>),
    /// Round trips; `None` if no probe could be sent.
    Ping(Option<Box<Ping>>),
    /// Hops of a path; `None` if no probe could be sent.
    Path(Option<Box<PathReport>>),
    /// A comparison; `None` if the runs have nothing in common.
    Compared(Option<Compared>),
    /// Watched sockets; `None` if none could be watched.
    Watched(Option<Box<WatchSummary>>),
    /// Explained captures; `None` if one could not be read at all.
    Captures(Option<Captures>),
    /// Twins; `None` if one could not be run.
    Twins(Option<Box<TwinReport>>),
    /// A rehearsed plan; `None` if it could not be rehearsed.
    Rehearsed(Option<Box<Rehearsal>>),
    /// A verification; `None` if the path was not measured.
    Verified(Option<Box<Verified>>),
    /// How the loop ended; `None` if a step failed.
    Fixed(Option<Fixed>),
}

/// A finished job.
#[derive(Debug)]
pub struct Ended {
    /// The id of the stored run; `None` if nothing is stored.
    pub run: Option<String>,
    /// The results, including those before an error.
    pub results: Results,
    /// The verdict on each expectation.
    pub judgements: Vec<Judgement>,
    /// The figures compared with the baseline.
    pub comparisons: Vec<Against>,
    /// Whether it completed.
    pub result: Result<()>,
    /// Whether it was cancelled.
    pub cancelled: bool,
}

impl Results {
    /// Returns the records; empty unless the job ran on the lab.
    pub fn records(&self) -> &[Record] {
        if let Self::Records(records) = self { records } else { &[] }
    }

    /// Returns the repeated measurements; empty for the lab or a sweep.
    pub fn measurements(&self) -> &[Measurement] {
        if let Self::Measurements(all) = self { all } else { &[] }
    }

    /// Returns the points of a sweep to a host; empty for other jobs.
    pub fn points(&self) -> &[StoredMeasurement] {
        if let Self::Points(all) = self { all } else { &[] }
    }
}

impl Job {
    /// Returns the job as JSON.
    pub fn to_json(&self) -> Value {
        document::write(self, JOB_SCHEMA)
    }

    /// Reads a job that [`Job::to_json`] wrote; refuses any other version.
    pub fn from_json(document: Value) -> Result<Self> {
        document::read(document, JOB_SCHEMA)
    }

    /// Runs the job.
    pub fn run(&self, mut context: Context<'_>) -> Ended {
        let cancel = context.cancel;
        let ended = |run, results, result| {
            let cancelled = cancel.load(Ordering::Relaxed);
            Ended { run, results, judgements: Vec::new(), comparisons: Vec::new(), result, cancelled }
        };
        match self {
            Self::Measure(plan) => {
                let store = context.store.map(|at| at.store);
                let measured = plan.run(store, context.watch, cancel);
                let (judgements, comparisons) = (measured.judgements, measured.comparisons);
                let results = Results::Measurements(measured.measurements);
                Ended { judgements, comparisons, ..ended(measured.run, results, measured.result) }
            }
            Self::Ping(plan) => {
                let pinged = plan.run(context.watch, cancel);
                let results = Results::Ping(pinged.ping.map(Box::new));
                Ended { judgements: pinged.judgements, ..ended(None, results, pinged.result) }
            }
            Self::Path(plan) => {
                let traced = plan.run(context.watch, cancel);
                ended(None, Results::Path(traced.report.map(Box::new)), traced.result)
            }
            Self::Sweep(plan) => {
                let store = context.store.map(|at| at.store);
                let swept = plan.run(store, context.watch, cancel);
                ended(swept.run, Results::Points(swept.measurements), swept.result)
            }
            Self::Lab(plan) => {
                let made = plan.run((context.agents)(), context.store, context.watch, cancel);
                ended(made.run, Results::Records(made.records), made.result)
            }
            Self::Watch(plan) => {
                let watched = plan.run(context.watch, cancel);
                ended(None, Results::Watched(watched.summary.map(Box::new)), watched.result)
            }
            Self::Compare(plan) => {
                let (compared, result) = apart(plan.run());
                ended(None, Results::Compared(compared), result)
            }
            Self::Pcap(plan) => {
                let (captures, result) = apart(plan.run(context.watch, cancel));
                ended(None, Results::Captures(captures), result)
            }
            Self::Twin(plan) => match plan.run(&mut context) {
                Ok((report, kept)) => ended(None, Results::Twins(Some(Box::new(report))), kept),
                Err(error) => ended(None, Results::Twins(None), Err(error)),
            },
            Self::Rehearse(plan) => {
                let (rehearsal, result) = apart(plan.run(&mut context));
                ended(None, Results::Rehearsed(rehearsal.map(Box::new)), result)
            }
            Self::Verify(plan) => {
                let (verified, result) = apart(plan.run(&mut context));
                let run = verified.as_ref().and_then(|verified| verified.verification.again.clone());
                ended(run, Results::Verified(verified.map(Box::new)), result)
            }
            Self::Fix(plan) => {
                let (fixed, result) = apart(plan.run(&mut context));
                ended(None, Results::Fixed(fixed), result)
            }
        }
    }
}

/// Parts a result from its error.
fn apart<T>(result: Result<T>) -> (Option<T>, Result<()>) {
    match result {
        Ok(made) => (Some(made), Ok(())),
        Err(error) => (None, Err(error)),
    }
}

impl Outcome {
    /// The outcome of a job that this kept from running.
    pub const fn failed(error: String) -> Self {
        Self {
            run: None,
            ending: Ending::Failed,
            kept: 0,
            expectations: Vec::new(),
            baseline: Vec::new(),
            error: Some(error),
        }
    }

    /// Returns the outcome as JSON.
    pub fn to_json(&self) -> Value {
        document::write(self, OUTCOME_SCHEMA)
    }

    /// Reads an outcome that [`Outcome::to_json`] wrote; refuses any other version.
    pub fn from_json(document: Value) -> Result<Self> {
        document::read(document, OUTCOME_SCHEMA)
    }
}

impl Ended {
    /// Returns how the job ended.
    pub fn ending(&self) -> Ending {
        let by_results = match &self.results {
            Results::Records(records) => Ending::of(records),
            Results::Measurements(all) if has_wrong_bytes(all) => Ending::Missed,
            Results::Compared(Some(compared)) if compared.regressed() => Ending::Missed,
            Results::Captures(Some(captures)) if captures.is_broken() => Ending::Failed,
            Results::Twins(Some(report)) if report.twins.iter().any(|twin| !twin.repeats()) => Ending::Missed,
            Results::Rehearsed(Some(rehearsal)) if rehearsal.choice.is_none() => Ending::Missed,
            Results::Verified(Some(verified)) if verified.verification.missed() => Ending::Missed,
            Results::Fixed(Some(Fixed::Missed)) => Ending::Missed,
            _ => Ending::Done,
        };
        match &self.result {
            Err(error) if self.cancelled && error.is_cancelled() => Ending::Cancelled,
            Err(_) => Ending::Failed,
            Ok(()) if self.cancelled => Ending::Cancelled,
            Ok(()) if self.judgements.iter().any(|judgement| !judgement.met) => Ending::Missed,
            Ok(()) if self.comparisons.iter().any(|against| against.regressed) => Ending::Missed,
            Ok(()) => by_results,
        }
    }

    /// Whether no expectation was missed and at least one could not be decided: too few runs, an interval that allows
    /// both, a figure that was not measured or not under the requested load.
    pub fn is_open(&self) -> bool {
        let is_missed = self.judgements.iter().any(|judgement| !judgement.met && !judgement.is_open())
            || self.comparisons.iter().any(|against| against.regressed)
            || has_wrong_bytes(self.results.measurements());
        let open = |against: &Against| {
            matches!(against.regression(), Some(Regression::Unknown | Regression::Inconclusive))
        };
        let is_open = self.judgements.iter().any(Judgement::is_open)
            || self.comparisons.iter().any(open)
            || matches!(&self.results, Results::Compared(Some(compared)) if compared.is_open());
        is_open && !is_missed
    }

    /// Returns the outcome in brief, without the results.
    pub fn outcome(&self) -> Outcome {
        Outcome {
            run: self.run.clone(),
            ending: self.ending(),
            kept: match &self.results {
                Results::Records(records) => records.len(),
                Results::Measurements(all) => all.len(),
                Results::Points(all) => all.len(),
                Results::Ping(ping) => usize::from(ping.is_some()),
                Results::Path(report) => report.as_ref().map_or(0, |report| report.hops.len()),
                Results::Compared(compared) => compared.as_ref().map_or(0, |compared| compared.rows.len()),
                Results::Watched(watched) => watched.as_ref().map_or(0, |watched| watched.sockets.len()),
                Results::Captures(captures) => captures.as_ref().map_or(0, |all| all.captures.len()),
                Results::Twins(report) => report.as_ref().map_or(0, |report| report.twins.len()),
                Results::Rehearsed(rehearsal) => rehearsal.as_ref().map_or(0, |it| it.variants.len()),
                Results::Verified(verified) => {
                    verified.as_ref().map_or(0, |verified| verified.verification.directions.len())
                }
                Results::Fixed(fixed) => usize::from(fixed.is_some()),
            },
            expectations: self.judgements.clone(),
            baseline: self.comparisons.clone(),
            error: self.result.as_ref().err().map(RunError::to_string),
        }
    }
}

/// Whether received payload differs from what was sent.
fn has_wrong_bytes(measurements: &[Measurement]) -> bool {
    let checks = measurements.iter().flat_map(|m| &m.directions).filter_map(|d| d.payload_check);
    checks.into_iter().any(|check| check.wrong_bytes > 0)
}

impl Ending {
    /// Returns the worst ending of these records: a case that could not run, then a missed expectation, then a point
    /// without a valid repetition.
    pub fn of(records: &[Record]) -> Self {
        let skipped = |r: &Record| r.skipped.is_some();
        if records.iter().any(|r| r.error.is_some()) || !records.is_empty() && records.iter().all(skipped) {
            Self::Failed
        } else if points(records).iter().any(|point| point.missed().next().is_some()) {
            Self::Missed
        } else if points(records)
            .iter()
            .any(|point| point.valid().next().is_none() && !point.records.iter().all(|r| skipped(r)))
        {
            Self::Invalid
        } else {
            Self::Done
        }
    }
}

#[cfg(test)]
mod tests;
