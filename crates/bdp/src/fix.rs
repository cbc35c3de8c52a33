//! `bdp fix`: the whole loop to one host: measure, explain, rehearse, apply, verify, keep or revert.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use bdp_model::Rate;
use bdp_model::ends::{Direction, End};
use bdp_model::measurement::MeasureRequest;
use bdp_model::tuning::{Change, Plan, Rehearsal, Verification};
use bdp_model::units::{Nanos, format_bps};
use bdp_report::tuning;
use bdp_run::fix::{FixNews, FixOptions, FixStage, FixSteps, Fixed, Journals, Measured as FixMeasured, fix};
use bdp_tune::{ApplyOptions, ConfirmOptions, HostWorld, RevertOptions};
use bdp_wire::tuning::TuneOrder;

use crate::exit::{self, Exit, Outcome};
use crate::measure::again::AccessArgs;
use crate::measure::target;
use crate::output::{self, print, style};
use crate::question::{ask, can_ask};
use crate::store::StoreArgs;
use crate::tune::far::Far;
use crate::tune::measured::{Measured, MeasuredArgs};
use crate::tune::places::{PlaceArgs, refused};
use crate::{arguments, guest, help, interrupt, rehearse, token, verify};

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
    /// Runs the loop once.
    pub fn run(self) -> Outcome {
        if !self.yes && !can_ask() {
            return Err(exit::usage(
                "no terminal to ask on; use --yes to apply the change chosen by the rehearsal without asking",
            ));
        }
        let options = FixOptions {
            request: self.request()?,
            is_rate_known: self.rate.is_some(),
            asks_nothing: self.yes,
        };
        let mut command =
            Command { args: &self, request: &options.request, run: None, ends: Ends::default() };
        Ok(match fix(&options, &mut command)? {
            Fixed::Done => Exit::Done,
            Fixed::Missed => Exit::Missed,
        })
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

/// The steps of the loop, as the command line configures them.
struct Command<'a> {
    args: &'a FixArgs,
    request: &'a MeasureRequest,
    run: Option<Planned>,
    ends: Ends,
}

/// The run that the plan is for.
struct Planned {
    id: String,
    args: MeasuredArgs,
    measured: Option<Measured>,
}

/// Both ends, as far as they may be changed.
#[derive(Default)]
struct Ends {
    near: Option<HostWorld>,
    far: Option<Far>,
}

