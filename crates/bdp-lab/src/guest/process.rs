//! A guest's process on this machine, from outside.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};

use super::Root;
use crate::LabError;
use crate::host::AgentCommand;

/// How a guest is booted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GuestSpec {
    /// The kernel's file.
    pub kernel: PathBuf,
    /// Memory in MiB, taken as it is used.
    pub memory_mib: u64,
    /// Of the kernel's randomness.
    pub seed: u64,
    /// The processor that it keeps to: its kernel and its programs take turns, which between processors takes longer.
    pub cpu: Option<usize>,
    /// Its arguments for the program.
    pub arguments: Vec<String>,
}

/// What a keeper is to do: its standard input's first line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Keeping {
    pub(super) spec: GuestSpec,
    pub(super) root: PathBuf,
    /// The folder that is removed where bdp ends before its guest.
    pub(super) remove: PathBuf,
    pub(super) parent: u32,
}

/// How a guest ended: why it left no answer, where it left none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It switched itself off.
    Off,
    /// It died, stood still or was killed; a line that says which.
    Died(String),
}

/// A running guest. Dropped, it is killed.
#[derive(Debug)]
pub struct Guest {
    keeper: Child,
}

impl Guest {
    /// Boots one with a root. `keeper` is the program that becomes its keeper, by [`super::keep`].
    pub fn boot(keeper: &AgentCommand, spec: &GuestSpec, root: &Root) -> Result<Self, LabError> {
        let failed = |what: &str, e: io::Error| {
            LabError::Guest(format!("{what}: {e}{}", bdp_sys::more_room(&e.to_string())))
        };
        let mut command = Command::new(&keeper.program);
        command.args(&keeper.arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        bdp_sys::process::lead_group(&mut command);
        let child = command.spawn().map_err(|e| failed("start a guest's keeper", e))?;
        let mut guest = Self { keeper: child };
        let keeping = Keeping {
            spec: spec.clone(),
            root: root.folder().to_owned(),
            remove: root.folder().parent().unwrap_or(root.folder()).to_owned(),
            parent: std::process::id(),
        };
        let mut line = serde_json::to_vec(&keeping).map_err(|e| failed("order a guest", e.into()))?;
        line.push(b'\n');
        // It stays open: its end is bdp's.
        let input = guest.keeper.stdin.as_mut();
        input
            .map_or(Ok(()), |input| input.write_all(&line))
            .map_err(|e| failed("speak to a guest's keeper", e))?;
        Ok(guest)
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Ended {
        let mut said = String::new();
        if let Some(output) = &mut self.keeper.stdout {
            let _ = output.read_to_string(&mut said);
        }
        let status = self.keeper.wait();
        match status {
            Ok(status) if status.success() => Ended::Off,
            Ok(_) if !said.trim().is_empty() => Ended::Died(said.trim().to_owned()),
            Ok(status) => Ended::Died(format!("its keeper was ended ({status})")),
            Err(e) => Ended::Died(format!("its keeper can't be waited for: {e}")),
        }
    }

    /// The keeper's process, which leads the group that all of the guest's processes are in.
    pub fn process_id(&self) -> u32 {
        self.keeper.id()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        bdp_sys::process::kill_group(self.keeper.id());
        let _ = self.keeper.wait();
    }
}

/// The kernel's command line.
pub(super) fn arguments(spec: &GuestSpec, root: &Path) -> Vec<String> {
    let mut arguments = vec![
        "root=/dev/root".to_owned(),
        "rootfstype=hostfs".to_owned(),
        format!("rootflags={}", root.display()),
        "rw".to_owned(),
        format!("mem={}M", spec.memory_mib),
        format!("uml_dir={}/", root.with_extension("uml").display()),
        format!("init={}", super::PROGRAM),
        "con=null".to_owned(),
        "con0=null,fd:1".to_owned(),
        "ssl=null".to_owned(),
        "quiet".to_owned(),
        "panic=-1".to_owned(),
        "time-travel=inf-cpu".to_owned(),
        // The first moment of 2026, so that records carry no time of the machine.
        "time-travel-start=1767225600000000000".to_owned(),
        format!("bdp_seed={:016x}", spec.seed),
        "--".to_owned(),
    ];
    arguments.extend(spec.arguments.iter().cloned());
    arguments
}
