//! The far end: settings of a server's host, changed from here with its owner's consent.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use bdp_agent::client::{TuneClient, TuneError};
use bdp_model::measurement::PORT;
use bdp_model::tuning::{JournalReport, SettingChange};
use bdp_report::tuning::applied::{
    ConfirmedText, JournalText, RevertedText, StateText, confirmed_text, reverted_text, state_text,
};
use bdp_wire::tuning::{TuneApplied, TuneOrder, TuneReverted, TuneState};

use super::document::{Applied, Confirmed, Done, Failed, JournalLine, Journals, Reverted, print_document};
use crate::exit::{self, Exit, Outcome};
use crate::measure::target;
use crate::{help, output, token};

/// Arguments that name the far end.
#[derive(clap::Args)]
pub struct FarArgs {
    /// Run at the far end of the path, where 'bdp serve --allow-tune' runs
    #[arg(long, value_name = "HOST[:PORT]", help_heading = help::ADDRESS, conflicts_with = "journal")]
    at: Option<String>,

    /// Tune token printed by 'bdp serve --allow-tune' at the far end [env: BDP_TUNE_TOKEN]
    #[arg(long, value_name = "TOKEN", help_heading = help::ADDRESS, requires = "at", conflicts_with = "tune_token_file")]
    tune_token: Option<String>,

    /// File whose first line is the tune token
    #[arg(long, value_name = "FILE", help_heading = help::ADDRESS, requires = "at")]
    tune_token_file: Option<PathBuf>,
}

/// A far end.
pub struct Far {
    name: String,
    host: String,
    port: u16,
    token: String,
}

impl FarArgs {
    /// Whether a far end was given.
    pub fn is_given(&self) -> bool {
        self.at.is_some()
    }

    /// The far end, if one was given.
    pub fn end(&self) -> anyhow::Result<Option<Far>> {
        let Some(name) = &self.at else { return Ok(None) };
        let (host, port) = target::with_port(name, None)?;
        let Some(token) = token::find_tune(self.tune_token.as_deref(), self.tune_token_file.as_deref())?
        else {
            return Err(exit::usage(
                "--at needs the tune token printed by 'bdp serve --allow-tune' there: --tune-token, --tune-token-file or BDP_TUNE_TOKEN",
            ));
        };
        Ok(Some(Far { name: name.clone(), host, port: port.unwrap_or(PORT), token }))
    }
}

impl Far {
    /// Its name as given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Checks changes on the far end.
    pub fn check(&self, order: &TuneOrder) -> anyhow::Result<Vec<SettingChange>> {
        let steps = self.connect("apply")?.check(order).map_err(|e| refused("apply", &e))?;
        match steps.len() == order.changes.len() {
            true => Ok(steps),
            false => Err(exit::environment(format!(
                "apply: {} answered for other changes than requested",
                self.name
            ))),
        }
    }

    /// Applies changes on the far end.
    pub fn apply(&self, order: &TuneOrder) -> anyhow::Result<TuneApplied> {
        // A new session: the question may have taken long.
        self.connect("apply")?.apply(order).map_err(|e| refused("apply", &e))
    }

    /// Prints as JSON what was applied on the far end.
    pub fn print_applied(
        &self,
        steps: &[SettingChange],
        applied: Option<&TuneApplied>,
        is_dry_run: bool,
    ) -> Outcome {
        let result = Applied {
            dry_run: is_dry_run,
            changes: steps,
            journal: applied.and_then(|applied| applied.journal),
            until_unix_ms: applied.and_then(|applied| applied.until_unix_ms),
            expired: &[],
            persistent_file: None,
            of_this_boot: &[],
        };
        print_document(Some(&self.name), Done::Apply(result))
    }

    /// Keeps changes on the far end: one journal, or all pending ones applied from here.
    pub fn confirm(&self, only: Option<u32>, is_json: bool) -> Outcome {
        let mut client = self.connect("confirm")?;
        let state = client.state().map_err(|e| refused("confirm", &e))?;
        let ids = match only {
            Some(id) => vec![id],
            None => own(&state, |journal| journal.until_unix_ms.is_some()),
        };
        if ids.is_empty() {
            self.check_damage("confirm", &state)?;
            return Err(exit::usage(format!(
                "confirm: nothing applied from here to confirm; 'bdp tune journal --at {}' lists changes in force",
                self.name
            )));
        }
        let mut settings = 0;
        for &id in &ids {
            settings += client.confirm(id).map_err(|e| refused("confirm", &e))? as usize;
        }
        if is_json {
            let result = Confirmed {
                journals: &ids,
                persistent_file: None,
                of_this_boot: &[],
                damaged: state.damaged.iter().map(Into::into).collect(),
            };
            print_document(Some(&self.name), Done::Confirm(result))?;
        } else {
            let text = ConfirmedText { settings, at: Some(&self.name), ..ConfirmedText::default() };
            output::print(&confirmed_text(&text, &output::style()))?;
        }
        self.check_damage("confirm", &state)?;
        Ok(Exit::Done)
    }

    /// Reverts changes on the far end: one journal, or all applied from here, the newest first.
    pub fn revert(&self, only: Option<u32>, is_json: bool) -> Outcome {
        let mut client = self.connect("revert")?;
        let state = client.state().map_err(|e| refused("revert", &e))?;
        let ids = match only {
            Some(id) => vec![id],
            None => own(&state, |_| true),
        };
        let mut all = Vec::new();
        for &id in ids.iter().rev() {
            all.push(client.revert(id).map_err(|e| refused("revert", &e))?);
        }
        match is_json {
            true => print_document(Some(&self.name), Done::Revert(reverted_document(&all, &state)))?,
            false => output::print(&reverted_words(&all))?,
        };
        let failed: Vec<String> = all
            .iter()
            .flat_map(|one| &one.failed)
            .map(|failed| output::tame(&format!("{}: {}", failed.target, failed.cause)))
            .collect();
        if !failed.is_empty() {
            return Err(exit::environment(format!(
                "revert: {}: cannot restore {}",
                self.name,
                failed.join("; ")
            )));
        }
        self.check_damage("revert", &state)?;
        Ok(if all.iter().all(|one| one.foreign.is_empty()) { Exit::Done } else { Exit::Missed })
    }

