//! Connections whose calls never wait forever.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bdp_sys::socket;

use crate::error::FlowError;

/// How long the kernel may take to deliver a message, and the other end to disappear.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Prepares a connection for messages: blocking, each sent at once, and failing after [`PATIENCE`].
pub fn bound(stream: &TcpStream, doing: &'static str) -> Result<(), FlowError> {
    stream.set_nonblocking(false).map_err(FlowError::io(doing))?;
    stream.set_nodelay(true).map_err(FlowError::io(doing))?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(FlowError::io(doing))?;
    Ok(socket::watch_peer(stream, PATIENCE)?)
}

/// A blocking connection whose reads fail with `TimedOut` after a deadline.
pub struct Until<'a> {
    stream: &'a TcpStream,
    until: Instant,
}

impl<'a> Until<'a> {
    /// Sets the deadline this far from now.
    pub fn new(stream: &'a TcpStream, patience: Duration) -> Self {
        Self { stream, until: Instant::now() + patience }
    }
}

impl Read for Until<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // The kernel would take less than a microsecond as no limit.
        self.stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match (&mut &*self.stream).read(room) {
            // ETIMEDOUT: the kernel has given the peer up. Our own deadline gives EAGAIN.
            Err(e) if e.kind() == io::ErrorKind::TimedOut => Err(io::ErrorKind::ConnectionReset.into()),
            other => other,
        }
    }
}
