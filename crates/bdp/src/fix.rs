//! `bdp fix`: the whole loop to one host: measure, explain, rehearse, apply, verify, keep or put back.

use std::path::PathBuf;
use std::time::Duration;

use bdp_model::Rate;
use bdp_model::ends::{Direction, End};
use bdp_model::finding::Limit;
use bdp_model::measurement::{HostFacts, MeasureRequest, Measurement};
use bdp_model::tuning::{Change, Plan, Rehearsal, Verification};
use bdp_model::units::Nanos;
use bdp_report::tuning;
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

/// Streams that show what a path can carry, where a limit of one stream hides that: more where so many still carry what each does alone.
const STREAMS: [u32; 2] = [8, 32];
/// Goodput / what as many streams carry alone, from which on they are limited as one is.
const LIMITED_ALIKE: f64 = 0.85;
/// For so long.
const STREAMS_FOR: Nanos = Nanos::secs(5);
/// A congestion control that losses do not keep from it.
const BY_RATE: &str = "bbr";

/// Arguments of `bdp fix`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp fix ams1\n  bdp fix ams1 --direction to --for 30m\n  bdp fix ams1 --yes\n\nEvery change is asked about, goes back by itself after --for unless it proved good and was kept, and can be put back by 'bdp tune revert'.\n\n\
    Exit codes: 0 fixed, or nothing to change; 1 no change is better, or what was predicted was missed; 2 wrong request; 3 the environment refused; 4 a bug of bdp."
)]
pub struct FixArgs {
    /// The far end, where 'bdp serve' runs: ams1, ams1:5201
    #[arg(value_name = "HOST")]
    host: String,

    /// One direction alone: 'to' or 'from' the far end
    #[arg(long, value_name = "DIRECTION", value_parser = crate::tune::measured::direction, help_heading = help::TEST)]
    direction: Option<Direction>,

    /// How long each direction is measured
    #[arg(short = 't', long, value_name = "TIME", default_value = "10", value_parser = arguments::seconds, help_heading = help::TEST)]
    time: Nanos,

    /// Rate of the bottleneck on the wire, as 100M [default: as measured, with more streams where one does not show it]
    #[arg(long, value_name = "RATE", help_heading = help::TEST)]
    rate: Option<Rate>,

    /// Repetitions of each variant in the rehearsal
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100), help_heading = help::TEST)]
    runs: u32,

    /// The path is this transfer's alone: what a flow of others gets beside it does not count
    #[arg(long, help_heading = help::TEST)]
    alone: bool,

    /// Put all back after this time unless it was kept
    #[arg(long = "for", value_name = "TIME", default_value = "10m", value_parser = arguments::seconds, help_heading = help::TEST)]
    keep_for: Nanos,

    /// Ask nothing: apply what the rehearsal chose, keep it where it does as predicted, put it back where not
    #[arg(long, short, help_heading = help::TEST)]
    yes: bool,

    #[command(flatten)]
    access: AccessArgs,

    /// Token that 'bdp serve --allow-tune' printed there for tuning: changes of the far end are made too [env: BDP_TUNE_TOKEN]
    #[arg(long, value_name = "TOKEN", conflicts_with = "tune_token_file", help_heading = help::ACCESS)]
    tune_token: Option<String>,

    /// File whose first line is that token
    #[arg(long, value_name = "FILE", help_heading = help::ACCESS)]
    tune_token_file: Option<PathBuf>,

    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    places: PlaceArgs,
}

impl FixArgs {
    /// Goes around the loop once.
    pub fn run(self) -> Outcome {
        if !self.yes && !can_ask() {
            return Err(exit::usage(
                "no terminal to ask on; --yes applies what the rehearsal chose without a question",
            ));
        }
        let request = self.request()?;
        step("measure");
        let (run, measurement) = self.access.measure(&request, None, &self.store)?;
        let store = self.store.given();
        print(&bdp_report::measurements_text(
            std::slice::from_ref(&measurement),
            run.as_deref(),
            store.as_deref(),
            &style(),
        ))?;
        let Some(run) = run else {
            return Err(exit::usage(
                "the loop keeps its predictions with its runs; name a store: --store PATH",
            ));
        };
        let also = self.show_capacity(&request, &measurement)?;
        let args = MeasuredArgs {
            run: Some(run.clone()),
            also: also.into_iter().collect(),
            rate: self.rate,
            direction: self.direction,
            store: self.store.clone(),
        };
        let measured = args.find()?;
        step("plan");
        let plan = rehearse::plan(&measured, &args);
        if plan.changes.is_empty() {
            return print(&tuning::plan(&plan, &style()));
        }
        let (changes, rehearsal) = match self.rehearse(&measured, &args, &plan)? {
            Rehearsed::Chosen(rehearsal) => {
                let changes = rehearsal.chosen().map(|chosen| chosen.changes.clone()).unwrap_or_default();
                (changes, Some(*rehearsal))
            }
            Rehearsed::Nothing => return Ok(Exit::Missed),
            Rehearsed::NotHere => (plan.changes.clone(), None),
        };
        let far = self.far(&request)?;
        let changes = if far.is_some() { changes } else { self.near_changes(&plan, changes, &run)? };
        let chosen = self.choose(&plan, changes)?;
        if chosen.is_empty() {
            return print("nothing was applied\n");
        }
        let mut hosts = Hosts { near: self.places.world()?, far, keep_for: self.keep_for };
        step("apply");
        let journals = hosts.apply(&chosen)?;
        print(&journals.words(self.keep_for))?;
        step("verify");
        let (verification, now) = verify::verify(&measured, rehearsal.as_ref(), &args, &self.access)?;
        print(&verify::text(&verification, &now))?;
        self.keep_or_put_back(&mut hosts, &journals, &verification)
    }

