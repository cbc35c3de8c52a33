//! Socket options that are a C `int`.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::{Result, SysError, check};

/// The options that a flow sets by name: the kernel's constants.
const NAMED: [(&str, libc::c_int, libc::c_int); 2] = [
    ("TCP_NOTSENT_LOWAT", libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT),
    ("SO_PRIORITY", libc::SOL_SOCKET, libc::SO_PRIORITY),
];

/// Sets options by the kernel's names.
pub(crate) fn set_named(socket: impl AsFd, numbers: &[(&'static str, i32)]) -> Result<()> {
    for &(name, number) in numbers {
        let unknown = || SysError::new("set", name, io::ErrorKind::Unsupported.into());
        let (_, level, option) = NAMED.iter().find(|(known, ..)| *known == name).ok_or_else(unknown)?;
        set_number(&socket, *level, *option, number, name)?;
    }
    Ok(())
}

/// Returns the value of an option by the kernel's name.
pub fn named(socket: impl AsFd, name: &'static str) -> Result<i32> {
    let unknown = || SysError::new("read", name, io::ErrorKind::Unsupported.into());
    let (_, level, option) = NAMED.iter().find(|(known, ..)| *known == name).ok_or_else(unknown)?;
    get_number(socket, *level, *option, name)
}

/// Sets an option that is a C `int`.
pub(crate) fn set_number(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
    name: &'static str,
) -> Result<()> {
    // SAFETY: the kernel reads an int from a live one, whose size is given.
    let done = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    check(done, "set", format!("{name} to {value}")).map(drop)
}

/// Reads an option that is a C `int`.
pub(crate) fn get_number(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    name: &'static str,
) -> Result<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into a live int and stores how many.
    let done = unsafe {
        libc::getsockopt(socket.as_fd().as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut length)
    };
    check(done, "read", name).map(|_| value)
}
