//! `bdp fix`: the whole loop to one host: measure, explain, rehearse, apply, verify, keep or put back.

use std::io::{BufRead, IsTerminal, Write};
use std::time::Duration;

use bdp_model::ends::{Direction, End};
use bdp_model::finding::Limit;
use bdp_model::measurement::{MeasureRequest, Measurement};
use bdp_model::tuning::{Change, Plan, Rehearsal, Verification};
use bdp_model::units::Nanos;
use bdp_model::{Rate, plain};
use bdp_report::tuning;
use bdp_tune::{ApplyOptions, ConfirmOptions, HostWorld, RevertOptions};

use crate::exit::{self, Exit, Outcome};
use crate::measure::again::AccessArgs;
use crate::measure::target;
use crate::output::{self, print, style};
use crate::store::StoreArgs;
use crate::tune::measured::{Measured, MeasuredArgs};
use crate::tune::places::{PlaceArgs, refused};
use crate::{arguments, guest, help, interrupt, rehearse, verify};

/// Streams that show what a path can carry, where a limit of one stream hides that.
const STREAMS: u32 = 8;
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

    /// Put all back after this time unless it was kept
    #[arg(long = "for", value_name = "TIME", default_value = "10m", value_parser = arguments::seconds, help_heading = help::TEST)]
    keep_for: Nanos,

    /// Ask nothing: apply what the rehearsal chose, keep it where it does as predicted, put it back where not
    #[arg(long, short, help_heading = help::TEST)]
    yes: bool,

    #[command(flatten)]
    access: AccessArgs,

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
        let near: Vec<Change> = changes.iter().filter(|change| change.end == End::Near).cloned().collect();
        self.name_far_changes(&plan, &changes, &run)?;
        let chosen = self.choose(&plan, near)?;
        if chosen.is_empty() {
            return print("nothing was applied\n");
        }
        let mut world = self.places.world()?;
        let applied = self.apply(&mut world, &chosen)?;
        step("verify");
        let (verification, now) = verify::verify(&measured, rehearsal.as_ref(), &args, &self.access)?;
        print(&verify::text(&verification, &now))?;
        self.keep_or_put_back(&mut world, applied, &verification)
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
        step(&format!("measure with {STREAMS} streams, to see what the path can carry"));
        let mut request = MeasureRequest { directions, ..request.clone() };
        request.spec.streams = STREAMS;
        request.spec.duration = STREAMS_FOR;
        let has = |host: &bdp_model::measurement::HostFacts| {
            let all = host.sysctls.get("net.ipv4.tcp_available_congestion_control");
            all.is_some_and(|all| all.split_whitespace().any(|name| name == BY_RATE))
        };
        if has(&measured.near) && has(&measured.far) {
            request.spec.congestion = Some(BY_RATE.to_owned());
        }
        let (run, shown) = self.access.measure(&request, Some("capacity".to_owned()), &self.store)?;
        let goodputs = shown.directions.iter().map(|direction| {
            format!("{} {}", direction.direction.name(), bdp_model::units::format_bps(direction.goodput_bps))
        });
        print(&format!(
            "{} (run {})\n",
            goodputs.collect::<Vec<_>>().join(", "),
            run.as_deref().unwrap_or("-")
        ))?;
        Ok(run)
    }

    fn rehearse(&self, measured: &Measured, args: &MeasuredArgs, plan: &Plan) -> anyhow::Result<Rehearsed> {
        if let Some(obstacle) = guest::obstacle() {
            output::note(&format!("note: not rehearsed: {obstacle}"));
            print(&tuning::plan(plan, &style()))?;
            return Ok(Rehearsed::NotHere);
        }
        step("rehearse");
        let rehearsal = rehearse::rehearse(measured, args, plan, self.runs, 1)?;
        print(&tuning::rehearsal(&rehearsal, &style()))?;
        Ok(match rehearsal.choice {
            Some(_) => Rehearsed::Chosen(Box::new(rehearsal)),
            None => Rehearsed::Nothing,
        })
    }

    /// What is to be changed at the other end is for its owner to change.
    fn name_far_changes(&self, plan: &Plan, changes: &[Change], run: &str) -> anyhow::Result<()> {
        let far = changes.iter().filter(|change| change.end == End::Far).count();
        if far > 0 {
            let name = plan.far.as_ref().map_or_else(|| self.host.clone(), |far| plain::plain(&far.name));
            print(&format!(
                "{far} of the changes {} for {name}: 'bdp tune export {run} --end far' writes them as a script for its owner\n",
                if far == 1 { "is" } else { "are" }
            ))?;
        }
        Ok(())
    }

    /// Those of the changes that are wanted.
    fn choose(&self, plan: &Plan, changes: Vec<Change>) -> anyhow::Result<Vec<Change>> {
        if self.yes || changes.is_empty() {
            return Ok(changes);
        }
        let mut chosen = Vec::new();
        for change in changes {
            if ask(&format!("apply {}? [y/N] ", tuning::change_line(plan, &change)))? {
                chosen.push(change);
            }
        }
        Ok(chosen)
    }

    /// Applies them; gives the number of their journal, `None` where all were there already.
    fn apply(&self, world: &mut HostWorld, changes: &[Change]) -> anyhow::Result<Option<u32>> {
        step("apply");
        let options = ApplyOptions {
            keep_for: Some(Duration::from_nanos(self.keep_for.as_ns())),
            cancelled: Some(interrupt::cancel_instead()),
            ..ApplyOptions::default()
        };
        let applied =
            bdp_tune::apply(world, changes, &options).map_err(|refusal| refused("fix", &refusal))?;
        let journal = applied.journal.map(|journal| journal.id);
        let line = match journal {
            Some(id) => format!(
                "{} of this host set, journal {id}; back in {} unless kept, or at once by 'bdp tune revert'\n",
                match changes.len() {
                    1 => "1 setting".to_owned(),
                    n => format!("{n} settings"),
                },
                self.keep_for
            ),
            None => "nothing to do: all is as planned already\n".to_owned(),
        };
        print(&line)?;
        Ok(journal)
    }

    fn keep_or_put_back(&self, world: &mut HostWorld, journal: Option<u32>, came: &Verification) -> Outcome {
        let missed = came.missed();
        let Some(id) = journal else { return Ok(if missed { Exit::Missed } else { Exit::Done }) };
        let keep = match self.yes {
            true => !missed,
            false => ask("keep it? [y/N] ")?,
        };
        if keep {
            bdp_tune::confirm(world, ConfirmOptions { persist: false })
                .map_err(|refusal| refused("keep", &refusal))?;
            print(&format!("kept until the next boot, journal {id}; 'bdp tune revert' puts it back\n"))?;
        } else {
            let options = RevertOptions { only: Some(id), ..RevertOptions::default() };
            let reverted =
                bdp_tune::revert(world, options).map_err(|refusal| refused("put back", &refusal))?;
            print(&format!(
                "put back: {} as before\n",
                match reverted.put_back.len() {
                    1 => "1 setting".to_owned(),
                    n => format!("{n} settings"),
                }
            ))?;
        }
        Ok(if missed { Exit::Missed } else { Exit::Done })
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

fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

fn ask(question: &str) -> anyhow::Result<bool> {
    output::note_text(question);
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
