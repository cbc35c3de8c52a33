//! Network namespaces of one's own, with or without privilege.

use std::fs;

use crate::{Result, SysError, check};

/// How a process came to its own network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// It was root (or held `CAP_SYS_ADMIN`).
    Root,
    /// It first made a user namespace in which it is root.
    UserNamespace,
}

/// Moves the calling process, which must have a single thread, into a network namespace of its own.
/// The namespace has no name: it ends with the last process and descriptor that use it.
pub fn enter_own_network() -> Result<Privilege> {
    // SAFETY: geteuid and getegid always succeed; unshare takes only flags.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    // SAFETY: unshare with a flag changes only this process's namespaces.
    if uid == 0 && unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0 {
        return Ok(Privilege::Root);
    }
    // SAFETY: as above; a single-threaded process may enter a new user namespace.
    let done = unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) };
    check(done, "unshare", "user and network namespace")?;
    let write = |path: &str, text: String| fs::write(path, text).map_err(|e| SysError::new("write", path, e));
    // A process without privilege may map only itself, and only after giving up setgroups.
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("0 {uid} 1"))?;
    write("/proc/self/gid_map", format!("0 {gid} 1"))?;
    Ok(Privilege::UserNamespace)
}
