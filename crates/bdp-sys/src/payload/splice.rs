//! Pages of a process put into a pipe by reference, and from there into a socket.

use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{IoSliceRaw, PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice, vmsplice};
use rustix::process::{Resource, getrlimit};

use crate::{Result, SysError};

/// What a pipe is asked to hold: some writes of the kernel's own 16 pages for each call.
const PIPE_BYTES: usize = 256 << 10;
/// What it holds where it may not be larger.
const LEAST_PIPE_BYTES: usize = 64 << 10;

/// Descriptors that pipes leave to the rest of the process.
const LEFT_TO_OTHERS: u64 = 16;

/// Ranges of memory that one call takes at most.
pub(super) const MOST_PARTS: usize = 8;

/// A pipe between a process's memory and one stream.
#[derive(Debug)]
pub(super) struct Conduit {
    reader: OwnedFd,
    writer: OwnedFd,
    /// Bytes that it can hold, and those that are in it.
    room: usize,
    held: usize,
}

impl Conduit {
    pub(super) fn new() -> Result<Self> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)
            .map_err(|e| SysError::new("open", "a pipe", e.into()))?;
        let room = fcntl_setpipe_size(&writer, PIPE_BYTES);
        // A user who has many pipes gets no larger ones.
        let room = room.unwrap_or(LEAST_PIPE_BYTES).min(PIPE_BYTES);
        Ok(Self { reader, writer, room, held: 0 })
    }

    /// Whether the process may open some descriptors more, for what cannot do without: a new one has the lowest number that is free.
    pub(super) fn leaves_room(&self) -> bool {
        let highest = self.reader.as_raw_fd().max(self.writer.as_raw_fd());
        let open = u64::try_from(highest).unwrap_or(0) + 1;
        getrlimit(Resource::Nofile).current.is_none_or(|most| open + LEFT_TO_OTHERS <= most)
    }

    /// Bytes that it can hold.
    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// Whether the system lets this process put its pages into a pipe; a filter of system calls may not.
    pub(super) fn is_allowed(bytes: &[u8]) -> bool {
        Self::new().is_ok_and(|conduit| {
            conduit.refer_to(&[IoSlice::new(&bytes[..bytes.len().min(conduit.room)])]).is_ok()
        })
    }

    /// Puts references to bytes into it, as many as there is room for.
    fn refer_to(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let raw: [IoSliceRaw<'_>; MOST_PARTS] =
            std::array::from_fn(|i| IoSliceRaw::from_slice(parts.get(i).map_or(&[], |part| part)));
        let raw = &raw[..parts.len().min(MOST_PARTS)];
        // SAFETY: live bytes, which the kernel only reads. It keeps their pages.
        Ok(unsafe { vmsplice(&self.writer, raw, SpliceFlags::NONBLOCK) }?)
    }

    /// Takes bytes, after those that it holds have gone on. They must not change any more: it is they that are sent.
    pub(super) fn send(&mut self, stream: &TcpStream, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        if !self.flush(stream)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let taken = self.refer_to(parts)?;
        self.held += taken;
        match self.flush(stream) {
            // It was taken all the same; the next call shows it.
            Ok(_) => Ok(taken),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(taken),
            Err(e) => Err(e),
        }
    }

    /// Sends on what it holds; true when that is nothing any more.
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
