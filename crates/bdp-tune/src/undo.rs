//! Undoes one change, based on the present state of the machine.

use bdp_model::tuning::Target;

use crate::journal::{Entry, same};
use crate::world::{Fault, Holder, Removal, Undo, World};

/// Result of undoing one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The previous value was restored.
    Back,
    /// It had the previous value already: never written, reverted before, or gone with its device.
    Already,
    /// Someone else changed it since; the present value.
    Foreign(Option<String>),
    /// It failed.
    Failed(String),
}

/// Returns the order of undoing: last entry first, qdiscs after sysctls, as a restored default qdisc is the one named by a sysctl.
pub(crate) fn order(entries: &[Entry]) -> Vec<usize> {
    let rank = |target: &Target| match target {
        Target::Sysctl { .. } => 0,
        Target::Route { .. } => 1,
        Target::Qdisc { .. } => 2,
    };
    let mut order: Vec<usize> = (0..entries.len()).rev().collect();
    order.sort_by_key(|&at| rank(&entries[at].target));
    order
}

/// Undoes one change; with `force`, even if someone else changed the setting since.
pub(crate) fn take_back(world: &mut dyn World, entry: &Entry, force: bool) -> Taken {
    let Entry { target, before, after, undo } = entry;
    let reading = match world.read(target) {
        Ok(reading) => reading,
        // The object that held the setting is gone, and the setting with it.
        Err(Fault::NoDevice | Fault::Unreachable | Fault::Local) => return Taken::Already,
        Err(fault) => return Taken::Failed(fault.to_string()),
    };
    let now = reading.value.as_deref();
    let is_before = same(now, before.as_deref());
    let is_after = same(now, Some(after));
    let is_ours = match (undo, reading.holder) {
        // The route or qdisc is gone, and bdp's setting with it.
        (Undo::Remove | Undo::Unset, Holder::Kernel) => return Taken::Already,
        (Undo::Remove, Holder::Bdp) => is_before || is_after,
        (Undo::Remove, Holder::Other) => false,
        (Undo::Write | Undo::Unset, _) if is_before => return Taken::Already,
        (Undo::Write, Holder::Kernel) if matches!(target, Target::Route { .. }) => false,
        (Undo::Write | Undo::Unset, _) => is_after,
    };
    if !is_ours && !force {
        return Taken::Foreign(reading.value);
    }
    let written = match (undo, before) {
        (Undo::Remove, _) => world.remove(target, Removal::Whole),
        (Undo::Write, Some(before)) => world.write(target, before),
        (Undo::Write | Undo::Unset, _) => world.remove(target, Removal::Attribute),
    };
    match written.and_then(|()| world.read(target)) {
        Err(fault) => Taken::Failed(fault.to_string()),
        Ok(reading) if *undo == Undo::Remove => match reading.holder {
            Holder::Kernel => Taken::Back,
            _ => Taken::Foreign(reading.value),
        },
        Ok(reading) if same(reading.value.as_deref(), before.as_deref()) => Taken::Back,
        Ok(reading) => {
            let shown = |value: Option<&str>| value.unwrap_or("not set").to_owned();
            Taken::Failed(format!(
                "the kernel set '{}' instead of '{}'",
                shown(reading.value.as_deref()),
                shown(before.as_deref())
            ))
        }
    }
}
