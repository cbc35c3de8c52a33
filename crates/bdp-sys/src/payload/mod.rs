//! Bytes to send, the same again and again, given to the kernel by reference if it can.
//!
//! A [`Payload`] is shared by all streams of a flow; each stream has a [`Writer`], which keeps what is in flight.

mod memory;
mod splice;
mod zerocopy;

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use rustix::fs::{MemfdFlags, memfd_create, sendfile};

use crate::{Result, SysError};
use memory::Memory;
use splice::MOST_PARTS;

/// Most bytes of one call, more than a socket takes at once; longer writes are several calls.
const MOST_BYTES: usize = 4 << 20;
/// Shorter writes are copied, as passing pages costs more.
const LEAST_BY_REFERENCE: usize = 16 << 10;

/// How bytes are passed to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// `write`, which copies them from the process.
    Write,
    /// `sendfile` of a file in memory, whose pages the socket refers to.
    Sendfile,
    /// `vmsplice` of large pages into a pipe, and `splice` from there.
    Splice,
    /// `send` with `MSG_ZEROCOPY`; the kernel reports on the error queue when it no longer needs the bytes.
    ZeroCopy,
}

/// Incompressible bytes to send. All senders share them, so that a process holds them once, however many flows it serves.
#[derive(Debug)]
pub struct Payload {
    noise: Arc<Noise>,
    length: usize,
    method: Method,
}

/// The bytes that all payloads begin with.
#[derive(Debug)]
struct Noise {
    bytes: Memory,
    /// The bytes as a file, for `sendfile`.
    file: OnceLock<Option<File>>,
}

/// The longest one in use.
static NOISE: Mutex<Weak<Noise>> = Mutex::new(Weak::new());

impl Noise {
    /// Returns noise of at least this length.
    fn of(length: usize) -> Result<Arc<Self>> {
        let mut shared = NOISE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(noise) = shared.upgrade().filter(|noise| noise.bytes.as_ref().len() >= length) {
            return Ok(noise);
        }
        let mut bytes = Memory::new(length.next_power_of_two())?;
        fill_with_noise(bytes.as_mut());
        let noise = Arc::new(Self { bytes, file: OnceLock::new() });
        *shared = Arc::downgrade(&noise);
        Ok(noise)
    }

    fn file(&self) -> Option<&File> {
        self.file.get_or_init(|| in_memory(self.bytes.as_ref()).ok()).as_ref()
    }
}

impl Payload {
    /// Creates a payload of this length, at most `MOST_BYTES`. If the system has no pipe for `Splice`, it falls back
    /// to `sendfile`; if that fails too, or the length is small, to `write`.
    pub fn new(length: usize, method: Method) -> Result<Self> {
        let length = length.min(MOST_BYTES);
        let mut payload = Self { noise: Noise::of(length.max(1))?, length, method };
        if length < LEAST_BY_REFERENCE {
            payload.method = Method::Write;
        }
        if payload.method == Method::Splice && !splice::Conduit::is_allowed(payload.bytes()) {
            payload.method = Method::Sendfile;
        }
        if payload.method == Method::Sendfile && payload.noise.file().is_none() {
            payload.method = Method::Write;
        }
        Ok(payload)
    }

    fn bytes(&self) -> &[u8] {
        &self.noise.bytes.as_ref()[..self.length]
    }

    /// Length in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns how it is sent.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Creates the writer for one stream.
    pub fn writer(&self, stream: &TcpStream) -> Result<Writer<'_>> {
        Ok(Writer { payload: self, call: self.call(self.method, stream)? })
    }

    fn call(&self, method: Method, stream: &TcpStream) -> Result<Call<'_>> {
        Ok(match method {
            Method::Sendfile => self.noise.file().map_or(Call::Write, Call::Sendfile),
            Method::Write => Call::Write,
            Method::Splice => Call::Splice(splice::Conduit::new()?),
            Method::ZeroCopy => Call::ZeroCopy(zerocopy::Completions::start(stream)?),
        })
    }
}

/// Whether [`Method::Splice`] is available for writes of this length: not for short ones, nor if this process may not put its pages into a pipe.
pub fn can_splice(length: usize) -> bool {
    length >= LEAST_BY_REFERENCE && splice::Conduit::is_allowed(&[0; 1])
}

