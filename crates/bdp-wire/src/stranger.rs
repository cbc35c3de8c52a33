//! Identifies the protocol with which a connection begins, for clients that connect to the wrong port.

use crate::iperf2::{Bounceback, TestHeader};
use crate::iperf3::{COOKIE_BYTES, Cookie};
use crate::session::MAGIC;
use bdp_model::names;

/// Protocol of a client that can't be served at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stranger {
    /// HTTP/1 and HTTP/2 without TLS (RFC 9112, RFC 9113).
    Http,
    /// TLS (RFC 8446).
    Tls,
    /// SSH (RFC 4253).
    Ssh,
    /// bdp's own protocol.
    Bdp,
    /// iperf2's clients.
    Iperf2,
    /// iperf3's clients.
    Iperf3,
    /// Unknown protocol.
    Unknown,
    /// No byte arrived in time.
    Silent,
    /// The connection closed before any byte, as in a port check.
    Closed,
}

names!(
    Stranger: Http = "http", Tls = "tls", Ssh = "ssh", Bdp = "bdp", Iperf2 = "iperf2", Iperf3 = "iperf3",
        Unknown = "unknown", Silent = "silent", Closed = "closed"
);

impl Stranger {
    /// All variants.
    pub const ALL: [Self; 9] = [
        Self::Http,
        Self::Tls,
        Self::Ssh,
        Self::Bdp,
        Self::Iperf2,
        Self::Iperf3,
        Self::Unknown,
        Self::Silent,
        Self::Closed,
    ];

    /// Bytes needed to recognise any variant except [`Stranger::Iperf3`].
    pub const WANTED_BYTES: usize = 4;

    /// Usual name of the protocol; `None` if it is not known.
    pub const fn protocol(self) -> Option<&'static str> {
        match self {
            Self::Http => Some("HTTP"),
            Self::Tls => Some("TLS"),
            Self::Ssh => Some("SSH"),
            Self::Bdp => Some("bdp's protocol"),
            Self::Iperf2 => Some("iperf2's protocol"),
            Self::Iperf3 => Some("iperf3's protocol"),
            Self::Unknown | Self::Silent | Self::Closed => None,
        }
    }

    /// Identifies the protocol by the first bytes of a connection.
    pub fn of(arrived: &[u8]) -> Self {
        let begins = |with: &[&[u8]]| with.iter().any(|with| arrived.starts_with(with));
        let is_header = TestHeader::length_of(arrived).is_some_and(|length| length > 0);
        match arrived {
            [] => Self::Silent,
            _ if is_http(arrived) => Self::Http,
            // A TLS handshake record: type and record version.
            [0x16, 0x03, 0x00..=0x04, ..] => Self::Tls,
            _ if begins(&[b"SSH-"]) => Self::Ssh,
            _ if begins(&[&MAGIC]) => Self::Bdp,
            _ if is_header || Bounceback::begins(arrived) || begins(&[b"01234567"]) => Self::Iperf2,
            _ if arrived.len() >= COOKIE_BYTES && matches!(Cookie::decode(arrived), Ok(Some(_))) => {
                Self::Iperf3
            }
            _ => Self::Unknown,
        }
    }
}

/// HTTP request methods (RFC 9110, section 9, and RFC 5789), and the HTTP/2 connection preface (RFC 9113, section
/// 3.4), each with a trailing space.
const METHODS: [&[u8]; 10] = [
    b"GET ",
    b"HEAD ",
    b"POST ",
    b"PUT ",
    b"DELETE ",
    b"CONNECT ",
    b"OPTIONS ",
    b"TRACE ",
    b"PATCH ",
    b"PRI ",
];

/// Whether the bytes are an HTTP method, possibly incomplete, before a path, `*` or an HTTP URI: SIP and RTSP share some methods.
fn is_http(arrived: &[u8]) -> bool {
    METHODS.iter().any(|method| match arrived.strip_prefix(*method) {
        Some([b'/' | b'*' | b'h', ..] | []) => true,
        Some(_) => *method == b"CONNECT ",
        None => arrived.len() >= 3 && method.starts_with(arrived),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_known_by_their_first_bytes() {
        let cookie = Cookie::of(&[7; COOKIE_BYTES - 1]);
        for (bytes, stranger) in [
            (b"GET / HT".as_slice(), Stranger::Http),
            (b"POST", Stranger::Http),
            (b"CONNECT example.org:443", Stranger::Http),
            (b"OPTIONS *", Stranger::Http),
            (b"OPTIONS sip:x SIP/2.0", Stranger::Unknown),
            (b"PRI * HTTP/2.0", Stranger::Http),
            (&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01], Stranger::Tls),
            (b"SSH-2.0-", Stranger::Ssh),
            (&MAGIC, Stranger::Bdp),
            (&[0x40, 0x01, 0x00, 0x78], Stranger::Iperf2),
            (&[0x50, 0x01, 0x00, 0x7c], Stranger::Iperf2),
            (&[0x00, 0x80, 0x00, 0x00], Stranger::Iperf2),
            (b"0123456789", Stranger::Iperf2),
            (cookie.bytes(), Stranger::Iperf3),
            (b"hello", Stranger::Unknown),
            (b"G", Stranger::Unknown),
            (&[0xff; 8], Stranger::Unknown),
            (b"", Stranger::Silent),
        ] {
            assert_eq!(Stranger::of(bytes), stranger, "{bytes:?}");
        }
    }

    #[test]
    fn each_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<_> = Stranger::ALL.iter().map(|s| s.name()).collect();
        assert_eq!(names.len(), Stranger::ALL.len());
    }
}
