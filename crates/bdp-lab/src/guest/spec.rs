//! How a guest is booted.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::paths::PROGRAM;

/// How a guest is booted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GuestSpec {
    /// The kernel's file.
    pub kernel: PathBuf,
    /// Memory in MiB, allocated on use.
    pub memory_mib: u64,
    /// Seed of the kernel's random numbers.
    pub seed: u64,
    /// Processor that it is pinned to: its kernel and its programs take turns, which takes longer across processors.
    pub cpu: Option<usize>,
    /// Kernel arguments for the program.
    pub arguments: Vec<String>,
}

impl GuestSpec {
    /// Builds the kernel's command line.
    pub(super) fn command_line(&self, root: &Path) -> Vec<String> {
        let mut arguments = vec![
            "root=/dev/root".to_owned(),
            "rootfstype=hostfs".to_owned(),
            format!("rootflags={}", root.display()),
            "rw".to_owned(),
            format!("mem={}M", self.memory_mib),
            format!("uml_dir={}/", root.with_extension("uml").display()),
            format!("init={}", PROGRAM),
            "con=null".to_owned(),
            "con0=null,fd:1".to_owned(),
            "ssl=null".to_owned(),
            "quiet".to_owned(),
            "panic=-1".to_owned(),
            "time-travel=inf-cpu".to_owned(),
            // Programs run by seccomp if the kernel supports it (7.2) and the machine allows it, which is a quarter cheaper than ptrace.
            "seccomp=auto".to_owned(),
            // The start of 2026, so that records contain no time of the machine.
            "time-travel-start=1767225600000000000".to_owned(),
            format!("bdp_seed={:016x}", self.seed),
            "--".to_owned(),
        ];
        arguments.extend(self.arguments.iter().cloned());
        arguments
    }
}
