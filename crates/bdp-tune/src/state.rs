//! What is in force, by the journals and by what is there.

use std::path::PathBuf;

use crate::here::{Here, locked};
use crate::journal::{Entry, Journal, Progress, same};
use crate::persist::{self, Kept};
use crate::refusal::Refusal;
use crate::store::{self, Damaged};
use crate::world::{Holder, Undo, World};

/// What a journal stands for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalStatus {
    /// Its changes are in force until they are put back.
    InForce,
    /// They go back by themselves, unless they are confirmed.
    Pending,
    /// Their time is over, and nobody put them back.
    Overdue,
    /// A process is writing them.
    Writing,
    /// They were cut short: some may be in force.
    CutShort,
    /// They ended with the boot that they were of.
    OtherBoot,
    /// They are of another network namespace.
    OtherNamespace,
}

impl JournalStatus {
    /// As JSON has it.
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

/// How one setting is, beside what the journal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryStatus {
    /// As bdp wrote it.
    InForce,
    /// As it was before.
    AsBefore,
    /// Somebody else changed it since.
    Foreign,
    /// It can not be read, or is of another boot or namespace.
    Unknown,
}

impl EntryStatus {
    /// As JSON has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InForce => "in_force",
            Self::AsBefore => "as_before",
            Self::Foreign => "foreign",
            Self::Unknown => "unknown",
        }
    }
}

/// One setting of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryState {
    /// As the journal has it.
    pub entry: Entry,
    /// Its value now.
    pub now: Option<String>,
    /// What that means.
    pub standing: EntryStatus,
}

/// One journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalState {
    /// As it is at rest.
    pub journal: Journal,
    /// What it stands for.
    pub standing: JournalStatus,
    /// Its settings.
    pub entries: Vec<EntryState>,
    /// Whether a process will put them back when their time is over.
    pub is_guarded: bool,
}

/// All that is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// The journals, the oldest first.
    pub journals: Vec<JournalState>,
    /// Files that are no journals.
    pub damaged: Vec<Damaged>,
    /// The file for the next boots, where there is or should be one.
    pub persistent_file: Option<PathBuf>,
    /// Whether that is missing.
    pub is_file_missing: bool,
    /// Whether somebody else changed it.
    pub is_file_foreign: bool,
}

/// Reads the journals and compares them with what is there. Nothing is changed.
pub fn state(world: &mut dyn World) -> Result<State, Refusal> {
    let folder = world.folder();
    let is_busy = match world.list(&folder) {
        Ok(names) if names.is_empty() => false,
        // Another user than root reads the journals and may not lock them.
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

/// A journal that no command reads any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Its file now.
    pub path: PathBuf,
    /// Whether a process puts its settings back when their time is over.
    pub goes_back: bool,
}

/// Renames a journal so that no command reads it any more, by the name of its file or its number. Nothing else is changed: what goes
/// back by itself does so all the same.
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
