//! `bdp fix`: the whole loop to one host: measure, explain, rehearse, apply, verify, keep or revert.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use bdp_model::Rate;
use bdp_model::measurement::ends::Direction;
use bdp_model::measurement::{MeasureRequest, Measurement};
use bdp_model::tuning::Plan;
use bdp_model::units::{Nanos, format_bps};
use bdp_report::tuning;
use bdp_run::job::Job;
use bdp_run::job::context::{Context, StoreAt};
use bdp_run::tuning::fix::FixPlan;
use bdp_run::{Event, Journals, Question, Stage};

use crate::exit::{self, Exit, Outcome};
use crate::measure::access::AccessArgs;
use crate::measure::live::Live;
use crate::measure::{NOTHING, end_if_asked, refusal, target};
use crate::output::{self, print, style};
use crate::planned::Planned;
use crate::question::{ask, can_ask};
use crate::store::StoreArgs;
use crate::tune::places::PlaceArgs;
use crate::{arguments, command_line, guest, help, interrupt, token, verify};

/// Arguments of `bdp fix`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp fix ams1\n  bdp fix ams1 --direction to --for 30m\n  bdp fix ams1 --yes\n\nbdp asks before each change. A change reverts after --for unless it helped and you kept it; 'bdp tune revert' undoes it at any time.\n\n\
    Exit codes: 0 fixed, or nothing to change; 1 no change is better, or the prediction was missed; 2 usage error; 3 environment error; 4 bug in bdp."
)]
pub struct FixArgs {
    /// Far end, running 'bdp serve', for example ams1 or ams1:5201
    #[arg(value_name = "HOST")]
    host: String,

    /// Only one direction: 'to' or 'from' the far end
    #[arg(long, value_name = "DIRECTION", value_parser = crate::tune::measured::direction, help_heading = help::TEST)]
    direction: Option<Direction>,

    /// Time to measure each direction
    #[arg(short = 't', long, value_name = "TIME", default_value = "10", value_parser = arguments::seconds, help_heading = help::TEST)]
    time: Nanos,

    /// Bottleneck rate on the wire, for example 100M [default: measured, with more streams if one does not show it]
    #[arg(long, value_name = "RATE", help_heading = help::TEST)]
    rate: Option<Rate>,

    /// Repetitions of each variant in the rehearsal
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100), help_heading = help::TEST)]
    runs: u32,

    /// The path carries only this transfer: ignore the effect on competing flows
    #[arg(long, help_heading = help::TEST)]
    alone: bool,

    /// Revert all changes after this time unless they were kept
    #[arg(long = "for", value_name = "TIME", default_value = "10m", value_parser = arguments::seconds, help_heading = help::TEST)]
    keep_for: Nanos,

    /// Do not ask: apply the change chosen by the rehearsal, keep it if it does as predicted, revert it otherwise
    #[arg(long, short, help_heading = help::TEST)]
    yes: bool,

    #[command(flatten)]
    access: AccessArgs,

    /// Tune token printed by 'bdp serve --allow-tune' on HOST; with it the far end is changed too [env: BDP_TUNE_TOKEN]
    #[arg(long, value_name = "TOKEN", conflicts_with = "tune_token_file", help_heading = help::ACCESS)]
    tune_token: Option<String>,

    /// File whose first line is the tune token
    #[arg(long, value_name = "FILE", help_heading = help::ACCESS)]
    tune_token_file: Option<PathBuf>,

    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    places: PlaceArgs,
}

impl FixArgs {
    /// The job of the loop.
    pub fn planned(&self) -> anyhow::Result<Planned> {
        Ok(Planned::by_events(Job::Fix(Box::new(self.plan()?))))
    }

    fn plan(&self) -> anyhow::Result<FixPlan> {
        Ok(FixPlan {
            request: self.request()?,
            credentials: self.access.credentials()?,
            tune_token: token::find_tune(self.tune_token.as_deref(), self.tune_token_file.as_deref())?,
            direction: self.direction,
            rate_bps: self.rate.map(|rate| rate.as_bps() as f64),
            runs: self.runs,
            alone: self.alone,
            keep_for: self.keep_for,
            asks_nothing: self.yes,
            command: command_line::typed(),
        })
    }