impl FixSteps for Command<'_> {
    type Error = anyhow::Error;

    fn begin(&mut self, stage: FixStage) {
        let name = match stage {
            FixStage::Measure => "measure",
            FixStage::Capacity(streams) => {
                return output::note(&format!("== measure with {streams} streams, to find the path's rate"));
            }
            FixStage::Plan => "plan",
            FixStage::Rehearse => "rehearse",
            FixStage::Apply => "apply",
            FixStage::Verify => "verify",
        };
        output::note(&format!("== {name}"));
    }

    fn tell(&mut self, news: FixNews<'_>) -> anyhow::Result<()> {
        let text = match news {
            FixNews::Capacity(shown) => capacity_line(shown),
            FixNews::Plan(plan) => tuning::plan(plan, &style()),
            FixNews::Rehearsed(rehearsal) => tuning::rehearsal(rehearsal, &style()),
            FixNews::LeftToOwner(plan, count) => self.left_to_owner(plan, count)?,
            FixNews::NothingApplied => "nothing was applied\n".to_owned(),
            FixNews::Applied(journals) => applied_line(journals, self.args.keep_for),
            FixNews::Kept => "kept until the next boot; 'bdp tune revert' reverts it\n".to_owned(),
            FixNews::PutBack(count) => format!("reverted: {} as before\n", settings(count)),
        };
        print(&text).map(drop)
    }

    fn measure(&mut self, request: &MeasureRequest) -> anyhow::Result<FixMeasured> {
        let store = &self.args.store;
        let (run, measurement) = self.args.access.measure(request, None, store)?;
        print(&bdp_report::measurements_text(
            std::slice::from_ref(&measurement),
            run.as_deref(),
            store.given().as_deref(),
            &style(),
        ))?;
        let Some(id) = run.clone() else {
            return Err(exit::usage("'bdp fix' needs a store for its runs and predictions: --store PATH"));
        };
        let args = MeasuredArgs {
            run: run.clone(),
            also: Vec::new(),
            rate: self.args.rate,
            direction: self.args.direction,
            store: store.clone(),
        };
        self.run = Some(Planned { id, args, measured: None });
        Ok(FixMeasured { run, measurement })
    }

    fn measure_capacity(&mut self, request: &MeasureRequest) -> anyhow::Result<FixMeasured> {
        let label = Some("capacity".to_owned());
        let (run, measurement) = self.args.access.measure(request, label, &self.args.store)?;
        Ok(FixMeasured { run, measurement })
    }

    fn plan(&mut self, capacity: Option<&str>) -> anyhow::Result<Plan> {
        let planned = self.run.as_mut().context("it was measured")?;
        planned.args.also = capacity.map(str::to_owned).into_iter().collect();
        let measured = planned.measured.insert(planned.args.find()?);
        Ok(rehearse::plan(measured, &planned.args))
    }

    fn can_rehearse(&mut self) -> bool {
        let obstacle = guest::obstacle();
        if let Some(obstacle) = &obstacle {
            output::note(&format!("note: not rehearsed: {obstacle}"));
        }
        obstacle.is_none()
    }

    fn rehearse(&mut self, plan: &Plan) -> anyhow::Result<Rehearsal> {
        let (measured, args) = self.planned()?;
        let how = rehearse::How { runs: self.args.runs, seed: 1, alone: self.args.alone };
        rehearse::rehearse(measured, args, plan, how)
    }

    fn may_change_far(&mut self) -> anyhow::Result<bool> {
        let token = token::find_tune(self.args.tune_token.as_deref(), self.args.tune_token_file.as_deref())?;
        self.ends.far = token.map(|token| Far::of(&self.args.host, self.request, token));
        Ok(self.ends.far.is_some())
    }

    fn wants(&mut self, plan: &Plan, change: &Change) -> bool {
        ask(&format!("apply {}? [y/N] ", tuning::change_line(plan, change)))
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        self.ends.near = Some(self.args.places.world()?);
        Ok(())
    }

    fn apply(&mut self, end: End, changes: Vec<Change>) -> anyhow::Result<Option<u32>> {
        match end {
            End::Near => {
                let options = ApplyOptions {
                    keep_for: Some(Duration::from_nanos(self.args.keep_for.as_ns())),
                    cancelled: Some(interrupt::cancel_instead()),
                    ..ApplyOptions::default()
                };
                let applied = bdp_tune::apply(self.ends.near()?, &changes, &options)
                    .map_err(|refusal| refused("fix", &refusal))?;
                Ok(applied.journal.map(|journal| journal.id))
            }
            End::Far => {
                let order = TuneOrder { changes, keep_for: self.args.keep_for, force: false };
                Ok(self.ends.far()?.apply(&order)?.journal)
            }
        }
    }

    fn verify(&mut self, rehearsal: Option<&Rehearsal>) -> anyhow::Result<Verification> {
        let (measured, args) = self.planned()?;
        let (verification, now) = verify::verify(measured, rehearsal, args, &self.args.access)?;
        print(&verify::text(&verification, &now))?;
        Ok(verification)
    }

    fn wants_to_keep(&mut self) -> bool {
        ask("keep it? [y/N] ")
    }

    fn keep(&mut self, end: End, journal: u32) -> anyhow::Result<()> {
        match end {
            End::Near => {
                let options = ConfirmOptions { persist: false, only: Some(journal) };
                bdp_tune::confirm(self.ends.near()?, options)
                    .map(drop)
                    .map_err(|refusal| refused("keep", &refusal))
            }
            End::Far => self.ends.far()?.keep(journal).map(drop),
        }
    }

    fn put_back(&mut self, end: End, journal: u32) -> anyhow::Result<usize> {
        match end {
            End::Near => {
                let options = RevertOptions { only: Some(journal), ..RevertOptions::default() };
                let reverted = bdp_tune::revert(self.ends.near()?, options)
                    .map_err(|refusal| refused("revert", &refusal))?;
                Ok(reverted.put_back.len())
            }
            End::Far => self.ends.far()?.put_back(journal),
        }
    }
}

impl Command<'_> {
    fn planned(&self) -> anyhow::Result<(&Measured, &MeasuredArgs)> {
        let planned = self.run.as_ref().context("it was measured")?;
        Ok((planned.measured.as_ref().context("it was planned")?, &planned.args))
    }

    /// Instructions for the owner of the remote end to make the changes.
    fn left_to_owner(&self, plan: &Plan, count: usize) -> anyhow::Result<String> {
        let name = plan.far.as_ref().map_or_else(|| self.args.host.clone(), |far| output::tame(&far.name));
        let run = &self.run.as_ref().context("it was measured")?.id;
        Ok(format!(
            "{} of {name}: start 'bdp serve --allow-tune' there and give --tune-token here to let bdp make {}; or 'bdp tune export {run}{} --as sh --end far' writes a script\n",
            settings(count),
            if count == 1 { "it" } else { "them" },
            self.args.store.option()
        ))
    }
}

impl Ends {
    fn near(&mut self) -> anyhow::Result<&mut HostWorld> {
        self.near.as_mut().context("this host may be changed")
    }

    fn far(&self) -> anyhow::Result<&Far> {
        self.far.as_ref().context("the far end may be changed")
    }
}

fn capacity_line(shown: &FixMeasured) -> String {
    let goodputs = shown
        .measurement
        .directions
        .iter()
        .map(|direction| format!("{} {}", direction.direction.name(), format_bps(direction.goodput_bps)));
    format!("{} (run {})\n", goodputs.collect::<Vec<_>>().join(", "), shown.run.as_deref().unwrap_or("-"))
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