/// The payload repeated to `length` bytes in all, as far as one call takes it.
fn repeated(bytes: &[u8], length: usize) -> ([IoSlice<'_>; MOST_PARTS], usize) {
    let mut parts = [IoSlice::new(&[]); MOST_PARTS];
    let mut left = length;
    let mut count = 0;
    while left > 0 && count < MOST_PARTS && !bytes.is_empty() {
        let part = &bytes[..left.min(bytes.len())];
        parts[count] = IoSlice::new(part);
        left -= part.len();
        count += 1;
    }
    (parts, count)
}

/// Sends a [`Payload`] on one stream.
#[derive(Debug)]
pub struct Writer<'a> {
    payload: &'a Payload,
    call: Call<'a>,
}

/// Result of changing the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The next bytes use the new method.
    Done,
    /// Bytes accepted by the old method are still to be sent.
    Pending,
    /// The system lacks resources for it, for example if few descriptors are left.
    Refused,
}

/// The call that passes bytes to the kernel.
#[derive(Debug)]
enum Call<'a> {
    Write,
    Sendfile(&'a File),
    Splice(splice::Conduit),
    ZeroCopy(zerocopy::Completions),
}

impl Writer<'_> {
    /// Sends `length` bytes, or as many as the kernel takes at once. If that is more than the payload has, `write`
    /// and `splice` repeat it in one call, and other methods send it once.
    pub fn send(&mut self, stream: &TcpStream, length: usize) -> io::Result<usize> {
        let payload = self.payload.bytes();
        let once = &payload[..length.min(payload.len())];
        match &mut self.call {
            Call::Write if length > payload.len() => {
                let (parts, count) = repeated(payload, length);
                (&mut &*stream).write_vectored(&parts[..count])
            }
            Call::Write => (&mut &*stream).write(once),
            Call::Sendfile(file) => Ok(sendfile(stream, file, Some(&mut 0), once.len())?),
            Call::Splice(conduit) => {
                let (parts, count) = repeated(payload, length.min(conduit.room()));
                conduit.send(stream, &parts[..count])
            }
            Call::ZeroCopy(completions) => completions.send(stream, once),
        }
    }

    /// Returns the current method.
    pub fn method(&self) -> Method {
        match &self.call {
            Call::Write => Method::Write,
            Call::Sendfile(_) => Method::Sendfile,
            Call::Splice(_) => Method::Splice,
            Call::ZeroCopy(_) => Method::ZeroCopy,
        }
    }

    /// Changes the method, unless the kernel still holds bytes of the old one or lacks what the new one needs: the method stays then.
    pub fn change_to(&mut self, method: Method, stream: &TcpStream) -> io::Result<Change> {
        if self.method() == method {
            return Ok(Change::Done);
        }
        if !self.flush(stream)? {
            return Ok(Change::Pending);
        }
        match self.payload.call(method, stream) {
            Ok(Call::Splice(conduit)) if !conduit.leaves_room() => Ok(Change::Refused),
            Ok(call) => {
                self.call = call;
                Ok(Change::Done)
            }
            Err(_) => Ok(Change::Refused),
        }
    }

    /// Sends the bytes that the kernel still holds back; true when none are left.
    pub fn flush(&mut self, stream: &TcpStream) -> io::Result<bool> {
        match &mut self.call {
            Call::Splice(conduit) => conduit.flush(stream),
            _ => Ok(true),
        }
    }

    /// Returns the number of completed sends by reference, and how many of them were copied after all.
    pub fn completed(&mut self, stream: &TcpStream) -> (u64, u64) {
        match &mut self.call {
            Call::ZeroCopy(completions) => completions.read(stream),
            _ => (0, 0),
        }
    }
}

fn in_memory(bytes: &[u8]) -> Result<File> {
    let file = memfd_create(c"bdp-payload", MemfdFlags::CLOEXEC);
    let mut file = File::from(file.map_err(|e| SysError::new("create", "a file in memory", e.into()))?);
    file.write_all(bytes).map_err(|e| SysError::new("write", "a file in memory", e))?;
    Ok(file)
}