    /// Runs the loop once.
    pub fn run(self) -> Outcome {
        if !self.yes && !can_ask() {
            return Err(exit::usage(
                "no terminal to ask on; use --yes to apply the change chosen by the rehearsal without asking",
            ));
        }
        let Some(mut store) = self.store.open()? else {
            return Err(exit::usage("'bdp fix' needs a store for its runs and predictions: --store PATH"));
        };
        let mut world = self.places.world()?;
        let plan = self.plan()?;
        let host = plan.request.host.clone();
        let cancel = interrupt::cancel_instead();
        let mut face = Face::new(&self);
        let seen = RefCell::new(&mut face);
        let mut watch = |event: Event<'_>| {
            let mut face = seen.borrow_mut();
            let shown = face.show(&event);
            // Without a reader nothing more is to be changed.
            if shown.is_err() || output::is_closed() {
                face.broke = face.broke.take().or(shown.err());
                cancel.store(true, Ordering::Relaxed);
            }
        };
        let mut answer = |question: &Question<'_>| seen.borrow().ask(question);
        let context = Context {
            world: Some(&mut world),
            answer: Some(&mut answer),
            store: Some(StoreAt::of(&mut store)),
            ..Context::new(&guest::commands, &mut watch, cancel)
        };
        let ended = Job::Fix(Box::new(plan)).run(context);
        face.live = None;
        // It would be hidden by what ended the loop.
        if let Err(error) = &ended.result
            && !error.is_cancelled()
            && cancel.load(Ordering::Relaxed)
        {
            output::note(&format!("bdp: {}", output::tame(&error.to_string())));
        }
        if let Some(error) = face.broke.take() {
            return Err(error);
        }
        end_if_asked(cancel, if face.run.is_none() { NOTHING } else { "" });
        let exit = Exit::of(&ended, false);
        ended.result.map_err(|error| refusal(error, &host))?;
        Ok(exit)
    }

    fn request(&self) -> anyhow::Result<MeasureRequest> {
        let (host, port) = target::with_port(&self.host, None)?;
        let mut request = MeasureRequest::to(host);
        request.port = port.unwrap_or(request.port);
        if let Some(direction) = self.direction {
            request.directions = vec![direction];
        }
        request.spec.duration = self.time;
        Ok(request)
    }
}

/// Shows the loop as lines, and asks on the terminal.
struct Face<'a> {
    args: &'a FixArgs,
    stage: Stage,
    live: Option<Live>,
    /// The first measurement's run.
    run: Option<String>,
    plan: Option<Plan>,
    /// The newest measurement.
    measured: Option<Measurement>,
    /// Why nothing more can be printed.
    broke: Option<anyhow::Error>,
}

impl<'a> Face<'a> {
    const fn new(args: &'a FixArgs) -> Self {
        Self { args, stage: Stage::Measure, live: None, run: None, plan: None, measured: None, broke: None }
    }

    fn show(&mut self, event: &Event<'_>) -> Outcome {
        let text = match event {
            Event::Stage { stage, streams } => {
                self.begin(*stage, *streams);
                return Ok(Exit::Done);
            }
            Event::MeasurementEnded { run, measurement } => {
                self.live = None;
                // One that broke is an error of the loop.
                if measurement.error.is_some() {
                    return Ok(Exit::Done);
                }
                self.measured(run.as_deref(), measurement)
            }
            Event::Plan { plan } => {
                self.plan = Some(plan.clone().into_owned());
                if !plan.changes.is_empty() {
                    return Ok(Exit::Done);
                }
                tuning::plan(plan, &style())
            }
            Event::NotRehearsed { why } => {
                output::note(&format!("note: not rehearsed: {}", output::tame(why)));
                self.plan.as_ref().map(|plan| tuning::plan(plan, &style())).unwrap_or_default()
            }
            Event::Rehearsed { rehearsal } => tuning::rehearsal(rehearsal, &style()),
            Event::LeftToOwner { changes } => self.left_to_owner(*changes),
            Event::NothingApplied => "nothing was applied\n".to_owned(),
            Event::Applied { journals } => applied_line(*journals, self.args.keep_for),
            Event::Verified { verification } => match &self.measured {
                Some(now) => verify::text(verification, now),
                None => return Ok(Exit::Done),
            },
            Event::Kept => "kept until the next boot; 'bdp tune revert' reverts it\n".to_owned(),
            Event::NotPutBack { why } => {
                output::note(&format!(
                    "bdp: {}; it reverts in {}, or now with 'bdp tune revert'",
                    output::tame(why),
                    self.args.keep_for
                ));
                return Ok(Exit::Done);
            }
            Event::PutBack { settings: count } => format!("reverted: {} as before\n", settings(*count)),
            other => {
                self.live.iter_mut().for_each(|live| live.show(other));
                return Ok(Exit::Done);
            }
        };
        self.live = None;
        print(&text)
    }