    /// The far end, where its owner lets this end change settings.
    fn far(&self, request: &MeasureRequest) -> anyhow::Result<Option<Far>> {
        let token = token::find_tune(self.tune_token.as_deref(), self.tune_token_file.as_deref())?;
        Ok(token.map(|token| Far::of(&self.host, request, token)))
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

    /// Measures with more streams, where the limit of one hides what the path can carry; gives that run.
    fn show_capacity(
        &self,
        request: &MeasureRequest,
        measured: &Measurement,
    ) -> anyhow::Result<Option<String>> {
        let hidden = |limit: Limit| {
            matches!(
                limit,
                Limit::ReceiveWindow
                    | Limit::SendBuffer
                    | Limit::RandomLoss
                    | Limit::CongestionLoss
                    | Limit::Reordering
            )
        };
        let limits = measured
            .directions
            .iter()
            .filter_map(|direction| Some((direction, direction.findings.first()?.limit)));
        let directions: Vec<Direction> =
            limits.filter(|(_, limit)| hidden(*limit)).map(|(d, _)| d.direction).collect();
        if self.rate.is_some() || directions.is_empty() {
            return Ok(None);
        }
        let mut request = MeasureRequest { directions, ..request.clone() };
        request.spec.duration = STREAMS_FOR;
        let has = |host: &HostFacts| {
            let all = host.sysctls.get("net.ipv4.tcp_available_congestion_control");
            all.is_some_and(|all| all.split_whitespace().any(|name| name == BY_RATE))
        };
        if has(&measured.near) && has(&measured.far) {
            request.spec.congestion = Some(BY_RATE.to_owned());
        }
        let alone = |direction: Direction| {
            measured
                .directions
                .iter()
                .find(|one| one.direction == direction)
                .map_or(0.0, |one| one.goodput_bps)
        };
        let mut shown_by = None;
        for streams in STREAMS {
            step(&format!("measure with {streams} streams, to see what the path can carry"));
            request.spec.streams = streams;
            let (run, shown) = self.access.measure(&request, Some("capacity".to_owned()), &self.store)?;
            let goodputs = shown.directions.iter().map(|direction| {
                format!(
                    "{} {}",
                    direction.direction.name(),
                    bdp_model::units::format_bps(direction.goodput_bps)
                )
            });
            print(&format!(
                "{} (run {})\n",
                goodputs.collect::<Vec<_>>().join(", "),
                run.as_deref().unwrap_or("-")
            ))?;
            shown_by = run;
            let limited_alike = shown.directions.iter().any(|direction| {
                direction.goodput_bps > LIMITED_ALIKE * f64::from(streams) * alone(direction.direction)
            });
            if !limited_alike {
                break;
            }
        }
        Ok(shown_by)
    }

    fn rehearse(&self, measured: &Measured, args: &MeasuredArgs, plan: &Plan) -> anyhow::Result<Rehearsed> {
        if let Some(obstacle) = guest::obstacle() {
            output::note(&format!("note: not rehearsed: {obstacle}"));
            print(&tuning::plan(plan, &style()))?;
            return Ok(Rehearsed::NotHere);
        }
        step("rehearse");
        let rehearsal = rehearse::rehearse(
            measured,
            args,
            plan,
            rehearse::How { runs: self.runs, seed: 1, alone: self.alone },
        )?;
        print(&tuning::rehearsal(&rehearsal, &style()))?;
        Ok(match rehearsal.choice {
            Some(_) => Rehearsed::Chosen(Box::new(rehearsal)),
            None => Rehearsed::Nothing,
        })
    }

    /// The changes of this end; those of the other one are for its owner to make.
    fn near_changes(&self, plan: &Plan, changes: Vec<Change>, run: &str) -> anyhow::Result<Vec<Change>> {
        let (near, far): (Vec<Change>, Vec<Change>) =
            changes.into_iter().partition(|change| change.end == End::Near);
        if !far.is_empty() {
            let name = plan.far.as_ref().map_or_else(|| self.host.clone(), |far| output::tame(&far.name));
            print(&format!(
                "{} of {name}: 'bdp serve --allow-tune' there and --tune-token here let bdp make {}; 'bdp tune export {run}{} --as sh --end far' writes a script\n",
                settings(far.len()),
                if far.len() == 1 { "it" } else { "them" },
                self.store.option()
            ))?;
        }
        Ok(near)
    }

    /// Those of the changes that are wanted.
    fn choose(&self, plan: &Plan, changes: Vec<Change>) -> anyhow::Result<Vec<Change>> {
        if self.yes || changes.is_empty() {
            return Ok(changes);
        }
        let mut chosen = Vec::new();
        for change in changes {
            if ask(&format!("apply {}? [y/N] ", tuning::change_line(plan, &change))) {
                chosen.push(change);
            }
        }
        Ok(chosen)
    }

    fn keep_or_put_back(&self, hosts: &mut Hosts, journals: &Journals, came: &Verification) -> Outcome {
        let missed = came.missed();
        let keep = match (journals.is_empty(), self.yes) {
            (true, _) => return Ok(if missed { Exit::Missed } else { Exit::Done }),
            (false, true) => !missed,
            (false, false) => ask("keep it? [y/N] "),
        };
        if keep {
            hosts.keep(journals)?;
            print("kept until the next boot; 'bdp tune revert' puts it back\n")?;
        } else {
            let count = hosts.put_back(journals)?;
            print(&format!("put back: {} as before\n", settings(count)))?;
        }
        Ok(if missed { Exit::Missed } else { Exit::Done })
    }
}

/// Both ends, as far as they may be changed.
struct Hosts {
    near: HostWorld,
    far: Option<Far>,
    keep_for: Nanos,
}

/// What was applied, by its journals: none where all was set already.
#[derive(Default)]
struct Journals {
    near: Option<u32>,
    far: Option<u32>,
}

impl Hosts {
    /// Applies changes at both ends, or at none.
    fn apply(&mut self, changes: &[Change]) -> anyhow::Result<Journals> {
        let (near, far): (Vec<Change>, Vec<Change>) =
            changes.iter().cloned().partition(|change| change.end == End::Near);
        let mut journals = Journals::default();
        if !near.is_empty() {
            let options = ApplyOptions {
                keep_for: Some(Duration::from_nanos(self.keep_for.as_ns())),
                cancelled: Some(interrupt::cancel_instead()),
                ..ApplyOptions::default()
            };
            let applied = bdp_tune::apply(&mut self.near, &near, &options)
                .map_err(|refusal| refused("fix", &refusal))?;
            journals.near = applied.journal.map(|journal| journal.id);
        }
        if let (false, Some(end)) = (far.is_empty(), &self.far) {
            let order = TuneOrder { changes: far, keep_for: self.keep_for, force: false };
            match end.apply(&order) {
                Ok(applied) => journals.far = applied.journal,
                Err(error) => {
                    self.put_back(&journals)?;
                    return Err(error);
                }
            }
        }
        Ok(journals)
    }

