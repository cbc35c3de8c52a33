//! Moves pages of a process by reference into a pipe, and from there into a socket.

use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{IoSliceRaw, PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice, vmsplice};
use rustix::process::{Resource, getrlimit};

use crate::{Result, SysError};

/// Requested pipe size: some writes of the kernel's default 16 pages for each call.
const PIPE_BYTES: usize = 256 << 10;
/// Pipe size if no larger one is allowed.
const LEAST_PIPE_BYTES: usize = 64 << 10;

/// Descriptors that pipes leave free for the rest of the process.
const LEFT_TO_OTHERS: u64 = 16;

/// Maximum number of memory ranges in one call.
pub(super) const MOST_PARTS: usize = 8;

/// A pipe between a process's memory and one stream.
#[derive(Debug)]
pub(super) struct Conduit {
    reader: OwnedFd,
    writer: OwnedFd,
    /// Capacity of the pipe and bytes in it.
    room: usize,
    held: usize,
}

impl Conduit {
    pub(super) fn new() -> Result<Self> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)
            .map_err(|e| SysError::new("open", "a pipe", e.into()))?;
        let room = fcntl_setpipe_size(&writer, PIPE_BYTES);
        // A user with many pipes gets no larger ones.
        let room = room.unwrap_or(LEAST_PIPE_BYTES).min(PIPE_BYTES);
        Ok(Self { reader, writer, room, held: 0 })
    }

    /// Whether some descriptors are left for uses that can't do without: a new descriptor has the lowest free number.
    pub(super) fn leaves_room(&self) -> bool {
        let highest = self.reader.as_raw_fd().max(self.writer.as_raw_fd());
        let open = u64::try_from(highest).unwrap_or(0) + 1;
        getrlimit(Resource::Nofile).current.is_none_or(|most| open + LEFT_TO_OTHERS <= most)
    }

    /// Capacity in bytes.
    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// Whether the system lets this process put its pages into a pipe; a seccomp filter may not.
    pub(super) fn is_allowed(bytes: &[u8]) -> bool {
        Self::new().is_ok_and(|conduit| {
            conduit.refer_to(&[IoSlice::new(&bytes[..bytes.len().min(conduit.room)])]).is_ok()
        })
    }

    /// Puts references to bytes into the pipe, as many as fit.
    fn refer_to(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let raw: [IoSliceRaw<'_>; MOST_PARTS] =
            std::array::from_fn(|i| IoSliceRaw::from_slice(parts.get(i).map_or(&[], |part| part)));
        let raw = &raw[..parts.len().min(MOST_PARTS)];
        // SAFETY: live bytes, which the kernel only reads. It keeps their pages.
        Ok(unsafe { vmsplice(&self.writer, raw, SpliceFlags::NONBLOCK) }?)
    }

    /// Sends the bytes that it holds, then takes new ones. They must not change afterwards, as the pages themselves are sent.
    pub(super) fn send(&mut self, stream: &TcpStream, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        if !self.flush(stream)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let taken = self.refer_to(parts)?;
        self.held += taken;
        match self.flush(stream) {
            // The bytes were taken all the same; the next call returns the error.
            Ok(_) => Ok(taken),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(taken),
            Err(e) => Err(e),
        }
    }

    /// Sends on the bytes that it holds; true when it is empty.
    pub(super) fn flush(&mut self, stream: &TcpStream) -> io::Result<bool> {
        while self.held > 0 {
            match splice(&self.reader, None, stream, None, self.held, SpliceFlags::NONBLOCK) {
                Ok(0) => return Err(io::ErrorKind::BrokenPipe.into()),
                Ok(sent) => self.held -= sent.min(self.held),
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }
}
