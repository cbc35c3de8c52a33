//! Message channel between this process and one that it starts (`SOCK_SEQPACKET`): message boundaries are kept.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair, sockopt,
};
use rustix::time::Timespec;

/// Bytes that one end may hold unread: some hundred packets.
const ROOM: usize = 1 << 20;

/// This process's end, nonblocking.
#[derive(Debug)]
pub struct Messages(OwnedFd);

/// Result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// A message of this length, at most that of the buffer.
    Message(usize),
    /// No message yet.
    Nothing,
    /// The other end is closed.
    End,
}

/// Creates both ends: this process's, and the one that another process gets as a standard stream.
pub fn pair() -> io::Result<(Messages, OwnedFd)> {
    let (own, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .map_err(io::Error::from)?;
    for end in [&own, &other] {
        // A smaller one works too, only slower.
        let _ = sockopt::set_socket_send_buffer_size(end, ROOM);
    }
    Ok((Messages(own), other))
}

impl Messages {
    /// Sends a message; `false` if there is no room for it now.
    pub fn send(&self, message: &[u8]) -> io::Result<bool> {
        match retry_on_intr(|| send(&self.0, message, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::NOBUFS) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Receives a message, which must not be empty.
    pub fn receive(&self, room: &mut [u8]) -> io::Result<Received> {
        match retry_on_intr(|| recv(&self.0, &mut *room, RecvFlags::DONTWAIT)) {
            Ok((_, 0)) => Ok(Received::End),
            Ok((_, bytes)) => Ok(Received::Message(bytes.min(room.len()))),
            Err(Errno::AGAIN) => Ok(Received::Nothing),
            Err(Errno::CONNRESET) => Ok(Received::End),
            Err(e) => Err(e.into()),
        }
    }
}

/// Waits until one of these has a message or its end, or, if its flag is set, room for one; `false` on a timeout.
pub fn wait(ends: &[(&Messages, bool)], longest_ns: u64) -> io::Result<bool> {
    let mut all: Vec<_> = ends
        .iter()
        .map(|(end, to_send)| {
            let flags = if *to_send { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            PollFd::from_borrowed_fd(end.0.as_fd(), flags)
        })
        .collect();
    let longest = Timespec {
        tv_sec: (longest_ns / 1_000_000_000) as i64,
        tv_nsec: (longest_ns % 1_000_000_000) as i64,
    };
    Ok(retry_on_intr(|| poll(&mut all, Some(&longest))).map_err(io::Error::from)? > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_bounds_until_the_end() {
        let (own, other) = pair().unwrap();
        let other = Messages(other);
        let mut room = [0; 8];
        assert_eq!(own.receive(&mut room).unwrap(), Received::Nothing);
        assert!(other.send(b"one").unwrap());
        assert!(other.send(b"longer than the room").unwrap());
        assert!(wait(&[(&own, false)], 0).unwrap());
        assert_eq!(own.receive(&mut room).unwrap(), Received::Message(3));
        assert_eq!(&room[..3], b"one");
        assert_eq!(own.receive(&mut room).unwrap(), Received::Message(8));
        drop(other);
        assert_eq!(own.receive(&mut room).unwrap(), Received::End);
        assert!(own.send(b"x").is_err());
    }

    #[test]
    fn what_nobody_takes_fills_up() {
        let (own, _other) = pair().unwrap();
        let sent = (0..100_000).take_while(|_| own.send(&[0; 1500]).unwrap()).count();
        assert!((10..100_000).contains(&sent), "{sent}");
        assert!(!wait(&[(&own, true)], 0).unwrap());
    }
}
