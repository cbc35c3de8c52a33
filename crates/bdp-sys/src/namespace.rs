//! Own network namespaces, with or without privilege.

use std::fs;

use rustix::process::{getegid, geteuid};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::{Result, SysError};

/// How a process got its own network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// As root (or with `CAP_SYS_ADMIN`).
    Root,
    /// Through a user namespace in which it is root.
    UserNamespace,
}

/// Moves the calling process, which must have a single thread, into its own network namespace; as root, which may
/// have many, the calling thread alone. The namespace has no name: it ends with the last process and descriptor
/// that use it.
pub fn enter_own_network() -> Result<Privilege> {
    let (uid, gid) = (geteuid(), getegid());
    // SAFETY: none of these flags parts descriptors or memory between threads, of which this process has one.
    let unshare = |flags| unsafe { unshare_unsafe(flags) };
    if uid.is_root() && unshare(UnshareFlags::NEWNET).is_ok() {
        return Ok(Privilege::Root);
    }
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)
        .map_err(|e| SysError::new("unshare", "user and network namespace", e.into()))?;
    let write = |path: &str, text: String| fs::write(path, text).map_err(|e| SysError::new("write", path, e));
    // A process without privilege may map only itself, and only after giving up setgroups.
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("0 {} 1", uid.as_raw()))?;
    write("/proc/self/gid_map", format!("0 {} 1", gid.as_raw()))?;
    Ok(Privilege::UserNamespace)
}
