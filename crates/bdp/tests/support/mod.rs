//! What the black-box tests share: a bench with a folder of its own, bdp started under a watchdog, and a look at what
//! the machine shows of its processes.
// Each test binary uses a part of it.
#![allow(dead_code)]

pub mod cable;
pub mod fidelity;
pub mod guests;
pub mod inside;
pub mod iperf2;
pub mod iperf3;
pub mod machine;
pub mod nobody;
pub mod peer;
pub mod scenario;
pub mod schema;
pub mod serving;
pub mod untested;

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Nothing that a test starts takes longer: what does is killed, and the test fails.
const WATCHDOG: Duration = Duration::from_secs(300);

/// The binary under test.
pub const BDP: &str = env!("CARGO_BIN_EXE_bdp");

/// A folder of its own with scenario files and a store in it, in which bdp is run.
pub struct Bench {
    folder: TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// Writes a file, and gives its name back.
    pub fn write<'a>(&self, name: &'a str, content: impl AsRef<[u8]>) -> &'a str {
        fs::write(self.path(name), content).unwrap();
        name
    }

    /// bdp with these words as arguments, in this folder and with the default store in it.
    pub fn bdp(&self, line: &str) -> Command {
        let mut command = Command::new(BDP);
        command.args(line.split_whitespace());
        self.prepare(&mut command);
        command
    }

    /// A line for the shell, in which `bdp` is the binary under test.
    pub fn shell(&self, line: &str) -> Command {
        let folder = Path::new(BDP).parent().unwrap().display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        self.prepare(&mut command);
        command.env("PATH", format!("{folder}:{path}")).env("LC_ALL", "C.UTF-8");
        command
    }

    /// A shell script that finds the binary in `$BDP`; it runs in a mount namespace of its own, so that what it mounts
    /// is its own. Needs root.
    pub fn isolated(&self, script: &str) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--", "sh", "-ec", script]).env("BDP", BDP);
        self.prepare(&mut command);
        command
    }

    fn prepare(&self, command: &mut Command) {
        for variable in ["NO_COLOR", "LC_ALL", "LANG", "COLUMNS", "HOME"] {
            command.env_remove(variable);
        }
        command.env("XDG_DATA_HOME", self.folder()).env("RUST_BACKTRACE", "0").current_dir(self.folder());
    }

    /// Where the default store is.
    pub fn store(&self) -> PathBuf {
        self.path("bdp/bdp.sqlite")
    }

    /// Runs bdp to its end.
    pub fn run(&self, line: &str) -> Ended {
        start(self.bdp(line)).wait()
    }

    /// The commands that a result ends with, each of which a shell runs as it stands.
    #[track_caller]
    pub fn run_next(&self, out: &str) -> Vec<String> {
        let mut lines = out.lines().skip_while(|line| !line.starts_with("next "));
        let first = lines.next().unwrap_or_else(|| panic!("nothing comes next in {out}"));
        let first = first.strip_prefix("next").unwrap_or_default();
        let commands: Vec<String> =
            std::iter::once(first).chain(lines).map(|line| line.trim().to_owned()).collect();
        for command in &commands {
            assert!(command.starts_with("bdp "), "{command}");
            let ended = start(self.shell(command)).wait();
            assert_eq!(ended.code(), 0, "{command}: {}", ended.err);
        }
        commands
    }

    /// The samples of a file that `--prometheus` wrote, each of a metric that is described there and in docs/metrics.md.
    #[track_caller]
    pub fn metrics(&self, file: &str) -> std::collections::BTreeMap<String, f64> {
        let text = fs::read_to_string(self.path(file)).unwrap();
        let docs = include_str!("../../../../docs/metrics.md");
        let samples = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            assert_eq!(text.matches(&format!("# TYPE {name} gauge\n")).count(), 1, "{name}");
            assert!(docs.contains(&format!("`{name}`")), "{name} is in no document");
            // The port is another every time, and tells one far end of a host from another.
            let (before, rest) = series.split_once(",port=\"").unwrap_or((series, ""));
            assert!(!rest.is_empty() || !series.contains("host="), "{series}");
            (
                before.to_owned()
                    + rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches('"'),
                value.parse().unwrap(),
            )
        });
        samples.collect()
    }

    /// Makes the folder one that every user can work in, with a copy of the binary: where that was built, others may
    /// not look.
    pub fn open_to_all(&self) -> PathBuf {
        let everyone = |mode| fs::Permissions::from_mode(mode);
        fs::set_permissions(self.folder(), everyone(0o777)).unwrap();
        let copy = self.path("bdp-copy");
        if fs::hard_link(BDP, &copy).is_err() {
            // By another process: whatever is started here meanwhile would have the copy open for writing, and nobody could run it.
            assert!(Command::new("cp").arg(BDP).arg(&copy).status().unwrap().success());
        }
        fs::set_permissions(&copy, everyone(0o755)).unwrap();
        copy
    }
}

