//! Memory that the kernel writes packets into, and the word by which each block changes hands.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use super::block::{PACKETS, STATUS};
use crate::{Result, SysError};

/// The ring of a socket, mapped.
#[derive(Debug)]
pub(super) struct Shared {
    mapped: *mut u8,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for Shared {}

impl Shared {
    /// Of a socket that has a ring of so many bytes.
    pub(super) fn of(socket: &OwnedFd, bytes: usize) -> Result<Self> {
        // SAFETY: a mapping of the socket's memory at an address of the kernel's choice.
        let mapped = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(SysError::last("map", format!("{bytes} bytes of packets")));
        }
        Ok(Self { mapped: mapped.cast(), bytes })
    }

    /// Whether the block that begins here is this process's.
    pub(super) fn is_handed_over(&self, at: usize) -> bool {
        self.word(at + STATUS).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Whether there are packets in the block that begins here, whoever has it.
    pub(super) fn has_packets(&self, at: usize) -> bool {
        self.word(at + PACKETS).load(Ordering::Relaxed) != 0
    }

    /// Works on the block that begins here, where it is this process's, and gives it back.
    pub(super) fn take(&mut self, at: usize, bytes: usize, work: impl FnOnce(&mut [u8])) -> bool {
        if !self.is_handed_over(at) {
            return false;
        }
        assert!(at + bytes <= self.bytes, "a block lies within the ring");
        // SAFETY: the range lies within the mapping and is borrowed with `self`; the kernel leaves a block alone from when it is handed over,
        // which was seen by a load that acquires, until it is given back.
        work(unsafe { std::slice::from_raw_parts_mut(self.mapped.add(at), bytes) });
        // Whether it has packets is asked before the kernel begins with it again.
        self.word(at + PACKETS).store(0, Ordering::Relaxed);
        self.word(at + STATUS).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        true
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.bytes, "a word lies within the ring");
        // SAFETY: aligned and within the mapping, which lives as long as `self`; both sides read and write it as one word.
        unsafe { AtomicU32::from_ptr(self.mapped.add(at).cast()) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: this mapping, once.
        unsafe { libc::munmap(self.mapped.cast(), self.bytes) };
    }
}
