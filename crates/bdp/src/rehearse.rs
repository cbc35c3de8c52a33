//! `bdp rehearse`: a plan and its alternatives on the emulated twin of a measured path.

use std::sync::atomic::AtomicBool;

use bdp_model::measurement::ends::End;
use bdp_run::Event;
use bdp_run::job::context::Context;
use bdp_run::job::{Job, Results};
use bdp_run::twin::rehearse::RehearsePlan;
use serde_json::json;

use crate::exit::{Exit, Outcome};
use crate::output::{print, style};
use crate::planned::Planned;
use crate::store::of_job;
use crate::tune::measured::MeasuredArgs;
use crate::{command_line, guest, refusal};

/// Arguments of `bdp rehearse`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp rehearse 7f3a\n  bdp rehearse 7f3a --also 81c0     81c0 used more streams and shows the path's rate\n  bdp rehearse 7f3a --rate 1G --json\n\nIt runs in virtual time and changes no host. The prediction is stored with the run, for 'bdp verify'.\n\n\
    Exit codes: 0 a change is better than the current settings; 1 none is; 2 usage error; 3 environment error; 4 bug in bdp."
)]
pub struct RehearseArgs {
    #[command(flatten)]
    measured: MeasuredArgs,

    /// Repetitions of each variant, each with its own start time and random draws
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,

    /// Seed of the twin's random draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// The path carries only this transfer: ignore the effect on competing flows
    #[arg(long)]
    alone: bool,

    /// Print JSON ('bdp help rehearsal.schema')
    #[arg(long)]
    json: bool,
}

impl RehearseArgs {
    /// The job that rehearses the plan.
    pub fn planned(&self) -> anyhow::Result<Planned> {
        Ok(Planned::new(Job::Rehearse(Box::new(self.plan()?)), |ended| match &ended.results {
            Results::Rehearsed(Some(rehearsal)) => Some(json!(rehearsal)),
            _ => None,
        }))
    }

    fn plan(&self) -> anyhow::Result<RehearsePlan> {
        let measured = self.measured.find()?;
        Ok(RehearsePlan {
            plan: measured.path.plan(self.measured.direction),
            path: measured.path,
            runs: self.runs,
            seed: self.seed,
            alone: self.alone,
            command: command_line::typed(),
        })
    }

    /// Plans, rehearses, stores the prediction and prints it.
    pub fn run(self) -> Outcome {
        let plan = self.plan()?;
        let run = plan.path.run.clone();
        let mut store = if plan.path.is_stored { self.measured.store.open()? } else { None };
        let never = AtomicBool::new(false);
        let mut quiet = |_: Event<'_>| {};
        let context = Context::new(&guest::commands, &mut quiet, &never).storing(of_job(&mut store));
        let ended = Job::Rehearse(Box::new(plan)).run(context);
        let exit = Exit::of(&ended, false);
        ended.result.map_err(refusal::of)?;
        let Results::Rehearsed(Some(rehearsal)) = ended.results else { return Ok(exit) };
        if self.json {
            print(&format!("{:#}\n", json!(rehearsal)))?;
        } else {
            print(&bdp_report::tuning::rehearsal(&rehearsal, &style()))?;
            if let (Some(run), Some(chosen)) = (run, rehearsal.chosen()) {
                let store = self.measured.store.option();
                let is_near = chosen.changes.iter().any(|change| change.end == End::Near);
                let first = match is_near {
                    true => format!("bdp tune apply {run}{store} --for 10m"),
                    // No command on this host alone changes the far end.
                    false => format!("bdp tune export {run}{store} --as sh --end far"),
                };
                print(&format!("next        {first} | bdp verify {run}{store}\n"))?;
            }
        }
        Ok(exit)
    }
}
