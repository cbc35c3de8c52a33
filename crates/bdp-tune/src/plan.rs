//! What applying would do, checked completely before anything is changed.

use bdp_model::tuning::setting::Release;
use bdp_model::tuning::{Change, SettingChange, Target};

use crate::journal::{Entry, Journal, same};
use crate::refusal::Refusal;
use crate::store;
use crate::value::well_formed;
use crate::world::{Fault, Holder, Undo, World};

/// One change and how it would be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The requested change.
    pub change: Change,
    /// Present value.
    pub now: Option<String>,
    /// Whether the present value is the requested one, so that nothing needs to be done.
    pub is_there: bool,
    /// How the change would be undone.
    pub undo: Undo,
}

impl Step {
    /// Returns what it changes.
    pub fn report(&self) -> SettingChange {
        SettingChange {
            target: self.change.target.clone(),
            before: self.now.clone(),
            after: self.change.to.clone(),
            already: self.is_there,
        }
    }

    pub(crate) fn entry(&self) -> Entry {
        Entry {
            target: self.change.target.clone(),
            before: self.now.clone(),
            after: self.change.to.clone(),
            undo: self.undo,
        }
    }
}

/// Reads each setting and checks that it may be changed, without changing anything. With `force`, a value other than the plan's is accepted.
/// A damaged journal is refused: what it changed is unknown, so no value can count as the previous one.
pub fn check(world: &mut dyn World, changes: &[Change], force: bool) -> Result<Vec<Step>, Refusal> {
    // A user who may not read the journals can still check the settings.
    if let Ok(journals) = store::read_all(world)
        && let Some(damaged) = journals.damaged.first()
    {
        return Err(damaged.refusal());
    }
    let mut steps: Vec<Step> = Vec::new();
    for change in changes {
        let target = &change.target;
        if steps.iter().any(|step| step.change.target == *target) {
            return Err(Refusal::Twice(target.clone()));
        }
        let refused = |fault| Refusal::Setting { target: target.clone(), fault };
        let value = well_formed(target, &change.to).map_err(refused)?;
        let reading = world.read(target).map_err(refused)?;
        let is_there = same(reading.value.as_deref(), Some(&value));
        let is_as_planned = change.from.is_none() || same(reading.value.as_deref(), change.from.as_deref());
        if !is_there && !is_as_planned && !force {
            return Err(Refusal::Differs {
                target: target.clone(),
                planned: change.from.clone().unwrap_or_default(),
                now: reading.value,
            });
        }
        if !is_there {
            if let (Target::Qdisc { .. }, Holder::Other) = (target, reading.holder) {
                let kind = reading.value.unwrap_or_default();
                return Err(refused(Fault::SetBySomebody(kind)));
            }
            if !is_read(target, &world.kernel()) {
                return Err(Refusal::NotRead { target: target.clone(), kernel: world.kernel() });
            }
            world.check(target, &value).map_err(refused)?;
        }
        let is_made =
            steps.iter().any(|step| step.undo == Undo::Remove && shares(&step.change.target, target));
        let undo = match (target, reading.holder) {
            (Target::Sysctl { .. }, _) => Undo::Write,
            (Target::Route { .. }, Holder::Kernel) if !is_made => Undo::Remove,
            // Its previous value is that of the route that it copies.
            (Target::Route { .. }, _) if reading.value.is_none() => Undo::Unset,
            (Target::Route { .. }, _) => Undo::Write,
            (Target::Qdisc { .. }, Holder::Kernel) => Undo::Remove,
            (Target::Qdisc { .. }, _) => Undo::Write,
        };
        let change = Change { to: value, ..change.clone() };
        // An unchanged value creates no route.
        let undo = if is_there { Undo::Write } else { undo };
        steps.push(Step { change, now: reading.value, is_there, undo });
    }
    Ok(steps)
}

/// Whether a kernel uses a setting that it has. If the setting appeared only in a later release, it was backported.
fn is_read(target: &Target, kernel: &str) -> bool {
    let end = target.setting().and_then(|setting| setting.end);
    match (end, Release::of_kernel(kernel)) {
        (Some(end), Some(kernel)) => kernel < end.since,
        _ => true,
    }
}

/// Whether two targets are the same sysctl, route or device.
pub(crate) fn shares(one: &Target, other: &Target) -> bool {
    match (one, other) {
        (Target::Route { to: one, .. }, Target::Route { to: other, .. }) => one == other,
        _ => one == other,
    }
}

/// Returns the journal that contains one of these settings and is due to be reverted automatically.
pub(crate) fn pending(journals: &[Journal], steps: &[Step]) -> Option<Refusal> {
    let waiting = journals.iter().filter(|journal| journal.until.is_some());
    for (journal, entry) in waiting.flat_map(|journal| journal.entries.iter().map(move |e| (journal, e))) {
        let step = steps.iter().filter(|step| !step.is_there);
        if let Some(step) = step.into_iter().find(|step| shares(&step.change.target, &entry.target)) {
            return Some(Refusal::Pending { target: step.change.target.clone(), id: journal.id });
        }
    }
    None
}
