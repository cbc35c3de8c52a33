//! Twins of measured paths: built, run by the virtual clock, compared with the measurement, and adjusted if a first
//! pass misses.

mod compare;
mod kernel;
mod refine;
pub mod rehearse;

use std::collections::BTreeMap;

use bdp_model::measurement::Measurement;
use bdp_model::measurement::ends::Direction;
use bdp_model::record::Record;
use bdp_model::twin::{Adjusted, Compared, TWIN_SCHEMA, Twin, TwinReport, TwinVariant};
use bdp_scenario::{PlanOptions, Scenario};
use bdp_store::{DocumentKind, RunKind};
use serde::{Deserialize, Serialize};

use crate::job::context::Context;
use crate::lab::LabPlan;
use crate::tuning::measured_path::MeasuredPath;
use crate::{Result, RunError};

pub use bdp_explain::twin::TwinOptions;
pub use compare::figures;

/// A measured path whose twin is wanted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwinPlan {
    /// The measured path.
    pub path: MeasuredPath,
    /// The directions to emulate, each by a twin of its own.
    pub directions: Vec<Direction>,
    /// Whether only to derive the twins, and to run none.
    pub derive_only: bool,
    /// Repetitions of each twin.
    pub runs: u32,
    /// Seed of the first repetition.
    pub seed: u64,
    /// The command that repeats it.
    pub command: String,
}

impl TwinPlan {
    /// Derives the twins, runs them, and compares each with the measurement. Returns the comparison, and whether it could
    /// be stored with the run.
    pub fn run(&self, context: &mut Context<'_>) -> Result<(TwinReport, Result<()>)> {
        let mut twins = Vec::new();
        for &direction in &self.directions {
            context.go_on()?;
            let measurement = &self.path.measurement;
            let twin = build(measurement, direction, &self.path.twin_options())?;
            twins.push(match self.derive_only {
                true => Compared::unrun(twin, self.runs, self.seed),
                false => {
                    let order = TwinRuns { runs: self.runs, seed: self.seed, command: self.command.clone() };
                    compare(measurement, twin, &order, context)?
                }
            });
        }
        let report = TwinReport {
            schema: TWIN_SCHEMA.to_owned(),
            bdp: env!("CARGO_PKG_VERSION").to_owned(),
            run: self.path.run.clone(),
            twins,
        };
        let kept = match self.derive_only {
            true => Ok(()),
            false => self.path.keep(context, DocumentKind::Twin, &report),
        };
        Ok((report, kept))
    }
}

/// How to run variants of a twin.
#[derive(Debug, Clone)]
pub struct TwinRuns {
    /// Repetitions of each variant.
    pub runs: u32,
    /// Seed of the scenarios: the same for all variants, so that they see the same draws.
    pub seed: u64,
    /// The command that repeats it.
    pub command: String,
}

impl Default for TwinRuns {
    fn default() -> Self {
        Self { runs: 3, seed: 1, command: "bdp twin".to_owned() }
    }
}

/// The result of a variant.
#[derive(Debug, Clone)]
pub struct VariantRun {
    /// Its name.
    pub name: String,
    /// Its scenario.
    pub scenario: String,
    /// The valid repetitions, in order.
    pub records: Vec<Record>,
}

/// Builds the twin of a measurement's direction, with the guest kernel nearest to those of its hosts.
pub fn build(measurement: &Measurement, direction: Direction, options: &TwinOptions) -> Result<Twin> {
    let twin = bdp_explain::twin::derive(measurement, direction, options);
    let twin = twin.ok_or_else(|| {
        let text = format!("the run has no {} direction with a known round trip", direction.name());
        RunError::Request(text)
    })?;
    Ok(kernel::with_nearest(twin, measurement))
}

/// Runs a twin with each of these changes, in parallel, by the virtual clock; returns results in the given order.
pub fn run_variants(
    twin: &Twin,
    variants: &[TwinVariant],
    order: &TwinRuns,
    context: &mut Context<'_>,
) -> Result<Vec<VariantRun>> {
    let mut scenarios = Vec::new();
    let mut cases = Vec::new();
    let mut texts = Vec::new();
    for variant in variants {
        let text = twin.scenario_of(variant, order.runs, order.seed);
        let name = format!("twin-{}", if variant.name.is_empty() { "itself" } else { &variant.name });
        let refused = |error: bdp_scenario::ScenarioError| RunError::Case(error.to_string());
        let scenario = Scenario::parse(&name, &text).map_err(refused)?;
        cases.extend(scenario.plan(&PlanOptions::default()).map_err(refused)?);
        scenarios.push(scenario);
        texts.push((name, text));
    }
    let mut plan = LabPlan::new(&scenarios, cases, order.seed, order.command.clone());
    plan.kind = RunKind::Lab;
    let ran = plan.run((context.agents)(), None, context.watch, context.cancel);
    ran.result?;
    let mut by_name: BTreeMap<String, Vec<Record>> = BTreeMap::new();
    for record in ran.records {
        if let Some(error) = &record.error {
            return Err(RunError::Case(error.clone()));
        }
        if let Some(why) = &record.skipped {
            return Err(RunError::Case(why.clone()));
        }
        by_name.entry(record.scenario.clone()).or_default().push(record);
    }
    let of = |(variant, (name, text)): (&TwinVariant, (String, String))| {
        let mut records = by_name.remove(&name).unwrap_or_default();
        records.retain(|record| record.valid);
        records.sort_by_key(|record| record.repetition);
        VariantRun { name: variant.name.clone(), scenario: text, records }
    };
    Ok(variants.iter().zip(texts).map(of).collect())
}

/// Runs a twin, adjusts it if it misses, and compares it with the measurement.
pub fn compare(
    measurement: &Measurement,
    twin: Twin,
    order: &TwinRuns,
    context: &mut Context<'_>,
) -> Result<Compared> {
    let itself = [TwinVariant::default()];
    let mut next = Some((twin, Vec::new()));
    let (mut passes, mut adjusted) = (Vec::new(), Vec::new());
    while let Some((twin, changes)) = next.take() {
        adjusted.extend(changes);
        let ran = run_variants(&twin, &itself, order, context)?;
        let records: Vec<Record> = ran.into_iter().flat_map(|variant| variant.records).collect();
        if records.is_empty() {
            return Err(RunError::Case("no repetition of the twin was valid".to_owned()));
        }
        let figures = figures(measurement, &twin, &records);
        passes.push(refine::Pass { twin, figures, records });
        if passes.len() as u32 <= refine::ROUNDS {
            next = refine::next(measurement, &passes);
        }
    }
    let (rounds, kept) = refine::nearest(passes);
    adjusted.retain(|change: &Adjusted| change.round <= rounds);
    Ok(Compared {
        scenario: kept.twin.scenario(order.runs, order.seed),
        kernel: kept.records.first().map(|record| record.environment.kernel.clone()),
        runs: kept.records.len() as u32,
        adjusted,
        figures: kept.figures,
        twin: kept.twin,
    })
}
