//! Many TUN devices read and written by one system call at a time (`io_uring`), which also waits.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use io_uring::types::{CancelBuilder, Fd, TimeoutFlags, Timespec};
use io_uring::{IoUring, opcode, squeue};

use crate::poll::Waker;
use crate::tun::{Framing, Tun, VirtioHeader};
use crate::{Result, SysError};

/// Maximum number of requests per call.
const ENTRIES: u32 = 256;
/// Largest IP packet.
const LARGEST_PACKET: usize = 65_535;
/// Pending reads per device: one call receives up to this many packets.
const READS: usize = 4;
/// Room behind a packet for its arrival time, if the kernel writes that.
const STAMP_BYTES: usize = 8;
/// Token of requests without a buffer.
const TIMEOUT: u64 = u64::MAX;
const NOTHING: u64 = u64::MAX - 1;
const UPDATE: u64 = u64::MAX - 2;
const BEHIND_TIMEOUT: u64 = u64::MAX - 3;

/// Result of a wait.
#[derive(Debug)]
pub enum RingEvent {
    /// A packet that a device's kernel sent, and the pending work on it.
    Received {
        /// The device's token.
        token: u64,
        /// The packet.
        packet: Vec<u8>,
        /// Pending work on it.
        header: VirtioHeader,
        /// Arrival time of the packet, if the kernel writes timestamps behind packets. `None` for a socket in place of a device.
        stamp: Option<u64>,
    },
    /// A packet was passed to a device.
    Sent {
        /// The device's token.
        token: u64,
        /// The packet.
        packet: Vec<u8>,
        /// Whether the device accepted it.
        taken: bool,
    },
    /// A device can't be read any more.
    Failed {
        /// The device's token.
        token: u64,
        /// Cause.
        error: io::Error,
    },
    /// The waker woke.
    Woken,
}

/// Memory of a request. It must not move until the request is complete.
struct Buffer {
    token: u64,
    use_of: Use,
    vectors: [libc::iovec; 2],
    header: [u8; VirtioHeader::BYTES],
    packet: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq)]
enum Use {
    Read { fd: RawFd, framing: Framing, stamped: bool },
    Write,
    Waker { fd: RawFd },
}

/// Devices, and a waker, that one thread serves.
pub struct TunRing {
    ring: IoUring,
    buffers: Vec<Option<Box<Buffer>>>,
    free: Vec<usize>,
    /// Incomplete requests.
    pending: usize,
    /// Requests that completed on submission, since the last wait.
    at_once: usize,
    /// When the running timeout ends.
    armed: Option<u64>,
    /// Requests behind an expired timeout, which are about to complete.
    behind: usize,
    until: Timespec,
    /// Devices that are no longer read.
    left: Vec<u64>,
    /// System calls so far.
    calls: u64,
}

impl TunRing {
    /// Creates it without devices; `waker` ends its waits.
    pub fn new(waker: &Waker) -> Result<Self> {
        let ring = IoUring::builder()
            .setup_cqsize(ENTRIES * 8)
            .build(ENTRIES)
            .map_err(|e| SysError::new("create", "io_uring", e))?;
        let mut new = Self {
            ring,
            buffers: Vec::new(),
            free: Vec::new(),
            pending: 0,
            at_once: 0,
            armed: None,
            behind: 0,
            until: Timespec::new(),
            left: Vec::new(),
            calls: 0,
        };
        let fd = waker.as_fd().as_raw_fd();
        new.read(TIMEOUT, Use::Waker { fd }, vec![0; 8])?;
        Ok(new)
    }

    /// Reads a device from now on. Its packets are at most `longest` bytes if they are segments.
    pub fn add(&mut self, device: &Tun, token: u64, longest: usize) -> Result<()> {
        let framing = device.framing();
        let room = if framing == Framing::Segments { longest.min(LARGEST_PACKET) } else { LARGEST_PACKET };
        let fd = device.as_fd().as_raw_fd();
        let reads = Use::Read { fd, framing, stamped: device.is_device() };
        for _ in 0..READS {
            self.read(token, reads, vec![0; room + STAMP_BYTES])?;
        }
        Ok(())
    }

    /// Stops reading a device. Packets that it had sent before are lost.
    pub fn remove(&mut self, device: &Tun, token: u64) -> Result<()> {
        self.left.push(token);
        let cancel = CancelBuilder::fd(Fd(device.as_fd().as_raw_fd())).all();
        let request = opcode::AsyncCancel2::new(cancel).build().user_data(NOTHING);
        self.push(request, true)
    }

