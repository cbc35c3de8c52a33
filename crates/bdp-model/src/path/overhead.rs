//! The share of a link's rate left after headers: `goodput = rate x payload / (IP packet + bytes that the medium adds)`.
//!
//! Sizes: IEEE 802.3 and 802.1Q for the wire, RFC 791 and RFC 8200 for IP, RFC 9293 and RFC 7323 for TCP, RFC 768 for UDP.

use crate::case::Family;
use crate::link::ETHERNET_OVERHEAD_BYTES;
use crate::names;

/// The medium that carries IP packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// Ethernet: preamble 8, header 14, checksum 4, gap 12.
    Ethernet,
    /// Ethernet with one VLAN tag of 4 bytes.
    EthernetVlan,
    /// The loopback device, which has no wire.
    Loopback,
}

names!(Medium: Ethernet = "Ethernet", EthernetVlan = "Ethernet, VLAN tag", Loopback = "loopback");

impl Medium {
    /// All media.
    pub const ALL: [Self; 3] = [Self::Ethernet, Self::EthernetVlan, Self::Loopback];

    /// Bytes that the medium adds to each IP packet.
    pub const fn overhead_bytes(self) -> u64 {
        match self {
            Self::Ethernet => ETHERNET_OVERHEAD_BYTES as u64,
            Self::EthernetVlan => ETHERNET_OVERHEAD_BYTES as u64 + 4,
            Self::Loopback => 0,
        }
    }
}

/// The transport that carries the payload in an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP without options in data segments.
    Tcp,
    /// TCP with timestamps, 12 bytes including padding, as most systems negotiate.
    TcpTimestamps,
    /// UDP.
    Udp,
}

names!(Transport: Tcp = "TCP", TcpTimestamps = "TCP, timestamps", Udp = "UDP");

impl Transport {
    /// All transports.
    pub const ALL: [Self; 3] = [Self::Tcp, Self::TcpTimestamps, Self::Udp];

    /// Header bytes of a full segment or datagram.
    pub const fn header_bytes(self) -> u64 {
        match self {
            Self::Tcp => 20,
            Self::TcpTimestamps => 32,
            Self::Udp => 8,
        }
    }
}

/// Header bytes of an IP packet: the IP header without options, and the transport's.
pub const fn header_bytes(family: Family, transport: Transport) -> u64 {
    let ip = match family {
        Family::Ipv4 => 20,
        Family::Ipv6 => 40,
    };
    ip + transport.header_bytes()
}

/// Payload bytes of the largest packet that `mtu_bytes` admits: TCP's maximum segment, or UDP's datagram.
///
/// `None` if the headers leave no room, or the MTU is below IPv6's minimum of 1280 bytes (RFC 8200, section 5).
pub fn payload_bytes(mtu_bytes: u64, family: Family, transport: Transport) -> Option<u64> {
    if family == Family::Ipv6 && mtu_bytes < IPV6_MTU_MIN_BYTES {
        return None;
    }
    mtu_bytes.checked_sub(header_bytes(family, transport)).filter(|&payload| payload > 0)
}

/// The smallest MTU on which IPv6 works (RFC 8200, section 5).
pub const IPV6_MTU_MIN_BYTES: u64 = 1280;

/// Share of a link's rate that is payload if every packet is full, 0..1.
pub fn payload_share(mtu_bytes: u64, medium: Medium, family: Family, transport: Transport) -> Option<f64> {
    let payload = payload_bytes(mtu_bytes, family, transport)?;
    Some(payload as f64 / (mtu_bytes + medium.overhead_bytes()) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::vectors::assert_prints;

    #[test]
    fn gigabit_ethernet_gives_the_known_goodputs() {
        use Family::{Ipv4, Ipv6};
        use Medium::{Ethernet, EthernetVlan};
        use Transport::{Tcp, TcpTimestamps, Udp};
        for (mtu, medium, family, transport, mbps) in [
            (1500, Ethernet, Ipv4, Tcp, "949.28"),
            (1500, Ethernet, Ipv4, TcpTimestamps, "941.48"),
            (1500, Ethernet, Ipv6, Tcp, "936.28"),
            (1500, Ethernet, Ipv6, TcpTimestamps, "928.48"),
            (1500, EthernetVlan, Ipv4, TcpTimestamps, "939.04"),
            (9000, Ethernet, Ipv4, Tcp, "991.37"),
            (9000, Ethernet, Ipv4, TcpTimestamps, "990.04"),
            (1500, Ethernet, Ipv4, Udp, "957.09"),
        ] {
            assert_prints(payload_share(mtu, medium, family, transport).unwrap() * 1000.0, mbps);
        }
    }

    #[test]
    fn loopback_adds_nothing() {
        let share = payload_share(1500, Medium::Loopback, Family::Ipv4, Transport::Udp).unwrap();
        assert_eq!(share, 1472.0 / 1500.0);
    }

    #[test]
    fn an_mtu_without_room_has_no_payload() {
        assert_eq!(payload_bytes(40, Family::Ipv4, Transport::Tcp), None);
        assert_eq!(payload_bytes(41, Family::Ipv4, Transport::Tcp), Some(1));
        assert_eq!(payload_bytes(1279, Family::Ipv6, Transport::Udp), None);
        assert_eq!(payload_bytes(1280, Family::Ipv6, Transport::Udp), Some(1232));
    }
}
