//! The documents that the commands print with `--json`: `docs/tune.schema.json`.

use std::net::IpAddr;
use std::path::Path;

use bdp_model::tuning::{SettingBack, SettingChange, SettingReport, Target};
use bdp_tune::{Damaged, Entry};
use bdp_wire::tuning::TuneDamaged;
use serde::Serialize;
use serde_json::json;

use crate::exit::Outcome;
use crate::output;

/// Schema version of these documents.
const SCHEMA: &str = "bdp.tune/1";

/// Prints the document of a command: on the far end of this name, or on this host.
pub fn print_document(at: Option<&str>, result: Done<'_>) -> Outcome {
    let document = Document { schema: SCHEMA, bdp: env!("CARGO_PKG_VERSION"), run: (), at, result };
    output::print(&format!("{:#}\n", json!(document)))
}

/// What a command of `bdp tune` did.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// Name and version of the document's format.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// Version of bdp.
    bdp: &'static str,
    /// Always null: nothing is stored.
    run: (),
    /// The far end, if the command ran there (`--at`); null for this host.
    at: Option<&'a str>,
    #[serde(flatten)]
    result: Done<'a>,
}

/// The result of a command.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Done<'a> {
    /// Changes were checked or applied.
    Apply(Applied<'a>),
    /// Changes were kept.
    Confirm(Confirmed<'a>),
    /// Changes were restored.
    Revert(Reverted<'a>),
    /// Changes were listed.
    Journal(Journals<'a>),
}

/// Changes that were checked or applied.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Applied<'a> {
    /// Whether all was checked and nothing changed (`--dry-run`).
    pub dry_run: bool,
    /// The changes that were chosen, in the plan's order.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub changes: &'a [SettingChange],
    /// Number of the journal; null if nothing was changed.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub journal: Option<u32>,
    /// When all is restored unless it is confirmed, milliseconds since 1970; null if it stays.
    pub until_unix_ms: Option<u64>,
    /// Journals whose time was over, and which were restored first.
    pub expired: &'a [u32],
    /// The file that was written for the next boots.
    pub persistent_file: Option<&'a Path>,
    /// Settings that were to last (`--persist`), but end with this boot.
    pub of_this_boot: &'a [Target],
}

/// Journals that were confirmed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Confirmed<'a> {
    /// The journals that were confirmed.
    pub journals: &'a [u32],
    /// The file that was written for the next boots.
    pub persistent_file: Option<&'a Path>,
    /// Settings that were to last (`--persist`), but end with this boot.
    pub of_this_boot: &'a [Target],
    /// Files that are not valid journals.
    pub damaged: Vec<DamagedFile<'a>>,
}

/// Settings that were restored.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Reverted<'a> {
    /// Settings that were restored, in that order.
    pub put_back: Vec<Back<'a>>,
    /// Settings that already had their value before.
    pub were_back: Vec<Back<'a>>,
    /// Settings that somebody else changed since; they were left alone.
    pub foreign: Vec<SettingBack>,
    /// Settings that could not be restored.
    pub failed: Vec<Failed<'a>>,
    /// The file for the next boots, if it was removed, or rewritten without these settings.
    pub persistent_file: Option<&'a Path>,
    /// The file for the next boots, if it was left alone because somebody else changed it.
    pub foreign_file: Option<&'a Path>,
    /// Journals of earlier boots, whose settings ended with them; the journals were removed.
    pub of_other_boots: &'a [u32],
    /// Journals of other network namespaces, which were left alone.
    pub elsewhere: Vec<u32>,
    /// Files that are not valid journals.
    pub damaged: Vec<DamagedFile<'a>>,
}

/// A setting with its value before.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Back<'a> {
    /// The setting.
    pub target: &'a Target,
    /// Its value before; null if it was not set.
    pub before: Option<&'a str>,
    /// The value that bdp wrote.
    pub wrote: &'a str,
}

/// A setting that could not be restored.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Failed<'a> {
    /// The setting.
    pub target: &'a Target,
    /// Why.
    pub cause: &'a str,
}

/// A file that is not a valid journal.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DamagedFile<'a> {
    /// Its path.
    pub path: &'a Path,
    /// What is wrong with it.
    pub cause: &'a str,
}

/// The journals of a host.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Journals<'a> {
    /// The journals, the oldest first.
    pub journals: Vec<JournalLine<'a>>,
    /// Files that are not valid journals.
    pub damaged: Vec<DamagedFile<'a>>,
    /// The file for the next boots, if there is or should be one.
    pub persistent_file: Option<&'a Path>,
    /// Whether it is missing.
    pub persistent_file_missing: bool,
    /// Whether somebody else changed it.
    pub persistent_file_foreign: bool,
}

/// A journal: the settings of one apply.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JournalLine<'a> {
    /// Number of the journal.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub id: u32,
    /// `in_force`: until `bdp tune revert`. `pending`: restored at `until_unix_ms` unless confirmed. `overdue`: that time is over, but
    /// nobody restored it. `writing`: a process writes it now. `cut_short`: that process was killed. `other_boot`,
    /// `other_namespace`: its settings do not apply here.
    #[cfg_attr(test, schemars(extend("enum" = ["in_force", "pending", "overdue", "writing", "cut_short", "other_boot", "other_namespace"])))]
    pub standing: &'a str,
    /// Whether a process will restore it at `until_unix_ms`.
    pub guarded: bool,
    /// Boot that its settings belong to; null for a far end.
    pub boot_id: Option<&'a str>,
    /// Network namespace that its settings belong to; null for a far end.
    pub network_namespace: Option<u64>,
    /// `uname -r`; null for a far end.
    pub kernel: Option<&'a str>,
    /// When it was applied, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// When it is restored unless it is confirmed, milliseconds since 1970; null if it stays.
    pub until_unix_ms: Option<u64>,
    /// Address of the client that applied it from another machine; null if it was applied on the host itself.
    pub client: Option<IpAddr>,
    /// The file that sets its sysctls at boot, if requested.
    pub persistent_file: Option<&'a Path>,
    /// Its settings.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub settings: Vec<SettingReport>,
}

impl<'a> From<&'a Entry> for Back<'a> {
    fn from(entry: &'a Entry) -> Self {
        Self { target: &entry.target, before: entry.before.as_deref(), wrote: &entry.after }
    }
}

impl<'a> From<&'a SettingBack> for Back<'a> {
    fn from(back: &'a SettingBack) -> Self {
        Self { target: &back.target, before: back.before.as_deref(), wrote: &back.wrote }
    }
}

impl<'a> From<&'a Damaged> for DamagedFile<'a> {
    fn from(damaged: &'a Damaged) -> Self {
        Self { path: &damaged.path, cause: &damaged.cause }
    }
}

impl<'a> From<&'a TuneDamaged> for DamagedFile<'a> {
    fn from(damaged: &'a TuneDamaged) -> Self {
        Self { path: Path::new(&damaged.path), cause: &damaged.cause }
    }
}