/// A process that runs, and what it has said so far. It is killed when this is dropped.
pub struct Running {
    child: Child,
    out: Spoken,
    err: Spoken,
}

struct Spoken {
    text: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

/// How a process ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
}

/// Starts a command, the leader of a process group.
pub fn start(command: Command) -> Running {
    let mut child = with_default_signals(command)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let out = Spoken::by(child.stdout.take().unwrap());
    let err = Spoken::by(child.stderr.take().unwrap());
    Running { child, out, err }
}

/// The command as a terminal starts it: a shell has its background jobs ignore some signals, and they their children.
fn with_default_signals(command: Command) -> Command {
    let ignored = [("HUP", 1), ("INT", 2), ("QUIT", 3), ("TERM", 15)]
        .map(|(name, number)| (name, machine::ignores(number)));
    let ignored: Vec<&str> = ignored.into_iter().filter_map(|(name, is)| is.then_some(name)).collect();
    if ignored.is_empty() {
        return command;
    }
    let mut started = Command::new("env");
    started.arg(format!("--default-signal={}", ignored.join(",")));
    started.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => started.env(name, value),
            None => started.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        started.current_dir(folder);
    }
    started
}

impl Spoken {
    fn by(mut pipe: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let said = Arc::clone(&text);
        let reader = thread::spawn(move || {
            let mut room = [0; 4096];
            while let Ok(length @ 1..) = pipe.read(&mut room) {
                said.lock().unwrap().extend_from_slice(&room[..length]);
            }
        });
        Self { text, reader: Some(reader) }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().unwrap()).into_owned()
    }
}

