//! This machine's kernel as the source of sockets: which are watched, in which network namespaces, and whose they
//! are.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bdp_model::watch::{Holder, WatchTarget};
use bdp_sys::cgroup::{self, Throttling};
use bdp_sys::diag::{Condition, Detail, Diag, SocketReport};
use bdp_sys::holders::{self, Start};
use bdp_sys::{clock, isolate, names, passing};

use super::processes::Processes;
use super::tracker::Tracker;
use super::world::{Each, World};
use crate::RunError;

/// The hidden subcommand that lists sockets in another network namespace.
pub const SUBCOMMAND: &str = "__diag";
/// Ports by which the kernel is asked for the sockets of a process; of more it lists all.
const MOST_PORTS: usize = 64;
/// Looking into every process takes this part of the time at the most.
const LOOKING_SHARE: u64 = 50;
/// No wait is longer, so that an end that is asked for is soon noticed.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// The watched sockets, by network namespace.
pub(super) struct Kernel {
    began_ns: u64,
    networks: Vec<Network>,
    processes: Vec<Watched>,
    /// Sockets of the processes, each with its holder.
    held: HashMap<u32, Arc<Holder>>,
    next_look_ns: u64,
    endless: bool,
}

/// A network namespace with sockets to watch.
struct Network {
    number: u64,
    diag: Diag,
    all: bool,
    conditions: Vec<Condition>,
    /// Whether processes are watched, whose sockets are identified only by number.
    processes: bool,
    /// Ports of known sockets of the processes, if they narrow the list.
    ports: Vec<u16>,
}

/// A watched process, with its descendants.
struct Watched {
    process: u32,
    name: String,
    start: Start,
    network: usize,
    ended: bool,
    connected: bool,
}

impl Kernel {
    /// Resolves the targets.
    pub fn open(targets: &[WatchTarget]) -> Result<Self, RunError> {
        let own = holders::own_network()?;
        let mut kernel = Self {
            began_ns: clock::monotonic_ns(),
            networks: vec![Network::new(own, Diag::open()?)],
            processes: Vec::new(),
            held: HashMap::new(),
            next_look_ns: 0,
            endless: false,
        };
        for target in targets {
            match target {
                WatchTarget::Process(process) => kernel.add_process(*process)?,
                WatchTarget::Port(port) => {
                    kernel.add(&[Condition::LocalPort(*port), Condition::RemotePort(*port)])
                }
                WatchTarget::Host(host, port) => {
                    let remote = |address: IpAddr| Condition::Remote(address, *port);
                    let conditions: Vec<_> = addresses(host)?.into_iter().map(remote).collect();
                    kernel.add(&conditions);
                }
                WatchTarget::All => {
                    kernel.networks[0].all = true;
                    kernel.endless = true;
                }
            }
        }
        Ok(kernel)
    }

    fn add(&mut self, conditions: &[Condition]) {
        self.networks[0].conditions.extend(conditions);
        self.endless = true;
    }

    fn add_process(&mut self, process: u32) -> Result<(), RunError> {
        let none = || RunError::Request(format!("process {process} does not exist; 'ps' lists processes"));
        let (start, _) = holders::start_and_parent(process).ok_or_else(none)?;
        let name = holders::name(process).ok_or_else(none)?;
        holders::sockets_of(process).map_err(|error| match error.source.kind() {
            std::io::ErrorKind::PermissionDenied => {
                let user = holders::user(process).map_or_else(String::new, |user| format!(" of user {user}"));
                RunError::Watch(format!(
                    "process {process} ({name}) is{user}: only that user and root can see its sockets; \
                     run bdp as one of them, or give its port, for example ':443'"
                ))
            }
            _ => none(),
        })?;
        let number = holders::network_of(process)?;
        let network = match self.networks.iter().position(|network| network.number == number) {
            Some(network) => network,
            None => {
                let diag = open_in(process).map_err(|why| {
                    RunError::Watch(format!(
                        "process {process} ({name}) is in another network namespace, which bdp can't \
                         enter ({why}); run bdp as root, or inside that namespace"
                    ))
                })?;
                self.networks.push(Network::new(number, diag));
                self.networks.len() - 1
            }
        };
        self.networks[network].processes = true;
        self.processes.push(Watched { process, name, start, network, ended: false, connected: false });
        Ok(())
    }

