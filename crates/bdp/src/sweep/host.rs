//! A sweep between this machine and another: a measurement at each point, each kept before the next begins.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use bdp_model::ByteCount;
use bdp_model::measurement::{MeasureRequest, PORT, Way};
use bdp_model::order::shuffle_in_blocks;
use bdp_model::scenario::Family;
use bdp_model::units::{Nanos, format_bps};
use bdp_run::RunError;
use bdp_run::measure::measure_once;
use bdp_run::refine::Refinement;
use bdp_run::session::Credentials;
use bdp_store::{NewRun, RunKind, SqliteStore, Store, StoredMeasurement};
use bdp_sys::clock;
use serde_json::Value;

use super::SweepArgs;
use super::varied::{Item, Kind, Varied};
use crate::exit::{self, Exit};
use crate::measure::{self, target};
use crate::store::refuse;
use crate::{Outcome, interrupt, output, token};

/// Slow start of a short path; a sweep has no time for more at every point.
const OMIT: Nanos = Nanos::secs(1);
/// A seed that nobody gave is below this, so that it is easily typed again.
const SEEDS: u64 = 1_000_000;

/// Runs it.
pub fn run(args: &SweepArgs, host: &str, varied: &[Varied]) -> Outcome {
    if !args.settings.is_empty() || args.resume {
        return Err(exit::usage("--set and --resume go with --in SCENARIO, not with a host"));
    }
    let request = request(args, host)?;
    let credentials =
        Credentials { token: token::find(args.token.as_deref(), args.token_file.as_deref())?, login: None };
    let mut store = args.store.open()?;
    let cancel = interrupt::cancel_instead();
    let mut sweep = Sweep {
        args,
        request,
        credentials,
        store: store.as_mut(),
        cancel,
        run: None,
        planned: 0,
        kept: Vec::new(),
        seed: args.seed.unwrap_or_else(|| clock::unix_ms() % SEEDS),
    };
    let outcome = sweep.carry_out(varied);
    let Sweep { run, kept, .. } = sweep;
    let kept = in_order(kept);
    let again = run.as_deref().map(|run| args.store.show_command(run));
    if !kept.is_empty() {
        let text = document(run.as_deref(), &kept, args.json, again.as_deref());
        output::print(&text).map_err(|error| crate::lab::kept(error, again.as_deref()))?;
        match (&args.report, &run, &store) {
            (Some(path), Some(run), Some(store)) => {
                crate::report::write_stored(path, run, store, &args.store)?
            }
            (Some(path), ..) => crate::report::write_measured(path, &kept)?,
            _ => {}
        }
    }
    if cancel.load(Ordering::Relaxed) {
        interrupt::carry_out();
    }
    outcome.map(|()| Exit::Done)
}

/// Measurements of a sweep in the natural order of their points, whatever the order in which they were made.
pub fn in_order(kept: Vec<StoredMeasurement>) -> Vec<StoredMeasurement> {
    let all: Vec<_> = kept.iter().map(|k| (&k.params, k.measurement.repetition)).collect();
    let order = bdp_report::natural_order(&all);
    let mut kept: Vec<Option<StoredMeasurement>> = kept.into_iter().map(Some).collect();
    order.into_iter().filter_map(|index| kept[index].take()).collect()
}

/// The sweep as it is printed, and printed again.
pub fn document(run: Option<&str>, kept: &[StoredMeasurement], as_json: bool, again: Option<&str>) -> String {
    let all: Vec<_> = kept.iter().map(|k| (&k.params, &k.measurement)).collect();
    let curves = bdp_report::measured_curves(&all);
    if as_json {
        let measurements: Vec<_> = kept.iter().map(|k| k.measurement.clone()).collect();
        return format!("{:#}\n", bdp_report::sweep_json(run, &curves, &[], &measurements));
    }
    let mut text = bdp_report::sweep(&curves, &output::style());
    text.push_str(&super::next(run, again));
    text
}

struct Sweep<'a> {
    args: &'a SweepArgs,
    request: MeasureRequest,
    credentials: Credentials,
    store: Option<&'a mut SqliteStore>,
    cancel: &'a AtomicBool,
    run: Option<String>,
    planned: usize,
    kept: Vec<StoredMeasurement>,
    /// Of the order of the points.
    seed: u64,
}

