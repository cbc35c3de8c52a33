//! A connection as a conversation: whose turn it was when, and who waited for whom.

use super::{TimeSpent, TimeState};

/// Which part an end has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It made the connection: it asks.
    Client,
    /// It answers.
    Server,
}

impl Role {
    /// The part of the other end.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// The state of a connection that waits for the program of this end.
    pub const fn wait(self) -> TimeState {
        match self {
            Self::Client => TimeState::NotAsked,
            Self::Server => TimeState::Answering,
        }
    }
}

/// Why a connection was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Nobody answered.
    NoAnswer,
    /// The host answered by a reset.
    Reset,
    /// ICMP said that it could not be reached.
    Unreachable,
}

/// What the packets of a connection say of its programs, for the data of one end.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// The part of the end that sends.
    pub sender: Role,
    /// Why the connection was not made; `None` of one that was.
    pub refused: Option<Refusal>,
    /// SYNs that were sent, those again included.
    pub syns: u64,
    /// Where the time went, from the first packet to the last.
    pub spent: TimeSpent,
    /// Times that this end went on to speak after the other one had.
    pub turns: u64,
    /// Times that the connection waited for the program of this end: to ask, to answer, or to go on.
    pub own_waits: u64,
    /// The same for the program of the other end, between two of this end's turns.
    pub other_waits: u64,
    /// Gaps between segments that an acknowledgement ended, with data waiting: there was data to send for longer than a round trip.
    pub bulk_gaps: u64,
    /// Of the times that it stopped and went on when the other program had sent something, those at the usual amount.
    pub stops_at_amount: u64,
    /// That amount, bytes.
    pub amount_bytes: u64,
    /// The part of the end whose program says how much may be on its way.
    pub gives_room: Role,
    /// The other end's data is so much more than this one's that what limits that limits the connection.
    pub is_minor: bool,
    /// Part of the time that belongs to a silence which neither end has ended yet: who is waited for is not proved.
    pub open_silence: f64,
    /// For how long nothing of a transfer in its midst reached the place of the capture, until its end, nanoseconds.
    pub broken_off_ns: u64,
    /// Bytes that the capture lacks / all that were acknowledged.
    pub missing: f64,
    /// The longest time for which nothing passed that had been sent, as a capture elsewhere than at the sender knows, nanoseconds.
    pub outage_ns: u64,
    /// Times that data was sent again at the end, none of which was acknowledged.
    pub sent_in_vain: u64,
    /// From the first of what was never acknowledged to the last packet, nanoseconds.
    pub in_vain_ns: u64,
    /// The same of a segment that is larger than all that came through.
    pub oversized: Option<Oversized>,
}

/// A segment that was never acknowledged, larger than all that were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oversized {
    /// Its payload.
    pub bytes: u64,
    /// The largest payload that was acknowledged.
    pub passed_bytes: u64,
    /// The other end spoke meanwhile.
    pub is_heard: bool,
}

impl Oversized {
    /// `None` of one that any path carries, or that is no larger than others were.
    pub fn of(bytes: u64, passed_bytes: u64, is_heard: bool) -> Option<Self> {
        /// Every path carries so much in a packet (RFC 1122, section 3.3.3).
        const ANY_PATH: u64 = 536;
        (bytes > ANY_PATH && bytes > passed_bytes).then_some(Self { bytes, passed_bytes, is_heard })
    }
}

/// Whether an amount is that of a program's buffer: a power of two from 16 KiB on, with a few headers.
pub const fn is_round_amount(bytes: u64) -> bool {
    const LEAST: u64 = 16 * 1024;
    /// This part less, or that much more.
    const LESS: u64 = 256;
    const MORE: u64 = 64;
    if bytes < LEAST - LEAST / LESS {
        return false;
    }
    let power = 1 << (bytes + bytes / LESS).ilog2();
    bytes <= power + power / MORE
}

impl Conversation {
    /// Who gives room where the programs have a window of their own: of a server's data its client does, by asking for more, or by credit; of a client's the server
    /// does, or, over SSH, the client itself, which sends so many requests ahead.
    pub const fn giver(sender: Role, has_channels: bool) -> Role {
        match (sender, has_channels) {
            (Role::Client, false) => Role::Server,
            _ => Role::Client,
        }
    }

    /// Whether a silence that nobody has ended decides who is waited for.
    pub fn is_unproved(&self) -> bool {
        const MOST: f64 = 0.5;
        self.open_silence >= MOST
    }
}
