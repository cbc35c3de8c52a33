//! The changes in force, according to the journals and the machine's settings.

use std::path::PathBuf;

use bdp_model::tuning::{JournalReport, SettingReport};

use crate::here::{Here, locked};
use crate::journal::{Entry, Journal, Progress, same};
use crate::persist::{self, Kept};
use crate::refusal::Refusal;
use crate::store::{self, Damaged};
use crate::world::{Holder, Undo, World};

/// Status of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalStatus {
    /// Its changes are in force until they are reverted.
    InForce,
    /// Its changes are reverted automatically unless they are confirmed.
    Pending,
    /// Its deadline has passed, but its changes were not reverted.
    Overdue,
    /// A process is writing its changes.
    Writing,
    /// It was interrupted: some changes may be in force.
    CutShort,
    /// Its changes ended with the boot to which they belonged.
    OtherBoot,
    /// Its changes belong to another network namespace.
    OtherNamespace,
}

impl JournalStatus {
    /// Returns the name used in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InForce => "in_force",
            Self::Pending => "pending",
            Self::Overdue => "overdue",
            Self::Writing => "writing",
            Self::CutShort => "cut_short",
            Self::OtherBoot => "other_boot",
            Self::OtherNamespace => "other_namespace",
        }
    }
}

/// Status of one setting, compared with its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryStatus {
    /// It has the value that bdp wrote.
    InForce,
    /// It has the value from before the change.
    AsBefore,
    /// Someone else has changed it since.
    Foreign,
    /// It cannot be read, or belongs to another boot or namespace.
    Unknown,
}

impl EntryStatus {
    /// Returns the name used in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InForce => "in_force",
            Self::AsBefore => "as_before",
            Self::Foreign => "foreign",
            Self::Unknown => "unknown",
        }
    }
}

/// State of one setting of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryState {
    /// The journal's entry.
    pub entry: Entry,
    /// Present value.
    pub now: Option<String>,
    /// Status of the setting.
    pub standing: EntryStatus,
}

/// State of one journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalState {
    /// The stored journal.
    pub journal: Journal,
    /// Status of the journal.
    pub standing: JournalStatus,
    /// Its settings.
    pub entries: Vec<EntryState>,
    /// Whether a process will revert it at its deadline.
    pub is_guarded: bool,
}

impl JournalState {
    /// Returns it as the protocol and JSON have it.
    pub fn report(&self) -> JournalReport {
        let settings = self.entries.iter().map(|state| SettingReport {
            target: state.entry.target.clone(),
            before: state.entry.before.clone(),
            wrote: state.entry.after.clone(),
            now: state.now.clone(),
            standing: state.standing.name().to_owned(),
        });
        JournalReport {
            id: self.journal.id,
            client: self.journal.client,
            standing: self.standing.name().to_owned(),
            started_unix_ms: self.journal.started_unix_ms,
            until_unix_ms: self.journal.until.map(|until| until.unix_ms),
            guarded: self.is_guarded,
            settings: settings.collect(),
        }
    }
}

/// State of all journals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// The journals, oldest first.
    pub journals: Vec<JournalState>,
    /// Files that are not valid journals.
    pub damaged: Vec<Damaged>,
    /// The sysctl file for the next boots, if one exists or should.
    pub persistent_file: Option<PathBuf>,
    /// Whether that file is missing.
    pub is_file_missing: bool,
    /// Whether someone else changed that file.
    pub is_file_foreign: bool,
}