    /// Finds the sockets that each process and its descendants have open now.
    fn look_into_processes(&mut self) -> Vec<String> {
        let mut notes = Vec::new();
        let held = &mut self.held;
        held.clear();
        for watched in self.processes.iter_mut().filter(|watched| !watched.ended) {
            let Watched { process, name, .. } = &watched;
            if holders::start_and_parent(*process).is_none_or(|(start, _)| start != watched.start) {
                notes.push(format!("process {process} ({name}) ended"));
                watched.ended = true;
                continue;
            }
            for member in holders::family(watched.process) {
                let Ok(sockets) = holders::sockets_of(member) else { continue };
                if sockets.is_empty() {
                    continue;
                }
                let Some(name) = holders::name(member) else { continue };
                let holder = Arc::new(Holder { pid: member, name });
                held.extend(sockets.into_iter().map(|socket| (socket, Arc::clone(&holder))));
            }
        }
        notes
    }
}

impl Network {
    fn new(number: u64, diag: Diag) -> Self {
        Self { number, diag, all: false, conditions: Vec::new(), processes: false, ports: Vec::new() }
    }

    fn is_idle(&self) -> bool {
        !self.all && !self.processes && self.conditions.is_empty()
    }

    /// Returns the conditions for the kernel's list. It has none for the numbers by which sockets of processes are
    /// known: once found, these are listed by their ports.
    fn asked(&self, everything: bool) -> Vec<Condition> {
        if self.all || self.processes && (everything || self.ports.len() > MOST_PORTS) {
            return Vec::new();
        }
        let ports = self.ports.iter().map(|&port| Condition::LocalPort(port));
        self.conditions.iter().copied().chain(ports).collect()
    }
}

impl World for Kernel {
    fn now_ns(&mut self) -> u64 {
        clock::monotonic_ns() - self.began_ns
    }

    fn wait_until(&mut self, at_ns: u64, cancel: &AtomicBool) {
        loop {
            let left = Duration::from_nanos(at_ns.saturating_sub(self.now_ns()));
            if left.is_zero() || cancel.load(Ordering::Relaxed) {
                return;
            }
            std::thread::sleep(left.min(LONGEST_WAIT));
        }
    }

    fn refresh(&mut self, tracker: &Tracker) -> Vec<String> {
        let mut notes = self.look_into_processes();
        for watched in self.processes.iter_mut().filter(|w| !w.ended && !w.connected) {
            let ports = tracker.local_ports(watched.network as u16).next();
            if ports.is_some() || !self.held.is_empty() {
                watched.connected = true;
            } else if tracker.at_ns() == 0 {
                let Watched { process, name, .. } = watched;
                notes.push(format!("process {process} ({name}) has no open socket yet"));
            }
        }
        notes
    }

    fn narrow(&mut self, tracker: &Tracker) {
        for (number, network) in self.networks.iter_mut().enumerate() {
            if network.processes && !network.all {
                let ports: HashSet<u16> = tracker.local_ports(number as u16).collect();
                network.ports = ports.into_iter().collect();
            }
        }
    }

    fn list(&mut self, everything: bool, each: &mut Each<'_>) -> bdp_sys::Result<bool> {
        let detail = if everything { Detail::Everything } else { Detail::Figures };
        let held = &self.held;
        let mut complete = true;
        for (number, network) in self.networks.iter_mut().enumerate() {
            if network.is_idle() {
                continue;
            }
            let asked = network.asked(everything);
            let Network { diag, all, conditions, .. } = network;
            // Between two scans no socket of a process is known yet.
            if asked.is_empty() && !*all && !everything && conditions.is_empty() && network.ports.is_empty() {
                continue;
            }
            let listed = diag.list(&asked, detail, |report| {
                let wanted = || {
                    *all || held.contains_key(&report.inode())
                        || conditions.iter().any(|condition| meets(*condition, report))
                };
                each(number as u16, report, &wanted);
            })?;
            complete &= !listed.incomplete;
        }
        Ok(complete)
    }

