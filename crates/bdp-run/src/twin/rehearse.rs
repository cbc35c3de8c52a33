//! Rehearses a plan and its alternatives on the emulated twin of a measured path, by the virtual clock: what each
//! would give, alone and with competing traffic.

use bdp_model::measurement::ends::Direction;
use bdp_model::record::FlowRecord;
use bdp_model::statistics::Estimate;
use bdp_model::tuning::{
    BEFORE, Beside, Change, PLAN, Plan, Predicted, REHEARSAL_SCHEMA, Rehearsal, Rehearsed, Target, choose,
};
use bdp_model::twin::{Competitor, Twin, TwinVariant};
use bdp_store::DocumentKind;
use serde::{Deserialize, Serialize};

use crate::job::context::Context;
use crate::tuning::measured_path::MeasuredPath;
use crate::twin::{self, TwinRuns, VariantRun};
use crate::{Result, RunError};

/// Delay of the competing flow, which starts when the transfer is under way.
const OTHERS_START_NS: u64 = 1_000_000_000;
/// A transfer on the twin carries no more segments than this: the virtual clock is slower than a fast path.
const MOST_SEGMENTS: f64 = 150_000.0;
/// A transfer on the twin lasts at least this many round trips, and this long.
const LEAST_ROUND_TRIPS: u64 = 50;
const LEAST_NS: u64 = 4_000_000_000;

/// A plan of settings to rehearse on the twin of the path that it is for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RehearsePlan {
    /// The measured path.
    pub path: MeasuredPath,
    /// The plan.
    pub plan: Plan,
    /// Repetitions of each variant.
    pub runs: u32,
    /// Seed of the first repetition.
    pub seed: u64,
    /// Whether the transfer has the path to itself, so that the effect on competing traffic does not count.
    pub alone: bool,
    /// The command that repeats the rehearsal.
    pub command: String,
}

impl RehearsePlan {
    /// Rehearses the plan; stores plan and prediction with the run.
    pub fn run(&self, context: &mut Context<'_>) -> Result<Rehearsal> {
        let rehearsal = self.rehearse(context)?;
        self.path.keep(context, DocumentKind::Plan, &self.plan)?;
        self.path.keep(context, DocumentKind::Rehearsal, &rehearsal)?;
        Ok(rehearsal)
    }

    fn rehearse(&self, context: &mut Context<'_>) -> Result<Rehearsal> {
        let (plan, measurement) = (&self.plan, &self.path.measurement);
        let directions: Vec<Direction> =
            plan.path.directions.iter().map(|direction| direction.direction).collect();
        let mut variants = variants(plan)?;
        let (mut repeats, mut kernel) = (Vec::new(), None);
        let mut shown: Vec<(usize, Target)> = Vec::new();
        for direction in directions {
            context.go_on()?;
            let twin = twin::build(measurement, direction, &self.path.twin_options())?;
            let order = TwinRuns { runs: self.runs, seed: self.seed, command: self.command.clone() };
            let compared = twin::compare(measurement, twin, &order, context)?;
            let figures = compared.figures.iter().find(|figures| figures.direction == direction);
            repeats.push((
                direction,
                figures.is_some_and(|figures| figures.fidelity == bdp_model::twin::Fidelity::Repeats),
            ));
            kernel = kernel.or(compared.kernel.clone());
            let mut twin = compared.twin;
            shorten(&mut twin, plan, direction);
            let mut alone = Vec::new();
            for (index, variant) in variants.iter().enumerate() {
                let mut made = TwinVariant::named(&variant.name);
                for change in &variant.changes {
                    if made.with_change(change, direction) {
                        shown.push((index, change.target.clone()));
                    }
                }
                alone.push(made);
            }
            context.go_on()?;
            let ran = twin::run_variants(&twin, &alone, &order, context)?;
            let congestion = twin.flow.congestion.clone();
            let others = alone.iter().map(|variant| TwinVariant {
                name: format!("{}-beside", variant.name),
                competitor: Some(Competitor { congestion: congestion.clone(), start_ns: OTHERS_START_NS }),
                ..variant.clone()
            });
            let once = TwinRuns { runs: 1, ..order };
            context.go_on()?;
            let beside = twin::run_variants(&twin, &others.collect::<Vec<_>>(), &once, context)?;
            for (variant, (ran, beside)) in variants.iter_mut().zip(ran.iter().zip(&beside)) {
                let predicted = predicted(direction, ran, beside, &congestion).ok_or_else(|| {
                    RunError::Case(format!("no repetition of '{}' was valid on the twin", variant.name))
                })?;
                variant.directions.push(predicted);
            }
        }
        for (index, variant) in variants.iter_mut().enumerate() {
            let missing = variant.changes.iter().map(|change| &change.target);
            let missing =
                missing.filter(|target| !shown.iter().any(|(i, shown)| *i == index && shown == *target));
            variant.not_shown = missing.cloned().collect();
        }
        let choice = choose(&variants, self.alone).map(|variant| variant.name.clone());
        Ok(Rehearsal {
            schema: REHEARSAL_SCHEMA.to_owned(),
            bdp: env!("CARGO_PKG_VERSION").to_owned(),
            run: self.path.run.clone(),
            kernel,
            runs: self.runs,
            seed: self.seed,
            alone: self.alone,
            repeats,
            plan: plan.clone(),
            variants,
            choice,
        })
    }
}

