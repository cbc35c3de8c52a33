//! TCP handshakes, timed.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::PollFlags;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::poll::wait_for;
use crate::socket::TcpOptions;
use crate::{Result, SysError, clock, tcp_info};

/// Longest delay before a raised stop flag is seen.
const STOP_CHECK_NS: u64 = 50_000_000;

/// A socket prepared for a handshake, so that the handshake alone is timed.
#[derive(Debug)]
pub struct Handshake {
    socket: Socket,
    to: SockAddr,
}

/// Result of an attempted handshake.
#[derive(Debug)]
pub struct Tried {
    /// Just before `connect`, monotonic.
    pub started_ns: u64,
    /// Just after the kernel reported the outcome, monotonic.
    pub ended_ns: u64,
    /// Outcome; `TimedOut` if patience or the flag ended it.
    pub outcome: io::Result<()>,
    /// Whether the SYN was retransmitted; the kernel reports it only for an established connection.
    pub retransmitted: bool,
}

/// A handshake in progress. Its descriptor is writable once there is an answer. Dropping it gives up; an established connection is reset.
#[derive(Debug)]
pub struct UnderWay {
    socket: Socket,
    /// Just before `connect`, monotonic.
    pub started_ns: u64,
}

impl UnderWay {
    /// The outcome, once the descriptor is writable.
    pub fn outcome(&self) -> io::Result<()> {
        self.socket.take_error()?.map_or(Ok(()), Err)
    }
}

impl AsFd for UnderWay {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Handshake {
    /// Starts to connect without waiting for the answer; an error is an immediate one.
    pub fn start(self) -> io::Result<UnderWay> {
        let started_ns = clock::monotonic_ns();
        match self.socket.connect(&self.to) {
            Err(e) if e.raw_os_error() != Some(libc::EINPROGRESS) => Err(e),
            _ => Ok(UnderWay { socket: self.socket, started_ns }),
        }
    }

    /// Creates the socket.
    pub fn prepare(to: SocketAddr, from: Option<SocketAddr>, options: &TcpOptions) -> Result<Self> {
        let failed = |e| SysError::new("connect to", to.to_string(), e);
        let socket =
            Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP)).map_err(failed)?;
        options.apply_to(&socket)?;
        if let Some(from) = from {
            socket.bind(&from.into()).map_err(|e| SysError::new("bind to", from.to_string(), e))?;
        }
        socket.set_nonblocking(true).map_err(failed)?;
        // Closed by a reset, so that no state lingers at either end.
        socket.set_linger(Some(Duration::ZERO)).map_err(failed)?;
        Ok(Self { socket, to: to.into() })
    }

    /// Connects, waits for the answer, and resets the connection. Busy-waits for the first `spin_ns`, so that wakeup latency is not measured.
    pub fn carry_out(self, patience: Duration, spin_ns: u64, stop: &AtomicBool) -> Tried {
        let started_ns = clock::monotonic_ns();
        let outcome = match self.socket.connect(&self.to) {
            Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => {
                self.await_answer(started_ns, patience, spin_ns, stop)
            }
            done => done,
        };
        let ended_ns = clock::monotonic_ns();
        let retransmitted = outcome.is_ok()
            && tcp_info::read(&self.socket).is_ok_and(|info| info.total_retrans.is_some_and(|n| n > 0));
        Tried { started_ns, ended_ns, outcome, retransmitted }
    }

    fn await_answer(
        &self,
        started_ns: u64,
        patience: Duration,
        spin_ns: u64,
        stop: &AtomicBool,
    ) -> io::Result<()> {
        let until = started_ns + u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX / 2);
        loop {
            let now = clock::monotonic_ns();
            if now >= until || stop.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let wait = if now < started_ns + spin_ns { 0 } else { (until - now).min(STOP_CHECK_NS) };
            if wait_for(self.socket.as_fd(), PollFlags::OUT, wait)? {
                return match self.socket.take_error()? {
                    Some(error) => Err(error),
                    None => Ok(()),
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn tried(to: SocketAddr) -> Tried {
        let options = TcpOptions::default();
        Handshake::prepare(to, None, &options).unwrap().carry_out(
            Duration::from_secs(5),
            10_000,
            &AtomicBool::new(false),
        )
    }

    #[test]
    fn handshakes_are_answered_and_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let answered = tried(to);
        assert!(answered.outcome.is_ok() && answered.ended_ns > answered.started_ns, "{answered:?}");
        // A port that is bound and not listening: a released one may be another test's by now.
        let taken = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        taken.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        let to = taken.local_addr().unwrap().as_socket().unwrap();
        assert_eq!(tried(to).outcome.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }
}
