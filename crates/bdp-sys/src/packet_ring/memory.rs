//! Memory shared with the kernel, which writes packets into it, and the word by which each block changes hands.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use super::block::{PACKETS, STATUS};
use crate::{Result, SysError};

/// The mapped ring of a socket.
#[derive(Debug)]
pub(super) struct Shared {
    mapped: *mut u8,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for Shared {}

impl Shared {
    /// Maps the ring of a socket, which has this size.
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

    /// Whether the block at this offset belongs to this process.
    pub(super) fn is_handed_over(&self, at: usize) -> bool {
        self.word(at + STATUS).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Whether the block at this offset has packets, whoever owns it.
    pub(super) fn has_packets(&self, at: usize) -> bool {
        self.word(at + PACKETS).load(Ordering::Relaxed) != 0
    }

    /// Runs `work` on the block at this offset, if it belongs to this process, and gives it back.
    pub(super) fn take(&mut self, at: usize, bytes: usize, work: impl FnOnce(&mut [u8])) -> bool {
        if !self.is_handed_over(at) {
            return false;
        }
        assert!(at + bytes <= self.bytes, "a block lies within the ring");
        // SAFETY: the range lies within the mapping and is borrowed with `self`; the kernel leaves a block alone from
        // its handover, seen by an acquiring load, until it is given back.
        work(unsafe { std::slice::from_raw_parts_mut(self.mapped.add(at), bytes) });
        // Cleared first, as `has_packets` may be asked before the kernel reuses the block.
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
