//! Open sockets of programs, by `/proc`.

use std::fs;
use std::io;
use std::path::Path;

use crate::socket_option::get_number;
use crate::{Result, SysError};

/// Prefix of socket names in `/proc/PID/fd`.
const SOCKET: &str = "socket:[";

/// Inodes of the sockets that a process has open, unordered. Processes of other users are refused unless root asks.
pub fn sockets_of(process: u32) -> Result<Vec<u32>> {
    let mut sockets = Vec::new();
    each_socket(process, |socket| sockets.push(socket))
        .map_err(|e| SysError::new("read", format!("/proc/{process}/fd"), e))?;
    Ok(sockets)
}

fn each_socket(process: u32, mut each: impl FnMut(u32)) -> io::Result<()> {
    for entry in fs::read_dir(format!("/proc/{process}/fd"))? {
        // A descriptor that was closed meanwhile.
        let Ok(target) = entry.and_then(|entry| fs::read_link(entry.path())) else { continue };
        let number = target.to_str().and_then(|t| t.strip_prefix(SOCKET)?.strip_suffix(']'));
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            each(number);
        }
    }
    Ok(())
}

/// Whether a process set the sizes of a socket's send and receive buffers (`SO_BUF_LOCK`, Linux 5.14); the socket
/// is duplicated only for this question. `None` if that is not permitted, or the socket is gone.
pub fn buffers_asked(process: u32, socket: u32) -> Option<(bool, bool)> {
    use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
    /// `SO_BUF_LOCK`, `SOCK_SNDBUF_LOCK` and `SOCK_RCVBUF_LOCK`.
    const LOCK: libc::c_int = 72;
    const SEND: libc::c_int = 1;
    const RECEIVE: libc::c_int = 2;
    let name = format!("{SOCKET}{socket}]");
    let mut open = fs::read_dir(format!("/proc/{process}/fd")).ok()?.flatten();
    let number =
        open.find(|entry| fs::read_link(entry.path()).is_ok_and(|to| to.as_os_str() == name.as_str()))?;
    let number = number.file_name().to_str()?.parse().ok()?;
    let process = pidfd_open(Pid::from_raw(i32::try_from(process).ok()?)?, PidfdFlags::empty()).ok()?;
    let borrowed = pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).ok()?;
    let locked = get_number(&borrowed, libc::SOL_SOCKET, LOCK, "SO_BUF_LOCK").ok()?;
    Some((locked & SEND != 0, locked & RECEIVE != 0))
}

/// Calls `each` with every visible process and each of its sockets.
pub fn all_sockets(mut each: impl FnMut(u32, u32)) {
    for process in processes() {
        // Belongs to another user, or has ended.
        let _ = each_socket(process, |socket| each(process, socket));
    }
}

/// Returns all processes.
pub fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Name of a process's program; `None` if it has ended.
pub fn name(process: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{process}/comm")).ok().map(|name| name.trim_end().to_owned())
}

/// User that a process runs as; `None` if it has ended.
pub fn user(process: u32) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(format!("/proc/{process}")).ok().map(|of| of.uid())
}

/// Start time of a process, which distinguishes it from a later one of the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start(u64);

/// When a process started, and its parent; `None` if it has ended, even if not yet reaped.
pub fn start_and_parent(process: u32) -> Option<(Start, u32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in brackets, may hold any character.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    if matches!(fields.first(), Some(&("Z" | "X" | "x"))) {
        return None;
    }
    Some((Start(fields.get(19)?.parse().ok()?), fields.get(1)?.parse().ok()?))
}

/// A process and its living descendants, as far as their parents live.
pub fn family(process: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> =
        processes().into_iter().filter_map(|one| Some((one, start_and_parent(one)?.1))).collect();
    let mut family = vec![process];
    let mut next = 0;
    while let Some(&parent) = family.get(next) {
        family.extend(parents.iter().filter(|&&(_, of)| of == parent).map(|&(one, _)| one));
        next += 1;
    }
    family
}

/// Number of a process's network namespace, equal for two processes in the same one.
pub fn network_of(process: u32) -> Result<u64> {
    namespace_number(&format!("/proc/{process}/ns/net"))
}

/// Number of this process's network namespace.
pub fn own_network() -> Result<u64> {
    namespace_number("/proc/self/ns/net")
}

fn namespace_number(path: &str) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let read = fs::metadata(Path::new(path)).map(|of| of.ino());
    read.map_err(|e| SysError::new("read", path, e))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn this_process_has_its_socket_and_its_name() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let path = format!("/proc/self/fd/{}", listener.as_raw_fd());
        let path = fs::read_link(path).unwrap();
        let number: u32 =
            path.to_str().unwrap().trim_start_matches(SOCKET).trim_end_matches(']').parse().unwrap();
        let me = std::process::id();
        assert!(sockets_of(me).unwrap().contains(&number));
        let mut found = false;
        all_sockets(|process, socket| found |= process == me && socket == number);
        assert!(found && name(me).is_some());
        assert_eq!(network_of(me).unwrap(), own_network().unwrap());
    }

    #[test]
    fn buffers_that_were_asked_for_are_told_from_those_that_grow() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let number = sockets_of(std::process::id()).unwrap();
        let link = fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
        let own = number.into_iter().find(|n| link.to_str().unwrap().contains(&n.to_string())).unwrap();
        // A kernel before 5.14 lacks the option, and a sandbox may refuse it.
        let Some(asked) = buffers_asked(std::process::id(), own) else { return };
        assert_eq!(asked, (false, false));
        rustix::net::sockopt::set_socket_recv_buffer_size(&listener, 65_536).unwrap();
        assert_eq!(buffers_asked(std::process::id(), own), Some((false, true)));
        assert_eq!(buffers_asked(std::process::id(), u32::MAX), None);
    }

    #[test]
    fn a_child_is_of_the_family_until_it_ends() {
        let me = std::process::id();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(family(me).contains(&child.id()));
        assert_eq!(start_and_parent(child.id()).map(|(_, parent)| parent), Some(me));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!family(me).contains(&child.id()));
        assert_eq!((start_and_parent(child.id()), name(child.id())), (None, None));
        assert!(sockets_of(child.id()).is_err() && network_of(child.id()).is_err());
    }
}
