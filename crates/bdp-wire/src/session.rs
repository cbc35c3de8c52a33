//! bdp's own protocol between two machines, specified in `docs/protocol.md`: how a connection opens and who may use a
//! server. The requests of an admitted client are in [`crate::control`].

use std::fmt;

use bdp_model::units::{Nanos, Rate};
use serde::{Deserialize, Serialize};

/// Protocol version; increased by any change that an older end would misunderstand.
pub const VERSION: u8 = 1;
/// First bytes of every connection and datagram. No text, TLS record or iperf3 cookie starts with them.
pub const MAGIC: [u8; 4] = [0xbd, b'b', b'd', b'p'];
/// Length of a [`Preamble`] alone, bytes.
pub const PREAMBLE_BYTES: usize = 8;
/// Length of a preamble with its [`Ticket`], bytes.
pub const TICKET_BYTES: usize = PREAMBLE_BYTES + 24;
/// Length of a probe, bytes: preamble, key, number, time of sending.
pub const PROBE_BYTES: usize = PREAMBLE_BYTES + 32;
/// Longest frame before the client is admitted, bytes.
pub const LONGEST_GREETING: usize = 4 << 10;
/// Longest frame that a server reads, bytes.
pub const LONGEST_REQUEST: usize = 64 << 10;

/// Most samples kept per flow; more would not fit into a frame.
pub const MOST_SAMPLES: u64 = 200_000;

/// Random bytes that identify a session.
pub type Key = [u8; 16];

/// Purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Greeting, requests and answers.
    Control,
    /// One stream of a flow.
    Data,
    /// Probes, if datagrams do not get through; in a datagram, one probe.
    Probe,
    /// Messages echoed with timestamps, [`crate::echo`]; in a datagram, one of them.
    Echo,
}

/// First bytes of a connection or datagram: magic, version, kind, two zero bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preamble {
    /// Protocol version of its sender.
    pub version: u8,
    /// What follows.
    pub kind: Kind,
}

/// Why bytes are not a preamble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PreambleError {
    /// Another protocol.
    #[error("it does not start with the magic number of bdp")]
    Magic,
    /// A kind unknown in this version, or padding that is not zero.
    #[error("its preamble is invalid after the magic number of bdp")]
    Kind,
}

impl Preamble {
    /// Returns a preamble of this version.
    pub const fn new(kind: Kind) -> Self {
        Self { version: VERSION, kind }
    }

    /// Encodes the preamble.
    pub const fn encode(self) -> [u8; PREAMBLE_BYTES] {
        let kind = match self.kind {
            Kind::Control => 1,
            Kind::Data => 2,
            Kind::Probe => 3,
            Kind::Echo => 10,
        };
        let [a, b, c, d] = MAGIC;
        [a, b, c, d, self.version, kind, 0, 0]
    }

    /// Decodes the bytes received so far; `None` until the preamble is complete. Bytes that can't become a preamble are an error at once.
    /// For another version, only the version is read.
    pub fn decode(arrived: &[u8]) -> Result<Option<Self>, PreambleError> {
        let compared = arrived.len().min(MAGIC.len());
        if arrived[..compared] != MAGIC[..compared] {
            return Err(PreambleError::Magic);
        }
        let Some(&[_, _, _, _, version, kind, zero, another]) = arrived.first_chunk::<PREAMBLE_BYTES>()
        else {
            return Ok(None);
        };
        let kind = match kind {
            _ if version != VERSION => Kind::Control,
            1 => Kind::Control,
            2 => Kind::Data,
            3 => Kind::Probe,
            10 => Kind::Echo,
            _ => return Err(PreambleError::Kind),
        };
        if version == VERSION && (zero, another) != (0, 0) {
            return Err(PreambleError::Kind);
        }
        Ok(Some(Self { version, kind }))
    }
}

/// Credential of a data or probe connection: the 24 bytes after its preamble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// Session key.
    pub key: Key,
    /// Flow number; 0 for a probe connection.
    pub flow: u32,
    /// Stream index within the flow, from 0.
    pub stream: u32,
}

impl Ticket {
    /// Encodes the preamble and the ticket.
    pub fn encode(&self, kind: Kind) -> [u8; TICKET_BYTES] {
        let mut bytes = [0; TICKET_BYTES];
        bytes[..8].copy_from_slice(&Preamble::new(kind).encode());
        bytes[8..24].copy_from_slice(&self.key);
        bytes[24..28].copy_from_slice(&self.flow.to_be_bytes());
        bytes[28..].copy_from_slice(&self.stream.to_be_bytes());
        bytes
    }

    /// Decodes the bytes received so far, preamble included; `None` until the ticket is complete.
    pub fn decode(arrived: &[u8]) -> Option<Self> {
        let bytes = arrived.first_chunk::<TICKET_BYTES>()?;
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Some(Self { key: *bytes[8..].first_chunk()?, flow: word(24), stream: word(28) })
    }
}

/// A probe: one datagram, or as many bytes of a probe connection. The server returns it unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Session key.
    pub key: Key,
    /// Probe number, from 0.
    pub number: u64,
    /// Time of sending, by the sender's own clock.
    pub sent_ns: u64,
}

impl Probe {
    /// Encodes the probe.
    pub fn encode(&self) -> [u8; PROBE_BYTES] {
        let mut bytes = [0; PROBE_BYTES];
        bytes[..8].copy_from_slice(&Preamble::new(Kind::Probe).encode());
        bytes[8..24].copy_from_slice(&self.key);
        bytes[24..32].copy_from_slice(&self.number.to_be_bytes());
        bytes[32..].copy_from_slice(&self.sent_ns.to_be_bytes());
        bytes
    }

