//! A stored measurement of a path, and other runs that show what it can carry.

use bdp_model::Rate;
use bdp_model::measurement::Measurement;
use bdp_model::measurement::ends::Direction;
use bdp_model::tuning::Plan;
use bdp_run::tuning::measured_path::MeasuredPath;
use bdp_store::DocumentKind;
use serde_json::json;

use crate::exit;
use crate::found::{Found, Kept};
use crate::store::StoreArgs;

/// A run, and what else is known of its path.
#[derive(clap::Args)]
pub struct MeasuredArgs {
    /// Run of 'bdp measure': its id, a prefix of the id, or its label; or a file written by --json
    #[arg(value_name = "RUN")]
    pub run: Option<String>,

    /// Another run on the same path that shows its rate, for example with more streams; repeatable
    #[arg(long, value_name = "RUN")]
    pub also: Vec<String>,

    /// Bottleneck rate on the wire, for example 100M, if the run does not show it
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,

    /// Only one direction: 'to' or 'from' the far end
    #[arg(long, value_name = "DIRECTION", value_parser = direction)]
    pub direction: Option<Direction>,

    #[command(flatten)]
    pub store: StoreArgs,
}

/// A measured path that was found.
pub struct Measured {
    /// The run.
    pub found: Found,
    /// Its measurement, the last of several, and what other runs show of the path.
    pub path: MeasuredPath,
}

impl MeasuredArgs {
    /// Creates it for a run's name alone.
    pub const fn of(run: Option<String>, store: StoreArgs) -> Self {
        Self { run, also: Vec::new(), rate: None, direction: None, store }
    }

    /// Finds the run and the others.
    pub fn find(&self) -> anyhow::Result<Measured> {
        self.measured(Found::find(self.run.as_deref(), &self.store)?)
    }

    /// Returns the measurement of a run that was found.
    pub fn measured(&self, found: Found) -> anyhow::Result<Measured> {
        let mut all = measurements(&found)?;
        let name = found.info.id.clone();
        let Some(measurement) = all.pop() else {
            return Err(exit::usage(format!("run {name} contains no measurement")));
        };
        if measurement.request.spec.udp.is_some() {
            return Err(exit::usage(format!(
                "run {name} measured UDP, which TCP settings do not affect; measure without -u"
            )));
        }
        if measurement.directions.is_empty() {
            let why = measurement.error.as_deref().unwrap_or("no direction completed");
            return Err(exit::usage(format!("run {name} measured nothing: {why}")));
        }
        let mut others = all;
        for also in &self.also {
            others.extend(measurements(&Found::find(Some(also), &self.store)?)?);
        }
        let path = MeasuredPath {
            run: found.run().map(str::to_owned),
            is_stored: found.file.is_none(),
            measurement,
            others,
            rate_bps: self.rate.map(|rate| rate.as_bps() as f64),
        };
        Ok(Measured { found, path })
    }
}

impl Measured {
    /// Makes the plan, and stores it with the run if that is stored.
    pub fn plan(&self, args: &MeasuredArgs) -> anyhow::Result<Plan> {
        let plan = self.path.plan(args.direction);
        if self.path.is_stored {
            args.store.keep(&self.found.info.id, DocumentKind::Plan, json!(plan))?;
        }
        Ok(plan)
    }
}

fn measurements(found: &Found) -> anyhow::Result<Vec<Measurement>> {
    match &found.kept {
        Kept::Measurements(all) => Ok(all.iter().map(|kept| kept.measurement.clone()).collect()),
        Kept::Records(_) => Err(exit::usage(format!(
            "run {} is a lab run; give a run of 'bdp measure', as listed by 'bdp runs'",
            found.info.id
        ))),
    }
}

/// Parses a direction.
pub fn direction(text: &str) -> Result<Direction, String> {
    match text {
        "to" => Ok(Direction::To),
        "from" => Ok(Direction::From),
        _ => Err("give 'to' or 'from'".to_owned()),
    }
}
