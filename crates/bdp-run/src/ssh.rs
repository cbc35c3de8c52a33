//! A far end for the length of a measurement: this very program, brought to a machine by the system's `ssh` and run there.
//!
//! Nothing is left of it: its file is removed before it runs, it is run by way of an open descriptor, and it ends with its
//! standard input, which is the connection. One `ssh` does all of it, so a password is asked for once.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bdp_model::measurement::SshRequest;
use bdp_model::plain::of_json;
use serde::{Deserialize, Serialize};

/// How long a person may take over a password and `ssh` over its connection.
const LOGIN_DEADLINE: Duration = Duration::from_secs(120);
/// How long the program may be under way.
const UPLOAD_DEADLINE: Duration = Duration::from_secs(300);
/// How long the far end may take from one step to the next.
const STEP_DEADLINE: Duration = Duration::from_secs(20);
/// How long `ssh` may take to end before it is ended.
const FAREWELL: Duration = Duration::from_secs(3);
/// Longest wait before a raised cancel flag is seen.
const CANCEL_CHECK: Duration = Duration::from_millis(100);
/// Bytes of one write of the upload.
const CHUNK: usize = 64 << 10;
/// Longest line that the far end may say, and most of them that are not for us: a login shell may greet.
const LONGEST_LINE: u64 = 4096;
const MOST_GREETINGS: usize = 1000;
/// Ports tried for a tunnel, below those that systems give out by themselves.
const TUNNEL_PORTS: std::ops::Range<u16> = 10_000..32_000;
const TUNNEL_TRIES: u32 = 3;

/// What the far end says when it listens: a line of JSON on its standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listening {
    /// Its version of bdp.
    pub bdp: String,
    /// Where it listens.
    pub port: u16,
    /// What a client has to prove that it knows; it came by way of `ssh`, and nobody else has seen it.
    pub token: String,
}

/// Why there is no far end.
#[derive(Debug, thiserror::Error)]
pub enum SshError {
    /// `ssh` could not be started.
    #[error("run ssh: {0}; install OpenSSH's client")]
    Run(io::Error),
    /// `ssh` ended, or said nothing.
    #[error("ssh {destination}: {what}; check that 'ssh {destination} uname -sm' works")]
    Connection {
        /// Where to.
        destination: String,
        /// Its own words, or what happened.
        what: String,
    },
    /// The machine can't run this program.
    #[error(
        "ssh {destination}: the host is {theirs}, but this bdp is built for Linux {ours}; install bdp for \
         that system there, run 'bdp serve', and measure without --ssh"
    )]
    Architecture {
        /// Where to.
        destination: String,
        /// `uname -sm`.
        theirs: String,
        /// This program's.
        ours: &'static str,
    },
    /// The machine could not do its part.
    #[error("ssh {destination}: {what}")]
    Far {
        /// Where to.
        destination: String,
        /// Why, and the way out.
        what: String,
    },
    /// The machine has somebody else on the port of the tunnel.
    #[error("ssh {destination}: no free port for the tunnel; run it again")]
    NoPort {
        /// Where to.
        destination: String,
    },
    /// This program could not be read.
    #[error("read this program (/proc/self/exe): {0}")]
    Program(io::Error),
    /// The cancel flag was raised.
    #[error("cancelled")]
    Cancelled,
}

/// A far end that runs; it ends when this is dropped.
pub struct FarEnd {
    _ssh: Ssh,
    /// Where it can be measured to: a host and a port.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Its token.
    pub token: String,
}

/// What a far end is started with.
#[derive(Debug, Clone)]
pub struct SshPlan {
    /// As it is recorded: destination, options before all others, and way of the data.
    pub request: SshRequest,
    /// The hidden subcommand that is run there; the port and the address to listen on are added.
    pub subcommand: String,
    /// Random bytes, for the port of a tunnel.
    pub random: u32,
}

