//! `bdp rehearse`: a plan and its alternatives on the emulated twin of a measured path.

use bdp_model::ends::End;
use bdp_model::tuning::{Plan, Rehearsal};
use bdp_run::rehearse::{self, RehearseOptions};
use bdp_run::tuning::{self, Wish};
use bdp_run::twin::TwinOptions;
use bdp_store::DocumentKind;
use serde_json::json;

use crate::exit::{Exit, Outcome};
use crate::output::{print, style};
use crate::tune::measured::{Measured, MeasuredArgs};
use crate::twin::refusal;
use crate::{command_line, guest};

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
    /// Plans, rehearses, stores the prediction and prints it.
    pub fn run(self) -> Outcome {
        let measured = self.measured.find()?;
        let plan = plan(&measured, &self.measured);
        let how = How { runs: self.runs, seed: self.seed, alone: self.alone };
        let rehearsal = rehearse(&measured, &self.measured, &plan, how)?;
        if self.json {
            print(&format!("{:#}\n", json!(rehearsal)))?;
        } else {
            print(&bdp_report::tuning::rehearsal(&rehearsal, &style()))?;
            if let (Some(run), Some(chosen)) = (measured.run(), rehearsal.chosen()) {
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
        Ok(if rehearsal.choice.is_some() { Exit::Done } else { Exit::Missed })
    }
}

/// Builds the plan of a run.
pub fn plan(measured: &Measured, args: &MeasuredArgs) -> Plan {
    let rate_bps = args.rate.map(|rate| tuning::goodput_of(rate.as_bps() as f64));
    let wish = Wish { rate_bps, direction: args.direction };
    tuning::plan(measured.run(), &measured.measurement, &measured.others, &wish)
}

/// Options of a rehearsal.
#[derive(Debug, Clone, Copy)]
pub struct How {
    /// Repetitions of each variant.
    pub runs: u32,
    /// Seed of the first repetition.
    pub seed: u64,
    /// Whether the transfer has the path to itself.
    pub alone: bool,
}

/// Rehearses a plan, and stores plan and prediction with the run.
pub fn rehearse(
    measured: &Measured,
    args: &MeasuredArgs,
    plan: &Plan,
    how: How,
) -> anyhow::Result<Rehearsal> {
    let How { runs, seed, alone } = how;
    let options = RehearseOptions {
        runs,
        seed,
        alone,
        twin: TwinOptions {
            rate_bps: args.rate.map(|rate| rate.as_bps() as f64),
            also: measured.others.last().cloned().map(Box::new),
        },
        command: command_line::typed(),
    };
    let rehearsal = rehearse::rehearse(
        measured.run(),
        &measured.measurement,
        plan,
        &options,
        &guest::commands,
        &mut |_| {},
    )
    .map_err(refusal)?;
    measured.keep(&args.store, DocumentKind::Plan, json!(plan))?;
    measured.keep(&args.store, DocumentKind::Rehearsal, json!(rehearsal))?;
    Ok(rehearsal)
}
