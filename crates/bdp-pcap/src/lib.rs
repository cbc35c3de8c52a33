//! Captures in pcapng, by the IETF's draft-ietf-opsawg-pcapng, and in pcap (draft-ietf-opsawg-pcap).
//!
//! [`Writer`] writes one section, with nanoseconds and a comment on each packet. [`blocks`] reads
//! sections of either byte order from memory and passes over what it does not know. [`Packets`] reads the packets of a stream of any length, in pcap or
//! pcapng. No bytes make them panic.
#![forbid(unsafe_code)]

mod block;
mod packed;
mod packets;
mod reader;
mod writer;

pub use block::{Direction, LINKTYPE_RAW};
pub use packed::unpacked;
pub use packets::{Captured, Packets, ReadError};
pub use reader::{Block, Blocks, blocks};
pub use writer::{Interface, Packet, Section, Statistics, Writer};

/// Why bytes are no capture, with the offset at which the block in question begins.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PcapError {
    /// The bytes do not begin with a section header.
    #[error("at byte {at}: not a pcapng section header")]
    NoSection {
        /// Offset of the block.
        at: usize,
    },
    /// The bytes end within a block.
    #[error("at byte {at}: a block of {length} bytes, but only {left} left")]
    Truncated {
        /// Offset of the block.
        at: usize,
        /// Its length as it says.
        length: u64,
        /// Bytes from there to the end.
        left: usize,
    },
    /// A length within a block contradicts another.
    #[error("at byte {at}: the {what} of the block does not fit")]
    Malformed {
        /// Offset of the block.
        at: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A packet or statistics of an interface that no block before described.
    #[error("at byte {at}: interface {interface} is not defined")]
    NoInterface {
        /// Offset of the block.
        at: usize,
        /// Its number.
        interface: u32,
    },
}
