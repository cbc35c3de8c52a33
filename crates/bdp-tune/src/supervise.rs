//! The process that puts changes back when their time is over, whatever became of the one that made them.

use crate::refusal::Refusal;
use crate::revert::{RevertOptions, Reverted, revert};
use crate::store;
use crate::world::World;

/// What a supervisor is to look after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Supervision {
    /// The journal.
    pub id: u32,
    /// When its changes go back, by [`World::uptime_ns`].
    pub at_uptime_ns: u64,
}

/// Waits until it is time, and puts the journal's changes back where nobody confirmed them; `None` where there was nothing to do. `wait` sleeps for so many
/// nanoseconds at most, and says whether the changes are to go back at once: the process that made them died before all was written, or this
/// one is asked to end. `applied` says whether that process wrote all: a journal that is not there any more was then put back by somebody.
pub fn supervise(
    world: &mut dyn World,
    supervision: Supervision,
    mut wait: impl FnMut(u64) -> bool,
    applied: impl Fn() -> bool,
) -> Result<Option<Reverted>, Refusal> {
    /// How long a confirmation may stay unseen.
    const MOST_NS: u64 = 1_000_000_000;
    let mut was_there = false;
    loop {
        let left = supervision.at_uptime_ns.saturating_sub(world.uptime_ns());
        let is_time = left == 0 || wait(left.min(MOST_NS));
        // Asked before the journals are read: what was applied by then has a journal, unless it was put back.
        let is_applied = applied();
        let journals = store::read_all(world)?.sound;
        let pending = journals.iter().find(|journal| journal.id == supervision.id);
        if pending.is_none_or(|journal| journal.until.is_none()) {
            // Before the journal is written there is nothing to put back, nor any reason to go.
            if pending.is_some() || is_time || was_there || is_applied {
                return Ok(None);
            }
            continue;
        }
        was_there = true;
        if !is_time {
            continue;
        }
        let options = RevertOptions { force: false, only: Some(supervision.id) };
        match revert(world, options) {
            Ok(reverted) => return Ok(Some(reverted)),
            // Another command holds the lock for a moment: perhaps the one that confirms.
            Err(Refusal::Busy { .. }) => {
                wait(10_000_000);
            }
            Err(refusal) => return Err(refusal),
        }
    }
}