impl Sweep<'_> {
    fn carry_out(&mut self, varied: &[Varied]) -> anyhow::Result<()> {
        let along = varied.iter().find(|v| v.kind != Kind::Congestion && v.values.len() > 1);
        let mut refinement =
            along.filter(|_| !self.args.no_refine).map(|v| Refinement::of(v.values.iter().map(|i| i.number)));
        let mut round = varied.to_vec();
        loop {
            let points = combinations(&round);
            self.planned += points.len() * self.args.runs as usize;
            if let (Some(run), Some(store)) = (&self.run, &mut self.store) {
                store.replan(run, u32::try_from(self.planned).unwrap_or(u32::MAX)).map_err(refuse)?;
            }
            let repetitions = 1..=self.args.runs;
            let mut turns: Vec<_> = repetitions
                .flat_map(|repetition| points.iter().map(move |point| (point, repetition)))
                .collect();
            shuffle_in_blocks(&mut turns, |turn| turn.1, self.seed);
            for (point, repetition) in turns {
                if self.cancel.load(Ordering::Relaxed) {
                    return Ok(());
                }
                self.measure(point, repetition)?;
            }
            let all: Vec<_> = self.kept.iter().map(|k| (&k.params, &k.measurement)).collect();
            let new =
                refinement.as_mut().map(|r| r.next(&bdp_report::measured_curves(&all))).unwrap_or_default();
            let Some(along) = along.filter(|_| !new.is_empty()) else { break };
            for one in round.iter_mut().filter(|v| v.kind == along.kind) {
                one.values = new.iter().map(|&number| Item { text: number.to_string(), number }).collect();
            }
        }
        match (&self.run, &mut self.store) {
            (Some(run), Some(store)) if !self.cancel.load(Ordering::Relaxed) => {
                store.finish_run(run, clock::unix_ms()).map_err(refuse)
            }
            _ => Ok(()),
        }
    }

    /// The command that was typed, with the seed that repeats its order.
    fn command_line(&self) -> String {
        let typed = measure::command_line();
        if self.args.seed.is_some() { typed } else { format!("{typed} --seed {}", self.seed) }
    }

    fn measure(&mut self, point: &[(Kind, Item)], repetition: u32) -> anyhow::Result<()> {
        let mut request = self.request.clone();
        for (kind, item) in point {
            match kind {
                Kind::Window => request.window = Some(ByteCount::bytes(item.number)),
                Kind::Streams => request.streams = item.number as u32,
                Kind::Length => request.length = ByteCount::bytes(item.number),
                Kind::Mss => request.mss = Some(item.number as u32),
                Kind::Congestion => request.congestion = Some(item.text.clone()),
            }
        }
        let label = self.args.label.as_deref();
        let host = request.host.clone();
        let measurement =
            measure_once(&request, &self.credentials, label, repetition, &mut |_| {}, self.cancel)
                .map_err(|error| measure::refusal(RunError::Session(error), &host))?;
        if self.cancel.load(Ordering::Relaxed) {
            // It may have been cut short, and would be no point of the curve.
            return Ok(());
        }
        let params: BTreeMap<String, Value> = point
            .iter()
            .map(|(kind, item)| (kind.name().to_owned(), Value::from(item.text.clone())))
            .collect();
        let words: Vec<String> =
            point.iter().map(|(kind, item)| format!("{}={}", kind.name(), item.text)).collect();
        let case_key = format!("{} #{repetition}", words.join(" "));
        if self.kept.is_empty() {
            output::note(&format!("points in random order; --seed {} repeats it", self.seed));
        }
        let goodputs: Vec<String> = measurement
            .directions
            .iter()
            .map(|d| {
                format!("{} {}", if d.direction == Way::To { "->" } else { "<-" }, format_bps(d.goodput_bps))
            })
            .collect();
        let kept = StoredMeasurement { case_key, params, measurement };
        self.keep(&kept)?;
        self.kept.push(kept);
        let (done, key) = (self.kept.len(), words.join(" "));
        output::note(&format!("{done}/{} {key}: {}", self.planned, goodputs.join("  ")));
        Ok(())
    }
}

impl Sweep<'_> {
    /// Makes a measurement durable; the run is entered with the first.
    fn keep(&mut self, kept: &StoredMeasurement) -> anyhow::Result<()> {
        let new = NewRun {
            kind: RunKind::Sweep,
            label: self.args.label.clone(),
            scenario: self.request.host.clone(),
            planned: u32::try_from(self.planned).unwrap_or(u32::MAX),
            command: self.command_line(),
            bdp: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_ms: kept.measurement.started_unix_ms,
            ..NewRun::default()
        };
        let Some(store) = &mut self.store else { return Ok(()) };
        let run = match &self.run {
            Some(run) => run,
            None => self.run.insert(store.begin_run(&new).map_err(refuse)?),
        };
        store.append_measurement(run, kept).map_err(refuse)
    }
}

/// Every value of each with every value of the others, the first slowest.
fn combinations(varied: &[Varied]) -> Vec<Vec<(Kind, Item)>> {
    varied.iter().fold(vec![Vec::new()], |all, one| {
        all.iter()
            .flat_map(|before| {
                one.values.iter().map(|item| {
                    let mut point = before.clone();
                    point.push((one.kind, item.clone()));
                    point
                })
            })
            .collect()
    })
}

fn request(args: &SweepArgs, host: &str) -> anyhow::Result<MeasureRequest> {
    let (host, port) = target::parse(host).map_err(exit::usage)?;
    if let (Some(one), Some(other)) = (port, args.port)
        && one != other
    {
        return Err(exit::usage(format!("two ports were given, {one} and {other}; leave one out")));
    }
    if args.time == Nanos::ZERO {
        return Err(exit::usage("-t 0 measures nothing; give a time"));
    }
    let omit = args.omit.unwrap_or(OMIT);
    let request = MeasureRequest {
        port: port.or(args.port).unwrap_or(PORT),
        family: match (args.version4, args.version6) {
            (true, _) => Some(Family::Ipv4),
            (_, true) => Some(Family::Ipv6),
            _ => None,
        },
        directions: match (args.forward, args.reverse) {
            (true, _) => vec![Way::To],
            (_, true) => vec![Way::From],
            _ => vec![Way::To, Way::From],
        },
        bidirectional: args.bidir,
        duration: args.time + omit,
        omit,
        idle: args.idle,
        ..MeasureRequest::to(host)
    };
    args.socket.apply(request)
}
