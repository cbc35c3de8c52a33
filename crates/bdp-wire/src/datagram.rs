//! Datagrams of a flow, specified in `docs/protocol.md`: the handshake that opens a stream, so that the server sends only to clients
//! that asked, and the header of each datagram.

use aws_lc_rs::hmac;
use bdp_model::flow::udp::UdpRequest;
use serde::{Deserialize, Serialize};

use crate::session::{Key, MAGIC, PREAMBLE_BYTES, VERSION};

/// Length of an [`Opening`], bytes.
pub const OPENING_BYTES: usize = PREAMBLE_BYTES + 56;
/// Length of a [`Header`], bytes, and so of the smallest datagram.
pub const HEADER_BYTES: usize = PREAMBLE_BYTES + 24;
/// Largest payload of a datagram, bytes: limited by the length field of IPv4 (RFC 768, RFC 791).
pub const LONGEST_DATAGRAM: u32 = 65_507;

/// Value that the server derives from an address and a stream; only a receiver at that address can know it.
pub type Cookie = [u8; 16];

/// A step in opening a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Client: request the cookie.
    Ask,
    /// Server: return the cookie and its clock.
    Tell,
    /// Client: return the cookie.
    Prove,
    /// Server: confirm that the stream is open.
    Open,
}

/// One of the four datagrams that open a stream. All have the same size, so nothing is amplified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// Step of the handshake.
    pub step: Step,
    /// Session key.
    pub key: Key,
    /// Flow number.
    pub flow: u32,
    /// Stream index within the flow, from 0.
    pub stream: u32,
    /// Cookie; zero until known.
    pub cookie: Cookie,
    /// Time at which the client sent this datagram or the one it answers, by the client's clock.
    pub client_ns: u64,
    /// Time of the server's answer, by its own clock; zero from the client.
    pub server_ns: u64,
}

impl Opening {
    /// Encodes the datagram.
    pub fn encode(&self) -> [u8; OPENING_BYTES] {
        let kind = match self.step {
            Step::Ask => 4,
            Step::Tell => 5,
            Step::Prove => 6,
            Step::Open => 7,
        };
        let mut bytes = [0; OPENING_BYTES];
        bytes[..8].copy_from_slice(&preamble(kind));
        bytes[8..24].copy_from_slice(&self.key);
        bytes[24..28].copy_from_slice(&self.flow.to_be_bytes());
        bytes[28..32].copy_from_slice(&self.stream.to_be_bytes());
        bytes[32..48].copy_from_slice(&self.cookie);
        bytes[48..56].copy_from_slice(&self.client_ns.to_be_bytes());
        bytes[56..].copy_from_slice(&self.server_ns.to_be_bytes());
        bytes
    }

    /// Decodes a datagram of exactly [`OPENING_BYTES`]; `None` for anything else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; OPENING_BYTES] = bytes.try_into().ok()?;
        let step = match bytes[5] {
            4 => Step::Ask,
            5 => Step::Tell,
            6 => Step::Prove,
            7 => Step::Open,
            _ => return None,
        };
        if bytes[..8] != preamble(bytes[5]) {
            return None;
        }
        Some(Self {
            step,
            key: *bytes[8..].first_chunk()?,
            flow: u32::from_be_bytes(*bytes[24..].first_chunk()?),
            stream: u32::from_be_bytes(*bytes[28..].first_chunk()?),
            cookie: *bytes[32..].first_chunk()?,
            client_ns: u64::from_be_bytes(*bytes[48..].first_chunk()?),
            server_ns: u64::from_be_bytes(*bytes[56..].first_chunk()?),
        })
    }

    /// Returns the cookie of this stream for a client at `address`, derived from the server's secret.
    pub fn cookie_for(&self, secret: &[u8; 32], address: &str) -> Cookie {
        let mut mac = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, secret));
        mac.update(&self.key);
        mac.update(&self.flow.to_be_bytes());
        mac.update(&self.stream.to_be_bytes());
        mac.update(address.as_bytes());
        let mut cookie = [0; 16];
        cookie.copy_from_slice(&mac.sign().as_ref()[..16]);
        cookie
    }

    /// Returns the tag of every datagram of the stream: the first half of its cookie.
    pub fn tag(&self) -> [u8; 8] {
        let mut tag = [0; 8];
        tag.copy_from_slice(&self.cookie[..8]);
        tag
    }
}

/// Header of a datagram; the payload follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Whether this is the end mark; `number` is then the count of datagrams.
    pub last: bool,
    /// Tag of the stream.
    pub tag: [u8; 8],
    /// Datagram number, from 0.
    pub number: u64,
    /// Time of sending, by the sender's own clock.
    pub sent_ns: u64,
}

