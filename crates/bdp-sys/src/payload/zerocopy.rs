//! `MSG_ZEROCOPY`: sends that refer to a process's pages, and the notifications on the error queue when they
//! complete (`Documentation/networking/msg_zerocopy.rst` of Linux).

use std::io;
use std::net::TcpStream;

use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use crate::socket_option::set_number;
use crate::{Result, control_messages};

/// `SO_EE_ORIGIN_ZEROCOPY` and `SO_EE_CODE_ZEROCOPY_COPIED` of `linux/errqueue.h`.
const ORIGIN_ZEROCOPY: u8 = 5;
const CODE_COPIED: u8 = 1;

const ZEROCOPY: SendFlags = SendFlags::from_bits_retain(libc::MSG_ZEROCOPY as u32);

/// Completions reported for one stream's sends.
#[derive(Debug)]
pub(super) struct Completions {
    completed: u64,
    copied: u64,
}

impl Completions {
    pub(super) fn start(stream: &TcpStream) -> Result<Self> {
        set_number(stream, libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1, "SO_ZEROCOPY")?;
        Ok(Self { completed: 0, copied: 0 })
    }

    /// Sends by reference. The bytes must not change afterwards. Copies instead if too many notifications wait.
    pub(super) fn send(&mut self, stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
        // An unread notification keeps the stream ready for ever.
        self.read(stream);
        match send(stream, bytes, ZEROCOPY | SendFlags::NOSIGNAL) {
            Err(Errno::NOBUFS) => Ok(send(stream, bytes, SendFlags::NOSIGNAL)?),
            done => Ok(done?),
        }
    }

    /// Reads the notifications; returns the completed sends, and how many of them were copied.
    pub(super) fn read(&mut self, stream: &TcpStream) -> (u64, u64) {
        while let Some(note) = next_note(stream) {
            if note.ee_errno == 0 && note.ee_origin == ORIGIN_ZEROCOPY {
                // A notification covers a range of sends, both ends included; the numbers wrap.
                let sends = u64::from(note.ee_data.wrapping_sub(note.ee_info)) + 1;
                self.completed += sends;
                if note.ee_code == CODE_COPIED {
                    self.copied += sends;
                }
            }
        }
        (self.completed, self.copied)
    }
}

/// Reads the oldest notification on the error queue.
fn next_note(stream: &TcpStream) -> Option<libc::sock_extended_err> {
    let (_, beside) =
        control_messages::receive(stream, &mut [], libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT).ok()?;
    let mut note = None;
    beside.each(|message| {
        if matches!(
            (message.level, message.kind),
            (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR)
        ) {
            note = note.or(message.read());
        }
    });
    note
}
