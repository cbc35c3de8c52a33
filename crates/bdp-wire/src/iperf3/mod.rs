//! iperf3's protocol as bytes and messages, for both ends, as spoken by releases since 3.1.
//!
//! A control connection begins with a [`Cookie`]. Then the server sends single bytes, [`State`], that determine the next step, and
//! JSON bodies in frames of [`crate::frame`] go both ways: [`Parameters`] from the client, [`Results`] from both.
//! [`exchange`] has the valid order of states. Data connections carry the cookie alone; for datagrams see [`datagram`].

pub mod auth;
pub mod base64;
pub mod datagram;
mod error;
pub mod exchange;
mod limits;
mod members;
mod parameters;
mod results;
mod state;

use std::fmt;

pub use error::Iperf3Error;
pub use limits::{LONGEST_PARAMETERS, LONGEST_RESULTS, LONGEST_SECONDS, MOST_STREAMS};
pub use parameters::{Directions, Parameters, Protocol};
pub use results::{CpuUse, Results, ServerOutput, StreamResults};
pub use state::{Failure, State};

/// Length of a cookie on the wire, bytes: 36 letters and digits, and a zero.
pub const COOKIE_BYTES: usize = 37;

/// Identifier shared by all connections of a client's test.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie([u8; COOKIE_BYTES]);

/// Letters and digits of a cookie.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

impl Cookie {
    /// Makes a cookie from random bytes.
    pub fn of(random: &[u8; COOKIE_BYTES - 1]) -> Self {
        let mut bytes = [0; COOKIE_BYTES];
        for (place, byte) in bytes.iter_mut().zip(random) {
            *place = ALPHABET[usize::from(byte % 32)];
        }
        Self(bytes)
    }

    /// Makes a cookie that begins with bytes the server already knows, followed by random ones. A server accepts any cookie and compares it
    /// with those of the streams, up to the first zero.
    pub fn behind(known: &[u8], random: &[u8; COOKIE_BYTES - 1]) -> Self {
        let mut cookie = Self::of(random);
        for (place, byte) in cookie.0.iter_mut().zip(known) {
            *place = *byte;
        }
        cookie
    }

    /// Decodes the bytes received so far; `None` until the cookie is complete.
    pub fn decode(arrived: &[u8]) -> Result<Option<Self>, Iperf3Error> {
        let fits = |(i, byte): (usize, &u8)| {
            if i < COOKIE_BYTES - 1 { ALPHABET.contains(byte) } else { *byte == 0 }
        };
        if !arrived.iter().take(COOKIE_BYTES).enumerate().all(fits) {
            return Err(Iperf3Error::Cookie);
        }
        Ok(arrived.first_chunk().map(|bytes| Self(*bytes)))
    }

    /// Returns the cookie as sent.
    pub fn bytes(&self) -> &[u8; COOKIE_BYTES] {
        &self.0
    }

    /// Returns the letters and digits.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.0[..COOKIE_BYTES - 1]).unwrap_or_default()
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Anyone who knows the cookie can join the test.
        f.write_str("Cookie(...)")
    }
}

/// Returns the id of the stream at an index: 1, 3, 4, 5 and so on; 2 is never used.
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
