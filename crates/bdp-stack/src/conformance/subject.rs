//! The subject of the suite, and the verdict on it.

use std::net::Ipv4Addr;

use bdp_model::units::Nanos;

use crate::{Command, SocketReport, StackError};

/// Address of the subject.
pub const SUBJECT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// Address of the test peer.
pub const COUNTERPART: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// Prefix length of the network of both.
pub const PREFIX: u8 = 24;
/// MTU of the path between them, bytes.
pub const MTU: u32 = 1500;

/// A TCP endpoint under test.
pub trait Subject {
    /// Returns the current time.
    fn now(&self) -> Nanos;

    /// Carries out a command at the current time.
    fn command(&mut self, command: Command) -> Result<(), StackError>;

    /// Delivers a packet at the current time.
    fn arrive(&mut self, packet: Vec<u8>) -> Result<(), StackError>;

    /// Runs until a time, or until it has sent something; returns what it sent, with the time of each.
    fn advance(&mut self, until: Nanos) -> Result<Vec<(Nanos, Vec<u8>)>, StackError>;

    /// Returns its report of a socket.
    fn socket(&mut self, socket: u32) -> Result<SocketReport, StackError>;
}

/// The result of a point: how it was met in few words, or why not.
pub(super) type Verdict = Result<String, Miss>;

/// Why a point was not met.
#[derive(Debug)]
pub(super) enum Miss {
    /// The stack behaved differently.
    Differs(String),
    /// It could not be tested.
    Broken(StackError),
}

impl From<StackError> for Miss {
    fn from(error: StackError) -> Self {
        Self::Broken(error)
    }
}

/// Returns a failure with this reason.
pub(super) fn differs<T>(text: impl Into<String>) -> Result<T, Miss> {
    Err(Miss::Differs(text.into()))
}

/// Formats a time in seconds.
pub(super) fn seconds(time: Nanos) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 10.0 { format!("{seconds:.2} s") } else { format!("{seconds:.0} s") }
}