/// Reads the journals and compares them with the machine's settings, changing nothing.
pub fn state(world: &mut dyn World) -> Result<State, Refusal> {
    let folder = world.folder();
    let is_busy = match world.list(&folder) {
        Ok(names) if names.is_empty() => false,
        // A user other than root can read the journals but not lock them.
        _ => match world.lock() {
            Ok(Ok(())) => {
                world.unlock();
                false
            }
            Ok(Err(_)) => true,
            Err(_) => false,
        },
    };
    let here = Here::of(world)?;
    let journals = store::read_all(world)?;
    let wanted = persist::content(&journals.sound).is_some();
    let kept = persist::compare(world, &journals.sound).unwrap_or(Kept::Sound);
    let mut state = State {
        damaged: journals.damaged,
        persistent_file: wanted.then(|| world.persistent_file()),
        is_file_missing: wanted && kept == Kept::Missing,
        is_file_foreign: wanted && kept == Kept::Foreign,
        ..State::default()
    };
    let now = world.uptime_ns();
    for journal in journals.sound {
        let standing = match (journal.progress, journal.until) {
            _ if !here.is_this_boot(&journal) => JournalStatus::OtherBoot,
            _ if !here.has(&journal) => JournalStatus::OtherNamespace,
            (Progress::Writing, _) if is_busy => JournalStatus::Writing,
            (Progress::Writing, _) => JournalStatus::CutShort,
            (Progress::Applied, Some(until)) if until.uptime_ns <= now => JournalStatus::Overdue,
            (Progress::Applied, Some(_)) => JournalStatus::Pending,
            (Progress::Applied, None) => JournalStatus::InForce,
        };
        let is_here =
            here.has(&journal) || (standing == JournalStatus::OtherBoot && journal.persistent_file.is_some());
        let entries = journal.entries.iter().map(|entry| entry_state(world, entry, is_here)).collect();
        let is_guarded = journal.until.is_some() && world.is_guarded(journal.id);
        state.journals.push(JournalState { journal, standing, entries, is_guarded });
    }
    Ok(state)
}

fn entry_state(world: &mut dyn World, entry: &Entry, is_here: bool) -> EntryState {
    let unknown = EntryState { entry: entry.clone(), now: None, standing: EntryStatus::Unknown };
    if !is_here {
        return unknown;
    }
    let Ok(reading) = world.read(&entry.target) else { return unknown };
    let standing = match (entry.undo, reading.holder) {
        (Undo::Remove | Undo::Unset, Holder::Kernel) => EntryStatus::AsBefore,
        _ if same(reading.value.as_deref(), Some(&entry.after)) => EntryStatus::InForce,
        _ if same(reading.value.as_deref(), entry.before.as_deref()) => EntryStatus::AsBefore,
        _ => EntryStatus::Foreign,
    };
    EntryState { entry: entry.clone(), now: reading.value, standing }
}

/// A journal that was set aside, so that commands ignore it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Its new path.
    pub path: PathBuf,
    /// Whether a process reverts its settings at their deadline.
    pub goes_back: bool,
}

/// Renames a journal, given by file name or number, so that commands ignore it. Nothing else changes: a pending automatic revert
/// still takes place.
pub fn set_aside(world: &mut dyn World, name: &str) -> Result<SetAside, Refusal> {
    locked(world, |world| set_aside_locked(world, name))
}

fn set_aside_locked(world: &mut dyn World, name: &str) -> Result<SetAside, Refusal> {
    let folder = world.folder();
    let names = world.list(&folder).map_err(|e| Refusal::journal("read", &folder, e))?;
    let numbered = name.parse().ok().map(|id| store::path_of(&folder, id));
    let is_it = |file: &&String| {
        file.ends_with(".json") && (*file == name || numbered.as_ref() == Some(&folder.join(file)))
    };
    let Some(file) = names.iter().find(is_it) else { return Err(Refusal::NoJournal(name.to_owned())) };
    let (from, to) = (folder.join(file), folder.join(format!("{file}{}", store::ASIDE)));
    world
        .rename(&from, &to)
        .and_then(|()| world.sync_folder(&folder))
        .map_err(|e| Refusal::journal("rename", &from, e))?;
    let id = file.strip_suffix(".json").and_then(|number| number.parse().ok());
    Ok(SetAside { path: to, goes_back: id.is_some_and(|id| world.is_awaited(id)) })
}
