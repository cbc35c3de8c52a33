//! How a guest is booted.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::paths::PROGRAM;

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

impl GuestSpec {
    /// The kernel's command line.
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
            // Programs run by seccomp where the kernel can (7.2) and the machine lets it, which is a quarter cheaper than ptrace.
            "seccomp=auto".to_owned(),
            // The first moment of 2026, so that records carry no time of the machine.
            "time-travel-start=1767225600000000000".to_owned(),
            format!("bdp_seed={:016x}", self.seed),
            "--".to_owned(),
        ];
        arguments.extend(self.arguments.iter().cloned());
        arguments
    }
}