/// Waits until something holds that no process of the test's tells.
#[track_caller]
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < WATCHDOG, "{what} did not come about");
        thread::sleep(Duration::from_millis(20));
    }
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Standard error so far.
    pub fn err(&self) -> String {
        self.err.so_far()
    }

    /// Standard output so far.
    pub fn out(&self) -> String {
        self.out.so_far()
    }

    /// Waits until the condition holds, for as long as the process runs.
    #[track_caller]
    pub fn wait_until(&mut self, what: &str, mut condition: impl FnMut(&Self) -> bool) {
        let started = Instant::now();
        while !condition(self) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "ended ({ended:?}) before {what}: {}", self.err());
            assert!(started.elapsed() < WATCHDOG, "{what} did not come about: {}", self.err());
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until a client of iperf's that prints intervals has printed so many: its flow runs.
    #[track_caller]
    pub fn await_intervals(&mut self, count: usize) {
        self.wait_until("data flows", |p| p.out().matches("bits/sec").count() >= count);
    }

    /// Waits until a measurement with `--json-stream` has told of a flow.
    #[track_caller]
    pub fn await_flow(&mut self) {
        let stages = ["to", "from", "both"].map(|stage| format!("\"stage\":\"{stage}\""));
        self.wait_until("data flows", |p| {
            let told = p.out();
            stages.iter().any(|stage| told.contains(stage))
        });
    }

    /// Sends a signal to it alone.
    pub fn signal(&self, name: &str) {
        machine::signal(name, &self.pid().to_string());
    }

    /// Sends a signal to it and all that it started, as a terminal does.
    pub fn signal_group(&self, name: &str) {
        machine::signal(name, &format!("-{}", self.pid()));
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait(mut self) -> Ended {
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(started.elapsed() < WATCHDOG, "it did not end: {}", self.err());
            thread::sleep(Duration::from_millis(5));
        };
        let mut said = [&mut self.out, &mut self.err].map(|spoken| {
            spoken.reader.take().unwrap().join().unwrap();
            spoken.so_far()
        });
        let [out, err] = [std::mem::take(&mut said[0]), std::mem::take(&mut said[1])];
        Ended { status, out, err }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// The exit code; a process that a signal ended has none.
    #[track_caller]
    pub fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| panic!("ended by signal {:?}: {}", self.status.signal(), self.err))
    }

    /// Whether each case of a lab run had a valid repetition, by its exit code; where the machine spoilt all of one, that is
    /// printed as not judged, with what the run says of it.
    #[track_caller]
    pub fn every_case_is_valid(&self) -> bool {
        every_case_is_valid(self.code(), &format!("{}{}", self.err, self.out))
    }

    /// The one line of a refusal, with nothing on standard output but the same as JSON where that was asked for.
    #[track_caller]
    pub fn refusal(&self, code: i32) -> &str {
        assert_eq!(self.code(), code, "{}", self.err);
        assert!(self.out.is_empty() || is_error_document(&self.out, &self.err, code), "{}", self.out);
        assert_eq!(self.err.lines().count(), 1, "{}", self.err);
        assert!(self.err.starts_with("bdp: "), "{}", self.err);
        self.err.trim_end()
    }

    /// The last line on standard error: the error where there was one.
    pub fn last_line(&self) -> &str {
        self.err.lines().last().unwrap_or("")
    }

    /// Standard output, which must be one JSON document and nothing else; of a single measurement that itself.
    #[track_caller]
    pub fn json(&self) -> Value {
        let document =
            serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {}{}", self.out, self.err));
        the_measurement(document)
    }
}

/// The same of an exit code, and of what names the cause: a line of progress, a note below the table, or the document.
#[track_caller]
pub fn every_case_is_valid(code: i32, said: &str) -> bool {
    assert!(matches!(code, 0 | 5), "exit {code}: {said}");
    if code == 5 {
        let (_, why) = ["INVALID (attempt 1): ", "INVALID  ", "\"cause\": \""]
            .iter()
            .find_map(|word| said.split_once(word))
            .unwrap_or_else(|| panic!("exit code 5 without a cause: {said}"));
        // In brackets at the end is what differs from one time to another.
        let why = why.lines().next().unwrap_or_default().replace(['(', ')'], "");
        untested::not_judged("lab run", &format!("no repetition of a case was valid ({why})"));
    }
    code == 0
}

/// The measurement of a document that holds a single one, as most tests make it; any other document as it is.
pub fn the_measurement(mut document: Value) -> Value {
    match document.get_mut("runs").and_then(Value::as_array_mut) {
        Some(runs) if runs.len() == 1 && runs[0]["schema"] == "bdp.measurement/1" => runs.remove(0),
        _ => document,
    }
}

/// Whether standard output is the error on standard error as JSON, by its schema.
pub fn is_error_document(out: &str, err: &str, code: i32) -> bool {
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/error.schema.json")).unwrap();
    let document: Value = serde_json::from_str(out).unwrap();
    jsonschema::validator_for(&schema).unwrap().is_valid(&document)
        && document["error"]["exit_code"] == code
        && err.trim_end().strip_prefix("bdp: ") == document["error"]["message"].as_str()
}
