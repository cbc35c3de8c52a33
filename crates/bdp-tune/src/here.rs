//! The boot and the network that a process is in, and the lock of its journals.

use crate::journal::Journal;
use crate::refusal::Refusal;
use crate::world::World;

/// Does something with the lock of the journals held.
pub(crate) fn locked<T>(
    world: &mut dyn World,
    work: impl FnOnce(&mut dyn World) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    lock(world)?;
    let done = work(world);
    world.unlock();
    done
}

/// Takes the lock, for which it makes the folder.
fn lock(world: &mut dyn World) -> Result<(), Refusal> {
    let folder = world.folder();
    world.make_folder(&folder).map_err(|e| Refusal::journal("make the folder of", &folder, e))?;
    loop {
        match world.lock() {
            Ok(Ok(())) => return Ok(()),
            // It may be the process that puts back what another left, which ends soon.
            Ok(Err(_)) if world.wait_for_lock() => {}
            Ok(Err(pid)) => return Err(Refusal::Busy { pid }),
            Err(error) => return Err(Refusal::journal("lock the folder of", &folder, error)),
        }
    }
}

/// Where this process is.
pub(crate) struct Here {
    pub(crate) boot_id: String,
    pub(crate) network_namespace: u64,
}

impl Here {
    /// Where the process was that wrote a journal.
    pub(crate) fn of_journal(journal: &Journal) -> Self {
        Self { boot_id: journal.boot_id.clone(), network_namespace: journal.network_namespace }
    }

    pub(crate) fn of(world: &mut dyn World) -> Result<Self, Refusal> {
        Ok(Self {
            boot_id: world.boot_id().map_err(Refusal::Machine)?,
            network_namespace: world.network_namespace().map_err(Refusal::Machine)?,
        })
    }

    /// Whether the settings of a journal are of this boot and network.
    pub(crate) fn has(&self, journal: &Journal) -> bool {
        self.is_this_boot(journal) && journal.network_namespace == self.network_namespace
    }

    pub(crate) fn is_this_boot(&self, journal: &Journal) -> bool {
        journal.boot_id == self.boot_id
    }
}
