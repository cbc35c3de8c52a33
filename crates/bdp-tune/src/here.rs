//! The boot and network namespace of a process, and the lock of its journals.

use crate::journal::Journal;
use crate::refusal::Refusal;
use crate::world::World;

/// Runs a function with the journals' lock held.
pub(crate) fn locked<T>(
    world: &mut dyn World,
    work: impl FnOnce(&mut dyn World) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    lock(world)?;
    let done = work(world);
    world.unlock();
    done
}

/// Takes the lock, creating its folder if necessary.
fn lock(world: &mut dyn World) -> Result<(), Refusal> {
    let folder = world.folder();
    world.make_folder(&folder).map_err(|e| Refusal::journal("make the folder of", &folder, e))?;
    loop {
        match world.lock() {
            Ok(Ok(())) => return Ok(()),
            // It may be a process that reverts what another left behind, which ends soon.
            Ok(Err(_)) if world.wait_for_lock() => {}
            Ok(Err(pid)) => return Err(Refusal::Busy { pid }),
            Err(error) => return Err(Refusal::journal("lock the folder of", &folder, error)),
        }
    }
}

/// The boot and network namespace of this process.
pub(crate) struct Here {
    pub(crate) boot_id: String,
    pub(crate) network_namespace: u64,
}

impl Here {
    /// Returns the boot and network namespace of the process that wrote a journal.
    pub(crate) fn of_journal(journal: &Journal) -> Self {
        Self { boot_id: journal.boot_id.clone(), network_namespace: journal.network_namespace }
    }

    pub(crate) fn of(world: &mut dyn World) -> Result<Self, Refusal> {
        Ok(Self {
            boot_id: world.boot_id().map_err(Refusal::Machine)?,
            network_namespace: world.network_namespace().map_err(Refusal::Machine)?,
        })
    }

    /// Whether the settings of a journal belong to this boot and network namespace.
    pub(crate) fn has(&self, journal: &Journal) -> bool {
        self.is_this_boot(journal) && journal.network_namespace == self.network_namespace
    }

    pub(crate) fn is_this_boot(&self, journal: &Journal) -> bool {
        journal.boot_id == self.boot_id
    }
}
