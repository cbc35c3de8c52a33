//! What one stream of a sender sends: the same bytes again and again, or those of the pattern.

use std::io::{self, Write};
use std::net::TcpStream;

use bdp_sys::payload::{Change, Method, Writer};
use bdp_wire::pattern;

/// Where a stream's bytes come from.
#[derive(Debug)]
pub enum Outlet<'a> {
    /// Always the same.
    Same(Writer<'a>),
    /// Of the pattern, of this stream, from this byte on.
    Patterned { stream: u32, at: u64 },
}

impl Outlet<'_> {
    /// The pattern from its first byte on.
    pub const fn patterned(stream: u32) -> Self {
        Self::Patterned { stream, at: 0 }
    }

    /// Sends `length` bytes, or as many as the kernel takes; `room` is as long at least where it is the pattern that is sent.
    pub fn send(&mut self, mut to: &TcpStream, length: usize, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Same(writer) => writer.send(to, length),
            Self::Patterned { stream, at } => {
                let length = length.min(room.len());
                pattern::fill(*stream, *at, &mut room[..length]);
                let sent = to.write(&room[..length])?;
                *at += sent as u64;
                Ok(sent)
            }
        }
    }

    /// As [`Writer::change_to`]; false where that is refused, and would block where bytes are to be sent on first.
    pub fn change_to(&mut self, method: Method, to: &TcpStream) -> io::Result<bool> {
        match self {
            Self::Same(writer) => match writer.change_to(method, to)? {
                Change::Done => Ok(true),
                Change::Refused => Ok(false),
                Change::Pending => Err(io::ErrorKind::WouldBlock.into()),
            },
            Self::Patterned { .. } => Ok(true),
        }
    }

    /// As [`Writer::flush`].
    pub fn flush(&mut self, to: &TcpStream) -> io::Result<bool> {
        match self {
            Self::Same(writer) => writer.flush(to),
            Self::Patterned { .. } => Ok(true),
        }
    }

    /// As [`Writer::completed`].
    pub fn completed(&mut self, to: &TcpStream) -> (u64, u64) {
        match self {
            Self::Same(writer) => writer.completed(to),
            Self::Patterned { .. } => (0, 0),
        }
    }
}
