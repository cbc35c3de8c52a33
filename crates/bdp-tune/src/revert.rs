//! Putting back what was there, but for what somebody else changed since.

use std::path::PathBuf;

use bdp_model::tuning::Target;

use crate::here::{Here, locked};
use crate::journal::{Entry, Journal, Progress, Until};
use crate::persist::{self, Kept};
use crate::plan::shares;
use crate::refusal::Refusal;
use crate::store::{self, Damaged};
use crate::undo::{Taken, order, take_back};
use crate::world::{Undo, World};

/// How changes are put back.
#[derive(Debug, Clone, Copy, Default)]
pub struct RevertOptions {
    /// Also what somebody else changed since.
    pub force: bool,
    /// One journal alone.
    pub only: Option<u32>,
}

/// A setting that somebody else changed since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// The setting, as bdp found and wrote it.
    pub entry: Entry,
    /// Its value now.
    pub now: Option<String>,
}

/// What became of the journals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reverted {
    /// Settings that are as before again, in the order in which they were put back.
    pub put_back: Vec<Entry>,
    /// Settings that were as before already.
    pub were_back: Vec<Entry>,
    /// Settings that somebody else changed since; they are left, and stay in the journal.
    pub foreign: Vec<Foreign>,
    /// What could not be put back, and why; it stays in the journal.
    pub failed: Vec<(Target, String)>,
    /// The file for the next boots, where it was removed or lost its settings.
    pub persistent_file: Option<PathBuf>,
    /// The same, where somebody else changed it since, so that it was left.
    pub foreign_file: Option<PathBuf>,
    /// Journals of another boot, with which their settings ended; they are removed.
    pub of_other_boots: Vec<u32>,
    /// Journals of another network namespace, which are left: their numbers, and those of the namespaces.
    pub elsewhere: Vec<(u32, u64)>,
    /// Files that are no journals, which are left.
    pub damaged: Vec<Damaged>,
}

/// Puts back all of this boot and network, the newest journal first, and what is kept for the next boots. It looks at what is there, so it may be
/// killed and called again.
pub fn revert(world: &mut dyn World, options: RevertOptions) -> Result<Reverted, Refusal> {
    locked(world, |world| revert_locked(world, options))
}

fn revert_locked(world: &mut dyn World, options: RevertOptions) -> Result<Reverted, Refusal> {
    store::remove_unfinished(world)?;
    let here = Here::of(world)?;
    let journals = store::read_all(world)?;
    let mut reverted = Reverted { damaged: journals.damaged, ..Reverted::default() };
    for journal in journals.sound.iter().rev() {
        if options.only.is_some_and(|id| id != journal.id) {
            continue;
        }
        if here.has(journal) || (!here.is_this_boot(journal) && journal.persistent_file.is_some()) {
            put_back(world, &here, journal, options.force, &mut reverted)?;
        } else if here.is_this_boot(journal) {
            reverted.elsewhere.push((journal.id, journal.network_namespace));
        } else {
            store::remove(world, journal.id)?;
            reverted.of_other_boots.push(journal.id);
        }
    }
    Ok(reverted)
}

/// Puts back the journals of this boot and network whose time is over, under the lock; which those were.
pub(crate) fn put_back_expired(world: &mut dyn World) -> Result<Vec<u32>, Refusal> {
    let here = Here::of(world)?;
    let now = world.uptime_ns();
    let is_over = |journal: &&Journal| journal.until.is_some_and(|until| until.uptime_ns <= now);
    let journals = store::read_all(world)?.sound;
    let expired: Vec<&Journal> = journals.iter().filter(|j| here.has(j)).filter(is_over).collect();
    for journal in expired.iter().rev() {
        put_back(world, &here, journal, false, &mut Reverted::default())?;
    }
    Ok(expired.iter().map(|journal| journal.id).collect())
}

fn put_back(
    world: &mut dyn World,
    here: &Here,
    journal: &Journal,
    force: bool,
    reverted: &mut Reverted,
) -> Result<(), Refusal> {
    if journal.persistent_file.is_some() && journal.until.is_none() {
        match persist::leave_out(world, journal.id, force)? {
            None => {}
            Some(Kept::Sound | Kept::Missing) => reverted.persistent_file = Some(world.persistent_file()),
            Some(Kept::Foreign) => reverted.foreign_file = Some(world.persistent_file()),
        }
    }
    let failed = reverted.failed.len();
    let left = take_all_back(world, here, journal, force, reverted);
    if reverted.failed.len() == failed {
        world.dismiss_guard(journal.id);
        return settle(world, journal, left, None);
    }
    // The process that looks after it tries again when it is time.
    let now = world.uptime_ns();
    settle(world, journal, left, journal.until.filter(|until| until.uptime_ns > now))
}

/// Takes back each entry of a journal, in its order; those that are left. No file is read or written.
pub(crate) fn take_all_back(
    world: &mut dyn World,
    here: &Here,
    journal: &Journal,
    force: bool,
    reverted: &mut Reverted,
) -> Vec<usize> {
    let is_this_boot = here.is_this_boot(journal);
    let mut left: Vec<usize> = Vec::new();
    for at in order(&journal.entries) {
        let entry = &journal.entries[at];
        // Of another boot, only what the file set is still there.
        if !is_this_boot && !persist::is_kept(&entry.target) {
            continue;
        }
        let is_shared = left.iter().any(|&other| shares(&journal.entries[other].target, &entry.target));
        let taken = take_back(world, &without_removal(entry, is_shared), force);
        match taken {
            Taken::Back => reverted.put_back.push(entry.clone()),
            Taken::Already => reverted.were_back.push(entry.clone()),
            // Another boot began with another value than that of the file.
            Taken::Foreign(_) if !is_this_boot => reverted.were_back.push(entry.clone()),
            Taken::Foreign(now) => {
                left.push(at);
                reverted.foreign.push(Foreign { entry: entry.clone(), now });
            }
            Taken::Failed(cause) => {
                left.push(at);
                reverted.failed.push((entry.target.clone(), cause));
            }
        }
    }
    left.sort_unstable();
    left
}

/// Makes the journal's file one of the entries that are left, or removes it.
pub(crate) fn settle(
    world: &mut dyn World,
    journal: &Journal,
    left: Vec<usize>,
    until: Option<Until>,
) -> Result<(), Refusal> {
    if left.is_empty() {
        return store::remove(world, journal.id);
    }
    let entries = left.iter().map(|&at| journal.entries[at].clone()).collect();
    let rest = Journal { entries, until, persistent_file: None, ..journal.clone() };
    store::write(world, &Journal { progress: Progress::Applied, ..rest })
}

/// The same entry where somebody else has a setting in the route that bdp made: the route stays.
fn without_removal(entry: &Entry, is_shared: bool) -> Entry {
    let undo = match (entry.undo, &entry.before) {
        (Undo::Remove, None) if is_shared => Undo::Unset,
        (Undo::Remove, Some(_)) if is_shared => Undo::Write,
        (undo, _) => undo,
    };
    Entry { undo, ..entry.clone() }
}
