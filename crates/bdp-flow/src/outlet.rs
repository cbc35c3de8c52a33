//! The bytes of one sender's stream: constant, or those of the pattern.

use std::io::{self, Write};
use std::net::TcpStream;

use bdp_sys::payload::{Change, Method, Writer};
use bdp_wire::pattern;

/// The source of a stream's bytes.
#[derive(Debug)]
pub enum Outlet<'a> {
    /// Always the same bytes.
    Same(Writer<'a>),
    /// The pattern of this stream, from this byte on.
    Patterned { stream: u32, at: u64 },
}

impl Outlet<'_> {
    /// Returns the pattern from its first byte on.
    pub const fn patterned(stream: u32) -> Self {
        Self::Patterned { stream, at: 0 }
    }

    /// Sends `length` bytes, or as many as the kernel accepts; `room` must be at least as long if the pattern is
    /// sent.
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

    /// Like [`Writer::change_to`]; false if refused; would block if bytes must be sent first.
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

    /// Like [`Writer::flush`].
    pub fn flush(&mut self, to: &TcpStream) -> io::Result<bool> {
        match self {
            Self::Same(writer) => writer.flush(to),
            Self::Patterned { .. } => Ok(true),
        }
    }

    /// Like [`Writer::completed`].
    pub fn completed(&mut self, to: &TcpStream) -> (u64, u64) {
        match self {
            Self::Same(writer) => writer.completed(to),
            Self::Patterned { .. } => (0, 0),
        }
    }
}
