//! A packet and its content.

use std::net::IpAddr;

use super::tcp::Segment;

/// A packet, as far as it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Total length by the IP header; if the header says 0, as with segmentation offload, the captured length.
    pub length: u32,
    /// Identification of IPv4, or of the IPv6 fragment header.
    pub identification: Option<u32>,
    /// The two ECN bits.
    pub ecn: u8,
    /// Differentiated services code point.
    pub dscp: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// Number of enclosing tunnels.
    pub tunnels: u8,
    /// Content.
    pub carries: Carries,
}

/// Content of an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carries {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram: its ports, and the bytes of its payload.
    Udp {
        /// Source port.
        source: u16,
        /// Destination port.
        destination: u16,
        /// Payload length, bytes.
        payload: u32,
        /// Location of the payload in the frame, as far as it was captured.
        kept: Span,
    },
    /// ICMP or ICMPv6.
    Icmp {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
        /// Identity of an echo; `None` if truncated or not an echo.
        echo: Option<Echo>,
        /// The undeliverable packet, for a "destination unreachable" message.
        about: Option<About>,
    },
    /// A fragment other than the first, of this protocol.
    Fragment(u8),
    /// Another protocol, by number.
    Other(u8),
}

/// A range of bytes in a frame. A packet does not borrow its payload, so that it can be stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    from: u32,
    length: u32,
}

impl Span {
    /// Returns the range of `length` bytes from `from`.
    pub const fn new(from: usize, length: usize) -> Self {
        Self { from: from as u32, length: length as u32 }
    }

    /// Returns these bytes of the frame; empty if the frame is shorter.
    pub fn of(self, frame: &[u8]) -> &[u8] {
        let from = self.from as usize;
        frame.get(from..from + self.length as usize).unwrap_or_default()
    }
}

/// The packet quoted in an ICMP error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// Protocol number.
    pub protocol: u8,
    /// Source address and port.
    pub source: (IpAddr, u16),
    /// Destination address and port.
    pub destination: (IpAddr, u16),
}

/// An ICMP echo request or reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// Whether it is a reply.
    pub is_reply: bool,
    /// Identifier.
    pub id: u16,
    /// Sequence number.
    pub number: u16,
}
