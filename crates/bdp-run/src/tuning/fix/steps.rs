//! The steps of the loop by this machine's own means.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bdp_agent::client::TuneClient;
use bdp_model::measurement::MeasureRequest;
use bdp_model::measurement::ends::{Direction, End};
use bdp_model::tuning::{Change, Plan, Rehearsal, Verification};
use bdp_model::units::Nanos;
use bdp_tune::{ApplyOptions, ConfirmOptions, HostWorld, Refusal, RevertOptions};
use bdp_wire::tuning::TuneOrder;
use serde::{Deserialize, Serialize};

use super::{FixOptions, FixSteps, Fixed, fix};
use crate::job::context::Context;
use crate::measure::session::Credentials;
use crate::measure::{OneMeasured, measure_again};
use crate::tuning::measured_path::MeasuredPath;
use crate::tuning::verify::VerifyPlan;
use crate::twin::rehearse::RehearsePlan;
use crate::{Event, Question, Result, RunError, Stage, guest};

/// Seed of the rehearsal.
const SEED: u64 = 1;
/// Label of the run that shows the path's capacity.
const CAPACITY: &str = "capacity";

/// A path to fix: measure, plan, rehearse, apply, verify, keep or put back.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FixPlan {
    /// The request of the first measurement.
    pub request: MeasureRequest,
    /// Credentials for the server; never stored.
    #[serde(skip)]
    pub credentials: Credentials,
    /// The tune token of the far end, with which its settings may be changed; never stored.
    #[serde(skip)]
    pub tune_token: Option<String>,
    /// The only direction to fix; `None` for both.
    pub direction: Option<Direction>,
    /// Bottleneck rate on the wire; `None` to find it with more streams, if one does not show it.
    pub rate_bps: Option<f64>,
    /// Repetitions of each variant in the rehearsal.
    pub runs: u32,
    /// Whether the transfer has the path to itself, so that the effect on competing traffic does not count.
    pub alone: bool,
    /// Time after which changes revert unless they were kept.
    #[serde(rename = "keep_for_ns", with = "bdp_model::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub keep_for: Nanos,
    /// Whether to ask nothing: the rehearsal's choice is applied, and kept if it does as predicted.
    pub asks_nothing: bool,
    /// The command that repeats it.
    pub command: String,
}

impl FixPlan {
    /// Runs the loop once. It needs a store, where each conclusion is kept with the first measurement's run.
    pub fn run(&self, context: &mut Context<'_>) -> Result<Fixed> {
        if context.store.is_none() {
            return Err(RunError::Request("a fix needs a store for its runs and predictions".to_owned()));
        }
        let options = FixOptions {
            request: self.request.clone(),
            is_rate_known: self.rate_bps.is_some(),
            asks_nothing: self.asks_nothing,
        };
        fix(&options, &mut Steps { plan: self, context, path: None })
    }
}

/// The steps of one loop.
struct Steps<'a, 'c> {
    plan: &'a FixPlan,
    context: &'a mut Context<'c>,
    /// The path, once it is measured.
    path: Option<MeasuredPath>,
}

impl FixSteps for Steps<'_, '_> {
    type Error = RunError;

    fn go_on(&self) -> Result<()> {
        self.context.go_on()
    }

    fn begin(&mut self, stage: Stage, streams: Option<u32>) -> Result<()> {
        self.go_on()?;
        self.tell(Event::Stage { stage, streams });
        Ok(())
    }

    fn tell(&mut self, event: Event<'_>) {
        (self.context.watch)(event);
    }

    fn measure(&mut self, request: &MeasureRequest) -> Result<OneMeasured> {
        self.measure_labelled(request, None)
    }

    fn measure_capacity(&mut self, request: &MeasureRequest) -> Result<OneMeasured> {
        self.measure_labelled(request, Some(CAPACITY.to_owned()))
    }

    fn plan(&mut self, measured: OneMeasured, capacity: Option<OneMeasured>) -> Result<Plan> {
        let path = self.path.insert(MeasuredPath {
            is_stored: measured.run.is_some(),
            run: measured.run,
            measurement: measured.measurement,
            others: capacity.map(|shown| shown.measurement).into_iter().collect(),
            rate_bps: self.plan.rate_bps,
        });
        Ok(path.plan(self.plan.direction))
    }

    fn obstacle(&mut self) -> Option<String> {
        guest::try_boot(&(self.context.agents)().keeper, None).err()
    }

    fn rehearse(&mut self, plan: &Plan) -> Result<Rehearsal> {
        let rehearse = RehearsePlan {
            path: self.path()?.clone(),
            plan: plan.clone(),
            runs: self.plan.runs,
            seed: SEED,
            alone: self.plan.alone,
            command: self.plan.command.clone(),
        };
        rehearse.run(self.context)
    }

