//! TCP stacks independent of this machine's kernel. Each runs in steps of a virtual clock through the same small interface, as a library in
//! this process ([`Smoltcp`]) or as a program that implements a contract ([`Program`], `docs/stack-contract.md`).
//!
//! A step takes the time, packets and commands, and returns packets, the time of the next step and the changes of sockets. A stack
//! never waits and never reads a clock, so the duration of a case depends only on its number of segments.
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
    /// Returns its name and version, such as `smoltcp 0.14.0`.
    fn version(&self) -> &str;

    /// Carries out the commands, takes the packets and runs the timers due, all at one moment; `done` is passed in empty.
    fn step(&mut self, step: Step, done: &mut Done) -> Result<(), StackError>;

    /// For a stack that uses the machine's clock: a descriptor that is readable if the stack has something to send although no packet arrived and
    /// no timer is due. None for other stacks.
    fn wakes(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// The input of a step.
#[derive(Debug, Default)]
pub struct Step {
    /// Time of the step, never earlier than the one before.
    pub now: Nanos,
    /// Commands, carried out before the packets are taken.
    pub commands: Vec<Command>,
    /// Arriving IP packets, in order.
    pub packets: Vec<Vec<u8>>,
}

/// The output of a step.
#[derive(Debug, Default)]
pub struct Done {
    /// IP packets sent, in order.
    pub packets: Vec<Vec<u8>>,
    /// When it must run next even if nothing arrives; later than now.
    pub next: Option<Nanos>,
    /// Sockets whose state changed since the last step.
    pub sockets: Vec<SocketReport>,
}

/// Why a stack failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StackError {
    /// It is not installed on this machine.
    #[error("{what} is not installed; {install}")]
    Missing {
        /// What is missing.
        what: String,
        /// How to install it.
        install: String,
    },
    /// It does not support a setting.
    #[error("{stack} does not support {what}")]
    Unsupported {
        /// Name of the stack.
        stack: String,
        /// The unsupported setting.
        what: String,
    },
    /// It violated the contract, or exited.
    #[error("{0}")]
    Failed(String),
}

impl StackError {
    /// Whether the stack is merely absent or lacks a setting, so that the case is skipped.
    pub fn skips(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::Unsupported { .. })
    }
}
