//! Bytes to send: the same ones again and again, given to the kernel by reference where it takes them so.

use std::fs::File;
use std::io::{self, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd};

use crate::{Result, SysError};

/// Shorter writes are copied: of them handing pages over costs more.
const LEAST_BY_REFERENCE: usize = 16 << 10;

/// Bytes to send, of no pattern that a device on the way could compress.
#[derive(Debug)]
pub struct Payload {
    bytes: Vec<u8>,
    /// The same bytes as a file in memory, for `sendfile`.
    file: Option<File>,
}

impl Payload {
    /// Of this length. `by_reference` lets the kernel send pages without copying them from the process first; where it
    /// can't, or the length is small, it copies.
    pub fn new(length: usize, by_reference: bool) -> Self {
        let bytes = noise(length);
        let file = if by_reference && length >= LEAST_BY_REFERENCE { in_memory(&bytes).ok() } else { None };
        Self { bytes, file }
    }

    /// How many bytes.
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// How it is sent: `sendfile` or `write`.
    pub fn method(&self) -> &'static str {
        if self.file.is_some() { "sendfile" } else { "write" }
    }

    /// Sends the first `length` bytes, or as many as the socket takes at once.
    pub fn send(&self, stream: &TcpStream, length: usize) -> io::Result<usize> {
        let length = length.min(self.bytes.len());
        let Some(file) = &self.file else { return (&mut &*stream).write(&self.bytes[..length]) };
        let mut from = 0;
        // SAFETY: both descriptors are open for the time of the call, and the offset is a live variable.
        let sent = unsafe { libc::sendfile(stream.as_raw_fd(), file.as_raw_fd(), &raw mut from, length) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

fn in_memory(bytes: &[u8]) -> Result<File> {
    // SAFETY: the name is a string that ends in a zero byte.
    let descriptor = unsafe { libc::memfd_create(c"bdp-payload".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(SysError::last("create", "a file in memory"));
    }
    // SAFETY: the descriptor is new and nobody else's.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all(bytes).map_err(|e| SysError::new("write", "a file in memory", e))?;
    Ok(file)
}

/// The same noise each time (splitmix64).
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend((word ^ (word >> 31)).to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn either_way_the_same_bytes_arrive() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        for (length, by_reference, method) in
            [(70_000, true, "sendfile"), (70_000, false, "write"), (100, true, "write")]
        {
            let payload = Payload::new(length, by_reference);
            assert_eq!((payload.method(), payload.length()), (method, length));
            let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut far, _) = listener.accept().unwrap();
            let sent = payload.send(&near, length).unwrap();
            drop(near);
            let mut got = Vec::new();
            far.read_to_end(&mut got).unwrap();
            assert!(sent > 0 && got == noise(length)[..sent], "{method}");
        }
    }

    #[test]
    fn a_full_socket_takes_no_more_for_now() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _far = listener.accept().unwrap();
        near.set_nonblocking(true).unwrap();
        let payload = Payload::new(1 << 20, true);
        let refused = (0..10_000).find_map(|_| payload.send(&near, 1 << 20).err());
        assert_eq!(refused.map(|e| e.kind()), Some(io::ErrorKind::WouldBlock));
    }
}
