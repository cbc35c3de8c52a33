//! Peer programs that break down by themselves: each time is counted by name and printed. Only then is a peer started again.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::Mutex;

/// Most times that a program may break down in one run of the tests.
const MOST_CRASHES: u32 = 20;
/// Signals that a program gets for its own fault: SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV.
const OWN_FAULTS: [i32; 5] = [4, 6, 7, 8, 11];

static CRASHES: Mutex<BTreeMap<String, u32>> = Mutex::new(BTreeMap::new());

/// Whether a program ended by a fault of its own.
pub fn has_crashed(status: ExitStatus) -> bool {
    // A shell's way, and that of `timeout`, to tell of a signal.
    let told = status.code().map(|code| code - 128);
    status.signal().or(told).is_some_and(|signal| OWN_FAULTS.contains(&signal))
}

/// Counts and prints that a program broke down.
#[track_caller]
pub fn count_crash(program: &str) {
    let name = named(program);
    let count = {
        let mut crashes = CRASHES.lock().unwrap();
        let count = crashes.entry(name.clone()).or_default();
        *count += 1;
        *count
    };
    let times = if count == 1 { "time" } else { "times" };
    // Past the harness, which shows only what failed; in one piece, or the harness writes between.
    let _ = std::io::stderr().write_all(format!("CRASHED peer {name}: {count} {times}\n").as_bytes());
    assert!(count <= MOST_CRASHES, "{name} crashed {count} times");
}

/// A program with its version, such as "iperf3 3.12".
fn named(program: &str) -> String {
    let Ok(told) = Command::new(program).arg("--version").output() else { return program.to_owned() };
    // iperf2 prints it on one stream or the other, by its release.
    let text = String::from_utf8_lossy(&[told.stdout, told.stderr].concat()).into_owned();
    let version = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    version.map_or(program.to_owned(), |version| format!("{program} {version}"))
}