    fn may_change_far(&self) -> bool {
        self.plan.tune_token.is_some()
    }

    fn ask(&mut self, question: Question<'_>) -> bool {
        if self.context.is_cancelled() {
            return false;
        }
        self.tell(Event::Question { question: question.clone() });
        // Whoever cancels at a question has not said yes.
        self.context.ask(&question) && !self.context.is_cancelled()
    }

    fn apply(&mut self, end: End, changes: Vec<Change>) -> Result<Option<u32>> {
        match end {
            End::Near => {
                let options = ApplyOptions {
                    keep_for: Some(Duration::from_nanos(self.plan.keep_for.as_ns())),
                    cancelled: Some(self.context.cancel),
                    ..ApplyOptions::default()
                };
                let applied = bdp_tune::apply(self.world()?, &changes, &options).map_err(refused("fix"))?;
                Ok(applied.journal.map(|journal| journal.id))
            }
            End::Far => {
                let order = TuneOrder { changes, keep_for: self.plan.keep_for, force: false };
                Ok(self.far("apply", |client| client.apply(&order))?.journal)
            }
        }
    }

    fn verify(&mut self, rehearsal: Option<&Rehearsal>) -> Result<Verification> {
        let verify = VerifyPlan {
            path: self.path()?.clone(),
            rehearsal: rehearsal.cloned(),
            credentials: self.plan.credentials.clone(),
            command: self.plan.command.clone(),
        };
        Ok(verify.run(self.context)?.verification)
    }

    fn keep(&mut self, end: End, journal: u32) -> Result<()> {
        match end {
            End::Near => {
                let options = ConfirmOptions { persist: false, only: Some(journal) };
                bdp_tune::confirm(self.world()?, options).map(drop).map_err(refused("keep"))
            }
            End::Far => self.far("confirm", |client| client.confirm(journal)).map(drop),
        }
    }

    fn put_back(&mut self, end: End, journal: u32) -> Result<usize> {
        match end {
            End::Near => {
                let options = RevertOptions { only: Some(journal), ..RevertOptions::default() };
                let reverted = bdp_tune::revert(self.world()?, options).map_err(refused("revert"))?;
                let failed = reverted.failed.iter().map(|(target, cause)| format!("{target}: {cause}"));
                restored(failed.collect(), reverted.put_back.len() + reverted.were_back.len())
            }
            End::Far => {
                let reverted = self.far("revert", |client| client.revert(journal))?;
                let failed = reverted.failed.iter().map(|of| format!("{}: {}", of.target, of.cause));
                restored(failed.collect(), reverted.put_back.len() + reverted.were_back.len())
            }
        }
    }
}

impl Steps<'_, '_> {
    fn measure_labelled(&mut self, request: &MeasureRequest, label: Option<String>) -> Result<OneMeasured> {
        let credentials = &self.plan.credentials;
        measure_again(request, credentials, label, &self.plan.command, self.context)
    }

    fn path(&self) -> Result<&MeasuredPath> {
        self.path.as_ref().ok_or_else(|| RunError::Case("the path was not measured".to_owned()))
    }

    fn world(&mut self) -> Result<&mut HostWorld> {
        let world = self.context.world.as_deref_mut();
        world.ok_or_else(|| RunError::Request("this host's settings must not be changed here".to_owned()))
    }

    /// Has the far end's server do something, in a session of its own: the measurement between two may take long.
    fn far<T>(
        &self,
        doing: &'static str,
        ask: impl FnOnce(&mut TuneClient) -> Result<T, bdp_agent::client::TuneError>,
    ) -> Result<T> {
        let failed = |error| RunError::TuneFar { doing, error: Box::new(error) };
        let (request, token) = (&self.plan.request, self.plan.tune_token.as_deref().unwrap_or_default());
        // What was applied there reverts by itself if this end is killed; asked to stop, it still puts back.
        let never = AtomicBool::new(false);
        let mut client = TuneClient::connect(&request.host, request.port, token, &never).map_err(failed)?;
        ask(&mut client).map_err(failed)
    }
}

/// Returns the number of settings that are as before, unless some are not.
fn restored(failed: Vec<String>, count: usize) -> Result<usize> {
    match failed.is_empty() {
        true => Ok(count),
        false => Err(RunError::Case(format!("revert: cannot restore {}", failed.join("; ")))),
    }
}

/// Names what was refused.
fn refused(doing: &'static str) -> impl FnOnce(Refusal) -> RunError {
    move |refusal| RunError::Tune { doing, refusal: Box::new(refusal) }
}
