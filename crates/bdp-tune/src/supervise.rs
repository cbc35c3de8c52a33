//! The process that puts changes back when their time is over, whatever became of the one that made them and of their journal.

use crate::here::Here;
use crate::journal::{Journal, same};
use crate::refusal::Refusal;
use crate::revert::{Reverted, settle, take_all_back};
use crate::store::{self, Found};
use crate::world::World;

/// How long a confirmation may stay unseen.
const POLL_NS: u64 = 1_000_000_000;
/// How long another process may hold the lock, perhaps the one that confirms, before the changes go back without it.
const LOCK_PATIENCE_NS: u64 = 10_000_000_000;
const LOCK_POLL_NS: u64 = 10_000_000;
/// How often what could not be put back is tried again, a [`POLL_NS`] apart.
const TRIES: u32 = 60;

/// Waits until it is time, and puts the changes of a journal back as they are in memory, unless it reads that they were confirmed or put back: a
/// journal that is damaged, missing or unreadable confirms nothing. `None` where there was nothing to do. `wait` sleeps for so many
/// nanoseconds at most, and says whether the changes are to go back at once: the process that made them died before all was written, or this
/// one is asked to end. `applied` says whether that process wrote all.
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
        // Asked before the journal is read: what was applied by then has a journal, unless it was put back.
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
        // Without the lock where nobody gives it: the time is over, and nothing was confirmed.
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
        // Another that writes these changes still may go on without knowing: until it has ended they are looked at again.
        if reverted.failed.is_empty() && (is_locked || applied()) {
            return Ok(Some(reverted));
        }
        wait(POLL_NS);
    }
    Err(Refusal::Busy { pid: None })
}

/// Whether the changes were confirmed or put back, as read: in the journal, or in this process's own mark.
fn is_settled(world: &mut dyn World, journal: &Journal, is_applied: bool) -> bool {
    if world.is_dismissed() {
        return true;
    }
    match store::read_one(world, journal.id) {
        Ok(Found::Sound(found)) => found.is_of_same_apply(journal) && found.until.is_none(),
        // Removed, and nothing of it is in force.
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
    // This process has been in the journal's boot and network since it began.
    let left = take_all_back(world, &Here::of_journal(journal), journal, false, &mut reverted);
    if !reverted.failed.is_empty() {
        return reverted;
    }
    world.dismiss_guard(journal.id);
    // A file that is no journal any more is left as it is, to be seen. No fault of files keeps settings from having been put back.
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
