//! What applying and putting back do to a machine, one step a call.

use std::io;
use std::path::{Path, PathBuf};

use bdp_model::tuning::Target;
use serde::{Deserialize, Serialize};

/// Who made what a setting is an attribute of: the route to one address, the root discipline of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// The kernel: a sysctl, a default discipline, an address without a route of its own.
    Kernel,
    /// bdp.
    Bdp,
    /// Somebody else.
    Other,
}

/// A setting as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Its value; `None` where it is not set.
    pub value: Option<String>,
    /// Who made what it is an attribute of.
    pub holder: Holder,
}

/// How a change is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Undo {
    /// The value before is written.
    Write,
    /// The attribute is removed from the route.
    Unset,
    /// The route or discipline that bdp made is removed.
    Remove,
}

/// What is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// An attribute of a route.
    Attribute,
    /// The route, or the discipline.
    Whole,
}

/// Why a setting can not be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The kernel has none of this name.
    #[error("this kernel, or this network namespace, has no such sysctl")]
    Unknown,
    /// Its file system is read-only, as in most containers.
    #[error("/proc/sys is mounted read-only here, as in a container; run bdp on the host")]
    ReadOnly,
    /// The user has not the right.
    #[error(
        "not permitted; needs root (CAP_NET_ADMIN) on the host or in the namespace that owns the setting"
    )]
    Denied,
    /// It is no setting of networking.
    #[error("not a network setting; bdp sets only sysctls below net.")]
    OutOfScope,
    /// The address is one of this machine.
    #[error("the address belongs to this machine, so its packets use no route")]
    Local,
    /// No route leads to the address.
    #[error("no route to this address")]
    Unreachable,
    /// Somebody set the queueing discipline.
    #[error("the queueing discipline '{0}' was set by someone else; bdp replaces only the kernel's default")]
    SetBySomebody(String),
    /// The kernel has no such congestion control or discipline.
    #[error("'{0}' is not available in this kernel")]
    NotAvailable(String),
    /// It is no value of this setting.
    #[error("'{0}' is not a valid value")]
    BadValue(String),
    /// The device is gone, or was never there.
    #[error("no such device here")]
    NoDevice,
    /// Anything else, as the system words it.
    #[error("{0}")]
    System(String),
}

/// A machine whose settings are changed.
pub trait World {
    /// Reads a setting.
    fn read(&mut self, target: &Target) -> Result<Reading, Fault>;
    /// Whether this value could be written, as far as that can be known without writing it.
    fn check(&mut self, target: &Target, value: &str) -> Result<(), Fault>;
    /// Writes a setting.
    fn write(&mut self, target: &Target, value: &str) -> Result<(), Fault>;
    /// Removes an attribute of a route, or a route or discipline that bdp made.
    fn remove(&mut self, target: &Target, what: Removal) -> Result<(), Fault>;

    /// The names of the files in a folder; none where it is missing.
    fn list(&mut self, folder: &Path) -> io::Result<Vec<String>>;
    /// A file's content; `None` where it is missing.
    fn read_file(&mut self, path: &Path) -> io::Result<Option<Vec<u8>>>;
    /// Makes a folder and those above it, durably.
    fn make_folder(&mut self, folder: &Path) -> io::Result<()>;
    /// Makes a file in the place of any other.
    fn create_file(&mut self, path: &Path, content: &[u8]) -> io::Result<()>;
    /// Makes a file's content durable.
    fn sync_file(&mut self, path: &Path) -> io::Result<()>;
    /// Makes durable which files a folder has.
    fn sync_folder(&mut self, folder: &Path) -> io::Result<()>;
    /// Renames a file.
    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file; one that is missing is as good.
    fn remove_file(&mut self, path: &Path) -> io::Result<()>;

    /// Takes the lock of the journals' folder; `Err` is the process that has it, where that is known.
    fn lock(&mut self) -> io::Result<Result<(), Option<u32>>>;
    /// Gives it back.
    fn unlock(&mut self);
    /// Waits a moment for the process that holds the lock; false once that took too long.
    fn wait_for_lock(&mut self) -> bool {
        false
    }
    /// Starts the process that puts this journal's changes back when their time is over, and waits until it is ready. The process keeps
    /// the journal, as its file will have it, in memory: it needs no file to put back.
    fn start_guard(&mut self, id: u32, journal: &[u8]) -> io::Result<()>;
    /// Says to it that all was written. Without this it puts back at once when the calling process ends.
    fn release_guard(&mut self);
    /// Whether a process looks after this journal.
    fn is_guarded(&mut self, id: u32) -> bool;
    /// Whether such a process waits for the time of changes that were all written, and neither confirmed nor put back: there must be a journal.
    fn is_awaited(&mut self, id: u32) -> bool;
    /// Marks for that process that its changes were confirmed or put back; under the lock.
    fn dismiss_guard(&mut self, id: u32);
    /// Whether this process, which looks after a journal, finds that mark.
    fn is_dismissed(&mut self) -> bool;

    /// Where the journals are.
    fn folder(&self) -> PathBuf;
    /// The file of sysctls that the machine reads when it boots.
    fn persistent_file(&self) -> PathBuf;
    /// The name of this boot.
    fn boot_id(&mut self) -> Result<String, Fault>;
    /// The number of this network namespace.
    fn network_namespace(&mut self) -> Result<u64, Fault>;
    /// `uname -r`.
    fn kernel(&self) -> String;
    /// Time since boot.
    fn uptime_ns(&mut self) -> u64;
    /// Milliseconds since 1970.
    fn unix_ms(&mut self) -> u64;
}
