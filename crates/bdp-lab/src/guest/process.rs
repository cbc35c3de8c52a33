//! A guest's process, seen from this machine.

use std::io::{self, Read};
use std::process::{Child, Stdio};

use super::keeping::Keeping;
use super::root::Root;
use super::spec::GuestSpec;
use crate::LabError;
use crate::host::Program;

/// How a guest ended: why it left no answer, if it left none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It powered itself off.
    Off,
    /// It died, stood still or was killed, as the line says.
    Died(String),
}

/// A running guest, killed when dropped.
#[derive(Debug)]
pub struct Guest {
    keeper: Child,
}

impl Guest {
    /// Boots one with a root. `keeper` is the program that becomes its keeper, by [`super::keep()`].
    pub fn boot(keeper: &Program, spec: &GuestSpec, root: &Root) -> Result<Self, LabError> {
        let failed = |what: &str, e: io::Error| {
            LabError::Guest(format!("{what}: {e}{}", bdp_sys::more_room(&e.to_string())))
        };
        let mut command = keeper.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        bdp_sys::process::lead_group(&mut command);
        let child = command.spawn().map_err(|e| failed("start a guest's keeper", e))?;
        let mut guest = Self { keeper: child };
        let keeping = Keeping::Guest { spec: spec.clone(), root: root.folder().to_owned() };
        keeping
            .write_to(guest.keeper.stdin.as_mut())
            .map_err(|e| failed("communicate with a guest's keeper", e))?;
        Ok(guest)
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Ended {
        let mut said = String::new();
        if let Some(output) = &mut self.keeper.stdout {
            let _ = output.read_to_string(&mut said);
        }
        // The rest of the guest after its keeper was killed, while the group's id is still this one's.
        bdp_sys::process::kill_group(self.keeper.id());
        let status = self.keeper.wait();
        match status {
            Ok(status) if status.success() => Ended::Off,
            Ok(_) if !said.trim().is_empty() => Ended::Died(said.trim().to_owned()),
            Ok(status) => Ended::Died(format!("its keeper was ended ({status})")),
            Err(e) => Ended::Died(format!("cannot wait for its keeper: {e}")),
        }
    }

    /// Id of the keeper's process, which leads the group of all the guest's processes.
    pub fn process_id(&self) -> u32 {
        self.keeper.id()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // A reaped process has released its id.
        if let Ok(None) = self.keeper.try_wait() {
            bdp_sys::process::kill_group(self.keeper.id());
            let _ = self.keeper.wait();
        }
    }
}
