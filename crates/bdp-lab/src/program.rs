//! A user's program on a host: its network is the host's, its processes have their own namespace that ends with it, and the other hosts have names.
//!
//! Two processes of bdp stand before it. The *warden* leaves this machine's network for the host's, and passes on
//! the signals that ask for an end; it starts the first process of the program's namespace, the *first*, which
//! reaps orphans. Killing either kills everything that the program left.

use std::ffi::OsString;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bdp_sys::supervise::{Supervisor, exit_code};
use bdp_sys::{isolate, process};
use serde::{Deserialize, Serialize};

use crate::host::Program;

/// Exit code if bdp itself could not start a program, as in `env` and `timeout`.
pub const NOT_STARTED: u8 = 125;
/// Exit code if the program exists and can't be run.
const NOT_RUNNABLE: u8 = 126;
/// Exit code if there is no such program.
const NOT_FOUND: u8 = 127;
/// How long a program that was asked to end may continue.
const GRACE: Duration = Duration::from_secs(2);
/// Argument that distinguishes the first process of a program's namespace from its warden.
const FIRST: &str = "first";

/// A host as its programs see it.
#[derive(Debug, Clone)]
pub struct ProgramPlace {
    /// Its name.
    pub host: String,
    /// Its folder in `/proc`.
    pub(crate) seen_at: PathBuf,
    /// Whether its network belongs to a user namespace.
    pub(crate) own_users: bool,
    /// Its addresses, in the order of its links.
    pub own: Vec<IpAddr>,
    /// The other hosts, each with the address that leads there.
    pub others: Vec<(String, IpAddr)>,
}

/// How a program is run.
#[derive(Debug, Clone, Default)]
pub struct ProgramOptions {
    /// Whether it serves others: its background processes stay until it is asked to end, and then have two seconds.
    pub service: bool,
    /// Processors that it is pinned to; `None` for all.
    pub cpus: Option<Vec<usize>>,
    /// Its root folder; `None` for this process's.
    pub root: Option<PathBuf>,
    /// Its working folder; `None` for this process's.
    pub folder: Option<PathBuf>,
    /// Its environment, in addition to the place's; `None` for this process's.
    pub environment: Option<Vec<(String, String)>>,
}

/// Parameters of a warden.
#[derive(Debug, Serialize, Deserialize)]
struct Setup {
    parent: u32,
    host: String,
    user: Option<PathBuf>,
    network: PathBuf,
    names: String,
    service: bool,
    cpus: Option<Vec<usize>>,
    root: Option<PathBuf>,
    folder: Option<PathBuf>,
}

impl ProgramPlace {
    /// The command that runs `words` as a program here, through its warden: a process of `warden`, which calls
    /// [`run`] with the arguments that follow its own. The thread that starts it must live as long as the program.
    pub fn command(&self, warden: &Program, options: &ProgramOptions, words: &[OsString]) -> Command {
        let setup = Setup {
            parent: std::process::id(),
            host: self.host.clone(),
            user: self.own_users.then(|| self.seen_at.join("ns/user")),
            network: self.seen_at.join("ns/net"),
            names: self.names(),
            service: options.service,
            cpus: options.cpus.clone(),
            root: options.root.clone(),
            folder: options.folder.clone(),
        };
        let mut command = warden.command();
        if let Some(environment) = &options.environment {
            command.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        }
        // Plain data, which JSON can always hold.
        command.arg(serde_json::to_string(&setup).unwrap_or_default()).args(words).envs(self.environment());
        command
    }

    /// Environment of its programs: its name, its address and those of the others.
    pub fn environment(&self) -> Vec<(String, String)> {
        let own = self.own.first().map(|address| ("BDP_ADDRESS".to_owned(), address.to_string()));
        let others = self.others.iter();
        let others =
            others.map(|(name, address)| (format!("BDP_ADDRESS_{}", variable(name)), address.to_string()));
        [("BDP_HOST".to_owned(), self.host.clone())].into_iter().chain(own).chain(others).collect()
    }

    /// `/etc/hosts`.
    fn names(&self) -> String {
        let mut text = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
        let own = self.own.iter().map(|address| (&self.host, address));
        for (name, address) in own.chain(self.others.iter().map(|(name, address)| (name, address))) {
            text.push_str(&format!("{address} {name}\n"));
        }
        text
    }

