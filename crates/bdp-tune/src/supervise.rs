//! The process that reverts changes when their time is up, whatever happened to their creator and their journal.

use crate::here::Here;
use crate::journal::{Journal, same};
use crate::refusal::Refusal;
use crate::revert::{Reverted, settle, take_all_back};
use crate::store::{self, Found};
use crate::world::World;

/// Interval of checks for a confirmation.
const POLL_NS: u64 = 1_000_000_000;
/// How long another process, such as a confirming one, may hold the lock before the changes are reverted without it.
const LOCK_PATIENCE_NS: u64 = 10_000_000_000;
const LOCK_POLL_NS: u64 = 10_000_000;
/// Number of attempts to revert, a [`POLL_NS`] apart.
const TRIES: u32 = 60;

/// Waits for the deadline and reverts a journal's changes from memory, unless they were confirmed or reverted according to the journal. A
/// damaged, missing or unreadable journal confirms nothing. Returns `None` if there was nothing to do. `wait` sleeps for at most the given
/// nanoseconds and returns whether to revert at once: the process that made the changes died before writing all, or this process is asked to
/// end. `applied` returns whether that process wrote all changes.
pub fn supervise(
    world: &mut dyn World,
    journal: &Journal,
    mut wait: impl FnMut(u64) -> bool,
    applied: impl Fn() -> bool,
) -> Result<Option<Reverted>, Refusal> {
    let at_uptime_ns = journal.until.map_or(0, |until| until.uptime_ns);
    loop {
        let left = at_uptime_ns.saturating_sub(world.uptime_ns());
        let is_time = left == 0 || wait(left.min(POLL_NS));
        // Checked before the journal is read: changes applied by then have a journal, unless they were reverted.
        let is_applied = applied();
        if is_settled(world, journal, is_applied) {
            return Ok(None);
        }
        if is_time {
            break;
        }
    }
    let mut waited_ns = 0;
    for _ in 0..TRIES {
        // Proceeds without the lock if it is not released: the deadline has passed, and nothing was confirmed.
        let is_locked = loop {
            match world.lock() {
                Ok(Ok(())) => break true,
                Ok(Err(_)) if waited_ns < LOCK_PATIENCE_NS => {
                    wait(LOCK_POLL_NS);
                    waited_ns += LOCK_POLL_NS;
                    if is_settled(world, journal, applied()) {
                        return Ok(None);
                    }
                }
                Ok(Err(_)) | Err(_) => break false,
            }
        };
        if is_settled(world, journal, applied()) {
            world.unlock();
            return Ok(None);
        }
        let reverted = put_back(world, journal);
        world.unlock();
        // A process still writing these changes may go on unaware: they are checked again until it has ended.
        if reverted.failed.is_empty() && (is_locked || applied()) {
            return Ok(Some(reverted));
        }
        wait(POLL_NS);
    }
    Err(Refusal::Busy { pid: None })
}

/// Whether the changes were confirmed or reverted, according to the journal or to this process's own mark.
fn is_settled(world: &mut dyn World, journal: &Journal, is_applied: bool) -> bool {
    if world.is_dismissed() {
        return true;
    }
    match store::read_one(world, journal.id) {
        Ok(Found::Sound(found)) => found.is_of_same_apply(journal) && found.until.is_none(),
        // The journal was removed, and none of its changes is in force.
        Ok(Found::Nothing) => is_applied && !is_in_force(world, journal),
        Ok(Found::Damaged(_)) | Err(_) => false,
    }
}

fn is_in_force(world: &mut dyn World, journal: &Journal) -> bool {
    journal.entries.iter().any(|entry| match world.read(&entry.target) {
        Ok(reading) => {
            same(reading.value.as_deref(), Some(&entry.after))
                && !same(Some(&entry.after), entry.before.as_deref())
        }
        Err(_) => true,
    })
}

fn put_back(world: &mut dyn World, journal: &Journal) -> Reverted {
    let mut reverted = Reverted::default();
    // This process has been in the journal's boot and network namespace since it began.
    let left = take_all_back(world, &Here::of_journal(journal), journal, false, &mut reverted);
    if !reverted.failed.is_empty() {
        return reverted;
    }
    world.dismiss_guard(journal.id);
    // A file that is no longer a journal is left for inspection. No file error prevents reverting.
    let is_writable = match store::read_one(world, journal.id) {
        Ok(Found::Sound(found)) => found.is_of_same_apply(journal),
        Ok(Found::Nothing) => !left.is_empty(),
        Ok(Found::Damaged(_)) | Err(_) => false,
    };
    if is_writable {
        let _ = settle(world, journal, left, None);
    }
    reverted
}
