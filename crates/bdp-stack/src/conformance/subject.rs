//! What the suite is held against, and what it says of it.

use std::net::Ipv4Addr;

use bdp_model::units::Nanos;

use crate::{Command, SocketReport, StackError};

/// The subject's address.
pub const SUBJECT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The counterpart's.
pub const COUNTERPART: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// Both are in a network of this prefix.
pub const PREFIX: u8 = 24;
/// Of the path between them.
pub const MTU: u32 = 1500;

/// What the suite is held against.
pub trait Subject {
    /// The moment.
    fn now(&self) -> Nanos;

    /// Carries out a command now.
    fn command(&mut self, command: Command) -> Result<(), StackError>;

    /// A packet arrives now.
    fn arrive(&mut self, packet: Vec<u8>) -> Result<(), StackError>;

    /// Goes on until a moment, or until it has sent something: what it sent, each with the moment.
    fn advance(&mut self, until: Nanos) -> Result<Vec<(Nanos, Vec<u8>)>, StackError>;

    /// What it says of a socket.
    fn socket(&mut self, socket: u32) -> Result<SocketReport, StackError>;
}

/// What a point comes to: how it was met in few words, or why it was not.
pub(super) type Verdict = Result<String, Miss>;

/// Why a point was not met.
#[derive(Debug)]
pub(super) enum Miss {
    /// The stack did something else.
    Differs(String),
    /// It could not be tried.
    Broken(StackError),
}

impl From<StackError> for Miss {
    fn from(error: StackError) -> Self {
        Self::Broken(error)
    }
}

/// The point is not met, for this reason.
pub(super) fn differs<T>(text: impl Into<String>) -> Result<T, Miss> {
    Err(Miss::Differs(text.into()))
}

/// A time in words.
pub(super) fn seconds(time: Nanos) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 10.0 { format!("{seconds:.2} s") } else { format!("{seconds:.0} s") }
}
