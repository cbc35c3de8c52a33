//! A remote end for the duration of a measurement: this program, copied to a machine by the system's `ssh` and run
//! there.
//!
//! It leaves nothing behind: its file is removed before it runs, it is run from an open descriptor, and it exits when
//! its standard input, the connection, closes. One `ssh` does all of it, so a password is asked for once.

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

/// The hidden subcommand that runs there; the address and the port to listen on follow.
pub const SUBCOMMAND: &str = "__far";
/// How long the login may take: a person's password and the connection of `ssh`.
const LOGIN_DEADLINE: Duration = Duration::from_secs(120);
/// How long the upload of the program may take.
const UPLOAD_DEADLINE: Duration = Duration::from_secs(300);
/// How long the remote end may take for each step.
const STEP_DEADLINE: Duration = Duration::from_secs(20);
/// How long `ssh` may take to exit before it is killed.
const FAREWELL: Duration = Duration::from_secs(3);
/// Longest time until a raised cancel flag is noticed.
const CANCEL_CHECK: Duration = Duration::from_millis(100);
/// Bytes per write of the upload.
const CHUNK: usize = 64 << 10;
/// Longest line from the remote end, and most lines of other output: a login shell may print a greeting.
const LONGEST_LINE: u64 = 4096;
const MOST_GREETINGS: usize = 1000;
/// Ports tried for a tunnel, below the usual ephemeral ports.
const TUNNEL_PORTS: std::ops::Range<u16> = 10_000..32_000;
const TUNNEL_TRIES: u32 = 3;

/// What the remote end prints when it listens: a line of JSON on standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listening {
    /// Its version of bdp.
    pub bdp: String,
    /// The port on which it listens.
    pub port: u16,
    /// The token that a client must prove to know; it was sent over `ssh` and is known to nobody else.
    pub token: String,
}

/// Why a remote end could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SshError {
    /// `ssh` could not be started.
    #[error("run ssh: {0}; install OpenSSH's client")]
    Run(io::Error),
    /// `ssh` exited or did not answer.
    #[error("ssh {destination}: {what}; check that 'ssh {destination} uname -sm' works")]
    Connection {
        /// The ssh destination.
        destination: String,
        /// The message of `ssh`, or what happened.
        what: String,
    },
    /// The machine cannot run this program.
    #[error(
        "ssh {destination}: the host is {theirs}, but this bdp is built for Linux {ours}; install bdp for \
         that system there, run 'bdp serve', and measure without --ssh"
    )]
    Architecture {
        /// The ssh destination.
        destination: String,
        /// The machine's `uname -sm`.
        theirs: String,
        /// The architecture of this program.
        ours: &'static str,
    },
    /// A step failed on the remote machine.
    #[error("ssh {destination}: {what}")]
    Far {
        /// The ssh destination.
        destination: String,
        /// The reason, and a way out.
        what: String,
    },
    /// The tunnel's port is taken on the remote machine.
    #[error("ssh {destination}: no free port for the tunnel; run it again")]
    NoPort {
        /// The ssh destination.
        destination: String,
    },
    /// This program could not be read.
    #[error("read this program (/proc/self/exe): {0}")]
    Program(io::Error),
    /// The cancel flag was raised.
    #[error("measure by ssh: cancelled")]
    Cancelled,
}

/// A running remote end; it stops when this is dropped.
pub struct FarEnd {
    _ssh: Ssh,
    /// The host to measure to.
    pub host: String,
    /// The port to measure to.
    pub port: u16,
    /// The token for its server.
    pub token: String,
}

/// How to start a remote end.
#[derive(Debug, Clone)]
pub struct SshPlan {
    /// The request as recorded: destination, options before all others, and route of the data.
    pub request: SshRequest,
    /// Random bits that choose the port of a tunnel.
    pub random: u32,
}

impl FarEnd {
    /// Starts a remote end. Blocks until it listens; `cancel` aborts the wait.
    pub fn start(plan: &SshPlan, cancel: &AtomicBool) -> Result<Self, SshError> {
        if !plan.request.through {
            let host = match &plan.request.data_host {
                Some(host) => host.clone(),
                None => configured_host(plan)?,
            };
            let mut ssh = Ssh::run(plan, &[], &far_command(plan.request.data_port.unwrap_or(0), "[::]"))?;
            let listening = ssh.bring_up(cancel)?;
            return Ok(Self { _ssh: ssh, host, port: listening.port, token: listening.token });
        }
        for attempt in 0..TUNNEL_TRIES {
            // Both ports must be known before the connection, so that one connection is enough.
            let near =
                TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).map_err(SshError::Run)?.port();
            let span = u32::from(TUNNEL_PORTS.end - TUNNEL_PORTS.start);
            let offset = plan.random.wrapping_add(attempt.wrapping_mul(7919)) % span;
            let far =
                plan.request.data_port.unwrap_or(TUNNEL_PORTS.start + u16::try_from(offset).unwrap_or(0));
            let forward = format!("127.0.0.1:{near}:127.0.0.1:{far}");
            let tunnel = ["-o", "ExitOnForwardFailure=yes", "-L", &forward].map(str::to_owned);
            let mut ssh = Ssh::run(plan, &tunnel, &far_command(far, "127.0.0.1"))?;
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

/// Returns the address that `ssh` would connect to, after all of its configuration.
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

fn far_command(port: u16, address: &str) -> String {
    format!("{SUBCOMMAND} {address}:{port}")
}

/// Returns the remote shell script, for any POSIX shell. It must not contain a single quote: the user's shell there,
/// whichever it is, passes it on in single quotes. A folder is used only if programs may run in it, which a two-line
/// script tests.
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
    /// Its last line on standard error.
    complaint: Arc<Mutex<String>>,
    /// Closed at the end of standard error.
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
        // If an option is given twice, ssh uses the first.
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

    /// Goes from the login to a remote end that listens.
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

    /// Returns the rest of the next line that begins with `start`. Other lines come from the login shell;
    /// `bdp-failed` is a failure.
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

    /// Returns why it ended: the reported failure, or its last line on standard error.
    fn ended(&mut self) -> SshError {
        while let Ok(line) = self.lines.try_recv() {
            if let Some(why) = line.strip_prefix("bdp-failed ") {
                return SshError::Far { destination: self.destination.clone(), what: why.to_owned() };
            }
        }
        let status = self.wait(FAREWELL);
        // Its last lines may not have been read yet when it has exited.
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
        // The remote end exits when its standard input closes, and ssh with it.
        drop(self.stdin.take());
        if self.wait(FAREWELL).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Passes on lines, each cut to a maximum length, until the end or until the receiver declines.
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

/// Refuses a machine that cannot run this program; `uname` is the output of `uname -s` and `uname -m` there.
fn check_architecture(destination: &str, uname: &str) -> Result<(), SshError> {
    let ours = std::env::consts::ARCH;
    let (system, machine) = uname.split_once(' ').unwrap_or((uname, ""));
    if system == "Linux" && runs(ours, machine) {
        return Ok(());
    }
    let theirs = uname.chars().filter(|c| !c.is_control()).take(60).collect();
    Err(SshError::Architecture { destination: destination.to_owned(), theirs, ours })
}

/// Whether a program for `arch` (in Rust's naming) runs on `machine` (as in `uname -m`).
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
        // The shell accepts its syntax.
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
