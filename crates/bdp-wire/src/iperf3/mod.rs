//! iperf3's protocol as bytes and messages, of both its ends, as the releases from 3.1 on speak it.
//!
//! A control connection begins with a [`Cookie`]. Then the server says by single bytes, [`State`], what comes next, and
//! JSON bodies in frames of [`crate::frame`] go both ways: [`Parameters`] from the client, [`Results`] from both.
//! [`exchange`] knows which state may follow which. Data connections and datagrams: the cookie alone, and [`datagram`].

pub mod auth;
pub mod base64;
pub mod datagram;
pub mod exchange;
mod members;
mod parameters;
mod results;
mod state;

use std::fmt;

pub use parameters::{Direction, Parameters, Protocol};
pub use results::{CpuUse, Results, ServerOutput, StreamResults};
pub use state::{Failure, State};

/// Bytes of a cookie on the wire: 36 letters and digits, and a zero.
pub const COOKIE_BYTES: usize = 37;
/// Longest parameters that are taken; iperf3 itself takes as much since 3.18.
pub const LONGEST_PARAMETERS: usize = 8 << 10;
/// Longest results that are taken: of 128 streams, and the server's output of a day with samples of a second.
pub const LONGEST_RESULTS: usize = 16 << 20;
/// Most streams of one direction.
pub const MOST_STREAMS: u32 = 128;
/// Longest test.
pub const LONGEST_SECONDS: u64 = 86_400;

/// Why a message of the other end is not taken.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Iperf3Error {
    /// The first bytes are not those of a cookie.
    #[error("its first bytes are no cookie of iperf3")]
    Cookie,
    /// A state that does not exist, or not at this time.
    #[error("it sent state {state} where {expected} is due")]
    State {
        /// The byte.
        state: i8,
        /// What would have been right.
        expected: &'static str,
    },
    /// Streams of SCTP.
    #[error("SCTP is not served")]
    Sctp,
    /// A member is of another type than it has to be.
    #[error("'{member}' is {found}, and has to be {expected}")]
    Type {
        /// The member.
        member: &'static str,
        /// What it is.
        found: String,
        /// What it has to be.
        expected: &'static str,
    },
    /// A member is missing.
    #[error("'{member}' is missing")]
    Missing {
        /// The member.
        member: &'static str,
    },
    /// A number is out of its range.
    #[error("'{member}' is {found}, and has to be {least} to {most}")]
    Range {
        /// The member.
        member: &'static str,
        /// What it is.
        found: String,
        /// The range.
        least: u64,
        /// The range.
        most: u64,
    },
    /// Members that contradict each other, or ask for what there is not.
    #[error("{0}")]
    Meaning(&'static str),
}

impl Iperf3Error {
    /// What to tell the other end that it was.
    pub fn failure(&self) -> Failure {
        match self {
            Self::Sctp => Failure::SCTP,
            Self::Range { member: "parallel", .. } => Failure::STREAMS,
            Self::Range { member: "time", .. } => Failure::DURATION,
            Self::Range { member: "len", most: parameters::LONGEST_DATAGRAM, .. } => Failure::DATAGRAM_SIZE,
            Self::Range { member: "len", .. } => Failure::BLOCK_SIZE,
            Self::Range { member: "burst", .. } => Failure::BURST,
            Self::Range { member: "window", .. } => Failure::BUFFER_SIZE,
            Self::Range { member: "omit", .. } => Failure::OMIT,
            Self::Range { member: "MSS", .. } => Failure::MSS,
            Self::Range { member: "TOS", .. } => Failure::TOS,
            Self::State { .. } => Failure::MESSAGE,
            _ => Failure::PARAMETERS,
        }
    }
}

/// What a client's connections know each other by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie([u8; COOKIE_BYTES]);

/// The letters and digits of a cookie.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

impl Cookie {
    /// One of as many random bytes.
    pub fn of(random: &[u8; COOKIE_BYTES - 1]) -> Self {
        let mut bytes = [0; COOKIE_BYTES];
        for (place, byte) in bytes.iter_mut().zip(random) {
            *place = ALPHABET[usize::from(byte % 32)];
        }
        Self(bytes)
    }

    /// One of which these bytes are known to the server already; others are random ones. A server takes any: it holds them
    /// against those of the streams, up to the first zero.
    pub fn behind(known: &[u8], random: &[u8; COOKIE_BYTES - 1]) -> Self {
        let mut cookie = Self::of(random);
        for (place, byte) in cookie.0.iter_mut().zip(known) {
            *place = *byte;
        }
        cookie
    }

    /// Reads what has arrived of it: `None` until it is whole.
    pub fn decode(arrived: &[u8]) -> Result<Option<Self>, Iperf3Error> {
        let fits = |(i, byte): (usize, &u8)| {
            if i < COOKIE_BYTES - 1 { ALPHABET.contains(byte) } else { *byte == 0 }
        };
        if !arrived.iter().take(COOKIE_BYTES).enumerate().all(fits) {
            return Err(Iperf3Error::Cookie);
        }
        Ok(arrived.first_chunk().map(|bytes| Self(*bytes)))
    }

    /// As it is sent.
    pub fn bytes(&self) -> &[u8; COOKIE_BYTES] {
        &self.0
    }

    /// Its letters and digits.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.0[..COOKIE_BYTES - 1]).unwrap_or_default()
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whoever knows it can join the test.
        f.write_str("Cookie(...)")
    }
}

/// The id of a stream by its place: 1, 3, 4, 5 and so on; there is no 2.
pub fn stream_id(index: usize) -> i64 {
    let index = index as i64;
    if index == 0 { 1 } else { index + 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_comes_back_once_it_is_whole() {
        let cookie = Cookie::of(&std::array::from_fn(|i| i as u8 * 7));
        for cut in 0..COOKIE_BYTES {
            assert_eq!(Cookie::decode(&cookie.bytes()[..cut]), Ok(None), "{cut}");
        }
        assert_eq!(Cookie::decode(cookie.bytes()), Ok(Some(cookie)));
        assert_eq!(cookie.text().len(), 36);
        assert!(!format!("{cookie:?}").contains(cookie.text()));
    }

    #[test]
    fn what_is_no_cookie_is_known_by_its_first_wrong_byte() {
        let whole = *Cookie::of(&[9; 36]).bytes();
        for wrong in 0..COOKIE_BYTES {
            let mut bytes = whole;
            bytes[wrong] = b'1';
            assert_eq!(Cookie::decode(&bytes[..=wrong]), Err(Iperf3Error::Cookie), "{wrong}");
        }
        for other in [b"GET / HTTP/1.1".as_slice(), b"SSH-2.0", &[0xbd], &[0], &[0x16, 3, 1], b"help me"] {
            assert_eq!(Cookie::decode(other), Err(Iperf3Error::Cookie), "{other:?}");
        }
    }

    #[test]
    fn there_is_no_stream_2() {
        assert_eq!([0, 1, 2, 3].map(stream_id), [1, 3, 4, 5]);
    }
}