impl FarEnd {
    /// Starts one. Blocks until it listens; `cancel` ends that.
    pub fn start(plan: &SshPlan, cancel: &AtomicBool) -> Result<Self, SshError> {
        if !plan.request.through {
            let host = match &plan.request.data_host {
                Some(host) => host.clone(),
                None => configured_host(plan)?,
            };
            let mut ssh =
                Ssh::run(plan, &[], &far_command(plan, plan.request.data_port.unwrap_or(0), "[::]"))?;
            let listening = ssh.bring_up(cancel)?;
            return Ok(Self { _ssh: ssh, host, port: listening.port, token: listening.token });
        }
        for attempt in 0..TUNNEL_TRIES {
            // Both ports have to be known before there is a connection, so that one is enough.
            let near =
                TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).map_err(SshError::Run)?.port();
            let span = u32::from(TUNNEL_PORTS.end - TUNNEL_PORTS.start);
            let offset = plan.random.wrapping_add(attempt.wrapping_mul(7919)) % span;
            let far =
                plan.request.data_port.unwrap_or(TUNNEL_PORTS.start + u16::try_from(offset).unwrap_or(0));
            let forward = format!("127.0.0.1:{near}:127.0.0.1:{far}");
            let tunnel = ["-o", "ExitOnForwardFailure=yes", "-L", &forward].map(str::to_owned);
            let mut ssh = Ssh::run(plan, &tunnel, &far_command(plan, far, "127.0.0.1"))?;
            match ssh.bring_up(cancel) {
                Ok(listening) => {
                    return Ok(Self {
                        _ssh: ssh,
                        host: "127.0.0.1".to_owned(),
                        port: near,
                        token: listening.token,
                    });
                }
                Err(SshError::Far { what, .. })
                    if what.contains("Address already in use") && plan.request.data_port.is_none() => {}
                Err(error) => return Err(error),
            }
        }
        Err(SshError::NoPort { destination: plan.request.destination.clone() })
    }
}

/// The address that `ssh` itself would connect to, by all of its configuration.
fn configured_host(plan: &SshPlan) -> Result<String, SshError> {
    let mut command = Command::new("ssh");
    command.arg("-G");
    for option in &plan.request.options {
        command.arg("-o").arg(option);
    }
    let output = command
        .args(["--", &plan.request.destination])
        .stdin(Stdio::null())
        .output()
        .map_err(SshError::Run)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("hostname ")).map(str::trim);
    host.filter(|host| output.status.success() && !host.is_empty()).map(str::to_owned).ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        SshError::Connection {
            destination: plan.request.destination.clone(),
            what: said.lines().last().unwrap_or("unknown host").trim().to_owned(),
        }
    })
}

fn far_command(plan: &SshPlan, port: u16, address: &str) -> String {
    format!("{} {address}:{port}", plan.subcommand)
}

/// The far shell's part, for any POSIX shell. It must not hold a single quote: whatever shell the user has there passes it
/// on in such. A folder is taken only if programs may run in it, which is tried with one of two lines.
fn script(bytes: u64, command: &str) -> String {
    format!(
        r##"exec sh -c '
umask 077
echo "bdp-far $(uname -s) $(uname -m)"
read -r go || exit 0
[ "$go" = go ] || exit 0
f=
trap "rm -f \"\$f\"" EXIT
trap "exit 1" HUP INT TERM PIPE
for d in "${{TMPDIR:-/tmp}}" /var/tmp "$HOME" /dev/shm; do
  f=$(mktemp "$d/bdp.XXXXXXXXXX" 2>/dev/null) || continue
  printf "#!/bin/sh\nexit 0\n" >"$f" && chmod 700 "$f" && "$f" 2>/dev/null && break
  rm -f "$f"; f=
done
[ -n "$f" ] || {{ echo "bdp-failed no folder there permits programs: TMPDIR (/tmp), /var/tmp, HOME and /dev/shm were tried"; exit 1; }}
echo bdp-ready
head -c {bytes} >"$f" || {{ echo "bdp-failed the program could not be written to $d; check the free space"; exit 1; }}
s=$(wc -c <"$f")
[ "$s" -eq {bytes} ] || {{ echo "bdp-failed $s of {bytes} bytes of the program arrived in $d"; exit 1; }}
exec 9<"$f" && rm -f "$f" && trap - EXIT && exec /proc/self/fd/9 {command}
'"##
    )
}

/// A running `ssh`.
struct Ssh {
    destination: String,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// What it said on standard error last.
    complaint: Arc<Mutex<String>>,
    /// Closed when there is no more of that.
    all_said: Receiver<()>,
    program: File,
    bytes: u64,
}

