//! bdp's calls of the operating system, and the only `unsafe` code of the project.
//!
//! One module per subject. Everything returns [`SysError`], which names the operation and its operand. Linux-only
//! features (namespaces, TUN, netlink) live in modules that exist on Linux alone.

pub mod boot;
pub mod cgroup;
pub mod clock;
pub mod contain;
mod control_messages;
pub mod device;
pub mod diag;
pub mod echo;
pub mod handshake;
pub mod holders;
pub mod hop_socket;
pub mod init;
pub mod isolate;
pub mod messages;
pub mod names;
pub mod namespace;
pub mod netlink;
pub mod netstat;
pub mod packet_ring;
pub mod passing;
pub mod payload;
pub mod places;
pub mod plain_file;
pub mod poll;
pub mod process;
pub mod qdisc;
pub mod qdisc_managed;
pub mod qdisc_root;
pub mod random;
pub mod route;
pub mod schedule;
pub mod signal;
pub mod socket;
pub mod socket_option;
pub mod softnet;
pub mod stamp;
pub mod still_clock;
pub mod supervise;
pub mod sysctl;
pub mod tcp_info;
pub mod terminal;
pub mod tun;
pub mod tun_ring;
pub mod udp;
pub mod window;

use std::io;

/// A call that the operating system refused.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {operand}: {source}{}", more_room(&source.to_string()))]
pub struct SysError {
    /// Attempted operation: `open`, `set TCP_MAXSEG`, ...
    pub operation: &'static str,
    /// Operand of the operation.
    pub operand: String,
    /// Error of the system.
    pub source: io::Error,
}

/// The remedy to append to a system error, if that is a limit on a user's resources; empty for other errors.
pub fn more_room(cause: &str) -> &'static str {
    // EMFILE, ENFILE, EAGAIN: the same numbers on every Linux but MIPS, SPARC and Alpha.
    if cause.ends_with("(os error 24)") || cause.ends_with("(os error 23)") {
        "; raise the limit on open files ('ulimit -n'), or run less in parallel (--jobs of the lab)"
    } else if cause.ends_with("(os error 11)") {
        "; raise the limit on processes ('ulimit -u'), or run less in parallel (--jobs of the lab)"
    } else {
        ""
    }
}

/// Result of a call to the operating system.
pub type Result<T> = std::result::Result<T, SysError>;

impl SysError {
    pub(crate) fn new(operation: &'static str, operand: impl Into<String>, source: io::Error) -> Self {
        Self { operation, operand: operand.into(), source }
    }

    /// Returns the last error of the calling thread.
    pub(crate) fn last(operation: &'static str, operand: impl Into<String>) -> Self {
        Self::new(operation, operand, io::Error::last_os_error())
    }
}

/// Turns the `-1` convention into a result.
pub(crate) fn check(
    value: libc::c_int,
    operation: &'static str,
    operand: impl Into<String>,
) -> Result<libc::c_int> {
    if value < 0 { Err(SysError::last(operation, operand)) } else { Ok(value) }
}
