//! This machine as a [`World`].

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::net::IpAddr;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bdp_model::tuning::setting::Setting;
use bdp_model::tuning::{RouteAttribute, Target};
use bdp_sys::netlink::Netlink;
use bdp_sys::qdisc_root::{RootOwner, RootQdisc};
use bdp_sys::route::{MetricValue, Route, RouteMetric};
use bdp_sys::{SysError, boot, clock, plain_file, process, sysctl};

use crate::value::fq_rate;
use crate::world::{Fault, Holder, Reading, Removal, World};

/// What a guard prints once it guards its journal.
pub const READY: &str = "ready\n";
/// What is sent to it after the journal once all settings are written.
pub const APPLIED: &str = "applied\n";

/// Initial content of a guard's mark file. One byte records that all settings were written, one that the journal is settled.
const MARK: &str = "applied 0, settled 0\n";
const APPLIED_AT: u64 = 8;
const SETTLED_AT: u64 = 19;
/// How long another process, including one that reverts, may hold the lock.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
const GUARD_PATIENCE: Duration = Duration::from_secs(30);
const LOCK_POLL: Duration = Duration::from_millis(10);
/// Follows a guard's process id in the lock file.
const GUARD_WORD: &str = "guard";
/// Upper bound of a journal's size, above that of one with every setting.
const LARGEST_FILE: u64 = 4 << 20;

/// Paths of the journals and of the sysctl file for the next boots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The journals' folder.
    pub folder: PathBuf,
    /// The sysctl file for the next boots.
    pub persistent_file: PathBuf,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            folder: PathBuf::from("/var/lib/bdp/tune"),
            persistent_file: PathBuf::from("/etc/sysctl.d/90-bdp.conf"),
        }
    }
}

/// The program that becomes a guard. Its arguments are followed by the journals' folder, the sysctl file and the journal's number. On standard
/// input it receives the length of the journal, a newline, and the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardCommand {
    /// Path of the program.
    pub path: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<String>,
}

/// This machine, in the network namespace of the calling thread.
#[derive(Debug)]
pub struct HostWorld {
    places: Places,
    guard: GuardCommand,
    lock: Option<File>,
    waits_since: Option<Instant>,
    to_guard: Option<ChildStdin>,
    /// Set if this process is a guard.
    mark: Option<Arc<File>>,
}

/// The mark of a guard, held for its lifetime.
#[derive(Debug)]
pub struct GuardMark(Arc<File>);

impl GuardMark {
    /// Records that all settings were written.
    pub fn note_applied(&self) {
        let _ = self.0.write_all_at(b"1", APPLIED_AT);
    }
}

impl HostWorld {
    /// Creates a world with its paths and the program that becomes a guard.
    pub fn new(places: Places, guard: GuardCommand) -> Self {
        Self { places, guard, lock: None, waits_since: None, to_guard: None, mark: None }
    }

    fn lock_file(&self) -> PathBuf {
        self.places.folder.join("lock")
    }

    /// Returns the process that holds the lock, if known, and whether it is a guard.
    fn holder(&self) -> (Option<u32>, bool) {
        let mut text = String::new();
        if let Ok(file) = plain_file::open(File::options().read(true), &self.lock_file()) {
            let _ = file.take(64).read_to_string(&mut text);
        }
        let mut words = text.split_whitespace();
        (words.next().and_then(|pid| pid.parse().ok()), words.next() == Some(GUARD_WORD))
    }

    fn guard_file(&self, id: u32) -> PathBuf {
        self.places.folder.join(format!("{id:04}.guard"))
    }

    /// Marks the calling process as the guard of a journal for as long as this and the returned value live.
    pub fn guard(&mut self, id: u32) -> io::Result<GuardMark> {
        // Accessible to root alone: a process that can open it can lock it.
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = plain_file::open(&options, &self.guard_file(id))?;
        file.lock()?;
        // On a full disk the file stays empty, and the journal is read instead.
        let _ = file.set_len(0).and_then(|()| file.write_all_at(MARK.as_bytes(), 0));
        let file = Arc::new(file);
        self.mark = Some(Arc::clone(&file));
        Ok(GuardMark(file))
    }

    /// Whether the byte at this offset of a mark is set.
    fn is_marked(mark: &File, at: u64) -> bool {
        let mut byte = [0];
        mark.read_exact_at(&mut byte, at).is_ok() && byte == *b"1"
    }

