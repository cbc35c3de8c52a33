//! The operations that applying and reverting perform on a machine, one step per call.

use std::io;
use std::path::{Path, PathBuf};

use bdp_model::tuning::Target;
use serde::{Deserialize, Serialize};

/// Who created the object that holds a setting: the route to one address, or the root qdisc of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// The kernel: a sysctl, a default qdisc, or an address without a route of its own.
    Kernel,
    /// It was created by bdp.
    Bdp,
    /// Someone else.
    Other,
}

/// The present state of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Its value; `None` if it is not set.
    pub value: Option<String>,
    /// Who created the object that holds it.
    pub holder: Holder,
}

/// How a change is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Undo {
    /// Writes the value before the change.
    Write,
    /// Removes the attribute from the route.
    Unset,
    /// Removes the route or qdisc that bdp created.
    Remove,
}

/// What to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// One attribute of a route.
    Attribute,
    /// The whole route or qdisc.
    Whole,
}

/// Why a setting cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The kernel has no setting of this name.
    #[error("this kernel, or this network namespace, has no such sysctl")]
    Unknown,
    /// Its file system is read-only, as in most containers.
    #[error("/proc/sys is mounted read-only here, as in a container; run bdp on the host")]
    ReadOnly,
    /// The user lacks permission.
    #[error(
        "not permitted; needs root (CAP_NET_ADMIN) on the host or in the namespace that owns the setting"
    )]
    Denied,
    /// It is not a networking setting.
    #[error("not a network setting; bdp sets only sysctls below net.")]
    OutOfScope,
    /// The address belongs to this machine.
    #[error("the address belongs to this machine, so its packets use no route")]
    Local,
    /// No route leads to the address.
    #[error("no route to this address")]
    Unreachable,
    /// Someone else configured the queueing discipline.
    #[error("the queueing discipline '{0}' was set by someone else; bdp replaces only the kernel's default")]
    SetBySomebody(String),
    /// The kernel has no such congestion control or queueing discipline.
    #[error("'{0}' is not available in this kernel")]
    NotAvailable(String),
    /// The value is invalid for this setting.
    #[error("'{0}' is not a valid value")]
    BadValue(String),
    /// The device does not exist.
    #[error("no such device here")]
    NoDevice,
    /// Another error, in the system's words.
    #[error("{0}")]
    System(String),
}

/// A machine whose settings are changed.
pub trait World {
    /// Reads a setting.
    fn read(&mut self, target: &Target) -> Result<Reading, Fault>;
    /// Checks whether a value could be written, as far as that can be known without writing it.
    fn check(&mut self, target: &Target, value: &str) -> Result<(), Fault>;
    /// Writes a setting.
    fn write(&mut self, target: &Target, value: &str) -> Result<(), Fault>;
    /// Removes an attribute of a route, or a route or qdisc that bdp created.
    fn remove(&mut self, target: &Target, what: Removal) -> Result<(), Fault>;

    /// Returns the names of the files in a folder; none if it is missing.
    fn list(&mut self, folder: &Path) -> io::Result<Vec<String>>;
    /// Returns the content of a file; `None` if it is missing.
    fn read_file(&mut self, path: &Path) -> io::Result<Option<Vec<u8>>>;
    /// Creates a folder and its parents durably.
    fn make_folder(&mut self, folder: &Path) -> io::Result<()>;
    /// Creates a file, replacing any other.
    fn create_file(&mut self, path: &Path, content: &[u8]) -> io::Result<()>;
    /// Syncs a file's content to disk.
    fn sync_file(&mut self, path: &Path) -> io::Result<()>;
    /// Syncs a folder's entries to disk.
    fn sync_folder(&mut self, folder: &Path) -> io::Result<()>;
    /// Renames a file.
    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file; a missing file is not an error.
    fn remove_file(&mut self, path: &Path) -> io::Result<()>;

    /// Takes the lock of the journals' folder; `Err` is the process that holds it, if known.
    fn lock(&mut self) -> io::Result<Result<(), Option<u32>>>;
    /// Releases the lock.
    fn unlock(&mut self);
    /// Waits briefly for the process that holds the lock; returns false once that took too long.
    fn wait_for_lock(&mut self) -> bool {
        false
    }
    /// Starts the process that reverts this journal's changes when their time is up, and waits until it is ready. The process keeps the journal
    /// in memory in the form of its file, so it needs no file to revert.
    fn start_guard(&mut self, id: u32, journal: &[u8]) -> io::Result<()>;
    /// Tells it that all settings were written. Otherwise it reverts at once when the calling process ends.
    fn release_guard(&mut self);
    /// Whether a process guards this journal.
    fn is_guarded(&mut self, id: u32) -> bool;
    /// Whether such a process waits for the deadline of fully written changes that were neither confirmed nor reverted: then a journal must exist.
    fn is_awaited(&mut self, id: u32) -> bool;
    /// Tells that process that its changes were confirmed or reverted; requires the lock.
    fn dismiss_guard(&mut self, id: u32);
    /// Whether this process, a guard, finds its changes confirmed or reverted.
    fn is_dismissed(&mut self) -> bool;

    /// Returns the journals' folder.
    fn folder(&self) -> PathBuf;
    /// Returns the path of the sysctl file that the machine reads at boot.
    fn persistent_file(&self) -> PathBuf;
    /// Returns the id of this boot.
    fn boot_id(&mut self) -> Result<String, Fault>;
    /// Returns the inode of this network namespace.
    fn network_namespace(&mut self) -> Result<u64, Fault>;
    /// Returns the output of `uname -r`.
    fn kernel(&self) -> String;
    /// Returns the time since boot.
    fn uptime_ns(&mut self) -> u64;
    /// Returns the time in milliseconds since 1970.
    fn unix_ms(&mut self) -> u64;
}