/// The path as it is, the plan, and its alternatives.
fn variants(plan: &Plan) -> Result<Vec<Rehearsed>> {
    let mut sets: Vec<(String, Vec<Change>)> = vec![(BEFORE.to_owned(), Vec::new())];
    if !plan.changes.is_empty() {
        sets.push((PLAN.to_owned(), plan.changes.clone()));
    }
    sets.extend(plan.alternatives.iter().map(|other| (other.name.clone(), in_place(plan, &other.changes))));
    if sets.len() < 2 {
        return Err(RunError::Request("the plan changes nothing; there is nothing to rehearse".to_owned()));
    }
    let rehearsed =
        |(name, changes)| Rehearsed { name, changes, not_shown: Vec::new(), directions: Vec::new() };
    Ok(sets.into_iter().map(rehearsed).collect())
}

/// Returns an alternative's changes, and those of the plan that it does not replace: sysctls that are wanted either
/// way.
fn in_place(plan: &Plan, changes: &[Change]) -> Vec<Change> {
    let kept = plan.changes.iter().filter(|change| {
        matches!(change.target, Target::Sysctl { .. })
            && !changes.iter().any(|other| other.target == change.target)
    });
    kept.chain(changes).cloned().collect()
}

/// Has a transfer of a fast path end sooner.
fn shorten(twin: &mut Twin, plan: &Plan, direction: Direction) {
    let planned = plan.path.directions.iter().find(|planned| planned.direction == direction);
    let rate = planned.and_then(|planned| planned.rate_bps.or(planned.goodput_bps)).unwrap_or(0.0);
    let segments_a_second = rate / 8.0 / plan.path.mss_bytes.unwrap_or(1448).max(1) as f64;
    let most = (MOST_SEGMENTS / segments_a_second.max(1.0) * 1e9) as u64;
    let least = (twin.round_trip().as_ns() * LEAST_ROUND_TRIPS).max(LEAST_NS) + twin.flow.omit_ns;
    twin.flow.duration_ns = twin.flow.duration_ns.min(most.max(least));
}

fn predicted(
    direction: Direction,
    ran: &VariantRun,
    beside: &VariantRun,
    congestion: &str,
) -> Option<Predicted> {
    let flows: Vec<&FlowRecord> = ran.records.iter().filter_map(|record| record.flows.first()).collect();
    let estimate = |of: &dyn Fn(&FlowRecord) -> Option<f64>| {
        let values: Vec<f64> = flows.iter().filter_map(|flow| of(flow)).collect();
        Estimate::of(&values)
    };
    let loaded = |flow: &FlowRecord| flow.rtt_ns.loaded.filter(|loaded| loaded.received > 0);
    Some(Predicted {
        direction,
        goodput_bps: estimate(&|flow| Some(flow.goodput_bps))?,
        loaded_p50_ns: estimate(&|flow| Some(loaded(flow)?.p50 as f64)),
        loaded_p95_ns: estimate(&|flow| Some(loaded(flow)?.p95? as f64)),
        retransmitted: estimate(&|flow| {
            let segments = flow.received_bytes as f64 / flow.mss_bytes.filter(|&mss| mss > 0)? as f64;
            Some(flow.retransmits? as f64 / segments.max(1.0))
        }),
        // The transfer is the scenario's first flow, the competing flow its last.
        beside: beside.records.first().and_then(|record| {
            let [first, .., last] = &record.flows[..] else { return None };
            Some(Beside {
                congestion_control: congestion.to_owned(),
                goodput_bps: first.goodput_bps,
                other_bps: last.goodput_bps,
            })
        }),
    })
}