    /// Removes the mark of a finished guard.
    pub fn end_guard(&self, id: u32) {
        let _ = fs::remove_file(self.guard_file(id));
    }
}

impl World for HostWorld {
    fn read(&mut self, target: &Target) -> Result<Reading, Fault> {
        match target {
            Target::Sysctl { name } => {
                let value = sysctl::read(name).map_err(|e| of_sysctl(&e))?;
                Ok(Reading { value: Some(value), holder: Holder::Kernel })
            }
            Target::Route { to, attribute } => {
                let route = route_to(&mut netlink()?, *to)?;
                let holder = match (route.is_of_one_host(), route.is_own()) {
                    (false, _) => Holder::Kernel,
                    (true, true) => Holder::Bdp,
                    (true, false) => Holder::Other,
                };
                Ok(Reading {
                    value: route.metric(metric(*attribute)).map(|v| in_words(*attribute, v)),
                    holder,
                })
            }
            Target::Qdisc { device } => {
                let root = netlink()?.root_qdisc(device).map_err(|e| of_network(&e))?;
                let holder = match root.as_ref().map(|root| root.owner) {
                    None | Some(RootOwner::Kernel) => Holder::Kernel,
                    Some(RootOwner::Bdp) => Holder::Bdp,
                    Some(RootOwner::Other) => Holder::Other,
                };
                Ok(Reading { value: root.as_ref().map(qdisc_in_words), holder })
            }
        }
    }

    fn check(&mut self, target: &Target, value: &str) -> Result<(), Fault> {
        match target {
            Target::Sysctl { name } => {
                sysctl::check_writable(name).map_err(|e| of_sysctl(&e))?;
                match target.setting() {
                    Some(Setting::TcpCongestionControl) => check_congestion_control(value),
                    _ => Ok(()),
                }
            }
            Target::Route { attribute, .. } => {
                check_right(&mut netlink()?)?;
                match attribute {
                    RouteAttribute::Congctl => check_congestion_control(value),
                    _ => Ok(()),
                }
            }
            Target::Qdisc { device } => {
                let mut netlink = netlink()?;
                check_right(&mut netlink)?;
                match netlink.knows_fq(device).map_err(|e| of_network(&e))? {
                    true => Ok(()),
                    false => Err(Fault::NotAvailable("fq".to_owned())),
                }
            }
        }
    }

    fn write(&mut self, target: &Target, value: &str) -> Result<(), Fault> {
        match target {
            Target::Sysctl { name } => sysctl::write(name, value).map_err(|e| match e.source.kind() {
                io::ErrorKind::NotFound => Fault::NotAvailable(value.to_owned()),
                io::ErrorKind::InvalidInput => Fault::BadValue(value.to_owned()),
                _ => of_sysctl(&e),
            }),
            Target::Route { to, attribute } => {
                let value = from_words(*attribute, value).ok_or_else(|| Fault::BadValue(value.to_owned()))?;
                let mut netlink = netlink()?;
                let route = route_to(&mut netlink, *to)?;
                let route = if route.is_of_one_host() { route } else { route.copy_to(*to) };
                let route = route.with_metric(metric(*attribute), Some(&value));
                netlink.put_route(&route, *to).map_err(|e| of_network(&e))
            }
            Target::Qdisc { device } => {
                let rate = fq_rate(value).ok_or_else(|| Fault::BadValue(value.to_owned()))?;
                netlink()?.set_fq(device, rate).map_err(|e| match e.source.kind() {
                    io::ErrorKind::NotFound => Fault::NotAvailable("fq".to_owned()),
                    _ => of_network(&e),
                })
            }
        }
    }

    fn remove(&mut self, target: &Target, what: Removal) -> Result<(), Fault> {
        match target {
            Target::Sysctl { .. } => Ok(()),
            Target::Route { to, attribute } => {
                let mut netlink = netlink()?;
                let route = route_to(&mut netlink, *to)?;
                let removed = match (route.is_of_one_host(), what) {
                    (false, _) => Ok(()),
                    (true, Removal::Whole) => netlink.remove_own_route(&route, *to),
                    (true, Removal::Attribute) => {
                        netlink.put_route(&route.with_metric(metric(*attribute), None), *to)
                    }
                };
                removed.map_err(|e| of_network(&e))
            }
            Target::Qdisc { device } => netlink()?.remove_root_qdisc(device).map_err(|e| of_network(&e)),
        }
    }

