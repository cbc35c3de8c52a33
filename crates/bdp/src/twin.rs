//! `bdp twin`: a measured path as an emulated one, run and compared with the measurement.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use bdp_model::Rate;
use bdp_model::measurement::Measurement;
use bdp_model::measurement::ends::Direction;
use bdp_model::twin::Compared;
use bdp_run::Event;
use bdp_run::job::context::Context;
use bdp_run::job::{Job, Results};
use bdp_run::tuning::measured_path::MeasuredPath;
use bdp_run::twin::TwinPlan;
use serde_json::json;

use crate::exit::{self, Exit, Outcome};
use crate::found::{Found, Kept};
use crate::output::{print, style};
use crate::planned::Planned;
use crate::store::{StoreArgs, of_job};
use crate::{command_line, guest, refusal};

/// Default number of repetitions.
const RUNS: u32 = 3;

/// Arguments of `bdp twin`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp twin 7f3a\n  bdp twin 7f3a --direction to --output path.toml\n  bdp twin 7f3a --rate 1G --json\n\n\
    Exit codes: 0 the twin matches the measurement, or was not run; 1 it differs; 2 usage error; 3 environment error; 4 bug in bdp."
)]
pub struct TwinArgs {
    /// Run: its id, a prefix of the id, or its label, as listed by 'bdp runs'; or a file written by --json or 'bdp runs
    /// export' [default: the newest run]
    run: Option<String>,

    /// Only one direction [default: each measured direction]
    #[arg(long, value_name = "WHICH")]
    direction: Option<Which>,

    /// Another run on the same path that shows its rate, for example with more streams
    #[arg(long, value_name = "RUN")]
    also: Option<String>,

    /// Bottleneck rate on the wire, for example 100M, if the run does not show it
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,

    /// Repetitions of the twin, each with its own start time and random draws
    #[arg(long, value_name = "N", default_value_t = RUNS, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,

    /// Seed of the twin's random draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Write the scenario to a file; with several directions, one scenario each to a folder
    #[arg(long, value_name = "FILE|DIR")]
    output: Option<PathBuf>,

    /// Derive the twin without running it
    #[arg(long)]
    no_run: bool,

    /// Print JSON ('bdp help twins')
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    store: StoreArgs,
}

/// A direction by its option's word.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Which {
    /// Data from near to far
    To,
    /// Data from far to near
    From,
}

impl TwinArgs {
    /// The job that builds the twin and runs it.
    pub fn planned(&self) -> anyhow::Result<Planned> {
        Ok(Planned::new(Job::Twin(Box::new(self.plan()?)), |ended| match &ended.results {
            Results::Twins(Some(report)) => Some(json!(report)),
            _ => None,
        }))
    }

    fn plan(&self) -> anyhow::Result<TwinPlan> {
        let found = Found::find(self.run.as_deref(), &self.store)?;
        let (run, is_stored) = (found.run().map(str::to_owned), found.file.is_none());
        let measurement = measured(found)?;
        let also = self.also.as_deref().map(|also| Found::find(Some(also), &self.store)).transpose()?;
        let directions = self.directions(&measurement)?;
        Ok(TwinPlan {
            path: MeasuredPath {
                run,
                is_stored,
                measurement,
                others: also.map(measured).transpose()?.into_iter().collect(),
                rate_bps: self.rate.map(|rate| rate.as_bps() as f64),
            },
            directions,
            derive_only: self.no_run,
            runs: self.runs,
            seed: self.seed,
            command: command_line::typed(),
        })
    }

    /// Builds the twin, runs it and prints both.
    pub fn run(self) -> Outcome {
        let plan = self.plan()?;
        let mut store = if plan.path.is_stored && !self.no_run { self.store.open()? } else { None };
        let never = AtomicBool::new(false);
        let mut quiet = |_: Event<'_>| {};
        let context = Context::new(&guest::commands, &mut quiet, &never).storing(of_job(&mut store));
        let ended = Job::Twin(Box::new(plan)).run(context);
        let exit = Exit::of(&ended, false);
        let result = ended.result.map_err(refusal::of);
        let Results::Twins(Some(report)) = ended.results else { return result.map(|()| exit) };
        if let Some(path) = &self.output {
            write(path, &report.twins)?;
        }
        let text = match self.json {
            true => format!("{:#}\n", json!(report)),
            false => bdp_report::twin_text(&report, &style()),
        };
        print(&text)?;
        // What could not be stored was printed all the same.
        result.map(|()| exit)
    }

    /// Directions that have a twin: one of two measured at once.
    fn directions(&self, measurement: &Measurement) -> anyhow::Result<Vec<Direction>> {
        let all: Vec<Direction> = measurement.directions.iter().map(|d| d.direction).collect();
        let asked = self.direction.map(|which| match which {
            Which::To => Direction::To,
            Which::From => Direction::From,
        });
        match asked {
            Some(asked) if all.contains(&asked) => Ok(vec![asked]),
            Some(asked) => {
                Err(exit::usage(format!("the run has no {} direction; omit --direction", asked.name())))
            }
            None if all.is_empty() => Err(exit::usage("the run measured no direction, so it has no twin")),
            None if measurement.request.bidirectional => Ok(all.into_iter().take(1).collect()),
            None => Ok(all),
        }
    }
}

/// The measurement of a run, the first of several.
fn measured(found: Found) -> anyhow::Result<Measurement> {
    let id = found.info.id.clone();
    match found.kept {
        Kept::Measurements(all) => {
            let whole = all.into_iter().map(|kept| kept.measurement).find(|m| m.error.is_none());
            whole.ok_or_else(|| exit::usage(format!("run {id} has no completed measurement")))
        }
        Kept::Records(_) => {
            Err(exit::usage(format!("run {id} is a lab run; a twin needs a run of 'bdp measure'")))
        }
    }
}

/// Writes the scenarios: one into a file, several into a folder.
fn write(path: &Path, twins: &[Compared]) -> anyhow::Result<()> {
    let failed = |path: &Path, error: std::io::Error| {
        let error = bdp_model::plain::in_words(&error.to_string());
        exit::environment(format!("write '{}': {error}", path.display()))
    };
    if path.extension().is_some_and(|extension| extension == "toml") {
        let [twin] = twins else {
            return Err(exit::usage("several directions; give a folder, or choose one with --direction"));
        };
        return std::fs::write(path, &twin.scenario).map_err(|error| failed(path, error));
    }
    std::fs::create_dir_all(path).map_err(|error| failed(path, error))?;
    for twin in twins {
        let file = path.join(format!("twin-{}.toml", twin.twin.direction.name()));
        std::fs::write(&file, &twin.scenario).map_err(|error| failed(&file, error))?;
    }
    Ok(())
}
