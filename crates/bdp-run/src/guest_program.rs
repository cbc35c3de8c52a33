//! A program in a guest: what is asked for, and how it ended, from inside.

use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bdp_lab::guest::{ERRORS, OUTPUT};
use bdp_sys::init;
use bdp_sys::netlink::{DeviceSettings, Netlink};
use serde::{Deserialize, Serialize};

/// Where a program is started.
const FOLDER: &str = "/tmp";

/// A program that a guest runs as root, alone, with loopback up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramSpec {
    /// Its absolute path, on this machine and in the guest.
    pub path: PathBuf,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// All of its environment.
    #[serde(default)]
    pub environment: Vec<(String, String)>,
    /// Programs that the guest has beside, each at its own place, with the libraries that it loads here.
    #[serde(default)]
    pub programs: Vec<PathBuf>,
    /// Files that the guest has beside, each at its own place.
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// How long it may run by the guest's clock.
    pub limit: Duration,
    /// Memory of the guest.
    pub memory_mib: u64,
    /// Of the guest's randomness.
    #[serde(default)]
    pub seed: u64,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramEnd {
    /// By itself, with this exit code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// It ran for longer than its limit, and was killed.
    TimedOut,
}

/// What a program left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramRun {
    /// How it ended.
    pub end: ProgramEnd,
    /// Its standard output.
    pub output: String,
    /// Its standard error.
    pub errors: String,
}

/// Runs a program to its end, and ends what it left. For the first process of a guest.
pub(crate) fn run(spec: &ProgramSpec) -> Result<ProgramEnd, String> {
    let mut netlink = Netlink::open().map_err(|e| e.to_string())?;
    netlink.bring_up("lo", &DeviceSettings::default()).map_err(|e| e.to_string())?;
    let refused = |e: io::Error| format!("start '{}': {e}", spec.path.display());
    let [output, errors] = [OUTPUT, ERRORS].map(File::create);
    let (output, errors) = (output.map_err(refused)?, errors.map_err(refused)?);
    let kept = [output.try_clone().map_err(refused)?, errors.try_clone().map_err(refused)?];
    let child = Command::new(&spec.path)
        .args(&spec.arguments)
        .env_clear()
        .envs(spec.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(FOLDER)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .map_err(refused)?;
    let timed_out = Arc::new(AtomicBool::new(false));
    let limit = {
        let (timed_out, limit) = (Arc::clone(&timed_out), spec.limit);
        std::thread::Builder::new().name("bdp-limit".to_owned()).spawn(move || {
            std::thread::sleep(limit);
            timed_out.store(true, Ordering::Relaxed);
            init::kill_all();
        })
    };
    limit.map_err(refused)?;
    let status = init::wait_for(child.id()).map_err(|e| e.to_string())?;
    init::kill_all();
    for file in kept {
        file.sync_all().map_err(|e| format!("store the output of '{}': {e}", spec.path.display()))?;
    }
    Ok(if timed_out.load(Ordering::Relaxed) { ProgramEnd::TimedOut } else { ended(status) })
}

fn ended(status: ExitStatus) -> ProgramEnd {
    match (status.code(), status.signal()) {
        (Some(code), _) => ProgramEnd::Exited(code),
        (None, signal) => ProgramEnd::Signalled(signal.unwrap_or_default()),
    }
}