    /// Decodes a probe of exactly [`PROBE_BYTES`]; `None` for anything else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; PROBE_BYTES] = bytes.try_into().ok()?;
        if bytes[..8] != Preamble::new(Kind::Probe).encode() {
            return None;
        }
        Some(Self {
            key: *bytes[8..].first_chunk()?,
            number: u64::from_be_bytes(*bytes[24..].first_chunk()?),
            sent_ns: u64::from_be_bytes(*bytes[32..].first_chunk()?),
        })
    }
}

/// The server's first frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Greeting {
    /// The client may proceed.
    Challenge {
        /// The server's version of bdp.
        bdp: String,
        /// Random nonce for [`crate::proof`]; 32 bytes in hexadecimal.
        nonce: String,
        /// Whether the client has to prove knowledge of the token.
        token_needed: bool,
        /// Whether clients with the tune token may change settings; null from an older server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tune: Option<bool>,
    },
    /// The server refuses the client.
    Refused(Refusal),
}

/// The client's first frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The client's version of bdp.
    pub bdp: String,
    /// Random nonce, 32 bytes in hexadecimal.
    pub nonce: String,
    /// Proof of the token, 32 bytes in hexadecimal; null if the client has none.
    pub proof: Option<String>,
    /// Proof of the tune token; null if the client has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tune_proof: Option<String>,
}

/// The server's second frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Admission {
    /// The client is admitted and may send requests.
    Welcome {
        /// Session key for the session's other connections and probes; 16 bytes in hexadecimal.
        key: String,
        /// Proof that the server knows the token too; null if it has none.
        proof: Option<String>,
        /// Proof that the server knows the tune token too; null unless the client proved it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tune_proof: Option<String>,
        /// Limits of the session.
        limits: Limits,
    },
    /// The server refuses the client.
    Refused(Refusal),
}

/// Limits that a server grants to one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Longest flow.
    pub duration: Nanos,
    /// Most streams of a flow.
    pub streams: u32,
    /// Highest rate of one flow that the server sends or may be ordered to send, all streams together; null if
    /// unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

/// Why a server refuses a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// It speaks another version of the protocol.
    Version {
        /// Version that the server speaks.
        speaks: u8,
    },
    /// The client offered no proof.
    TokenNeeded,
    /// The client's proof is wrong.
    TokenWrong,
    /// The client's proof of the tune token is wrong.
    TuneTokenWrong,
    /// The server has reached its limit of sessions.
    Busy {
        /// Limit of sessions.
        sessions: u32,
    },
    /// The server is shutting down.
    Ending,
    /// Another reason.
    Other {
        /// The reason, as a sentence.
        text: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { speaks } => {
                write!(f, "it uses version {speaks} of the protocol; install the same version of bdp at both ends")
            }
            Self::TokenNeeded => f.write_str(
                "a token is required, printed by 'bdp serve' there; give it by --token, --token-file or BDP_TOKEN",
            ),
            Self::TokenWrong => f.write_str(
                "wrong token; use the one that 'bdp serve' printed there, which changes at each start",
            ),
            Self::TuneTokenWrong => f.write_str(
                "wrong tune token; use the one that 'bdp serve --allow-tune' printed there, which changes at each start",
            ),
            Self::Busy { sessions } => {
                write!(f, "it is busy with {sessions} other sessions, its maximum; try again later")
            }
            Self::Ending => f.write_str("it is shutting down"),
            Self::Other { text } => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preambles_come_back_and_grow_byte_by_byte() {
        for kind in [Kind::Control, Kind::Data, Kind::Probe, Kind::Echo] {
            let bytes = Preamble::new(kind).encode();
            for cut in 0..bytes.len() {
                assert_eq!(Preamble::decode(&bytes[..cut]), Ok(None), "{cut}");
            }
            assert_eq!(Preamble::decode(&bytes), Ok(Some(Preamble::new(kind))));
        }
    }

    #[test]
    fn other_protocols_are_told_by_their_first_byte() {
        for other in [b"GET / HTTP/1.1".as_slice(), b"a", b"z2", b"7", &[0x16, 3, 1], &[0], b"SSH-2.0"] {
            assert_eq!(Preamble::decode(other), Err(PreambleError::Magic), "{other:?}");
        }
        let mut bytes = Preamble::new(Kind::Data).encode();
        bytes[5] = 9;
        assert_eq!(Preamble::decode(&bytes), Err(PreambleError::Kind));
        bytes[4] = VERSION + 1;
        assert_eq!(Preamble::decode(&bytes).unwrap().map(|p| p.version), Some(VERSION + 1));
        let mut bytes = Preamble::new(Kind::Data).encode();
        bytes[7] = 1;
        assert_eq!(Preamble::decode(&bytes), Err(PreambleError::Kind));
    }

    #[test]
    fn tickets_and_probes_come_back_and_halves_do_not() {
        let ticket = Ticket { key: *b"0123456789abcdef", flow: 7, stream: 999 };
        let bytes = ticket.encode(Kind::Data);
        assert_eq!(Ticket::decode(&bytes), Some(ticket));
        assert_eq!(Ticket::decode(&bytes[..TICKET_BYTES - 1]), None);
        let probe = Probe { key: ticket.key, number: 1 << 40, sent_ns: u64::MAX };
        let bytes = probe.encode();
        assert_eq!(Probe::decode(&bytes), Some(probe));
        assert_eq!(Probe::decode(&bytes[1..]), None);
        assert_eq!(Probe::decode(&ticket.encode(Kind::Data)), None);
        let mut longer = bytes.to_vec();
        longer.push(0);
        assert_eq!(Probe::decode(&longer), None);
    }
}
