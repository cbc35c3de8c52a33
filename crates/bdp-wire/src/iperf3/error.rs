//! Why a message is not taken, and the number by which iperf3 reports it.

use super::limits::LONGEST_DATAGRAM;
use super::state::Failure;

/// Why a message of the other end is not taken.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Iperf3Error {
    /// The first bytes are not those of a cookie.
    #[error("its first bytes are not an iperf3 cookie")]
    Cookie,
    /// A state that does not exist, or not at this time.
    #[error("it sent state {state} instead of {expected}")]
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
    #[error("'{member}' is {found}, expected {expected}")]
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
    #[error("'{member}' is {found}, expected {least} to {most}")]
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
    /// What the other end is sent as the reason.
    pub fn failure(&self) -> Failure {
        match self {
            Self::Sctp => Failure::SCTP,
            Self::Range { member: "parallel", .. } => Failure::STREAMS,
            Self::Range { member: "time", .. } => Failure::DURATION,
            Self::Range { member: "len", most: LONGEST_DATAGRAM, .. } => Failure::DATAGRAM_SIZE,
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
