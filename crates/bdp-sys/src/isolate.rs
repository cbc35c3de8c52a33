//! Namespaces of a program on a host: the host's network, and its own processes, mounts, host name and table of addresses.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::{Result, SysError};

/// Temporary mount point; every Linux has it.
const SCRATCH: &str = "/proc";
/// Table of addresses by name.
const HOSTS: &str = "/etc/hosts";

/// Moves the calling process, which must have a single thread, into the user namespace (if any) and the network
/// namespace of these files, such as `/proc/PID/ns/net`.
pub fn join(user: Option<&Path>, network: &Path) -> Result<()> {
    let enter = |path: &Path, kind| {
        let refused = |e: io::Error| SysError::new("join", format!("namespace {}", path.display()), e);
        let namespace = File::open(path).map_err(refused)?;
        move_into_link_name_space(namespace.as_fd(), Some(kind)).map_err(|e| refused(e.into()))
    };
    // Both are opened with this process's current view.
    let network_file = File::open(network)
        .map_err(|e| SysError::new("join", format!("namespace {}", network.display()), e))?;
    if let Some(user) = user {
        enter(user, LinkNameSpaceType::User)?;
    }
    move_into_link_name_space(network_file.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|e| SysError::new("join", format!("namespace {}", network.display()), e.into()))
}

/// Network namespace of a thread.
#[derive(Debug)]
pub struct Network(File);

impl Network {
    /// Returns the calling thread's.
    pub fn of_this_thread() -> Result<Self> {
        const PATH: &str = "/proc/thread-self/ns/net";
        File::open(PATH).map(Self).map_err(|e| SysError::new("open", PATH, e))
    }

    /// Moves the calling thread into it.
    pub fn enter(&self) -> Result<()> {
        move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|e| SysError::new("join", "a network namespace", e.into()))
    }
}

/// Makes the process that `command` starts see a folder as its root and start there. Its program's path is relative to that root.
pub fn start_in(command: &mut Command, root: &Path) {
    let root = root.to_owned();
    // SAFETY: what runs between fork and exec are two calls of the system on a path that is there already; neither allocates for a short
    // path nor takes a lock.
    unsafe {
        command.pre_exec(move || {
            rustix::process::chroot(root.as_path())?;
            Ok(rustix::process::chdir("/")?)
        });
    }
}

/// Gives the calling process, which must have a single thread, its own mounts and host name, and its next child a
/// process namespace: the child is its first process, with which all others end.
pub fn separate(host: &str) -> Result<()> {
    let flags = UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWUTS;
    // SAFETY: none of these flags parts descriptors or memory between threads, of which this process has one.
    unsafe { unshare_unsafe(flags) }
        .map_err(|e| SysError::new("unshare", "mount, process and host name namespaces", e.into()))?;
    rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|e| SysError::new("make private", "mounts", e.into()))?;
    rustix::system::sethostname(host.as_bytes())
        .map_err(|e| SysError::new("set", "the host's name", e.into()))
}

/// Replaces `/etc/hosts` by a table of addresses, for the calling process's mount namespace alone. Nothing is written to disk.
pub fn name_addresses(table: &str) -> Result<()> {
    let refused = |e: io::Error| SysError::new("put names into", HOSTS, e);
    rustix::mount::mount("tmpfs", SCRATCH, "tmpfs", MountFlags::empty(), None)
        .map_err(|e| refused(e.into()))?;
    let file = Path::new(SCRATCH).join("hosts");
    let bound = fs::write(&file, table)
        .and_then(|()| rustix::mount::mount_bind(&file, HOSTS).map_err(io::Error::from));
    let unmounted = rustix::mount::unmount(SCRATCH, UnmountFlags::DETACH).map_err(io::Error::from);
    bound.and(unmounted).map_err(refused)
}

/// Makes a folder the root of the calling process.
pub fn change_root(root: &Path) -> Result<()> {
    rustix::process::chroot(root)
        .map_err(|e| SysError::new("make the root", root.display().to_string(), e.into()))
}

/// Mounts `/proc` of the calling process's own namespace. If that is refused, as in containers that hide parts of
/// it, the machine's processes stay visible.
pub fn show_own_processes() {
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::NODEV;
    let _ = rustix::mount::mount("proc", "/proc", "proc", flags, None);
}

/// Mounts the root of the machine that a guest runs on, with the guest's own file systems on top.
pub fn mount_machine(folder: &str) -> Result<()> {
    let refused = |what: &str, e: io::Error| SysError::new("mount", format!("{what} on {folder}"), e);
    fs::create_dir_all(folder).map_err(|e| refused("the machine's root", e))?;
    rustix::mount::mount("none", folder, "hostfs", MountFlags::empty(), c"/")
        .map_err(|e| refused("the machine's root", e.into()))?;
    const OWN: [(&str, &str); 5] =
        [("proc", "proc"), ("sysfs", "sys"), ("devtmpfs", "dev"), ("tmpfs", "run"), ("tmpfs", "dev/shm")];
    for (kind, at) in OWN {
        let at = format!("{folder}/{at}");
        if at.ends_with("/shm") {
            let _ = fs::create_dir(&at);
        }
        if Path::new(&at).is_dir() {
            rustix::mount::mount(kind, &at, kind, MountFlags::empty(), None)
                .map_err(|e| refused(kind, e.into()))?;
        }
    }
    for (link, to) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
        // If it already exists, none is needed.
        let _ = std::os::unix::fs::symlink(format!("/proc/self/fd{to}"), format!("{folder}/dev/{link}"));
    }
    Ok(())
}
