//! Captures in pcapng (draft-ietf-opsawg-pcapng) and pcap (draft-ietf-opsawg-pcap).
//!
//! [`Writer`] writes one section, with nanosecond timestamps and a comment on each packet. [`blocks`] reads
//! sections of either byte order from memory and skips unknown blocks. [`Packets`] reads packets from a stream of any length, in pcap or
//! pcapng. No input makes them panic.
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

/// Why bytes are not a valid capture, with the offset of the block.
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
        /// Length stated by the block.
        length: u64,
        /// Bytes from there to the end of the input.
        left: usize,
    },
    /// Lengths within a block contradict each other.
    #[error("at byte {at}: the {what} of the block does not fit")]
    Malformed {
        /// Offset of the block.
        at: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A packet or statistics of an interface that no earlier block described.
    #[error("at byte {at}: interface {interface} is not defined")]
    NoInterface {
        /// Offset of the block.
        at: usize,
        /// Number of the interface.
        interface: u32,
    },
}
