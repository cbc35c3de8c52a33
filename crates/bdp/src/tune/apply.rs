//! `bdp tune apply`: makes the changes of a plan, so that they can be reverted.

use std::time::Duration;

use bdp_model::measurement::ends::End;
use bdp_model::tuning::{Change, Plan, SettingChange};
use bdp_model::units::Nanos;
use bdp_report::tuning::applied::{AppliedText, ChangeLine, NOTHING_TO_DO, applied_text, changes_text, why};
use bdp_tune::{Applied, ApplyOptions, Refusal, Step};
use bdp_wire::tuning::TuneOrder;

use super::document::{self, Done, print_document};
use super::far::{Far, FarArgs};
use super::places::{PlaceArgs, refused};
use super::stored;
use crate::exit::{self, Outcome};
use crate::question::{self, can_ask};
use crate::store::StoreArgs;
use crate::{arguments, help, interrupt, output};

/// Default time for which changes of the far end are kept.
const KEPT_THERE: Nanos = Nanos::secs(600);

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp tune apply 7f3a --for 10m\n  bdp tune apply plan.json --dry-run\n  bdp tune apply plan.json --for 10m\n  \
    bdp tune apply plan.json --only 1,3 --yes\n  bdp tune plan --json | bdp tune apply - --yes\n  bdp tune apply plan.json --at ams1 --tune-token 5f1b7c02 --for 10m\n\n\
    'bdp tune revert' restores the previous values. 'bdp help tuning' describes the guarantees."
)]
pub struct ApplyArgs {
    /// Run of 'bdp measure': the change chosen by its rehearsal, otherwise its plan, made now if needed; or a plan written by 'bdp tune
    /// plan --json'; '-' is standard input
    #[arg(value_name = "RUN|PLAN.json")]
    plan: String,

    #[command(flatten)]
    store: StoreArgs,

    /// This host's end of the measured path: near (ran 'bdp measure') or far (ran 'bdp serve')
    #[arg(long, value_name = "END", default_value = "near", conflicts_with = "at", value_parser = ["near", "far"], help_heading = help::TEST)]
    end: String,

    /// Apply only these changes, by their numbers in the plan, for example 1,3
    #[arg(long, value_name = "N,..", value_delimiter = ',', help_heading = help::TEST)]
    only: Vec<usize>,

    /// Apply this alternative of the plan instead of its changes
    #[arg(long, value_name = "NAME", help_heading = help::TEST)]
    alternative: Option<String>,

    /// Revert after this time unless 'bdp tune confirm' is run: 90, 10m, 1h [default: keep until 'bdp tune revert'; with --at: 10m, 10s to 1h]
    #[arg(long = "for", value_name = "TIME", value_parser = arguments::seconds, help_heading = help::TEST)]
    keep_for: Option<Nanos>,

    /// Also set the sysctls at boot, in /etc/sysctl.d/90-bdp.conf; with --for, once confirmed
    #[arg(long, help_heading = help::TEST, conflicts_with = "at")]
    persist: bool,

    /// Apply even if a setting has changed since the plan was made
    #[arg(long, help_heading = help::TEST)]
    force: bool,

    /// Check and print the changes without applying them
    #[arg(long, help_heading = help::TEST)]
    dry_run: bool,

    /// Apply without asking; required if there is no terminal
    #[arg(long, short, help_heading = help::TEST)]
    yes: bool,

    /// Print JSON ('bdp help tune.schema')
    #[arg(long, help_heading = help::OUTPUT)]
    json: bool,

    #[command(flatten)]
    places: PlaceArgs,

    #[command(flatten)]
    far: FarArgs,
}

impl ApplyArgs {
    pub fn run(self) -> Outcome {
        let plan = stored::find(&self.plan, &self.store)?;
        let changes = self.choose(&plan)?;
        if self.keep_for.is_some_and(|time| time < Nanos::secs(1)) {
            return Err(exit::usage("--for must be at least one second"));
        }
        if let Some(far) = self.far.end()? {
            return self.apply_there(&far, &plan, changes);
        }
        let mut world = self.places.world()?;
        let steps = bdp_tune::check(&mut world, &changes, self.force).map_err(|e| refused("apply", &e))?;
        let reports = reports(&steps);
        let lines = lines(&plan, &changes, &reports);
        if self.dry_run || steps.iter().all(|step| step.is_there) {
            return self.print_unchanged(&reports, &lines);
        }
        if !self.yes {
            ask(&lines)?;
        }
        // The question has shown them already.
        let shown = if self.yes { changes_text(&lines, &output::style()) } else { String::new() };
        let cancelled = interrupt::cancel_instead();
        let options = ApplyOptions {
            force: self.force,
            keep_for: self.keep_for.map(|time| Duration::from_nanos(time.0)),
            persist: self.persist,
            client: None,
            cancelled: Some(cancelled),
        };
        let applied = bdp_tune::apply(&mut world, &changes, &options).map_err(|refusal| {
            if matches!(refusal, Refusal::Cancelled { .. }) {
                output::note(&format!("bdp: apply: {refusal}"));
                interrupt::carry_out(&refusal.to_string());
            }
            refused("apply", &refusal)
        })?;
        self.print(&shown, &applied)
    }

