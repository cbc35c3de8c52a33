//! A program in a guest: its specification, and how it exited as seen from inside.

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

/// Working directory of a program.
const FOLDER: &str = "/tmp";

/// A program that a guest runs as root, alone, with loopback up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramSpec {
    /// Absolute path, the same on this machine and in the guest.
    pub path: PathBuf,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// The complete environment.
    #[serde(default)]
    pub environment: Vec<(String, String)>,
    /// Further programs in the guest, each at its own path, with the libraries that it loads on this machine.
    #[serde(default)]
    pub programs: Vec<PathBuf>,
    /// Further files in the guest, each at its own path.
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// Time limit, by the guest's clock.
    pub limit: Duration,
    /// Memory of the guest.
    pub memory_mib: u64,
    /// Seed of the guest's random numbers.
    #[serde(default)]
    pub seed: u64,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramEnd {
    /// Exited with this code.
    Exited(i32),
    /// Killed by this signal.
    Signalled(i32),
    /// Exceeded its time limit and was killed.
    TimedOut,
}

/// The result of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramRun {
    /// How it ended.
    pub end: ProgramEnd,
    /// Its standard output.
    pub output: String,
    /// Its standard error.
    pub errors: String,
}

/// Runs a program until it exits, and ends any processes that it left. Called by the first process of a guest.
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
