//! Pages of a process put into a pipe by reference, and from there into a socket.

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::{Result, check};

/// What a pipe is asked to hold: some writes of the kernel's own 16 pages for each call.
const PIPE_BYTES: usize = 256 << 10;
/// What it holds where it may not be larger.
const LEAST_PIPE_BYTES: usize = 64 << 10;

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
        let mut ends = [0; 2];
        // SAFETY: the kernel writes two descriptors into a live array.
        let done = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) };
        check(done, "open", "a pipe")?;
        // SAFETY: both descriptors are new and nobody else's.
        let [reader, writer] = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        // SAFETY: a number is all that this asks for.
        let room = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE_BYTES as libc::c_int) };
        // A user who has many pipes gets no larger ones.
        let room = usize::try_from(room).unwrap_or(LEAST_PIPE_BYTES).min(PIPE_BYTES);
        Ok(Self { reader, writer, room, held: 0 })
    }

    /// Whether the system lets this process put its pages into a pipe; a filter of system calls may not.
    pub(super) fn is_allowed(bytes: &[u8]) -> bool {
        Self::new().is_ok_and(|conduit| conduit.refer_to(bytes).is_ok())
    }

    /// Puts references to bytes into it, as many as there is room for.
    fn refer_to(&self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(self.room)];
        let part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY: one live vector over live bytes, which the kernel only reads. It keeps their pages.
        let taken =
            unsafe { libc::vmsplice(self.writer.as_raw_fd(), &raw const part, 1, libc::SPLICE_F_NONBLOCK) };
        usize::try_from(taken).map_err(|_| io::Error::last_os_error())
    }

    /// Takes bytes, after those that it holds have gone on. They must not change any more: it is they that are sent.
    pub(super) fn send(&mut self, stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
        if !self.flush(stream)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let taken = self.refer_to(bytes)?;
        self.held += taken;
        match self.flush(stream) {
            // It was taken all the same; the next call tells.
            Ok(_) => Ok(taken),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(taken),
            Err(e) => Err(e),
        }
    }

    /// Sends on what it holds; true when that is nothing any more.
    pub(super) fn flush(&mut self, stream: &TcpStream) -> io::Result<bool> {
        while self.held > 0 {
            // SAFETY: both descriptors are open for the time of the call; null offsets, as pipes and sockets have none.
            let sent = unsafe {
                libc::splice(
                    self.reader.as_raw_fd(),
                    std::ptr::null_mut(),
                    stream.as_raw_fd(),
                    std::ptr::null_mut(),
                    self.held,
                    libc::SPLICE_F_NONBLOCK,
                )
            };
            match usize::try_from(sent) {
                Ok(0) => return Err(io::ErrorKind::BrokenPipe.into()),
                Ok(sent) => self.held -= sent.min(self.held),
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() == io::ErrorKind::WouldBlock {
                        return Ok(false);
                    }
                    return Err(error);
                }
            }
        }
        Ok(true)
    }
}