    /// Passes a packet to a device with the next wait; `header` matters only with super-packets.
    pub fn send(&mut self, device: &Tun, token: u64, packet: Vec<u8>, header: VirtioHeader) -> Result<()> {
        let index = self.place(Buffer {
            token,
            use_of: Use::Write,
            vectors: [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; 2],
            header: header.encode(),
            packet,
        });
        let Some(buffer) = self.buffers[index].as_deref_mut() else { return Ok(()) };
        let fd = Fd(device.as_fd().as_raw_fd());
        let request = match device.framing() {
            Framing::Segments => {
                opcode::Write::new(fd, buffer.packet.as_ptr(), buffer.packet.len() as u32).build()
            }
            Framing::SuperPackets => {
                buffer.point();
                opcode::Writev::new(fd, buffer.vectors.as_ptr(), 2).build()
            }
        };
        self.pending += 1;
        self.push(request.user_data(index as u64), true)
    }

    /// Submits all requests, and waits for an event or until the monotonic clock reaches `until_ns` (`None`: for
    /// ever). With `gather`, packets accumulate until that moment, as many as there is room for. Puts the events into
    /// `events`, which is cleared first; returns whether that moment was reached.
    pub fn wait(&mut self, until_ns: Option<u64>, gather: bool, events: &mut Vec<RingEvent>) -> Result<bool> {
        events.clear();
        if let Some(until) = until_ns
            && self.armed != Some(until)
        {
            self.arm(until)?;
        }
        let gathered = if gather && until_ns.is_some() { READS } else { 1 };
        let wanted = std::mem::take(&mut self.at_once) + self.behind + gathered;
        self.calls += 1;
        match self.ring.submit_and_wait(wanted) {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(SysError::new("wait for", "io_uring", e)),
        }
        self.collect(events)
    }

    /// Sets the timeout, or moves the running one. When it expires, [`READS`] requests complete, however many packets are awaited.
    fn arm(&mut self, until: u64) -> Result<()> {
        self.until = Timespec::new().sec(until / 1_000_000_000).nsec((until % 1_000_000_000) as u32);
        let moves = self.armed.replace(until).is_some();
        let until = std::ptr::from_ref(&self.until);
        if moves {
            let update = opcode::TimeoutUpdate::new(TIMEOUT, until).flags(TimeoutFlags::ABS);
            return self.push(update.build().user_data(UPDATE), true);
        }
        // A chain that is not submitted by one call is cut.
        let room = {
            let requests = self.ring.submission();
            requests.capacity() - requests.len()
        };
        if room < READS {
            self.submit()?;
        }
        let timeout = opcode::Timeout::new(until).flags(TimeoutFlags::ABS).build().user_data(TIMEOUT);
        let behind = || opcode::Nop::new().build().user_data(BEHIND_TIMEOUT);
        let mut chain = std::iter::once(timeout).chain((1..READS).map(|_| behind())).peekable();
        while let Some(request) = chain.next() {
            let last = chain.peek().is_none();
            let flags = if last { squeue::Flags::empty() } else { squeue::Flags::IO_HARDLINK };
            self.push(request.flags(flags), false)?;
        }
        Ok(())
    }

