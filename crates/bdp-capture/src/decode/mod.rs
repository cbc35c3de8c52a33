//! From the bytes of a frame to the packet that they carry: link layer, tunnels, IP, and the head of the transport.

mod ip;
mod link;
mod tcp;

use std::net::IpAddr;

pub use tcp::{Flags, Options, SackBlocks, Segment};

/// Within so many headers around each other there is a packet, or none.
const DEEPEST: usize = 12;

/// A packet, as far as it was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Who sends it.
    pub source: IpAddr,
    /// To whom.
    pub destination: IpAddr,
    /// Its whole length by the IP header; of a packet whose header says 0, as segmentation offload leaves it, what was captured.
    pub length: u32,
    /// IPv4's identification, and the fragment header's of IPv6.
    pub identification: Option<u32>,
    /// The two ECN bits.
    pub ecn: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// Tunnels around it.
    pub tunnels: u8,
    /// What it carries.
    pub carries: Carries,
}

/// What an IP packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carries {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram: its ports, and the bytes of its payload.
    Udp {
        /// Port that it comes from.
        source: u16,
        /// Port that it goes to.
        destination: u16,
        /// Bytes.
        payload: u32,
    },
    /// ICMP or ICMPv6: type and code.
    Icmp {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
    },
    /// A fragment that is not the first, of this protocol.
    Fragment(u8),
    /// Another protocol.
    Other(u8),
}

/// Why there is no packet in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unread {
    /// A link layer that bdp does not know, by its number in captures.
    LinkType(u16),
    /// No IP: ARP and the like, by the Ethernet type.
    NotIp(u16),
    /// What was kept ends within a header.
    Cut,
    /// A header contradicts itself.
    Malformed,
}

/// The innermost packet of a frame whose link layer has this number, of this length before it was cut.
pub fn packet(link_type: u16, frame: &[u8], length: u32) -> Result<Packet, Unread> {
    link::packet(link_type, frame, length)
}

/// Bytes that are read from their beginning, and that may end too early.
#[derive(Debug, Clone, Copy)]
struct Bytes<'a> {
    rest: &'a [u8],
    /// How long the rest was before it was cut.
    length: u32,
}

impl<'a> Bytes<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], Unread> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or(Unread::Cut)?;
        self.rest = rest;
        self.length = self.length.saturating_sub(n as u32);
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Unread> {
        let taken = self.take(N)?;
        Ok(std::array::from_fn(|i| taken[i]))
    }

    fn u16(&mut self) -> Result<u16, Unread> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, Unread> {
        self.array().map(u32::from_be_bytes)
    }
}