    fn begin(&mut self, stage: Stage, streams: Option<u32>) {
        let name = match stage {
            Stage::Measure => "measure".to_owned(),
            Stage::Capacity => {
                format!("measure with {} streams, to find the path's rate", streams.unwrap_or(1))
            }
            Stage::Plan => "plan".to_owned(),
            Stage::Rehearse => "rehearse".to_owned(),
            Stage::Apply => "apply".to_owned(),
            Stage::Verify => "verify".to_owned(),
        };
        output::note(&format!("== {name}"));
        self.stage = stage;
        self.live = matches!(stage, Stage::Measure | Stage::Capacity | Stage::Verify).then(|| Live::new(1));
    }

    fn measured(&mut self, run: Option<&str>, measurement: &Measurement) -> String {
        self.measured = Some(measurement.clone());
        match self.stage {
            Stage::Capacity => capacity_line(run, measurement),
            Stage::Measure => {
                self.run = run.map(str::to_owned);
                let store = self.args.store.given();
                let all = std::slice::from_ref(measurement);
                bdp_report::measurements_text(all, run, store.as_deref(), &style())
            }
            // Its verdicts follow.
            Stage::Plan | Stage::Rehearse | Stage::Apply | Stage::Verify => String::new(),
        }
    }

    fn ask(&self, question: &Question<'_>) -> bool {
        match (question, &self.plan) {
            (Question::Apply { change }, Some(plan)) => {
                ask(&format!("apply {}? [y/N] ", tuning::change_line(plan, change)))
            }
            (Question::Apply { .. }, None) => false,
            (Question::Keep, _) => ask("keep it? [y/N] "),
        }
    }

    /// Instructions for the owner of the far end to make the changes.
    fn left_to_owner(&self, count: usize) -> String {
        let far = self.plan.as_ref().and_then(|plan| plan.far.as_ref());
        let name = far.map_or_else(|| self.args.host.clone(), |far| output::tame(&far.name));
        format!(
            "{} of {name}: start 'bdp serve --allow-tune' there and give --tune-token here to let bdp make {}; or 'bdp tune export {}{} --as sh --end far' writes a script\n",
            settings(count),
            if count == 1 { "it" } else { "them" },
            self.run.as_deref().unwrap_or("RUN"),
            self.args.store.option()
        )
    }
}

fn capacity_line(run: Option<&str>, measurement: &Measurement) -> String {
    let goodputs = measurement
        .directions
        .iter()
        .map(|direction| format!("{} {}", direction.direction.name(), format_bps(direction.goodput_bps)));
    format!("{} (run {})\n", goodputs.collect::<Vec<_>>().join(", "), run.unwrap_or("-"))
}

fn applied_line(journals: Journals, keep_for: Nanos) -> String {
    let here = journals.near.map(|id| format!("this host set, journal {id}"));
    let there = journals.far.map(|id| format!("the far end set, journal {id} there"));
    let set: Vec<String> = here.into_iter().chain(there).collect();
    match set.is_empty() {
        true => "nothing to do: all settings are already as planned\n".to_owned(),
        false => {
            format!("{}; reverts in {keep_for} unless kept, or now with 'bdp tune revert'\n", set.join("; "))
        }
    }
}

fn settings(count: usize) -> String {
    match count {
        1 => "1 setting".to_owned(),
        _ => format!("{count} settings"),
    }
}
