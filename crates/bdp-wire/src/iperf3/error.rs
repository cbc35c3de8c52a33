//! Why a message is rejected, and iperf3's error number for it.

use super::limits::LONGEST_DATAGRAM;
use super::state::Failure;

/// Why a message from the other end is rejected.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Iperf3Error {
    /// The first bytes are not those of a cookie.
    #[error("its first bytes are not an iperf3 cookie")]
    Cookie,
    /// Unknown or unexpected state.
    #[error("it sent state {state} instead of {expected}")]
    State {
        /// Byte received.
        state: i8,
        /// Expected states.
        expected: &'static str,
    },
    /// SCTP streams.
    #[error("SCTP is not served")]
    Sctp,
    /// A member has the wrong type.
    #[error("'{member}' is {found}, expected {expected}")]
    Type {
        /// Name of the member.
        member: &'static str,
        /// Type found.
        found: String,
        /// Type expected.
        expected: &'static str,
    },
    /// A member is missing.
    #[error("'{member}' is missing")]
    Missing {
        /// Name of the member.
        member: &'static str,
    },
    /// A number is out of range.
    #[error("'{member}' is {found}, expected {least} to {most}")]
    Range {
        /// Name of the member.
        member: &'static str,
        /// Value found.
        found: String,
        /// Smallest valid value.
        least: u64,
        /// Largest valid value.
        most: u64,
    },
    /// Members that contradict each other or ask for something unavailable.
    #[error("{0}")]
    Meaning(&'static str),
}

impl Iperf3Error {
    /// Returns the error to send to the other end.
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