impl Header {
    /// Writes the header to the start of a datagram.
    pub fn write(&self, datagram: &mut [u8; HEADER_BYTES]) {
        datagram[..8].copy_from_slice(&preamble(if self.last { 9 } else { 8 }));
        datagram[8..16].copy_from_slice(&self.tag);
        datagram[16..24].copy_from_slice(&self.number.to_be_bytes());
        datagram[24..].copy_from_slice(&self.sent_ns.to_be_bytes());
    }

    /// Reads the header of a datagram of the stream with this tag; `None` for anything else.
    pub fn read(datagram: &[u8], tag: &[u8; 8]) -> Option<Self> {
        Self::of_any(datagram).filter(|header| header.tag == *tag)
    }

    /// Reads the header of a datagram of any stream.
    pub fn of_any(datagram: &[u8]) -> Option<Self> {
        let bytes = datagram.first_chunk::<HEADER_BYTES>()?;
        let last = bytes[5] == 9;
        if bytes[..8] != preamble(if last { 9 } else { 8 }) {
            return None;
        }
        Some(Self {
            last,
            tag: *bytes[8..].first_chunk()?,
            number: u64::from_be_bytes(*bytes[16..].first_chunk()?),
            sent_ns: u64::from_be_bytes(*bytes[24..].first_chunk()?),
        })
    }
}

const fn preamble(kind: u8) -> [u8; PREAMBLE_BYTES] {
    let [a, b, c, d] = MAGIC;
    [a, b, c, d, VERSION, kind, 0, 0]
}

/// Options of a datagram flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DatagramOrder {
    /// Payload bytes of each datagram that the server sends; null for the most that the path MTU allows.
    pub payload_bytes: Option<u32>,
    /// Payload rate of each stream that the server sends, bit/s; null for as fast as possible.
    pub rate_bps: Option<u64>,
    /// Whether datagrams must not be fragmented.
    #[serde(default)]
    pub dont_fragment: bool,
    /// Path MTU found by the client; if the server chooses the payload, it does not exceed this.
    pub path_mtu: Option<u32>,
}

impl DatagramOrder {
    /// Returns the options for a request over a path that has not been probed.
    pub fn of(udp: &UdpRequest) -> Self {
        Self {
            payload_bytes: udp.datagram_bytes,
            rate_bps: udp.rate_bps,
            dont_fragment: udp.dont_fragment,
            path_mtu: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Preamble;

    const OPENING: Opening = Opening {
        step: Step::Tell,
        key: *b"0123456789abcdef",
        flow: 7,
        stream: 3,
        cookie: *b"fedcba9876543210",
        client_ns: u64::MAX - 1,
        server_ns: 12,
    };

    #[test]
    fn openings_come_back_and_nothing_else_is_one() {
        for step in [Step::Ask, Step::Tell, Step::Prove, Step::Open] {
            let opening = Opening { step, ..OPENING };
            let bytes = opening.encode();
            assert_eq!(Opening::decode(&bytes), Some(opening));
            for cut in 0..bytes.len() {
                assert_eq!(Opening::decode(&bytes[..cut]), None);
            }
            // Not a valid start of a connection.
            assert!(Preamble::decode(&bytes).is_err());
            for broken in 0..8 {
                let mut bytes = bytes;
                bytes[broken] ^= 0x80;
                assert_eq!(Opening::decode(&bytes), None, "{broken}");
            }
        }
    }

    #[test]
    fn headers_come_back_under_their_tag_only() {
        for last in [false, true] {
            let header = Header { last, tag: OPENING.tag(), number: 1 << 40, sent_ns: 99 };
            let mut datagram = [0; HEADER_BYTES];
            header.write(&mut datagram);
            let mut longer = datagram.to_vec();
            longer.extend_from_slice(&[1; 9]);
            assert_eq!(Header::read(&longer, &header.tag), Some(header));
            assert_eq!(Header::read(&longer, b"anothers"), None);
            assert_eq!(Header::read(&datagram[..HEADER_BYTES - 1], &header.tag), None);
        }
        assert_eq!(Header::read(&OPENING.encode(), &[0; 8]), None);
    }

    #[test]
    fn a_cookie_is_for_one_secret_stream_and_address() {
        let cookie = OPENING.cookie_for(&[1; 32], "192.0.2.1:7");
        assert_eq!(cookie, OPENING.cookie_for(&[1; 32], "192.0.2.1:7"));
        assert_ne!(cookie, OPENING.cookie_for(&[2; 32], "192.0.2.1:7"));
        assert_ne!(cookie, OPENING.cookie_for(&[1; 32], "192.0.2.1:8"));
        assert_ne!(cookie, Opening { stream: 4, ..OPENING }.cookie_for(&[1; 32], "192.0.2.1:7"));
    }
}
