//! A packet, and what it carries.

use std::net::IpAddr;

use super::tcp::Segment;

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
    /// Differentiated services code point.
    pub dscp: u8,
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