impl Ssh {
    fn run(plan: &SshPlan, further: &[String], command: &str) -> Result<Self, SshError> {
        let program = File::open("/proc/self/exe").map_err(SshError::Program)?;
        let bytes = program.metadata().map_err(SshError::Program)?.len();
        let mut ssh = Command::new("ssh");
        ssh.arg("-T");
        // Of an option that is given twice ssh takes the first.
        for option in &plan.request.options {
            ssh.arg("-o").arg(option);
        }
        for option in ["ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3"] {
            ssh.args(["-o", option]);
        }
        let mut child = ssh
            .args(further)
            .args(["--", &plan.request.destination])
            .arg(script(bytes, command))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(SshError::Run)?;
        let stdin = child.stdin.take();
        let (give, lines) = mpsc::sync_channel(16);
        if let Some(out) = child.stdout.take() {
            thread::spawn(move || read_lines(out, |line| give.send(line).is_ok()));
        }
        let complaint = Arc::new(Mutex::new(String::new()));
        let (silent, all_said) = mpsc::channel();
        if let Some(err) = child.stderr.take() {
            let complaint = Arc::clone(&complaint);
            thread::spawn(move || {
                read_lines(err, |line| {
                    if !line.trim().is_empty() {
                        *complaint.lock().unwrap_or_else(PoisonError::into_inner) = line;
                    }
                    true
                });
                drop(silent);
            });
        }
        let destination = plan.request.destination.clone();
        Ok(Self { destination, child, stdin, lines, complaint, all_said, program, bytes })
    }

    /// From the login to a far end that listens.
    fn bring_up(&mut self, cancel: &AtomicBool) -> Result<Listening, SshError> {
        let machine = self.expect("bdp-far ", LOGIN_DEADLINE, cancel)?;
        check_architecture(&self.destination, &machine)?;
        self.write(b"go\n")?;
        self.expect("bdp-ready", STEP_DEADLINE, cancel)?;
        self.upload(cancel)?;
        let said = self.expect("{", STEP_DEADLINE, cancel)?;
        serde_json::from_str(&format!("{{{said}")).map_err(|e| SshError::Far {
            destination: self.destination.clone(),
            what: format!("the far end said what it should not: {}", of_json(&e)),
        })
    }

