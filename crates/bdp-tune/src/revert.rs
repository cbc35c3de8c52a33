//! Restores previous values, except those that someone else changed since.

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

/// Options for reverting.
#[derive(Debug, Clone, Copy, Default)]
pub struct RevertOptions {
    /// Also reverts settings that someone else changed since.
    pub force: bool,
    /// Reverts this journal alone.
    pub only: Option<u32>,
}

/// A setting that someone else changed since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// The journal's entry.
    pub entry: Entry,
    /// Present value.
    pub now: Option<String>,
}

/// Results of a revert.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reverted {
    /// Settings that were restored, in that order.
    pub put_back: Vec<Entry>,
    /// Settings that already had their previous value.
    pub were_back: Vec<Entry>,
    /// Settings that someone else changed since; they are left alone and stay in the journal.
    pub foreign: Vec<Foreign>,
    /// Settings that could not be restored, with the cause; they stay in the journal.
    pub failed: Vec<(Target, String)>,
    /// The sysctl file for the next boots, if it was removed or rewritten without these settings.
    pub persistent_file: Option<PathBuf>,
    /// The sysctl file for the next boots, if someone else changed it and it was left alone.
    pub foreign_file: Option<PathBuf>,
    /// Journals of earlier boots, whose settings ended with them; these journals are removed.
    pub of_other_boots: Vec<u32>,
    /// Journals of other network namespaces, which are left alone: journal number and namespace.
    pub elsewhere: Vec<(u32, u64)>,
    /// Files that are not valid journals; they are left alone.
    pub damaged: Vec<Damaged>,
}

/// Reverts all changes of this boot and network namespace, newest journal first, and those kept for the next boots. It acts on the present state,
/// so it may be killed and called again.
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

/// Reverts the overdue journals of this boot and network namespace, under the lock, and returns them.
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
    // The guarding process tries again at its deadline.
    let now = world.uptime_ns();
    settle(world, journal, left, journal.until.filter(|until| until.uptime_ns > now))
}

/// Undoes each entry of a journal, in order, and returns the remaining ones. No file is read or written.
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
        // After another boot, only what the file set is still in force.
        if !is_this_boot && !persist::is_kept(&entry.target) {
            continue;
        }
        let is_shared = left.iter().any(|&other| shares(&journal.entries[other].target, &entry.target));
        let taken = take_back(world, &without_removal(entry, is_shared), force);
        match taken {
            Taken::Back => reverted.put_back.push(entry.clone()),
            Taken::Already => reverted.were_back.push(entry.clone()),
            // The other boot started with a value other than the file's.
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

/// Reduces the journal's file to the remaining entries, or removes it.
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

/// Returns the entry without removal of the route if someone else has a setting in the route that bdp created.
fn without_removal(entry: &Entry, is_shared: bool) -> Entry {
    let undo = match (entry.undo, &entry.before) {
        (Undo::Remove, None) if is_shared => Undo::Unset,
        (Undo::Remove, Some(_)) if is_shared => Undo::Write,
        (undo, _) => undo,
    };
    Entry { undo, ..entry.clone() }
}