/// Fills `bytes` with incompressible noise, the same each time (splitmix64).
pub fn fill_with_noise(bytes: &mut [u8]) {
    let mut state = 0_u64;
    for chunk in bytes.chunks_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        chunk.copy_from_slice(&(word ^ (word >> 31)).to_le_bytes()[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    fn noise(length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        fill_with_noise(&mut bytes);
        bytes
    }

    #[test]
    fn every_way_the_same_bytes_arrive() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        for (length, asked, method) in [
            (70_000, Method::Sendfile, Method::Sendfile),
            (70_000, Method::Write, Method::Write),
            (70_000, Method::Splice, Method::Splice),
            (70_000, Method::ZeroCopy, Method::ZeroCopy),
            (100, Method::Sendfile, Method::Write),
            (100, Method::ZeroCopy, Method::Write),
        ] {
            let payload = Payload::new(length, asked).unwrap();
            assert_eq!((payload.method(), payload.length()), (method, length));
            let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut far, _) = listener.accept().unwrap();
            let mut writer = payload.writer(&near).unwrap();
            let sent = writer.send(&near, length).unwrap();
            while !writer.flush(&near).unwrap() {}
            drop(near);
            let mut got = Vec::new();
            far.read_to_end(&mut got).unwrap();
            assert!(
                sent > 0 && got == noise(length)[..sent],
                "{method:?} sent {sent}, {} arrived",
                got.len()
            );
        }
    }

    #[test]
    fn one_call_takes_the_payload_several_times_and_the_way_may_change_between_calls() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.set_nonblocking(true).unwrap();
        let reader = std::thread::spawn(move || {
            let mut got = Vec::new();
            far.read_to_end(&mut got).unwrap();
            got
        });
        let payload = Payload::new(70_000, Method::Write).unwrap();
        let mut writer = payload.writer(&near).unwrap();
        // Each call reports what it took at once, even through a pipe that holds some of it back.
        let mut taken = Vec::new();
        for turn in 0..40 {
            let method = if turn % 2 == 0 { Method::Write } else { Method::Splice };
            while writer.change_to(method, &near).unwrap() != Change::Done {
                std::thread::yield_now();
            }
            assert_eq!(writer.method(), method);
            loop {
                match writer.send(&near, 200_000) {
                    Ok(bytes) => break taken.push((method, bytes)),
                    Err(e) => assert_eq!(e.kind(), io::ErrorKind::WouldBlock),
                }
            }
        }
        while !writer.flush(&near).unwrap() {
            std::thread::yield_now();
        }
        drop(near);
        let (payload, got) = (noise(70_000), reader.join().unwrap());
        let expected = taken.iter().flat_map(|&(_, bytes)| payload.iter().cycle().take(bytes));
        assert!(got.iter().eq(expected), "{} bytes arrived", got.len());
        for method in [Method::Write, Method::Splice] {
            assert!(taken.iter().any(|&(by, bytes)| by == method && bytes > 70_000), "{method:?}: {taken:?}");
        }
    }

    #[test]
    fn payloads_share_their_bytes_and_none_is_longer_than_a_socket_takes() {
        let flows: Vec<Payload> =
            (0..64).map(|_| Payload::new(64 << 20, Method::Sendfile).unwrap()).collect();
        for flow in &flows {
            assert_eq!(flow.length(), MOST_BYTES);
            assert!(Arc::ptr_eq(&flow.noise, &flows[0].noise), "one memory for all");
        }
        let shorter = Payload::new(100_000, Method::Write).unwrap();
        assert!(Arc::ptr_eq(&shorter.noise, &flows[0].noise));
        assert_eq!(shorter.bytes(), &flows[0].bytes()[..100_000]);
    }

    #[test]
    fn a_full_socket_takes_no_more_for_now_and_loses_nothing() {
        for method in [Method::Write, Method::Sendfile, Method::Splice, Method::ZeroCopy] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut far, _) = listener.accept().unwrap();
            near.set_nonblocking(true).unwrap();
            let payload = Payload::new(1 << 20, method).unwrap();
            let mut writer = payload.writer(&near).unwrap();
            let mut sent = 0;
            let refused = (0..10_000).find_map(|_| match writer.send(&near, 1 << 20) {
                Ok(n) => {
                    sent += n as u64;
                    None
                }
                Err(e) => Some(e.kind()),
            });
            assert_eq!(refused, Some(io::ErrorKind::WouldBlock), "{method:?}");
            let reader = std::thread::spawn(move || io::copy(&mut far, &mut io::sink()).unwrap());
            while !matches!(writer.flush(&near), Ok(true)) {
                std::thread::yield_now();
            }
            drop(near);
            assert_eq!(reader.join().unwrap(), sent, "{method:?}");
        }
    }

    #[test]
    fn what_was_sent_by_reference_is_told_to_be_done() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        let payload = Payload::new(32 << 10, Method::ZeroCopy).unwrap();
        let mut writer = payload.writer(&near).unwrap();
        let mut sent = 0;
        for _ in 0..5 {
            sent += writer.send(&near, 32 << 10).unwrap();
        }
        far.read_exact(&mut vec![0; sent]).unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        let mut done = (0, 0);
        while done.0 < 5 && std::time::Instant::now() < until {
            done = writer.completed(&near);
            std::thread::yield_now();
        }
        // Loopback copies: no device reads the process's pages.
        assert_eq!(done, (5, 5));
    }
}
