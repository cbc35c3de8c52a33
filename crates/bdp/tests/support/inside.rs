//! Test bodies that run in a guest: a Linux kernel as a program of this machine, whose clock stands still while anything runs.
//! Tests of other crates have this file by its path.
#![allow(dead_code)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{OnceLock, PoisonError, RwLock};

use bdp_sys::netlink::{DeviceSettings, Netlink};
use bdp_sys::qdisc::NetemSettings;
use serde_json::{Value, json};

use super::untested::{forward, skip};

/// Is set in a guest that runs a test.
const INSIDE: &str = "BDP_TEST_INSIDE";
/// How long a test may run in a guest, by its clock.
const LIMIT_S: u64 = 600;
const MEMORY_MIB: u64 = 512;
/// What tests start beside bdp; each is taken into the guest where this machine has it.
const PROGRAMS: [&str; 12] = [
    "sh", "env", "true", "timeout", "sleep", "grep", "readlink", "ip", "unshare", "nsenter", "iperf3",
    "iperf",
];
/// The rate of loopback in a guest.
pub const LOOPBACK_BPS: f64 = 1e9;
/// Loopback of a guest would carry any amount in no time.
const LOOPBACK: NetemSettings = NetemSettings {
    delay_ns: 50_000,
    rate_bytes_per_second: Some(125_000_000),
    limit_packets: 100_000,
    jitter_ns: 0,
    loss: 0,
    loss_in_states: None,
    duplicate: 0,
    at_once: 0,
    overhead_bytes: 0,
};

/// What is judged by this machine's clock has the machine for itself: whatever runs beside it spoils its figures. Guests run side by side.
static MACHINE: RwLock<()> = RwLock::new(());

/// Whether this is a guest, whose clock stands still while anything runs: time is exact in it.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// How often a figure is taken of which the least counts: once where it is the same each time.
pub fn samples(of_a_real_clock: usize) -> usize {
    if is_inside() { 1 } else { of_a_real_clock }
}

/// Runs the body of a test by this machine's clock: beside no other such, and beside no guest of a test.
pub fn alone(body: impl FnOnce()) {
    let _machine = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    body();
}

/// Runs the body of the calling test in a guest, as root and with a loopback of 1 Gbit/s and 100 us; where guests do not boot, here and [`alone`].
#[track_caller]
pub fn in_guest(body: impl FnOnce()) {
    if is_inside() {
        lay_loopback();
        return body();
    }
    let beside = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
    match no_guest() {
        None => run_inside(),
        Some(_) => {
            drop(beside);
            alone(body);
        }
    }
}

/// The same of a body that needs exact time: where guests do not boot that is said.
#[track_caller]
pub fn only_in_guest(body: impl FnOnce()) {
    match if is_inside() { None } else { no_guest() } {
        None => in_guest(body),
        Some(cause) => skip(&format!("guests do not boot here: {cause}")),
    }
}

/// Why no guest boots here, by what bdp says; `None` where one does.
fn no_guest() -> Option<&'static str> {
    static CAUSE: OnceLock<Option<String>> = OnceLock::new();
    let ask = || {
        let output = match Command::new(bdp()).env("XDG_DATA_HOME", std::env::temp_dir()).output() {
            Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
            Err(_) => return Some("bdp is not built beside the tests; 'cargo build' builds it".to_owned()),
        };
        output.lines().find_map(|line| line.strip_prefix("virtual clock: no: ")).map(str::to_owned)
    };
    CAUSE.get_or_init(ask).as_deref()
}

/// The program under test, in the folder above that of the tests.
fn bdp() -> PathBuf {
    std::env::current_exe().unwrap().parent().and_then(|deps| deps.parent()).unwrap().join("bdp")
}

fn lay_loopback() {
    let mut netlink = Netlink::open().unwrap();
    // Packets as Ethernet carries them: one of 64 KiB would be half a millisecond.
    netlink.bring_up("lo", &DeviceSettings { mtu: Some(1500), ..Default::default() }).unwrap();
    netlink.set_netem("lo", &LOOPBACK).unwrap();
}

/// Runs the calling test once more, in a guest.
#[track_caller]
fn run_inside() {
    let thread = std::thread::current();
    let name = thread.name().expect("a test's thread has its name");
    let program = std::env::current_exe().unwrap();
    let variables = std::env::vars().filter(|(name, _)| name == "PATH" || name.starts_with("INSTA_"));
    let environment: Vec<(String, String)> = variables
        .chain([(INSIDE, "1"), ("RUST_BACKTRACE", "0")].map(|(n, v)| (n.to_owned(), v.to_owned())))
        .collect();
    let mut programs: Vec<PathBuf> = PROGRAMS.iter().filter_map(|name| found(name)).collect();
    let mut files: Vec<PathBuf> = programs.iter().flat_map(|program| named_by_script(program)).collect();
    programs.push(bdp());
    files.extend(library_of_cancelled_threads());
    let order = json!({
        "path": program,
        "arguments": ["--exact", name, "--nocapture", "--test-threads", "1"],
        "environment": environment,
        "programs": programs,
        "files": files,
        "limit": { "secs": LIMIT_S, "nanos": 0 },
        "memory_mib": MEMORY_MIB,
    });
    let run = ordered(&order);
    let (output, errors) = (run["output"].as_str().unwrap(), run["errors"].as_str().unwrap());
    forward(errors);
    print!("{output}");
    assert_eq!(run["end"], json!({ "exited": 0 }), "in a guest: {output}\n{errors}");
    assert!(output.contains("1 passed"), "in a guest no test is called {name}: {output}");
}

/// What bdp says of a program that it ran in a guest.
#[track_caller]
fn ordered(order: &Value) -> Value {
    let mut command = Command::new(bdp());
    command.arg("__inside").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(order.to_string().as_bytes()).unwrap();
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    serde_json::from_slice(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {said}"))
}

/// A program's file, by the folders in which programs are.
fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// The files that a script names by absolute paths, and those of the folders that it names: a program that is not installed is
/// started by a script that names its loader and its libraries.
fn named_by_script(program: &Path) -> Vec<PathBuf> {
    let bytes = std::fs::read(program).unwrap_or_default();
    if !bytes.starts_with(b"#!") {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let words = text.lines().skip(1).flat_map(str::split_whitespace).map(Path::new);
    let named = words.filter(|word| word.is_absolute()).flat_map(|path| match std::fs::read_dir(path) {
        Ok(folder) => folder.filter_map(|entry| Some(entry.ok()?.path())).collect(),
        Err(_) => vec![path.to_owned()],
    });
    named.filter(|path| path.is_file()).collect()
}

/// The library that libc loads when a thread is cancelled, and that no program names.
fn library_of_cancelled_threads() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let files = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    files.into_iter().find(|file| file.contains("/libgcc_s.so")).map(PathBuf::from)
}