    /// The rest of the next line that begins so. Others are what a login shell says; `bdp-failed` is a failure.
    fn expect(&mut self, start: &str, patience: Duration, cancel: &AtomicBool) -> Result<String, SshError> {
        let until = Instant::now() + patience;
        for _ in 0..MOST_GREETINGS {
            let line = loop {
                match self.lines.recv_timeout(CANCEL_CHECK) {
                    Ok(line) => break line,
                    Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                    Err(RecvTimeoutError::Timeout) if cancel.load(Ordering::Relaxed) => {
                        return Err(SshError::Cancelled);
                    }
                    Err(RecvTimeoutError::Timeout) if Instant::now() >= until => {
                        return Err(self.failed(format!("no answer within {} s", patience.as_secs())));
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                }
            };
            if let Some(why) = line.strip_prefix("bdp-failed ") {
                return Err(SshError::Far { destination: self.destination.clone(), what: why.to_owned() });
            }
            if let Some(rest) = line.strip_prefix(start) {
                return Ok(rest.to_owned());
            }
        }
        Err(self.failed("too much unexpected output".to_owned()))
    }

    fn upload(&mut self, cancel: &AtomicBool) -> Result<(), SshError> {
        let mut program = self.program.try_clone().map_err(SshError::Program)?.take(self.bytes);
        let until = Instant::now() + UPLOAD_DEADLINE;
        let mut chunk = vec![0; CHUNK];
        loop {
            let length = program.read(&mut chunk).map_err(SshError::Program)?;
            if length == 0 {
                return Ok(());
            }
            self.write(&chunk[..length])?;
            if cancel.load(Ordering::Relaxed) {
                return Err(SshError::Cancelled);
            }
            if Instant::now() >= until {
                return Err(self.failed("the program did not arrive in time".to_owned()));
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), SshError> {
        let done = self.stdin.as_mut().map(|stdin| stdin.write_all(bytes).and_then(|()| stdin.flush()));
        match done {
            Some(Ok(())) => Ok(()),
            _ => Err(self.ended()),
        }
    }

    /// Why it ended: a failure that was told, or its own words.
    fn ended(&mut self) -> SshError {
        while let Ok(line) = self.lines.try_recv() {
            if let Some(why) = line.strip_prefix("bdp-failed ") {
                return SshError::Far { destination: self.destination.clone(), what: why.to_owned() };
            }
        }
        let status = self.wait(FAREWELL);
        // Its last words may not have been read yet when it has ended.
        let _ = self.all_said.recv_timeout(FAREWELL);
        let said = self.complaint.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let what = match (said.is_empty(), status) {
            (false, _) => said,
            (true, Some(status)) => format!("it ended ({status})"),
            (true, None) => "it fell silent".to_owned(),
        };
        self.failed(what)
    }

    fn failed(&self, what: String) -> SshError {
        SshError::Connection { destination: self.destination.clone(), what }
    }

    fn wait(&mut self, patience: Duration) -> Option<std::process::ExitStatus> {
        let until = Instant::now() + patience;
        while Instant::now() < until {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) => thread::sleep(Duration::from_millis(10)),
                Err(_) => return None,
            }
        }
        None
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        // The far end ends with its standard input, and ssh with it.
        drop(self.stdin.take());
        if self.wait(FAREWELL).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Hands on line by line, each cut to what is bearable, until there is no more or nobody wants it.
fn read_lines(from: impl Read, mut hand_on: impl FnMut(String) -> bool) {
    let mut from = BufReader::new(from);
    loop {
        let mut line = Vec::new();
        match from.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
        if !hand_on(String::from_utf8_lossy(&line).trim_end().to_owned()) {
            return;
        }
    }
}

/// Refuses a machine that can't run this program; `uname` is what `uname -s` and `uname -m` say there.
fn check_architecture(destination: &str, uname: &str) -> Result<(), SshError> {
    let ours = std::env::consts::ARCH;
    let (system, machine) = uname.split_once(' ').unwrap_or((uname, ""));
    if system == "Linux" && runs(ours, machine) {
        return Ok(());
    }
    let theirs = uname.chars().filter(|c| !c.is_control()).take(60).collect();
    Err(SshError::Architecture { destination: destination.to_owned(), theirs, ours })
}

/// Whether a program for `arch`, as Rust calls it, runs on `machine`, as `uname -m` does.
fn runs(arch: &str, machine: &str) -> bool {
    match arch {
        "x86" => machine == "x86_64" || (machine.starts_with('i') && machine.ends_with("86")),
        "arm" => machine.starts_with("arm") || machine == "aarch64",
        "aarch64" => machine == "aarch64" || machine == "arm64",
        "powerpc64" => machine == "ppc64" || (machine == "ppc64le" && cfg!(target_endian = "little")),
        other => machine == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_of_another_kind_is_told() {
        for (arch, machine, fits) in [
            ("x86_64", "x86_64", true),
            ("x86_64", "aarch64", false),
            ("x86", "i686", true),
            ("x86", "x86_64", true),
            ("aarch64", "aarch64", true),
            ("aarch64", "armv7l", false),
            ("arm", "armv7l", true),
            ("riscv64", "riscv64", true),
        ] {
            assert_eq!(runs(arch, machine), fits, "{arch} on {machine}");
        }
        let told = check_architecture("ams1", "FreeBSD amd64").unwrap_err().to_string();
        assert!(
            told.starts_with("ssh ams1: the host is FreeBSD amd64, but this bdp is built for Linux "),
            "{told}"
        );
    }

    #[test]
    fn the_far_shell_gets_one_word() {
        let script = script(1000, "__far [::]:0");
        let inner = script.strip_prefix("exec sh -c '").and_then(|s| s.strip_suffix('\'')).unwrap();
        assert!(!inner.contains('\''), "{inner}");
        // The shell finds nothing wrong with it.
        let checked = Command::new("sh").args(["-n", "-c", inner]).status().unwrap();
        assert!(checked.success());
    }

    #[test]
    fn lines_are_bounded() {
        let mut seen = Vec::new();
        let endless = vec![b'x'; 3 * LONGEST_LINE as usize];
        read_lines(&endless[..], |line| {
            seen.push(line.len() as u64);
            seen.len() < 2
        });
        assert_eq!(seen, [LONGEST_LINE, LONGEST_LINE]);
    }
}