    fn keep(&mut self, journals: &Journals) -> anyhow::Result<()> {
        if journals.near.is_some() {
            let options = ConfirmOptions { persist: false, only: journals.near };
            bdp_tune::confirm(&mut self.near, options).map_err(|refusal| refused("keep", &refusal))?;
        }
        if let (Some(id), Some(end)) = (journals.far, &self.far) {
            end.keep(id)?;
        }
        Ok(())
    }

    /// Puts back what was applied; how many settings are as before.
    fn put_back(&mut self, journals: &Journals) -> anyhow::Result<usize> {
        let mut count = 0;
        if let Some(id) = journals.near {
            let options = RevertOptions { only: Some(id), ..RevertOptions::default() };
            let reverted =
                bdp_tune::revert(&mut self.near, options).map_err(|refusal| refused("put back", &refusal))?;
            count += reverted.put_back.len();
        }
        if let (Some(id), Some(end)) = (journals.far, &self.far) {
            count += end.put_back(id)?;
        }
        Ok(count)
    }
}

impl Journals {
    const fn is_empty(&self) -> bool {
        self.near.is_none() && self.far.is_none()
    }

    fn words(&self, keep_for: Nanos) -> String {
        let here = self.near.map(|id| format!("this host set, journal {id}"));
        let there = self.far.map(|id| format!("the far end set, journal {id} there"));
        let set: Vec<String> = here.into_iter().chain(there).collect();
        match set.is_empty() {
            true => "nothing to do: all is as planned already\n".to_owned(),
            false => format!(
                "{}; back in {keep_for} unless kept, or at once by 'bdp tune revert'\n",
                set.join("; ")
            ),
        }
    }
}

fn settings(count: usize) -> String {
    match count {
        1 => "1 setting".to_owned(),
        _ => format!("{count} settings"),
    }
}

/// What became of a rehearsal.
enum Rehearsed {
    /// It chose changes.
    Chosen(Box<Rehearsal>),
    /// No change is better than what is there.
    Nothing,
    /// This machine boots no guests.
    NotHere,
}

/// Which part of the loop begins, on standard error.
fn step(name: &str) {
    output::note(&format!("== {name}"));
}
