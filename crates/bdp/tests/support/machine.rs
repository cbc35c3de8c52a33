//! What the machine lets a test do, and what it shows of processes and namespaces.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::inside::is_inside;
use super::untested::skip;

/// How long what was killed may take to be gone.
const TEARDOWN: Duration = Duration::from_secs(5);

/// The use of the lab for one test; other tests wait for it.
#[must_use]
pub struct Lab {
    _lock: File,
}

/// The lab beside other tests that do not measure; `None`, with the reason printed, where this machine has none.
pub fn shared_lab() -> Option<Lab> {
    lab(|file| file.lock_shared())
}

/// The lab without other tests beside, for tests that measure.
pub fn own_lab() -> Option<Lab> {
    lab(File::lock)
}

fn lab(lock: impl Fn(&File) -> std::io::Result<()>) -> Option<Lab> {
    if File::options().read(true).write(true).open("/dev/net/tun").is_err() {
        skip("/dev/net/tun cannot be opened");
        return None;
    }
    let namespace = if is_root() { "--net" } else { "--map-root-user" };
    if !succeeds("unshare", &["--net", namespace, "true"]) {
        skip("no network namespace can be made");
        return None;
    }
    let folder = if is_inside() { std::env::temp_dir() } else { env!("CARGO_TARGET_TMPDIR").into() };
    let path = folder.join("lab.lock");
    let file = File::options().create(true).truncate(false).write(true).open(path).unwrap();
    lock(&file).unwrap();
    Some(Lab { _lock: file })
}

/// Whether a test may mount things in a namespace of its own and be another user; says why where it can't.
pub fn can_isolate() -> bool {
    if !is_root() {
        skip("needs root");
        return false;
    }
    let can = succeeds("unshare", &["--mount", "sh", "-ec", "mount -t tmpfs none /mnt"]);
    if !can {
        skip("mounting in an own namespace is not allowed here");
    }
    can
}

/// Whether a program is there; says so where it isn't.
pub fn has(program: &str, arguments: &[&str]) -> bool {
    let there = succeeds(program, arguments);
    if !there {
        skip(&format!("'{program}' is not there or does not work"));
    }
    there
}

/// Whether a program is installed, whatever it says of itself; says so where it isn't.
pub fn is_installed(program: &str) -> bool {
    let there = succeeds("sh", &["-c", "command -v \"$0\"", program]);
    if !there {
        skip(&format!("'{program}' is not installed"));
    }
    there
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Sends a signal to a process, or to a group where the number is negative.
pub fn signal(name: &str, process: &str) {
    // The process may be gone already.
    // The shell's own: the program is not everywhere.
    let _ = Command::new("sh").args(["-c", "kill -s $0 -- $1", name, process]).stderr(Stdio::null()).status();
}

/// Whether this process has a signal ignored, which the programs that it starts inherit.
pub fn ignores(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    u64::from_str_radix(mask, 16).unwrap() >> (signal - 1) & 1 == 1
}

/// Gives a child of this process, and with it its emulator, a third of the time until it ends: most packets are
/// late by tens of milliseconds, which no path of the tests bears.
pub fn stutter(pid: u32) -> JoinHandle<()> {
    // State and parent follow the name: a zombie is no more, and the number may be another's by now.
    let child = move |stat: String| {
        let mut after = stat.rsplit(") ").next().unwrap_or("").split(' ');
        after.next() != Some("Z") && after.next() == Some(&std::process::id().to_string())
    };
    thread::spawn(move || {
        // One shell for all: on a busy machine a start of another takes longer than what is to pass between two signals.
        let mut shell = Command::new("sh");
        shell.args(["-c", "while read -r name; do kill -s $name -- $0; done", &pid.to_string()]);
        let mut shell = shell.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut signals = shell.stdin.take().unwrap();
        while fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(child) {
            for (name, pause) in [("STOP", 50), ("CONT", 25)] {
                writeln!(signals, "{name}").unwrap();
                thread::sleep(Duration::from_millis(pause));
            }
        }
        drop(signals);
        shell.wait().unwrap();
    })
}

/// Processes that are hosts of the lab that this process runs.
pub fn agents_of(pid: u32) -> Vec<u32> {
    let parent = pid.to_string();
    processes()
        .filter(|process| {
            let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = words.split(|&byte| byte == 0).collect();
            words.get(1) == Some(&b"__agent".as_slice()) && words.get(2) == Some(&parent.as_bytes())
        })
        .collect()
}

/// Every child that the process has, what it is about to become or not.
pub fn children_of(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let children = threads.flatten().filter_map(|t| fs::read_to_string(t.path().join("children")).ok());
    children
        .flat_map(|text| text.split_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Bytes that the devices of a process's network namespace have received, loopback aside.
pub fn received_by(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/net/dev")).unwrap_or_default();
    let devices = text.lines().filter_map(|line| line.split_once(':'));
    devices
        .filter(|(name, _)| name.trim() != "lo")
        .filter_map(|(_, counters)| counters.split_whitespace().next()?.parse::<u64>().ok())
        .sum()
}

fn processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The network namespace that a process is in; `None` where it is gone.
pub fn network_of(process: u32) -> Option<u64> {
    fs::metadata(format!("/proc/{process}/ns/net")).ok().map(|namespace| namespace.ino())
}

/// What a running lab has of the machine.
#[derive(Debug)]
pub struct Traces {
    bdp: u32,
    networks: BTreeSet<u64>,
    /// Every process that was seen in one of them, with the moment it started: the numbers of processes and of
    /// namespaces are given again.
    inside: BTreeSet<(u32, u64)>,
    devices_before: BTreeSet<String>,
}

impl Traces {
    /// Of the lab that the process `bdp` runs, as it is now.
    pub fn of(bdp: u32) -> Self {
        let mut traces =
            Self { bdp, networks: BTreeSet::new(), inside: BTreeSet::new(), devices_before: devices() };
        traces.look_again();
        traces
    }

    /// Adds what has come since.
    pub fn look_again(&mut self) {
        let own = network_of(std::process::id());
        for agent in agents_of(self.bdp) {
            let (network, started) = (network_of(agent), started(agent));
            if let (true, Some(network), Some(started)) = (network != own, network, started) {
                self.networks.insert(network);
                self.inside.insert((agent, started));
            }
        }
    }

    /// How many network namespaces were seen.
    pub fn networks(&self) -> usize {
        self.networks.len()
    }

    /// Waits until nothing of it is left: no process of a host, whatever it is by now, and no device here. A namespace
    /// without a name, and the devices in it, are gone with the last process that was in it.
    #[track_caller]
    pub fn assert_gone(&self) {
        let since = Instant::now();
        loop {
            let agents = agents_of(self.bdp);
            let inside: Vec<_> =
                self.inside.iter().filter(|(p, start)| started(*p) == Some(*start)).collect();
            let devices = devices();
            if agents.is_empty() && inside.is_empty() && devices == self.devices_before {
                return;
            }
            assert!(
                since.elapsed() < TEARDOWN,
                "left behind: processes {agents:?}, {inside:?} in namespaces, devices {devices:?}"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// When a process started, in ticks since the machine did; `None` where it is gone, or dead and only not yet reaped.
fn started(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // After the name, which may hold anything: state, parent, and as 20th the start.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    if fields.first() == Some(&"Z") { None } else { fields.get(19)?.parse().ok() }
}

/// Network devices of the namespace that the tests are in.
fn devices() -> BTreeSet<String> {
    let text = fs::read_to_string("/proc/net/dev").unwrap_or_default();
    text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}
