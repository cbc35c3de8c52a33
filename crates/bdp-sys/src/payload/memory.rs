//! Process memory in large pages if available: fewer pages are reference-counted while sending.

use crate::{Result, SysError};

/// Size of a large page on nearly every machine.
const LARGE_PAGE: usize = 2 << 20;

/// Zeroed bytes, aligned to a large page.
#[derive(Debug)]
pub(super) struct Memory {
    mapped: *mut libc::c_void,
    mapped_bytes: usize,
    /// Offset of the first byte from `mapped`.
    from: usize,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone, and is written only through `&mut`.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    pub(super) fn new(length: usize) -> Result<Self> {
        let mapped_bytes = length.next_multiple_of(LARGE_PAGE) + LARGE_PAGE;
        // SAFETY: an anonymous mapping at an address of the kernel's choice.
        let mapped = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(SysError::last("map", format!("{length} bytes")));
        }
        let from = mapped.addr().next_multiple_of(LARGE_PAGE) - mapped.addr();
        // SAFETY: the range lies within the mapping. Advice that is not taken changes nothing.
        unsafe {
            libc::madvise(mapped.byte_add(from), length.next_multiple_of(LARGE_PAGE), libc::MADV_HUGEPAGE)
        };
        Ok(Self { mapped, mapped_bytes, from, length })
    }

    pub(super) fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: the range lies within the mapping, is initialised by the kernel, and is borrowed with `self`.
        unsafe { std::slice::from_raw_parts_mut(self.mapped.byte_add(self.from).cast(), self.length) }
    }
}

impl AsRef<[u8]> for Memory {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the range lies within the mapping, is initialised by the kernel, and is borrowed with `self`.
        unsafe { std::slice::from_raw_parts(self.mapped.byte_add(self.from).cast(), self.length) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: this mapping, once. What the kernel still sends of it keeps its pages.
        unsafe { libc::munmap(self.mapped, self.mapped_bytes) };
    }
}
