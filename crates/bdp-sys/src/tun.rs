//! TUN devices: IP packets of a network namespace, read and written by a process.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::{Result, SysError, check};

/// Where the kernel offers TUN devices.
pub const CONTROL_PATH: &str = "/dev/net/tun";

/// `TUNSETIFF`, from linux/if_tun.h: `_IOW('T', 202, int)`.
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;

/// A TUN device that carries bare IP packets, one wire segment each (no offloads), without blocking.
#[derive(Debug)]
pub struct Tun {
    file: File,
}

impl Tun {
    /// Makes a device called `name` in the network namespace of the calling process. It ends with its last descriptor.
    pub fn create(name: &str) -> Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(CONTROL_PATH)
            .map_err(|e| SysError::new("open", CONTROL_PATH, e))?;
        // SAFETY: ifreq is plain data for which all-zero is valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if name.len() >= request.ifr_name.len() || name.bytes().any(|b| b == 0 || b == b'/') {
            return Err(SysError::new(
                "name",
                format!("device '{name}'"),
                io::ErrorKind::InvalidInput.into(),
            ));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: TUNSETIFF reads and writes one ifreq, which is live.
        let done = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF as _, &raw mut request) };
        check(done, "create TUN device", name)?;
        Ok(Self { file })
    }

    /// Takes over a descriptor that another process made with [`Tun::create`].
    pub fn from_descriptor(descriptor: OwnedFd) -> Self {
        Self { file: File::from(descriptor) }
    }

    /// Gives the descriptor away.
    pub fn into_descriptor(self) -> OwnedFd {
        self.file.into()
    }

    /// Reads one packet that the kernel sent; `None` where there is none now.
    pub fn receive(&self, room: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.file).read(room) {
            Ok(length) => Ok(Some(length)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Hands one packet to the kernel's receive path. `false` where the device would not take it.
    pub fn send(&self, packet: &[u8]) -> io::Result<bool> {
        match (&self.file).write(packet) {
            Ok(_) => Ok(true),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock) => Ok(false),
            Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) || e.raw_os_error() == Some(libc::ENOMEM) => {
                Ok(false)
            }
            Err(e) => Err(e),
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
