//! A sweep inside a scenario.

use bdp_model::record::Record;
use bdp_model::sweep::record_curves::curves;
use bdp_run::lab::RefinedSweep;
use bdp_run::sweep::{Variable, Varied};
use bdp_scenario::{PlanOptions, Scenario};
use serde_json::Value;

use super::arguments::SweepArgs;
use super::next::next;
use super::varied::{path, texts};
use crate::exit::{self, Outcome};
use crate::lab::{Work, finish_with, source};
use crate::output;

/// Its cases.
pub fn work(args: &SweepArgs, scenario: &str, varied: &[Varied]) -> anyhow::Result<Work> {
    let mut options = PlanOptions {
        seed: args.seed,
        filter: None,
        overrides: args.settings.clone(),
        repetitions: Some(args.runs),
        vary: varied.iter().map(|v| (path(v.parameter), texts(v))).collect(),
        links_alone: false,
    };
    if args.reverse || args.forward {
        let direction = if args.reverse { "reverse" } else { "forward" };
        options.overrides.push(("flow.direction".to_owned(), direction.to_owned()));
    }
    if let Some(clock) = args.clock {
        options.overrides.push(("clock".to_owned(), clock.name().to_owned()));
    }
    let scenario = source::load(scenario, &options)?;
    let omit = match args.omit {
        Some(omit) => omit,
        // The scenario's own: it knows how long its slow start lasts.
        None => {
            let cases = source::plan(&scenario, &options)?;
            cases.iter().flat_map(|c| &c.flows).map(|f| f.spec.omit).max().unwrap_or_default()
        }
    };
    let nanoseconds = |time: bdp_model::Nanos| format!("{}ns", time.as_ns());
    options.overrides.push(("flow.omit".to_owned(), nanoseconds(omit)));
    options.overrides.push(("flow.duration".to_owned(), nanoseconds(omit + args.time)));

    let refine = if args.no_refine { None } else { refinement(&scenario, &options, varied) };
    let mut work = Work::plan(vec![scenario], &options)?;
    let (label, labels) = args.labels.read()?;
    work.call(label, labels);
    work.as_sweep(refine);
    if args.resume {
        work.resume();
    }
    Ok(work)
}

/// Runs it.
pub fn run(args: &SweepArgs, scenario: &str, varied: &[Varied]) -> Outcome {
    let mut work = work(args, scenario, varied)?;
    let mut store = args.store.open()?;
    let outcome = work.run(store.as_mut());
    let run = work.run_id().map(str::to_owned);
    let again = run.as_deref().map(|run| args.store.show_command(run));
    finish_with(outcome, |records| {
        let text = document(run.as_deref(), records, args.json, again.as_deref());
        output::print(&text).map(|_| ()).map_err(|error| exit::kept(error, again.as_deref()))?;
        if let Some(path) = &args.prometheus {
            crate::report::write_case_metrics(path, records, &args.labels.read()?.1)?;
        }
        let stored = run.as_deref().zip(store.as_ref());
        args.page.write(stored, &args.store, |about| bdp_report::html(records, about))
    })
}

/// The sweep's output, also when it is printed again.
pub fn document(run: Option<&str>, records: &[Record], as_json: bool, again: Option<&str>) -> String {
    if as_json {
        return format!("{:#}\n", json(run, records));
    }
    let curves = curves(records);
    let style = output::style();
    let conditions = bdp_report::sweep_heading(records, &style);
    let mut text = bdp_report::sweep(&curves, &conditions, &style);
    text.push_str(&next(run, again));
    text
}

/// Its `--json`.
pub fn json(run: Option<&str>, records: &[Record]) -> Value {
    bdp_report::sweep_json(run, &curves(records), records, &[])
}

/// Refinement between the knee and the point before it; none if the first varied parameter has no order.
fn refinement(scenario: &Scenario, options: &PlanOptions, varied: &[Varied]) -> Option<RefinedSweep> {
    let along = varied.iter().find(|v| v.parameter != Variable::Congestion && v.values.len() > 1)?;
    Some(RefinedSweep {
        scenario: scenario.name.clone(),
        text: scenario.text().to_owned(),
        traces: scenario.traces().clone(),
        options: options.clone(),
        path: path(along.parameter),
        asked: along.values.iter().map(|v| v.number).collect(),
    })
}