    /// Applies the plan's changes of the far end, there.
    fn apply_there(&self, far: &Far, plan: &Plan, changes: Vec<Change>) -> Outcome {
        let order = TuneOrder { changes, keep_for: self.keep_for.unwrap_or(KEPT_THERE), force: self.force };
        let steps = far.check(&order)?;
        let lines = lines(plan, &order.changes, &steps);
        let is_done = steps.iter().all(|step| step.already);
        if self.dry_run || is_done {
            if self.json {
                return far.print_applied(&steps, None, self.dry_run);
            }
            let last = if is_done { NOTHING_TO_DO } else { "nothing was changed (--dry-run)\n" };
            return output::print(&format!("{}{last}", changes_text(&lines, &output::style())));
        }
        if !self.yes {
            ask(&lines)?;
        }
        let shown = if self.yes { changes_text(&lines, &output::style()) } else { String::new() };
        let applied = far.apply(&order)?;
        if self.json {
            return far.print_applied(&applied.steps, Some(&applied), false);
        }
        let text = AppliedText {
            settings: applied.steps.iter().filter(|step| !step.already).count(),
            at: Some(far.name()),
            journal: applied.journal,
            until_unix_ms: applied.until_unix_ms,
            ..AppliedText::default()
        };
        output::print(&format!("{shown}{}", applied_text(&text, &output::style())))
    }

    /// The selected changes, in the plan's order.
    fn choose(&self, plan: &Plan) -> anyhow::Result<Vec<Change>> {
        let all = match &self.alternative {
            None => &plan.changes,
            Some(name) => {
                let found = plan.alternatives.iter().find(|alternative| alternative.name == *name);
                let names: Vec<String> =
                    plan.alternatives.iter().map(|alternative| output::tame(&alternative.name)).collect();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                &found
                    .ok_or_else(|| {
                        exit::usage(format!("no alternative '{name}' in this plan; it has {names}"))
                    })?
                    .changes
            }
        };
        let is_far = self.end == "far" || self.far.is_given();
        let end = if is_far { End::Far } else { End::Near };
        if let Some(&number) = self.only.iter().find(|&&number| number == 0 || number > all.len()) {
            return Err(exit::usage(format!("no change {number} in this plan; it has {}", all.len())));
        }
        let is_chosen = |at: usize| self.only.is_empty() || self.only.contains(&(at + 1));
        let chosen = all.iter().enumerate().filter(|&(at, change)| is_chosen(at) && change.end == end);
        let chosen: Vec<Change> = chosen.map(|(_, change)| change.clone()).collect();
        if chosen.is_empty() {
            let other =
                all.iter().enumerate().filter(|&(at, change)| is_chosen(at) && change.end != end).count();
            let other = match other {
                0 => String::new(),
                count if end == End::Near => {
                    format!("; {count} at the other end (--at HOST from here, or --end far on that host)")
                }
                count => format!("; {count} at the other end (--end near)"),
            };
            return Err(exit::usage(format!("the plan changes nothing at the {} end{other}", end.name())));
        }
        Ok(chosen)
    }

    fn print_unchanged(&self, changes: &[SettingChange], lines: &[ChangeLine<'_>]) -> Outcome {
        if self.json {
            return print_json(changes, None, self.dry_run);
        }
        let is_done = changes.iter().all(|change| change.already);
        let last = if is_done { NOTHING_TO_DO } else { "nothing was changed (--dry-run)\n" };
        output::print(&format!("{}{last}", changes_text(lines, &output::style())))
    }

    fn print(&self, shown: &str, applied: &Applied) -> Outcome {
        for id in &applied.expired {
            output::note(&format!(
                "note: the time of journal {id} was over; its changes were reverted first"
            ));
        }
        if self.json {
            return print_json(&reports(&applied.steps), Some(applied), false);
        }
        let file = applied.persistent_file.as_ref().map(|path| path.display().to_string());
        let text = AppliedText {
            settings: applied.journal.as_ref().map_or(0, |journal| journal.entries.len()),
            at: None,
            journal: applied.journal.as_ref().map(|journal| journal.id),
            until_unix_ms: applied.journal.as_ref().and_then(|journal| Some(journal.until?.unix_ms)),
            persistent_file: file.as_deref(),
            persists_when_confirmed: self.persist && self.keep_for.is_some(),
            of_this_boot: &applied.of_this_boot,
        };
        output::print(&format!("{shown}{}", applied_text(&text, &output::style())))
    }
}

/// Shows the changes and asks; an error if the answer is no, or nobody can answer.
fn ask(lines: &[ChangeLine<'_>]) -> anyhow::Result<()> {
    if !can_ask() {
        return Err(exit::usage(
            "no terminal to ask on; use --yes to apply without asking, or --dry-run to show the changes",
        ));
    }
    output::note_text(&changes_text(lines, &output::style_of_errors()));
    match question::ask("apply? [y/N] ") {
        true => Ok(()),
        false => Err(exit::usage("not applied; nothing was changed")),
    }
}

/// Returns the changes as they are made, with the plan's reasons.
fn lines<'a>(plan: &Plan, changes: &[Change], made: &'a [SettingChange]) -> Vec<ChangeLine<'a>> {
    let line = |(of, change): (&Change, &'a SettingChange)| ChangeLine { change, why: why(plan, of) };
    changes.iter().zip(made).map(line).collect()
}

fn reports(steps: &[Step]) -> Vec<SettingChange> {
    steps.iter().map(Step::report).collect()
}

fn print_json(changes: &[SettingChange], applied: Option<&Applied>, is_dry_run: bool) -> Outcome {
    let journal = applied.and_then(|applied| applied.journal.as_ref());
    let result = document::Applied {
        dry_run: is_dry_run,
        changes,
        journal: journal.map(|journal| journal.id),
        until_unix_ms: journal.and_then(|journal| Some(journal.until?.unix_ms)),
        expired: applied.map_or(&[], |applied| &applied.expired),
        persistent_file: applied.and_then(|applied| applied.persistent_file.as_deref()),
        of_this_boot: applied.map_or(&[], |applied| &applied.of_this_boot),
    };
    print_document(None, Done::Apply(result))
}
