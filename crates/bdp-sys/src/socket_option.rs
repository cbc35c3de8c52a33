//! Socket options that are a C `int`.

use std::os::fd::{AsFd, AsRawFd};

use crate::{Result, check};

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
