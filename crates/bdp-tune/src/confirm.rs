//! Confirms changes that would be reverted automatically.

use std::path::PathBuf;

use bdp_model::tuning::Target;

use crate::here::{Here, locked};
use crate::journal::{Journal, Progress};
use crate::refusal::Refusal;
use crate::store::{self, Damaged, Journals};
use crate::world::World;
use crate::{persist, revert};

/// Options for confirming.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConfirmOptions {
    /// Whether the sysctls are also set at the next boots, if that was not requested before.
    pub persist: bool,
    /// Confirms this journal alone.
    pub only: Option<u32>,
}

/// Results of a confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmed {
    /// The confirmed journals, in force until they are reverted.
    pub journals: Vec<Journal>,
    /// The sysctl file written for the next boots.
    pub persistent_file: Option<PathBuf>,
    /// Settings that were requested to persist but apply to this boot alone.
    pub of_this_boot: Vec<Target>,
    /// Files that are not valid journals; their changes are not confirmed.
    pub damaged: Vec<Damaged>,
}

/// Confirms the pending changes of this boot and network namespace; with `persist`, those already in force too.
pub fn confirm(world: &mut dyn World, options: ConfirmOptions) -> Result<Confirmed, Refusal> {
    locked(world, |world| confirm_locked(world, options))
}

fn confirm_locked(world: &mut dyn World, options: ConfirmOptions) -> Result<Confirmed, Refusal> {
    store::remove_unfinished(world)?;
    let here = Here::of(world)?;
    let is_meant = |id: u32| options.only.is_none_or(|only| only == id);
    if let Some(&id) = revert::put_back_expired(world)?.iter().find(|&&id| is_meant(id)) {
        return Err(Refusal::TooLate { id });
    }
    let Journals { sound: all, damaged } = store::read_all(world)?;
    // The requested journal may be the one that cannot be read.
    let of_meant =
        |of: &&Damaged| options.only.is_none_or(|id| store::path_of(&world.folder(), id) == of.path);
    let unread = damaged.iter().find(of_meant).map(Damaged::refusal);
    // If bdp was killed between writing journal and file, the file still needs to be written.
    let is_missing = persist::compare(world, &all)? == persist::Kept::Missing;
    let wants = |journal: &Journal| match journal.persistent_file {
        Some(_) => journal.until.is_some() || is_missing,
        None => journal.until.is_some() || options.persist,
    };
    let mut mine: Vec<Journal> =
        all.iter().filter(|j| is_meant(j.id) && here.has(j) && wants(j)).cloned().collect();
    if mine.is_empty() {
        return Err(unread.unwrap_or(Refusal::NothingToConfirm));
    }
    if let Some(cut) = mine.iter().find(|journal| journal.progress == Progress::Writing) {
        return Err(Refusal::CutShort { id: cut.id });
    }
    let lasts = |journal: &Journal| options.persist || journal.persistent_file.is_some();
    if mine.iter().any(lasts) {
        let is_of_boot = |journal: &Journal| journal.entries.iter().all(|e| !persist::is_kept(&e.target));
        if options.persist && mine.iter().all(is_of_boot) {
            return Err(Refusal::NothingPersistent);
        }
        persist::check(world, &all)?;
    }
    for journal in &mut mine {
        journal.until = None;
        if options.persist {
            journal.persistent_file = Some(world.persistent_file());
        }
        store::write(world, journal)?;
    }
    let lasting: Vec<&Journal> = mine.iter().filter(|journal| journal.persistent_file.is_some()).collect();
    let of_this_boot = lasting.iter().flat_map(|journal| &journal.entries).map(|entry| &entry.target);
    let of_this_boot = of_this_boot.filter(|target| !persist::is_kept(target)).cloned().collect();
    let persistent_file = if lasting.is_empty() { None } else { persist::write(world)? };
    for journal in &mine {
        world.dismiss_guard(journal.id);
    }
    Ok(Confirmed { journals: mine, persistent_file, of_this_boot, damaged })
}
