//! bdp's own protocol between two machines, specified in `docs/protocol.md`: what opens a connection and who may use a
//! server. What an admitted client may ask is [`crate::control`].

use std::fmt;

use bdp_model::units::{Nanos, Rate};
use serde::{Deserialize, Serialize};

/// Version of the protocol: a change that an older end would misunderstand gets a new one.
pub const VERSION: u8 = 1;
/// First bytes of every connection and datagram. No text, TLS record or iperf3 cookie begins with them.
pub const MAGIC: [u8; 4] = [0xbd, b'b', b'd', b'p'];
/// Bytes of a [`Preamble`] alone.
pub const PREAMBLE_BYTES: usize = 8;
/// Bytes of a preamble with its [`Ticket`].
pub const TICKET_BYTES: usize = PREAMBLE_BYTES + 24;
/// Bytes of a probe: preamble, key, number, time of sending.
pub const PROBE_BYTES: usize = PREAMBLE_BYTES + 32;
/// Longest frame before the client is admitted.
pub const LONGEST_GREETING: usize = 4 << 10;
/// Longest frame that a server reads.
pub const LONGEST_REQUEST: usize = 64 << 10;

/// Samples of one flow that are kept at most: more would not fit into a frame.
pub const MOST_SAMPLES: u64 = 200_000;

/// Random bytes that stand for a session.
pub type Key = [u8; 16];

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Greeting, requests and answers.
    Control,
    /// One stream of a flow.
    Data,
    /// Probes, where datagrams do not come through; and, in a datagram, a probe.
    Probe,
    /// Messages that are sent back with times, [`crate::echo`]; and, in a datagram, one of them.
    Echo,
}

/// The first bytes of a connection or datagram: magic, version, kind, two bytes of zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preamble {
    /// Version that its sender speaks.
    pub version: u8,
    /// What follows.
    pub kind: Kind,
}

/// Why bytes are no preamble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PreambleError {
    /// Another protocol.
    #[error("it does not start with the magic number of bdp")]
    Magic,
    /// A kind of this version that there is not, or padding that is not zero.
    #[error("its preamble is invalid after the magic number of bdp")]
    Kind,
}

impl Preamble {
    /// Of this version.
    pub const fn new(kind: Kind) -> Self {
        Self { version: VERSION, kind }
    }

    /// As bytes.
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

    /// From what has arrived: `None` until it is whole. Bytes that can't become a preamble are an error at once. Of
    /// another version only the version is read.
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

/// What a data or probe connection shows to be let in; behind its preamble, 24 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// The session.
    pub key: Key,
    /// The flow; 0 of a probe connection.
    pub flow: u32,
    /// Which of the flow's streams, from 0.
    pub stream: u32,
}

impl Ticket {
    /// Preamble and ticket as bytes.
    pub fn encode(&self, kind: Kind) -> [u8; TICKET_BYTES] {
        let mut bytes = [0; TICKET_BYTES];
        bytes[..8].copy_from_slice(&Preamble::new(kind).encode());
        bytes[8..24].copy_from_slice(&self.key);
        bytes[24..28].copy_from_slice(&self.flow.to_be_bytes());
        bytes[28..].copy_from_slice(&self.stream.to_be_bytes());
        bytes
    }

    /// From what has arrived, preamble included: `None` until it is whole.
    pub fn decode(arrived: &[u8]) -> Option<Self> {
        let bytes = arrived.first_chunk::<TICKET_BYTES>()?;
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Some(Self { key: *bytes[8..].first_chunk()?, flow: word(24), stream: word(28) })
    }
}

/// A probe: a datagram, or as many bytes of a probe connection. The server sends it back as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// The session.
    pub key: Key,
    /// Which, from 0.
    pub number: u64,
    /// When it was sent, by the sender's own clock.
    pub sent_ns: u64,
}

impl Probe {
    /// As bytes.
    pub fn encode(&self) -> [u8; PROBE_BYTES] {
        let mut bytes = [0; PROBE_BYTES];
        bytes[..8].copy_from_slice(&Preamble::new(Kind::Probe).encode());
        bytes[8..24].copy_from_slice(&self.key);
        bytes[24..32].copy_from_slice(&self.number.to_be_bytes());
        bytes[32..].copy_from_slice(&self.sent_ns.to_be_bytes());
        bytes
    }

    /// From exactly its bytes; `None` of anything else.
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
    /// Go on.
    Challenge {
        /// The server's version of bdp.
        bdp: String,
        /// Random, for [`crate::proof`]; 32 bytes in hexadecimal.
        nonce: String,
        /// Whether the client has to prove that it knows the token.
        token_needed: bool,
        /// Whether clients that know the tune token may change settings; null of an older server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tune: Option<bool>,
    },
    /// No.
    Refused(Refusal),
}

/// The client's first frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The client's version of bdp.
    pub bdp: String,
    /// Random, 32 bytes in hexadecimal.
    pub nonce: String,
    /// That it knows the token, 32 bytes in hexadecimal; null where it has none.
    pub proof: Option<String>,
    /// That it knows the tune token; null where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tune_proof: Option<String>,
}

/// The server's second frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Admission {
    /// The client may ask from now on.
    Welcome {
        /// Names the session on its other connections and in its probes; 16 bytes in hexadecimal.
        key: String,
        /// That the server knows the token too; null where it has none.
        proof: Option<String>,
        /// That the server knows the tune token too, where the client proved that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tune_proof: Option<String>,
        /// What it grants.
        limits: Limits,
    },
    /// No.
    Refused(Refusal),
}

/// What a server grants to one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Longest flow.
    pub duration: Nanos,
    /// Most streams of a flow.
    pub streams: u32,
    /// The most that the server sends of one flow, and that one may be ordered to send it, all streams together; none where
    /// it has no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

/// Why a server does not serve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// It speaks another version of the protocol.
    Version {
        /// Which.
        speaks: u8,
    },
    /// The client offered no proof.
    TokenNeeded,
    /// The client's proof is wrong.
    TokenWrong,
    /// The client's proof of the tune token is wrong.
    TuneTokenWrong,
    /// It serves as many sessions as it may.
    Busy {
        /// How many.
        sessions: u32,
    },
    /// It is about to end.
    Ending,
    /// Something else.
    Other {
        /// What, in a sentence.
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
