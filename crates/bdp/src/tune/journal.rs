//! `bdp tune journal`: the changes in force, since when, until when, and the values before.

use bdp_report::tuning::applied::{JournalText, StateText, state_text};
use bdp_sys::boot;
use bdp_tune::{JournalState, JournalStatus, State};

use super::document::{Done, JournalLine, Journals, print_document};
use super::end::EndArgs;
use super::places::refused;
use crate::exit::{self, Exit, Outcome};
use crate::{help, output};

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp tune journal\n  bdp tune journal --json\n  bdp tune journal --set-aside 0003.json\n  \
    bdp tune journal --at ams1 --tune-token 5f1b7c02"
)]
pub struct JournalArgs {
    /// Rename this journal so that commands ignore it; changes no setting
    #[arg(long, value_name = "FILE", help_heading = help::TEST, conflicts_with = "at")]
    set_aside: Option<String>,

    #[command(flatten)]
    end: EndArgs,
}

impl JournalArgs {
    pub fn run(self) -> Outcome {
        if let Some(far) = self.end.far.end()? {
            return far.journal(self.end.json);
        }
        let mut world = self.end.places.world()?;
        if let Some(name) = &self.set_aside {
            let aside = bdp_tune::set_aside(&mut world, name).map_err(|e| refused("journal", &e))?;
            let settings = match aside.goes_back {
                true => "its settings revert when their time is over",
                false => "its settings stay as they are",
            };
            output::note(&format!("note: journal renamed to {}; {settings}", aside.path.display()));
        }
        let state = bdp_tune::state(&mut world).map_err(|e| refused("journal", &e))?;
        match self.end.json {
            true => print_document(None, Done::Journal(document(&state)))?,
            false => output::print(&text(&state))?,
        };
        if let Some(damaged) = state.damaged.first() {
            return Err(exit::environment(damaged.refusal().to_string()));
        }
        Ok(Exit::Done)
    }
}

fn text(state: &State) -> String {
    let standing = |of: &JournalState| {
        match of.standing {
            JournalStatus::InForce => "in force until 'bdp tune revert'",
            JournalStatus::Pending if of.is_guarded => "reverted then, unless 'bdp tune confirm' is run",
            JournalStatus::Pending => {
                "will not be reverted: its guard process was killed; run 'bdp tune revert'"
            }
            JournalStatus::Overdue => {
                "its time is over, but its guard process was killed; run 'bdp tune revert'"
            }
            JournalStatus::Writing => "being written",
            JournalStatus::CutShort => "interrupted; 'bdp tune revert' reverts what was written",
            JournalStatus::OtherBoot if of.journal.persistent_file.is_some() => {
                "from before the last boot; its sysctls are set again by the file"
            }
            JournalStatus::OtherBoot => {
                "from before the last boot, which reset its settings; 'bdp tune revert' removes it"
            }
            JournalStatus::OtherNamespace => return other_namespace(of),
        }
        .to_owned()
    };
    let journal = |of: &JournalState| JournalText { journal: of.report(), standing: standing(of) };
    let file = state.persistent_file.as_ref().map(|path| path.display().to_string());
    let text = StateText {
        journals: state.journals.iter().map(journal).collect(),
        persistent_file: file,
        is_file_missing: state.is_file_missing,
        is_file_foreign: state.is_file_foreign,
    };
    state_text(&text, &output::style())
}

fn other_namespace(of: &JournalState) -> String {
    let number = of.journal.network_namespace;
    match boot::way_into_network(number) {
        Some(way) => {
            format!("in another network namespace ({number}); to list it there: {way} bdp tune journal")
        }
        None => format!(
            "in network namespace {number}, which has no process; if it is gone, rename the journal with 'bdp tune journal --set-aside {}'",
            of.journal.id
        ),
    }
}

fn document(state: &State) -> Journals<'_> {
    Journals {
        journals: state.journals.iter().map(line).collect(),
        damaged: state.damaged.iter().map(Into::into).collect(),
        persistent_file: state.persistent_file.as_deref(),
        persistent_file_missing: state.is_file_missing,
        persistent_file_foreign: state.is_file_foreign,
    }
}

fn line(of: &JournalState) -> JournalLine<'_> {
    JournalLine {
        id: of.journal.id,
        standing: of.standing.name(),
        guarded: of.is_guarded,
        boot_id: Some(&of.journal.boot_id),
        network_namespace: Some(of.journal.network_namespace),
        kernel: Some(&of.journal.kernel),
        started_unix_ms: of.journal.started_unix_ms,
        until_unix_ms: of.journal.until.map(|until| until.unix_ms),
        client: of.journal.client,
        persistent_file: of.journal.persistent_file.as_deref(),
        settings: of.report().settings,
    }
}
