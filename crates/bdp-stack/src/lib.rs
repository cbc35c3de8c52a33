//! TCP stacks that are no kernel of this machine: each runs in steps of a virtual clock, by the same few calls, whether it is a library in
//! this process ([`Smoltcp`]) or a program that holds to a contract ([`Program`], `docs/stack-contract.md`).
//!
//! A step takes the time, packets and commands, and gives back packets, the time of the next step and what changed of the sockets. A stack
//! never waits and never looks at a clock, so a case of a minute takes as long as its segments need.
#![forbid(unsafe_code)]

mod agenda;
pub mod conformance;
mod contract;
mod find;
mod pattern;
mod program;
mod segment;
mod smoltcp;
mod socket;

pub use crate::agenda::Agenda;
pub use crate::contract::{CONTRACT, Settings};
pub use crate::find::{Found, list, open, open_in, placed};
pub use crate::pattern::{Crc, PIECE, byte_at, bytes_from, crc, crc_of};
pub use crate::program::Program;
pub use crate::smoltcp::Smoltcp;
pub use crate::socket::{Command, SocketId, SocketOptions, SocketReport, SocketState};

use std::os::fd::BorrowedFd;

use bdp_model::units::Nanos;

/// A TCP stack on one host.
pub trait Stack: Send {
    /// Its name and version, such as `smoltcp 0.14.0`.
    fn version(&self) -> &str;

    /// Carries out the commands, takes the packets and runs the timers that are due, all at one moment; `done` comes empty.
    fn step(&mut self, step: Step, done: &mut Done) -> Result<(), StackError>;

    /// Of a stack that goes by the clock of the machine that it is on: readable when it has something to send, though nothing came and nothing is
    /// due. Others have none.
    fn wakes(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// What a stack is given.
#[derive(Debug, Default)]
pub struct Step {
    /// The moment; never earlier than that of the step before.
    pub now: Nanos,
    /// Before the packets.
    pub commands: Vec<Command>,
    /// IP packets that arrive, in their order.
    pub packets: Vec<Vec<u8>>,
}

/// What a stack gives back.
#[derive(Debug, Default)]
pub struct Done {
    /// IP packets that it sends, in their order.
    pub packets: Vec<Vec<u8>>,
    /// When it has to run next, though nothing comes; later than now.
    pub next: Option<Nanos>,
    /// Sockets of which anything is other than at the step before.
    pub sockets: Vec<SocketReport>,
}

/// Why a stack does not do what it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StackError {
    /// It is not on this machine.
    #[error("{what} is not installed; {install}")]
    Missing {
        /// What is missing.
        what: String,
        /// How to come by it.
        install: String,
    },
    /// It has no such setting.
    #[error("{stack} does not support {what}")]
    Unsupported {
        /// Its name.
        stack: String,
        /// What was asked for.
        what: String,
    },
    /// It broke the contract, or ended.
    #[error("{0}")]
    Failed(String),
}

impl StackError {
    /// Whether nothing went wrong but that the stack is not here, or has no such setting: then a case is skipped.
    pub fn skips(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::Unsupported { .. })
    }
}