    fn list(&mut self, folder: &Path) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn read_file(&mut self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        match plain_file::open(File::options().read(true), path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
            Ok(file) => {
                let mut bytes = Vec::new();
                file.take(LARGEST_FILE).read_to_end(&mut bytes)?;
                Ok(Some(bytes))
            }
        }
    }

    fn make_folder(&mut self, folder: &Path) -> io::Result<()> {
        if folder.is_dir() {
            return Ok(());
        }
        let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent {
            self.make_folder(parent)?;
        }
        match fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        self.sync_folder(parent.unwrap_or(Path::new(".")))
    }

    fn create_file(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.remove_file(path)?;
        let mut file = File::options().write(true).create_new(true).mode(0o644).open(path)?;
        file.write_all(content)
    }

    fn sync_file(&mut self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn sync_folder(&mut self, folder: &Path) -> io::Result<()> {
        match File::open(folder)?.sync_all() {
            // File systems without persistent storage.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            synced => synced,
        }
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&mut self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn lock(&mut self) -> io::Result<Result<(), Option<u32>>> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = plain_file::open(&options, &self.lock_file())?;
        match file.try_lock() {
            Ok(()) => {
                // Only informs processes that find the lock taken; a full disk is no reason to fail.
                let _ = file.set_len(0).and_then(|()| file.rewind());
                let word = if self.mark.is_some() { GUARD_WORD } else { "" };
                let _ = write!(file, "{} {word}", std::process::id());
                self.lock = Some(file);
                self.waits_since = None;
                Ok(Ok(()))
            }
            Err(TryLockError::WouldBlock) => Ok(Err(self.holder().0)),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn wait_for_lock(&mut self) -> bool {
        let since = *self.waits_since.get_or_insert_with(Instant::now);
        let patience = if self.holder().1 { GUARD_PATIENCE } else { LOCK_PATIENCE };
        if since.elapsed() >= patience {
            self.waits_since = None;
            return false;
        }
        std::thread::sleep(LOCK_POLL);
        true
    }

    fn unlock(&mut self) {
        // A guard that was not released reverts.
        self.to_guard = None;
        self.lock = None;
    }

    fn start_guard(&mut self, id: u32, journal: &[u8]) -> io::Result<()> {
        let mut command = Command::new(&self.guard.path);
        command.args(&self.guard.arguments).arg(&self.places.folder).arg(&self.places.persistent_file);
        command.arg(id.to_string());
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        process::detach(&mut command);
        let mut child = command.spawn()?;
        let (mut to_guard, said) = (child.stdin.take(), child.stdout.take());
        let mut line = [0; READY.len()];
        let ready =
            to_guard.as_mut().zip(said).ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe)).and_then(
                |(to_guard, mut said)| {
                    to_guard.write_all(&[format!("{}\n", journal.len()).as_bytes(), journal].concat())?;
                    said.read_exact(&mut line)
                },
            );
        if ready.is_err() || line != READY.as_bytes() {
            let _ = child.kill();
            let status = child.wait()?;
            return Err(io::Error::other(format!("it ended at once ({status})")));
        }
        // Reaps the guard if it ends before this process.
        let _ = std::thread::Builder::new().name("bdp-guard".to_owned()).spawn(move || child.wait());
        self.to_guard = to_guard;
        Ok(())
    }

    fn release_guard(&mut self) {
        if let Some(mut to_guard) = self.to_guard.take() {
            let _ = to_guard.write_all(APPLIED.as_bytes());
        }
    }

    fn is_guarded(&mut self, id: u32) -> bool {
        match plain_file::open(File::options().read(true), &self.guard_file(id)) {
            Ok(file) => is_locked(&file),
            // It exists and belongs to root.
            Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
        }
    }

    fn is_awaited(&mut self, id: u32) -> bool {
        let mark = plain_file::open(File::options().read(true), &self.guard_file(id));
        mark.is_ok_and(|mark| {
            is_locked(&mark) && Self::is_marked(&mark, APPLIED_AT) && !Self::is_marked(&mark, SETTLED_AT)
        })
    }

    fn dismiss_guard(&mut self, id: u32) {
        let mark = plain_file::open(File::options().write(true), &self.guard_file(id));
        // A guard that cannot be informed reads the journal and finds the present state.
        let _ =
            mark.and_then(|mark| if is_locked(&mark) { mark.write_all_at(b"1", SETTLED_AT) } else { Ok(()) });
    }

    fn is_dismissed(&mut self) -> bool {
        self.mark.as_ref().is_some_and(|mark| Self::is_marked(mark, SETTLED_AT))
    }

    fn folder(&self) -> PathBuf {
        self.places.folder.clone()
    }

    fn persistent_file(&self) -> PathBuf {
        self.places.persistent_file.clone()
    }

    fn boot_id(&mut self) -> Result<String, Fault> {
        boot::id().map_err(|e| Fault::System(e.to_string()))
    }

    fn network_namespace(&mut self) -> Result<u64, Fault> {
        boot::network_namespace().map_err(|e| Fault::System(e.to_string()))
    }

    fn kernel(&self) -> String {
        process::kernel_release()
    }

    fn uptime_ns(&mut self) -> u64 {
        boot::uptime_ns()
    }

    fn unix_ms(&mut self) -> u64 {
        clock::unix_ms()
    }
}

/// Whether another process holds a lock on the file.
fn is_locked(file: &File) -> bool {
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

fn netlink() -> Result<Netlink, Fault> {
    Netlink::open().map_err(|e| of_network(&e))
}

/// Returns the route to an address, which must lead out of this machine.
fn route_to(netlink: &mut Netlink, to: IpAddr) -> Result<Route, Fault> {
    match netlink.route_to(to).map_err(|e| of_network(&e))? {
        Some(route) if route.is_local() => Err(Fault::Local),
        Some(route) if route.is_unicast() => Ok(route),
        _ => Err(Fault::Unreachable),
    }
}

fn check_right(netlink: &mut Netlink) -> Result<(), Fault> {
    if netlink.may_change() { Ok(()) } else { Err(Fault::Denied) }
}

/// Checks that the kernel has a congestion control built in or as a module.
fn check_congestion_control(name: &str) -> Result<(), Fault> {
    let loaded = sysctl::read(Setting::TcpAvailableCongestionControl.name).unwrap_or_default();
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    let is_module = || {
        let modules = format!("/lib/modules/{}/modules.dep", process::kernel_release());
        fs::read_to_string(modules).is_ok_and(|text| text.contains(&format!("/tcp_{name}.ko")))
    };
    match loaded.split_whitespace().any(|known| known == name) || (is_plain && is_module()) {
        true => Ok(()),
        false => Err(Fault::NotAvailable(name.to_owned())),
    }
}

fn of_sysctl(error: &SysError) -> Fault {
    match error.source.kind() {
        io::ErrorKind::NotFound => Fault::Unknown,
        io::ErrorKind::ReadOnlyFilesystem => Fault::ReadOnly,
        io::ErrorKind::PermissionDenied => Fault::Denied,
        _ => Fault::System(error.source.to_string()),
    }
}

fn of_network(error: &SysError) -> Fault {
    /// `ENODEV` on all Linux architectures.
    const NO_DEVICE: i32 = 19;
    match error.source.kind() {
        io::ErrorKind::PermissionDenied => Fault::Denied,
        _ if error.source.raw_os_error() == Some(NO_DEVICE) => Fault::NoDevice,
        _ => Fault::System(error.source.to_string()),
    }
}

fn metric(attribute: RouteAttribute) -> RouteMetric {
    match attribute {
        RouteAttribute::Congctl => RouteMetric::CongestionControl,
        RouteAttribute::Initcwnd => RouteMetric::InitialWindow,
        RouteAttribute::Initrwnd => RouteMetric::InitialReceiveWindow,
        RouteAttribute::RtoMin => RouteMetric::MinimumRto,
    }
}

fn in_words(attribute: RouteAttribute, value: MetricValue) -> String {
    match value {
        MetricValue::Number(ms) if attribute == RouteAttribute::RtoMin => format!("{ms}ms"),
        MetricValue::Number(number) => number.to_string(),
        MetricValue::Name(name) => name,
    }
}

fn from_words(attribute: RouteAttribute, value: &str) -> Option<MetricValue> {
    match attribute {
        RouteAttribute::Congctl => Some(MetricValue::Name(value.to_owned())),
        RouteAttribute::RtoMin => value.strip_suffix("ms")?.parse().ok().map(MetricValue::Number),
        _ => value.parse().ok().map(MetricValue::Number),
    }
}

fn qdisc_in_words(root: &RootQdisc) -> String {
    match root.max_rate_bytes {
        Some(bytes) => format!("{} maxrate {}bit", root.kind, u64::from(bytes) * 8),
        None => root.kind.clone(),
    }
}