    fn holders(&mut self, sockets: &[u32]) -> Option<Vec<(u32, Option<Arc<Holder>>)>> {
        let mut found: Vec<(u32, Option<Arc<Holder>>)> = Vec::new();
        let mut wanted: HashSet<u32> = HashSet::new();
        for &socket in sockets {
            match self.held.get(&socket) {
                Some(holder) => found.push((socket, Some(Arc::clone(holder)))),
                None => {
                    wanted.insert(socket);
                }
            }
        }
        let began_ns = self.now_ns();
        if wanted.is_empty() || began_ns < self.next_look_ns {
            return Some(found);
        }
        let mut named: HashMap<u32, Arc<Holder>> = HashMap::new();
        holders::all_sockets(|process, socket| {
            if !wanted.remove(&socket) {
                return;
            }
            let holder = named.entry(process).or_insert_with(|| {
                let name = holders::name(process).unwrap_or_default();
                Arc::new(Holder { pid: process, name })
            });
            found.push((socket, Some(Arc::clone(holder))));
        });
        found.extend(wanted.into_iter().map(|socket| (socket, None)));
        let took_ns = self.now_ns().saturating_sub(began_ns);
        self.next_look_ns = began_ns + took_ns * LOOKING_SHARE;
        Some(found)
    }

    fn is_over(&self) -> bool {
        !self.endless && self.processes.iter().all(|watched| watched.ended)
    }
}

impl Processes for Kernel {
    fn throttling(&mut self, process: u32) -> Option<Throttling> {
        cgroup::throttling_of(process)
    }

    fn buffers_asked(&mut self, process: u32, socket: u32) -> Option<(bool, bool)> {
        holders::buffers_asked(process, socket)
    }

    fn listening(&mut self, network: u16) -> BTreeSet<u16> {
        let network = self.networks.get_mut(usize::from(network));
        network.and_then(|network| network.diag.listening().ok()).unwrap_or_default()
    }
}

/// Evaluates a condition as the kernel would.
fn meets(condition: Condition, report: &SocketReport<'_>) -> bool {
    match condition {
        Condition::LocalPort(port) => report.local().port() == port,
        Condition::RemotePort(port) => report.remote().port() == port,
        Condition::Remote(address, port) => {
            report.remote().ip() == address.to_canonical()
                && port.is_none_or(|port| report.remote().port() == port)
        }
    }
}

/// The addresses of a host.
fn addresses(host: &str) -> Result<Vec<IpAddr>, RunError> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(vec![address.to_canonical()]);
    }
    let found = names::look_up(host, 0)
        .map_err(|error| RunError::Watch(format!("resolve {host}: {error}; give an address, or ':PORT'")))?;
    let mut addresses: Vec<IpAddr> = found.into_iter().map(|address| address.ip().to_canonical()).collect();
    addresses.dedup();
    if addresses.is_empty() {
        return Err(RunError::Watch(format!(
            "resolve {host}: no address found; give an address, or ':PORT'"
        )));
    }
    Ok(addresses)
}

/// Opens the sockets of a process's network namespace: another process of bdp enters it, since this one may have threads.
fn open_in(process: u32) -> Result<Diag, String> {
    let (here, there) = UnixStream::pair().map_err(|e| e.to_string())?;
    here.set_read_timeout(Some(Duration::from_secs(5))).map_err(|e| e.to_string())?;
    let mut door = Command::new("/proc/self/exe")
        .args([SUBCOMMAND, &process.to_string()])
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(there)))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| e.to_string())?;
    let received = passing::receive_descriptors(&here);
    if received.is_err() {
        // If it waits for something, it never answers.
        let _ = door.kill();
    }
    let said = door.wait_with_output().map_err(|e| e.to_string())?;
    let descriptor = received.ok().and_then(|mut all| all.pop()).ok_or_else(|| {
        let text = String::from_utf8_lossy(&said.stderr);
        bdp_model::plain::in_words(&bdp_model::plain::one_line(&text))
    })?;
    Diag::from_descriptor(descriptor).map_err(|e| e.to_string())
}

/// Enters the network namespace of a process, with the rights of this one, and hands a socket for listing its sockets
/// to the parent, over standard input.
pub fn serve(mut arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    use std::os::fd::AsFd;
    let process = arguments.next().and_then(|text| text.to_str()?.parse::<u32>().ok());
    let process = process.ok_or_else(|| format!("{SUBCOMMAND} is for internal use by bdp watch"))?;
    let folder = PathBuf::from(format!("/proc/{process}/ns"));
    let network: &Path = &folder.join("net");
    // Without privilege here there may be some in the user namespace that owns it.
    isolate::join(None, network)
        .or_else(|refused| isolate::join(Some(&folder.join("user")), network).map_err(|_| refused))
        .map_err(|e| e.to_string())?;
    let socket = Diag::open_descriptor().map_err(|e| e.to_string())?;
    let parent = std::io::stdin().as_fd().try_clone_to_owned().map_err(|e| e.to_string())?;
    passing::send_descriptors(&UnixStream::from(parent), &[&socket]).map_err(|e| e.to_string())
}
