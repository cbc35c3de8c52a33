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
        /// Where the payload lies in the frame, as far as it was kept.
        kept: Span,
    },
    /// ICMP or ICMPv6: type and code, and what an echo is known by.
    Icmp {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
        /// Of an echo; `None` where it was cut off.
        echo: Option<Echo>,
        /// Of a message that a destination can't be reached, what it is about.
        about: Option<About>,
    },
    /// A fragment that is not the first, of this protocol.
    Fragment(u8),
    /// Another protocol.
    Other(u8),
}

/// Where in its frame something lies. A packet has no payload of its own, so that it can be kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    from: u32,
    length: u32,
}

impl Span {
    /// So many bytes from there on.
    pub const fn new(from: usize, length: usize) -> Self {
        Self { from: from as u32, length: length as u32 }
    }

    /// These bytes of the frame; none where it is another one that is shorter.
    pub fn of(self, frame: &[u8]) -> &[u8] {
        let from = self.from as usize;
        frame.get(from..from + self.length as usize).unwrap_or_default()
    }
}

/// The packet that could not be delivered, as the message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// What it carried, by the protocol's number.
    pub protocol: u8,
    /// Who sent it, with the port.
    pub source: (IpAddr, u16),
    /// To whom, with the port.
    pub destination: (IpAddr, u16),
}

/// A request to send back what it carries, or what was sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// Whether it answers.
    pub is_reply: bool,
    /// Who asks.
    pub id: u16,
    /// Which request.
    pub number: u16,
}
