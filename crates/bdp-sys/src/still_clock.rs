//! The monotonic clock of a guest, which stands still while anything runs: read from a page of memory, if its kernel provides one.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock;

/// File in which a guest's kernel provides its time (`stacks/linux/bdp_kernel.c`).
const PAGE: &str = "/proc/bdp_clock";
const PAGE_BYTES: usize = 4096;

/// Nanoseconds of `CLOCK_MONOTONIC` by this process's shared clock: for a thread that only waits until they advance.
pub fn now_ns() -> u64 {
    static SHARED: OnceLock<StillClock> = OnceLock::new();
    SHARED.get_or_init(StillClock::find).now_ns()
}

/// The clock. If the kernel provides the page, a read costs no system call and no time of the guest, so a thread
/// that waits for it to advance must sleep meanwhile; else it is the clock of [`clock::monotonic_ns`].
#[derive(Debug)]
pub struct StillClock {
    page: Option<Page>,
}

#[derive(Debug)]
struct Page {
    at: NonNull<[AtomicU64; 2]>,
    /// Monotonic time at the page's zero.
    zero_ns: u64,
}

/// Whether this is a guest whose kernel provides its time.
pub fn is_there() -> bool {
    Path::new(PAGE).exists()
}

impl StillClock {
    /// Returns the clock of this machine.
    pub fn find() -> Self {
        Self { page: Page::map() }
    }

    /// Nanoseconds of `CLOCK_MONOTONIC`, if reading them is free.
    pub fn seen_ns(&self) -> Option<u64> {
        self.page.as_ref().map(|page| page.zero_ns + page.read())
    }

    /// When a packet arrived, by the timestamp that the kernel wrote behind it; `None` if it writes none.
    pub fn of_stamp(&self, stamp: u64) -> Option<u64> {
        self.page.as_ref().filter(|page| page.stamps()).map(|page| page.zero_ns + stamp)
    }

    /// Whether the kernel writes a timestamp behind each packet.
    pub fn stamps(&self) -> bool {
        self.page.as_ref().is_some_and(Page::stamps)
    }

    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub fn now_ns(&self) -> u64 {
        self.seen_ns().unwrap_or_else(clock::monotonic_ns)
    }
}

impl Page {
    fn map() -> Option<Self> {
        let file = File::open(PAGE).ok()?;
        // SAFETY: a new mapping, at an address of the system's choice; it lives until it is dropped.
        let at = unsafe {
            let (any, fd) = (std::ptr::null_mut(), file.as_raw_fd());
            libc::mmap(any, PAGE_BYTES, libc::PROT_READ, libc::MAP_SHARED, fd, 0)
        };
        if at == libc::MAP_FAILED {
            return None;
        }
        let mut page = Self { at: NonNull::new(at.cast())?, zero_ns: 0 };
        // Reading the other one advances both; the page then shows the value read.
        page.zero_ns = clock::monotonic_ns().checked_sub(page.read())?;
        Some(page)
    }

    fn read(&self) -> u64 {
        self.word(0)
    }

    fn stamps(&self) -> bool {
        self.word(1) == 1
    }

    fn word(&self, index: usize) -> u64 {
        // SAFETY: the page is mapped as long as this is there, and the kernel writes it by single stores of eight bytes.
        let words = unsafe { self.at.as_ref() };
        words[index].load(Ordering::Relaxed)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: mapped in `map`, and nothing refers to it any more.
        unsafe { libc::munmap(self.at.as_ptr().cast(), PAGE_BYTES) };
    }
}

// SAFETY: the page is only read, by an atomic load.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_monotonic_clock() {
        let still = StillClock::find();
        for _ in 0..3 {
            for read in [&|| still.now_ns(), &now_ns as &dyn Fn() -> u64] {
                let (before, at, after) = (clock::monotonic_ns(), read(), clock::monotonic_ns());
                assert!(before <= at && at <= after, "{before} {at} {after}");
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}
