//! A connection as a conversation: which end's turn it was, and who waited for whom.

use super::{TimeSpent, TimeState};

/// The role of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It opened the connection and sends requests.
    Client,
    /// It responds.
    Server,
}

impl Role {
    /// Returns the role of the other end.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// The state of a connection that waits for this end's program.
    pub const fn wait(self) -> TimeState {
        match self {
            Self::Client => TimeState::NotAsked,
            Self::Server => TimeState::Answering,
        }
    }
}

/// Why a connection was not established.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There was no answer.
    NoAnswer,
    /// The host answered with a reset.
    Reset,
    /// ICMP reported it unreachable.
    Unreachable,
}

/// What a connection's packets show about its programs, for the data of one end.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// The role of the sending end.
    pub sender: Role,
    /// Why the connection was not established; `None` if it was.
    pub refused: Option<Refusal>,
    /// SYNs sent, including retransmissions.
    pub syns: u64,
    /// Where the time went, from the first packet to the last.
    pub spent: TimeSpent,
    /// Times that this end resumed sending after the other end had sent.
    pub turns: u64,
    /// Times that the connection waited for this end's program: to request, to respond, or to continue.
    pub own_waits: u64,
    /// Times that it waited for the other end's program between two turns of this end.
    pub other_waits: u64,
    /// Gaps between segments that an acknowledgement ended while data was waiting: there was data to send for longer than a round trip.
    pub bulk_gaps: u64,
    /// Stops until the other program had sent something, at the usual amount in flight.
    pub stops_at_amount: u64,
    /// The usual amount, bytes.
    pub amount_bytes: u64,
    /// The role of the end whose program decides how much may be in flight.
    pub gives_room: Role,
    /// The other end sends so much more data than this one that its limit is the connection's.
    pub is_minor: bool,
    /// Part of the time in a silence that neither end has ended yet: which end is waited for is unproved.
    pub open_silence: f64,
    /// Time for which nothing of an unfinished transfer reached the capture point before the capture ended, nanoseconds.
    pub broken_off_ns: u64,
    /// Bytes missing from the capture / all bytes acknowledged.
    pub missing: f64,
    /// Longest time in which nothing that was sent got through, as a capture away from the sender shows it, nanoseconds.
    pub outage_ns: u64,
    /// Retransmissions at the end that were never acknowledged.
    pub sent_in_vain: u64,
    /// From the first unacknowledged data to the last packet, nanoseconds.
    pub in_vain_ns: u64,
    /// The unacknowledged segment, if it is larger than all that got through.
    pub oversized: Option<Oversized>,
}

/// A segment that was never acknowledged and is larger than all that were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oversized {
    /// Its payload, bytes.
    pub bytes: u64,
    /// The largest acknowledged payload, bytes.
    pub passed_bytes: u64,
    /// Whether the other end sent something meanwhile.
    pub is_heard: bool,
}

impl Oversized {
    /// Returns `None` if the segment fits any path, or is no larger than others.
    pub fn of(bytes: u64, passed_bytes: u64, is_heard: bool) -> Option<Self> {
        /// Every path carries a segment of this size (RFC 1122, section 3.3.3).
        const ANY_PATH: u64 = 536;
        (bytes > ANY_PATH && bytes > passed_bytes).then_some(Self { bytes, passed_bytes, is_heard })
    }
}

/// Whether an amount is that of a program's buffer: a power of two from 16 KiB up, plus a few headers.
pub const fn is_round_amount(bytes: u64) -> bool {
    const LEAST: u64 = 16 * 1024;
    /// Tolerance below and above.
    const LESS: u64 = 256;
    const MORE: u64 = 64;
    if bytes < LEAST - LEAST / LESS {
        return false;
    }
    let power = 1 << (bytes + bytes / LESS).ilog2();
    bytes <= power + power / MORE
}

impl Conversation {
    /// Which end controls the programs' own window: for a server's data the client, by requests or credits; for a client's data the
    /// server or, over SSH, the client itself, which sends a number of requests ahead.
    pub const fn giver(sender: Role, has_channels: bool) -> Role {
        match (sender, has_channels) {
            (Role::Client, false) => Role::Server,
            _ => Role::Client,
        }
    }

    /// Whether an unfinished silence decides which end is waited for.
    pub fn is_unproved(&self) -> bool {
        const MOST: f64 = 0.5;
        self.open_silence >= MOST
    }
}