    /// Number of sockets on the host that await clients: listening TCP, and bound UDP.
    pub fn listeners(&self) -> usize {
        let in_table = |table: &str, state: &str| {
            let text = fs::read_to_string(self.seen_at.join("net").join(table)).unwrap_or_default();
            text.lines().skip(1).filter(|line| line.split_whitespace().nth(3) == Some(state)).count()
        };
        [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")]
            .into_iter()
            .map(|(table, state)| in_table(table, state))
            .sum()
    }
}

/// A host's name as part of a variable's.
fn variable(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// Runs a warden, or the first process of a program's namespace: the arguments are those that
/// [`ProgramPlace::command`] wrote. Returns the exit code, or an error in a line with its exit code.
pub fn run(mut arguments: impl Iterator<Item = OsString>) -> Result<u8, (u8, String)> {
    let failed = |cause: String| (NOT_STARTED, cause);
    let mut word = arguments.next().ok_or_else(|| failed("nothing to run".to_owned()))?;
    let first = word == FIRST;
    if first {
        word = arguments.next().unwrap_or_default();
    }
    let setup: Setup = serde_json::from_slice(word.as_encoded_bytes())
        .map_err(|_| failed("for internal use by the lab; not a user command".to_owned()))?;
    let words: Vec<OsString> = arguments.collect();
    if first { setup.run_first(&words) } else { setup.run_warden(&word, &words) }
}

impl Setup {
    fn run_warden(&self, written: &OsString, words: &[OsString]) -> Result<u8, (u8, String)> {
        let failed = |cause: String| (NOT_STARTED, format!("host '{}': {cause}", self.host));
        process::die_with_parent(self.parent);
        let supervisor = Supervisor::begin();
        if let Some(cpus) = &self.cpus {
            // It helps the emulation, and the fidelity shows the result without.
            let _ = process::pin(0, cpus);
        }
        isolate::join(self.user.as_deref(), &self.network).map_err(|e| failed(e.to_string()))?;
        // A change of credentials clears it.
        process::die_with_parent(self.parent);
        isolate::separate(&self.host).map_err(|e| failed(e.to_string()))?;
        if let Some(root) = &self.root {
            isolate::change_root(root).map_err(|e| failed(e.to_string()))?;
        }
        if Path::new("/etc/hosts").exists() {
            isolate::name_addresses(&self.names).map_err(|e| failed(e.to_string()))?;
        }
        if let Some(folder) = &self.folder {
            let entered = std::env::set_current_dir(folder);
            entered.map_err(|e| failed(format!("enter the folder '{}': {e}", folder.display())))?;
        }
        let mut command = Command::new("/proc/self/exe");
        let own = std::env::args_os().nth(1).unwrap_or_default();
        command.arg(own).arg(FIRST).arg(written).args(words);
        let child = supervisor.start(&mut command, true).map_err(|e| failed(format!("start bdp: {e}")))?;
        let grace = self.service.then_some(GRACE);
        let status = supervisor.wait(child, grace).map_err(|e| failed(e.to_string()))?;
        Ok(exit_code(status))
    }

    fn run_first(&self, words: &[OsString]) -> Result<u8, (u8, String)> {
        process::die_with_starter();
        let _ = fs::write("/proc/self/comm", "bdp-program");
        let supervisor = Supervisor::begin();
        isolate::show_own_processes();
        let (name, arguments) =
            words.split_first().ok_or_else(|| (NOT_STARTED, "nothing to run".to_owned()))?;
        let mut command = Command::new(name);
        command.args(arguments);
        let child = supervisor.start(&mut command, false).map_err(|e| {
            let code = if e.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUNNABLE };
            (code, format!("start '{}' on host '{}': {e}", name.to_string_lossy(), self.host))
        })?;
        let status = supervisor.wait(child, None).map_err(|e| (NOT_STARTED, e.to_string()))?;
        if self.service && status.success() {
            supervisor.wait_for_orphans();
        }
        Ok(exit_code(status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_variables_are_those_of_the_hosts() {
        let place = ProgramPlace {
            host: "a".to_owned(),
            seen_at: PathBuf::from("/nowhere"),
            own_users: false,
            own: vec!["198.18.0.1".parse().unwrap(), "198.18.1.1".parse().unwrap()],
            others: vec![("web-1".to_owned(), "198.18.1.2".parse().unwrap())],
        };
        assert_eq!(
            place.names(),
            "127.0.0.1 localhost\n::1 localhost\n198.18.0.1 a\n198.18.1.1 a\n198.18.1.2 web-1\n"
        );
        let variables: Vec<String> =
            place.environment().into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(variables, ["BDP_HOST=a", "BDP_ADDRESS=198.18.0.1", "BDP_ADDRESS_web_1=198.18.1.2"]);
        assert_eq!(place.listeners(), 0);
    }

    #[test]
    fn what_the_lab_did_not_write_is_refused_in_a_line() {
        for words in [vec![], vec!["x"], vec!["first"], vec!["first", "{}"]] {
            let (code, line) = run(words.iter().map(OsString::from)).unwrap_err();
            assert_eq!(code, NOT_STARTED, "{words:?}");
            assert!(!line.contains('\n'), "{line}");
        }
    }
}