    /// Number of system calls that it made.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    fn collect(&mut self, events: &mut Vec<RingEvent>) -> Result<bool> {
        let (mut fired, mut stale) = (false, false);
        let complete: Vec<(u64, i32)> = self.ring.completion().map(|c| (c.user_data(), c.result())).collect();
        for (request, result) in complete {
            match request {
                TIMEOUT => {
                    self.armed = None;
                    self.behind += READS - 1;
                    fired |= result == -libc::ETIME;
                }
                // The timeout to be moved had expired.
                UPDATE => stale |= result < 0,
                BEHIND_TIMEOUT => self.behind = self.behind.saturating_sub(1),
                NOTHING => {}
                index => self.complete(index as usize, result, events)?,
            }
        }
        Ok(fired && !stale)
    }

    fn complete(&mut self, index: usize, result: i32, events: &mut Vec<RingEvent>) -> Result<()> {
        let Some(mut buffer) = self.buffers.get_mut(index).and_then(Option::take) else { return Ok(()) };
        self.free.push(index);
        self.pending -= 1;
        let token = buffer.token;
        match buffer.use_of {
            Use::Write => {
                let packet = std::mem::take(&mut buffer.packet);
                events.push(RingEvent::Sent { token, packet, taken: result >= 0 });
            }
            Use::Waker { .. } => {
                events.push(RingEvent::Woken);
                self.read(token, buffer.use_of, buffer.packet)?;
            }
            Use::Read { .. } if self.left.contains(&token) => {}
            Use::Read { framing, stamped, .. } => match usize::try_from(result) {
                Ok(length) => {
                    let front = if framing == Framing::SuperPackets { VirtioHeader::BYTES } else { 0 };
                    let (packet, behind) = buffer.packet.split_at(length.saturating_sub(front));
                    events.push(RingEvent::Received {
                        token,
                        packet: packet.to_vec(),
                        header: VirtioHeader::decode(buffer.header),
                        stamp: behind
                            .first_chunk()
                            .filter(|_| stamped)
                            .map(|&bytes| u64::from_ne_bytes(bytes)),
                    });
                    self.read(token, buffer.use_of, buffer.packet)?;
                }
                Err(_) if [libc::EAGAIN, libc::EINTR].contains(&-result) => {
                    self.read(token, buffer.use_of, buffer.packet)?;
                }
                Err(_) => {
                    events.push(RingEvent::Failed { token, error: io::Error::from_raw_os_error(-result) })
                }
            },
        }
        Ok(())
    }

    /// Requests the next packet of `fd`, into `room`.
    fn read(&mut self, token: u64, use_of: Use, room: Vec<u8>) -> Result<()> {
        let index = self.place(Buffer {
            token,
            use_of,
            vectors: [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; 2],
            header: [0; VirtioHeader::BYTES],
            packet: room,
        });
        let Some(buffer) = self.buffers[index].as_deref_mut() else { return Ok(()) };
        let request = match use_of {
            Use::Read { fd, framing: Framing::SuperPackets, .. } => {
                buffer.point();
                opcode::Readv::new(Fd(fd), buffer.vectors.as_ptr(), 2).build()
            }
            Use::Read { fd, .. } | Use::Waker { fd } => {
                let length = buffer.packet.len() as u32;
                opcode::Read::new(Fd(fd), buffer.packet.as_mut_ptr(), length).build()
            }
            Use::Write => return Ok(()),
        };
        self.pending += 1;
        self.push(request.user_data(index as u64), false)
    }

    fn place(&mut self, buffer: Buffer) -> usize {
        let index = self.free.pop().unwrap_or_else(|| {
            self.buffers.push(None);
            self.buffers.len() - 1
        });
        self.buffers[index] = Some(Box::new(buffer));
        index
    }

    fn push(&mut self, request: squeue::Entry, at_once: bool) -> Result<()> {
        loop {
            // SAFETY: what the request points to is a boxed buffer that stays where it is in `buffers` until the request is complete, or
            // `until`, which is read while the request is made, before it changes again. The box is let go without being freed where
            // requests are pending when the ring goes.
            if unsafe { self.ring.submission().push(&request) }.is_ok() {
                self.at_once += usize::from(at_once);
                return Ok(());
            }
            self.submit()?;
        }
    }

    fn submit(&mut self) -> Result<()> {
        self.calls += 1;
        self.ring.submit().map(|_| ()).map_err(|e| SysError::new("submit to", "io_uring", e))
    }
}

impl Buffer {
    /// Points the vectors to the header and the packet.
    fn point(&mut self) {
        self.vectors = [
            libc::iovec { iov_base: self.header.as_mut_ptr().cast(), iov_len: self.header.len() },
            libc::iovec { iov_base: self.packet.as_mut_ptr().cast(), iov_len: self.packet.len() },
        ];
    }
}

impl Drop for TunRing {
    fn drop(&mut self) {
        // The kernel may still write to what pending requests point to.
        if self.pending > 0 {
            std::mem::forget(std::mem::take(&mut self.buffers));
        }
    }
}

// SAFETY: the vectors point into the boxed buffer that they are part of, which moves with it.
unsafe impl Send for Buffer {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_and_a_moment_end_the_wait() {
        let waker = Waker::new().unwrap();
        let mut ring = TunRing::new(&waker).unwrap();
        let mut events = Vec::new();
        waker.wake();
        assert!(!ring.wait(None, false, &mut events).unwrap());
        assert!(matches!(events[..], [RingEvent::Woken]));
        for (more_ns, gather) in
            [(3_000_000, false), (1_000_000, true), (2_000_000, true), (2_000_000, false), (1_000_000, false)]
        {
            let until = crate::clock::monotonic_ns() + more_ns;
            assert!(ring.wait(Some(until), gather, &mut events).unwrap());
            assert!(events.is_empty() && crate::clock::monotonic_ns() >= until);
        }
        // An earlier moment replaces a later one, and a wake that comes first leaves it armed.
        let until = crate::clock::monotonic_ns() + 20_000_000;
        waker.wake();
        assert!(!ring.wait(Some(until), false, &mut events).unwrap());
        let earlier = until - 10_000_000;
        assert!(ring.wait(Some(earlier), false, &mut events).unwrap());
        assert!(crate::clock::monotonic_ns() >= earlier);
        assert_eq!(ring.calls(), 8);
        // What comes while packets gather waits for the moment.
        waker.wake();
        let until = crate::clock::monotonic_ns() + 2_000_000;
        assert!(ring.wait(Some(until), true, &mut events).unwrap());
        assert!(matches!(events[..], [RingEvent::Woken]));
    }
}
