//! A sweep between this machine and another: from arguments to a plan, from its outcome to text.

use bdp_model::flow::FlowSpec;
use bdp_model::measurement::{Direction, MeasureRequest, Measurement, PORT};
use bdp_model::sweep::curve::Curve;
use bdp_model::units::{Nanos, format_bps};
use bdp_report::FarEnd;
use bdp_run::Event;
use bdp_run::job::Job;
use bdp_run::job::context::Context;
use bdp_run::measure::session::Credentials;
use bdp_run::sweep::{SweepPlan, Varied};
use bdp_store::StoredMeasurement;
use bdp_sys::clock;
use serde_json::Value;

use super::arguments::SweepArgs;
use super::next::next;
use crate::exit::{self, Exit, Outcome};
use crate::measure::{self, target};
use crate::{command_line, guest, interrupt, output, store, token};

/// Slow start of a short path; a sweep has no time for more at every point.
const OMIT: Nanos = Nanos::secs(1);
/// Upper bound of a default seed, so that it is easily typed again.
const SEEDS: u64 = 1_000_000;

/// Runs it.
pub fn run(args: &SweepArgs, host: &str, varied: Vec<Varied>) -> Outcome {
    let plan = plan(args, host, varied)?;
    let (seed, host, port) = (plan.seed, plan.request.host.clone(), plan.request.port);
    let labels = plan.labels.clone();
    args.page.check()?;
    crate::report::check_place(args.prometheus.as_deref(), "metrics")?;
    let mut store = args.store.open()?;
    let cancel = interrupt::cancel_instead();
    let job = Job::Sweep(Box::new(plan));
    let mut watch = |event: Event<'_>| show(&event, seed);
    let ended =
        job.run(Context::new(&guest::commands, &mut watch, cancel).storing(store::of_job(&mut store)));
    let (run, kept) = (ended.run.as_deref(), ended.results.points());
    let again = run.map(|run| args.store.show_command(run));
    if !kept.is_empty() {
        let text = document(run, kept, args.json, again.as_deref());
        output::print(&text).map_err(|error| exit::kept(error, again.as_deref()))?;
        if let Some(path) = &args.prometheus {
            let all: Vec<_> = kept.iter().map(|k| (&k.params, &k.measurement)).collect();
            let text = bdp_report::prometheus_of_sweep(
                &all,
                FarEnd { host: &host, port: Some(port), own: &labels },
                env!("CARGO_PKG_VERSION"),
            );
            crate::report::write(path, &text, "metrics")?;
        }
        args.page.write(run.zip(store.as_ref()), &args.store, |about| {
            crate::report::page_of_measurements(kept, about)
        })?;
    }
    if ended.cancelled {
        interrupt::carry_out("nothing was measured");
    }
    ended.result.map(|()| Exit::Done).map_err(|error| measure::refusal(error, &host))
}

/// The sweep's output, also when it is printed again.
pub fn document(run: Option<&str>, kept: &[StoredMeasurement], as_json: bool, again: Option<&str>) -> String {
    if as_json {
        return format!("{:#}\n", json(run, kept));
    }
    let mut text = bdp_report::sweep(&curves(kept), "", &output::style());
    text.push_str(&next(run, again));
    text
}

/// Its `--json`.
pub fn json(run: Option<&str>, kept: &[StoredMeasurement]) -> Value {
    let measurements: Vec<_> = kept.iter().map(|k| k.measurement.clone()).collect();
    bdp_report::sweep_json(run, &curves(kept), &[], &measurements)
}

fn curves(kept: &[StoredMeasurement]) -> Vec<Curve> {
    let all: Vec<_> = kept.iter().map(|k| (&k.params, &k.measurement)).collect();
    bdp_model::sweep::measured_curves::measured_curves(&all)
}

/// Prints a line for each point; before the first the seed of their order.
fn show(event: &Event<'_>, seed: u64) {
    let Event::PointEnded { key, done, planned, measurement } = event else { return };
    if *done == 1 {
        output::note(&format!("points in random order; --seed {seed} repeats it"));
    }
    output::note(&format!("{done}/{planned} {key}: {}", goodputs(measurement)));
}

fn goodputs(measurement: &Measurement) -> String {
    let goodputs: Vec<String> = measurement
        .directions
        .iter()
        .map(|d| {
            format!(
                "{} {}",
                if d.direction == Direction::To { "->" } else { "<-" },
                format_bps(d.goodput_bps)
            )
        })
        .collect();
    goodputs.join("  ")
}

/// Its plan.
pub fn plan(args: &SweepArgs, host: &str, varied: Vec<Varied>) -> anyhow::Result<SweepPlan> {
    if !args.settings.is_empty() || args.resume {
        return Err(exit::usage("--set and --resume need --in SCENARIO, not a host"));
    }
    let request = request(args, host)?;
    let seed = args.seed.unwrap_or_else(|| clock::unix_ms() % SEEDS);
    let typed = command_line::typed();
    let (label, labels) = args.labels.read()?;
    Ok(SweepPlan {
        request,
        credentials: Credentials {
            token: token::find(args.token.as_deref(), args.token_file.as_deref())?,
            login: None,
        },
        varied,
        runs: args.runs,
        refine: !args.no_refine,
        seed,
        label,
        labels,
        command: if args.seed.is_some() { typed } else { format!("{typed} --seed {seed}") },
    })
}

fn request(args: &SweepArgs, host: &str) -> anyhow::Result<MeasureRequest> {
    let (host, port) = target::with_port(host, args.port)?;
    if args.time == Nanos::ZERO {
        return Err(exit::usage("-t 0 measures nothing; give a duration"));
    }
    let omit = args.omit.unwrap_or(OMIT);
    let request = MeasureRequest {
        port: port.unwrap_or(PORT),
        family: target::family(args.version4, args.version6),
        directions: match (args.forward, args.reverse) {
            (true, _) => vec![Direction::To],
            (_, true) => vec![Direction::From],
            _ => vec![Direction::To, Direction::From],
        },
        bidirectional: args.bidir,
        idle: args.idle,
        spec: FlowSpec { duration: args.time + omit, omit, ..FlowSpec::default() },
        ..MeasureRequest::to(host)
    };
    args.socket.apply(request)
}
