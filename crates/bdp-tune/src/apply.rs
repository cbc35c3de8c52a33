//! Applies changes: all are checked, journalled, then written and read back.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bdp_model::tuning::{Change, Target};

use crate::here::{Here, locked};
use crate::journal::{JOURNAL_SCHEMA, Journal, Progress, Until, same};
use crate::plan::{Step, check, pending};
use crate::refusal::Refusal;
use crate::undo::{Taken, order, take_back};
use crate::world::World;
use crate::{persist, revert, store};

/// Options for applying.
#[derive(Debug, Clone, Copy, Default)]
pub struct ApplyOptions<'a> {
    /// Accepts settings whose value differs from the plan's.
    pub force: bool,
    /// Time after which the changes are reverted unless they are confirmed.
    pub keep_for: Option<Duration>,
    /// Whether the sysctls are also set at the next boots, once confirmed.
    pub persist: bool,
    /// The client that requests the changes from another machine.
    pub client: Option<IpAddr>,
    /// If set, the changes made so far are reverted.
    pub cancelled: Option<&'a AtomicBool>,
}

/// Results of an apply.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The journal; `None` if nothing had to be changed.
    pub journal: Option<Journal>,
    /// Each requested change, in order, including those already in place.
    pub steps: Vec<Step>,
    /// Overdue journals that were reverted first.
    pub expired: Vec<u32>,
    /// The sysctl file written for the next boots.
    pub persistent_file: Option<PathBuf>,
    /// Settings that were requested to persist but apply to this boot alone.
    pub of_this_boot: Vec<Target>,
}

/// Applies all changes or none, holding the world's lock.
pub fn apply(
    world: &mut dyn World,
    changes: &[Change],
    options: &ApplyOptions<'_>,
) -> Result<Applied, Refusal> {
    // The request is checked before the journals' folder is created, and again under its lock.
    check(world, changes, options.force)?;
    locked(world, |world| apply_locked(world, changes, options))
}

fn apply_locked(
    world: &mut dyn World,
    changes: &[Change],
    options: &ApplyOptions<'_>,
) -> Result<Applied, Refusal> {
    store::remove_unfinished(world)?;
    let expired = revert::put_back_expired(world)?;
    let here = Here::of(world)?;
    let journals = store::read_all(world)?;
    let mine: Vec<Journal> = journals.sound.iter().filter(|journal| here.has(journal)).cloned().collect();
    // The lock is held, so no other process is writing.
    if let Some(cut) = mine.iter().find(|journal| journal.progress == Progress::Writing) {
        return Err(Refusal::CutShort { id: cut.id });
    }
    let steps = check(world, changes, options.force)?;
    if let Some(refusal) = pending(&mine, &steps) {
        return Err(refusal);
    }
    let entries: Vec<_> = steps.iter().filter(|step| !step.is_there).map(Step::entry).collect();
    let of_this_boot: Vec<Target> = match options.persist {
        true => entries.iter().map(|e| &e.target).filter(|t| !persist::is_kept(t)).cloned().collect(),
        false => Vec::new(),
    };
    if entries.is_empty() {
        return Ok(Applied { journal: None, steps, expired, persistent_file: None, of_this_boot });
    }
    if options.persist {
        if of_this_boot.len() == entries.len() {
            return Err(Refusal::NothingPersistent);
        }
        persist::check(world, &journals.sound)?;
    }
    let until = options.keep_for.map(|time| {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Until {
            uptime_ns: world.uptime_ns().saturating_add(ns),
            unix_ms: world.unix_ms().saturating_add(ns / 1_000_000),
        }
    });
    let mut journal = Journal {
        schema: JOURNAL_SCHEMA.to_owned(),
        checksum: String::new(),
        id: store::next_id(world)?,
        progress: Progress::Writing,
        boot_id: here.boot_id,
        network_namespace: here.network_namespace,
        kernel: world.kernel(),
        started_unix_ms: world.unix_ms(),
        until,
        client: options.client,
        persistent_file: options.persist.then(|| world.persistent_file()),
        entries,
    };
    if until.is_some() {
        world.start_guard(journal.id, &journal.encode()).map_err(|e| Refusal::Guard(e.to_string()))?;
    }
    store::write(world, &journal)?;
    write_all(world, &journal, options.cancelled)?;
    journal.progress = Progress::Applied;
    let marked = store::write(world, &journal).and_then(|()| match until {
        // Only confirmed changes outlive this boot.
        Some(_) => Ok(None),
        None => persist::write(world),
    });
    let persistent_file = match marked {
        Ok(file) => file,
        Err(refusal) => {
            let _ = persist::leave_out(world, journal.id, false);
            let _ = put_back(world, &journal, journal.entries.len(), None);
            return Err(refusal);
        }
    };
    world.release_guard();
    Ok(Applied { journal: Some(journal), steps, expired, persistent_file, of_this_boot })
}

/// Writes each setting and reads it back; if one fails, reverts those written before and removes the journal.
fn write_all(
    world: &mut dyn World,
    journal: &Journal,
    cancelled: Option<&AtomicBool>,
) -> Result<(), Refusal> {
    let is_cancelled = || cancelled.is_some_and(|flag| flag.load(Ordering::Relaxed));
    for (at, entry) in journal.entries.iter().enumerate() {
        if is_cancelled() {
            return Err(Refusal::Cancelled { stuck: put_back(world, journal, at, None) });
        }
        let read = world.write(&entry.target, &entry.after).and_then(|()| world.read(&entry.target));
        let cause = match read {
            Ok(reading) if same(reading.value.as_deref(), Some(&entry.after)) => continue,
            Ok(reading) => {
                let made = reading.value.unwrap_or_else(|| "nothing".to_owned());
                format!("the kernel set '{made}' instead of '{}'", entry.after)
            }
            Err(fault) => fault.to_string(),
        };
        let stuck = put_back(world, journal, at + 1, Some(at));
        return Err(Refusal::Failed { target: entry.target.clone(), cause, stuck });
    }
    if is_cancelled() {
        return Err(Refusal::Cancelled { stuck: put_back(world, journal, journal.entries.len(), None) });
    }
    Ok(())
}

/// Reverts the first entries of a journal, removes it on success, and returns what could not be reverted. A value that was just written and
/// reads back differently counts as bdp's own.
fn put_back(
    world: &mut dyn World,
    journal: &Journal,
    count: usize,
    failed: Option<usize>,
) -> Vec<(Target, String)> {
    let entries = &journal.entries[..count];
    let mut stuck = Vec::new();
    for at in order(entries) {
        let target = entries[at].target.clone();
        match take_back(world, &entries[at], failed == Some(at)) {
            Taken::Back | Taken::Already => {}
            Taken::Foreign(_) => stuck.push((target, "someone else changed it meanwhile".to_owned())),
            Taken::Failed(cause) => stuck.push((target, cause)),
        }
    }
    if stuck.is_empty() {
        world.dismiss_guard(journal.id);
        if let Err(refusal) = store::remove(world, journal.id) {
            stuck.push((journal.entries[0].target.clone(), refusal.to_string()));
        }
    }
    stuck
}