    /// Lists the changes in force on the far end.
    pub fn journal(&self, is_json: bool) -> Outcome {
        let state = self.connect("journal")?.state().map_err(|e| refused("journal", &e))?;
        match is_json {
            true => print_document(Some(&self.name), Done::Journal(state_document(&state)))?,
            false => output::print(&self.state_words(&state))?,
        };
        self.check_damage("journal", &state)?;
        Ok(Exit::Done)
    }

    /// Returns an error that names the far end's first damaged journal, if any.
    fn check_damage(&self, doing: &str, state: &TuneState) -> anyhow::Result<()> {
        match state.damaged.first() {
            None => Ok(()),
            Some(damaged) => Err(exit::environment(output::tame(&format!(
                "{doing}: at {}, journal {} is damaged: {}; its owner can rename it with 'bdp tune journal --set-aside' there",
                self.name, damaged.path, damaged.cause
            )))),
        }
    }

    fn connect(&self, doing: &str) -> anyhow::Result<TuneClient> {
        // A signal ends this end at once; changes applied on the far end revert by themselves.
        let cancel = AtomicBool::new(false);
        TuneClient::connect(&self.host, self.port, &self.token, &cancel).map_err(|e| refused(doing, &e))
    }

    fn state_words(&self, state: &TuneState) -> String {
        let journals =
            state.journals.iter().map(|of| JournalText { journal: of.clone(), standing: self.standing(of) });
        let text = StateText { journals: journals.collect(), ..StateText::default() };
        state_text(&text, &output::style())
    }

    fn standing(&self, of: &JournalReport) -> String {
        let at = output::tame(&self.name);
        match (of.standing.as_str(), of.client) {
            ("in_force", Some(_)) => format!("in force until 'bdp tune revert --at {at}'"),
            ("in_force", None) => "in force until 'bdp tune revert' there".to_owned(),
            ("pending", _) if !of.guarded => "will not be reverted: its guard process was killed".to_owned(),
            ("pending", Some(_)) => format!("reverted then, unless 'bdp tune confirm --at {at}' is run"),
            ("pending", None) => "reverted then, unless 'bdp tune confirm' is run there".to_owned(),
            ("overdue", _) => "its time is over, but its guard process was killed".to_owned(),
            ("writing", _) => "being written".to_owned(),
            ("cut_short", _) => "interrupted; 'bdp tune revert' there reverts what was written".to_owned(),
            ("other_boot", _) => "from before the last boot".to_owned(),
            ("other_namespace", _) => "in another network namespace".to_owned(),
            (other, _) => output::tame(other),
        }
    }
}

fn state_document(state: &TuneState) -> Journals<'_> {
    Journals {
        journals: state.journals.iter().map(journal_line).collect(),
        damaged: state.damaged.iter().map(Into::into).collect(),
        persistent_file: None,
        persistent_file_missing: false,
        persistent_file_foreign: false,
    }
}

fn journal_line(of: &JournalReport) -> JournalLine<'_> {
    JournalLine {
        id: of.id,
        standing: &of.standing,
        guarded: of.guarded,
        boot_id: None,
        network_namespace: None,
        kernel: None,
        started_unix_ms: of.started_unix_ms,
        until_unix_ms: of.until_unix_ms,
        client: of.client,
        persistent_file: None,
        settings: of.settings.clone(),
    }
}

fn reverted_document<'a>(all: &'a [TuneReverted], state: &'a TuneState) -> Reverted<'a> {
    let failed = all.iter().flat_map(|one| &one.failed);
    Reverted {
        put_back: all.iter().flat_map(|one| &one.put_back).map(Into::into).collect(),
        were_back: all.iter().flat_map(|one| &one.were_back).map(Into::into).collect(),
        foreign: all.iter().flat_map(|one| one.foreign.clone()).collect(),
        failed: failed.map(|failed| Failed { target: &failed.target, cause: &failed.cause }).collect(),
        persistent_file: None,
        foreign_file: None,
        of_other_boots: &[],
        elsewhere: Vec::new(),
        damaged: state.damaged.iter().map(Into::into).collect(),
    }
}

/// Journals applied from this address.
fn own(state: &TuneState, wanted: impl Fn(&JournalReport) -> bool) -> Vec<u32> {
    let own = state.journals.iter().filter(|journal| journal.client == Some(state.client) && wanted(journal));
    own.map(|journal| journal.id).collect()
}

fn reverted_words(all: &[TuneReverted]) -> String {
    let text = RevertedText {
        is_far: true,
        put_back: all.iter().flat_map(|one| one.put_back.clone()).collect(),
        were_back: all.iter().map(|one| one.were_back.len()).sum(),
        foreign: all.iter().flat_map(|one| one.foreign.clone()).collect(),
        ..RevertedText::default()
    };
    reverted_text(&text, &output::style())
}

/// Turns a refusal into an error with its exit code.
fn refused(doing: &str, error: &TuneError) -> anyhow::Error {
    let text = format!("{doing}: {error}");
    if error.is_of_request() { exit::usage(text) } else { exit::environment(text) }
}
