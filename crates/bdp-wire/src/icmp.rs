//! ICMP errors (RFC 792, RFC 4443) and the packets they quote.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// ICMPv4 type "destination unreachable".
pub const UNREACHABLE_V4: u8 = 3;
/// ICMPv4 code "fragmentation needed" (RFC 1191).
pub const TOO_LONG_V4: u8 = 4;
/// ICMPv4 code "port unreachable".
pub const PORT_V4: u8 = 3;
/// ICMPv4 type "time exceeded".
pub const EXCEEDED_V4: u8 = 11;
/// ICMPv6 type "destination unreachable".
pub const UNREACHABLE_V6: u8 = 1;
/// ICMPv6 code "port unreachable".
pub const PORT_V6: u8 = 4;
/// ICMPv6 type "packet too big".
pub const TOO_LONG_V6: u8 = 2;
/// ICMPv6 type "time exceeded".
pub const EXCEEDED_V6: u8 = 3;

/// Length of the fixed ICMP header, bytes.
const MESSAGE_HEADER: usize = 8;
const IPV6_HEADER: usize = 40;

/// The packet quoted in an ICMP error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quote<'a> {
    /// Type of service or traffic class with which the packet reached the reporting node.
    pub octet: u8,
    /// Remaining hop limit at the reporting node.
    pub hops_left: u8,
    /// Destination address.
    pub to: IpAddr,
    /// Protocol number: 1 ICMP, 6 TCP, 17 UDP, 58 ICMPv6. Extension headers of IPv6 are not followed.
    pub protocol: u8,
    /// Start of the payload, beginning with its header; both RFCs require at least 8 bytes, but any number may arrive.
    pub transport: &'a [u8],
}

impl<'a> Quote<'a> {
    /// Returns the packet quoted in an IPv4 packet; `None` if that is not an ICMP error.
    pub fn of_ipv4(packet: &'a [u8]) -> Option<Self> {
        const ICMP: u8 = 1;
        let (header, message) = split_ipv4(packet)?;
        let kind = *message.first()?;
        if header[9] != ICMP || !matches!(kind, UNREACHABLE_V4 | EXCEEDED_V4 | 12) {
            return None;
        }
        let (quoted, transport) = split_ipv4(message.get(MESSAGE_HEADER..)?)?;
        let to: Ipv4Addr = quoted.get(16..20)?.first_chunk::<4>().copied()?.into();
        Some(Self { octet: quoted[1], hops_left: quoted[8], to: to.into(), protocol: quoted[9], transport })
    }

    /// Returns the packet quoted in an ICMPv6 message, as read from a raw socket without its IP header; `None` if it is not an error.
    pub fn of_ipv6(message: &'a [u8]) -> Option<Self> {
        const ERRORS_BELOW: u8 = 128;
        if *message.first()? >= ERRORS_BELOW {
            return None;
        }
        let quoted = message.get(MESSAGE_HEADER..)?;
        let header = quoted.first_chunk::<IPV6_HEADER>()?;
        if header[0] >> 4 != 6 {
            return None;
        }
        let to: Ipv6Addr = header[24..].first_chunk::<16>().copied()?.into();
        Some(Self {
            octet: header[0] << 4 | header[1] >> 4,
            hops_left: header[7],
            to: to.into(),
            protocol: header[6],
            transport: &quoted[IPV6_HEADER..],
        })
    }

    /// Returns the ports of a UDP datagram or TCP segment, or the identifier and sequence number of an echo.
    pub fn ports(&self) -> Option<(u16, u16)> {
        let at = match self.protocol {
            6 | 17 => 0,
            1 | 58 => 4,
            _ => return None,
        };
        let word = |at: usize| Some(u16::from_be_bytes(*self.transport.get(at..at + 2)?.first_chunk()?));
        Some((word(at)?, word(at + 2)?))
    }
}

/// Splits an IPv4 packet into header and payload.
fn split_ipv4(packet: &[u8]) -> Option<(&[u8], &[u8])> {
    let first = *packet.first()?;
    let length = usize::from(first & 0xf) * 4;
    (first >> 4 == 4 && length >= 20).then(|| packet.split_at_checked(length)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ipv4(octet: u8, hops: u8, protocol: u8, rest: &[u8]) -> Vec<u8> {
        let mut packet =
            vec![0x45, octet, 0, 0, 0, 0, 0x40, 0, hops, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 9, 2];
        packet.extend(rest);
        packet
    }

    #[test]
    fn a_quote_shows_the_octet_with_which_the_packet_came() {
        let datagram = [0x9c, 0x40, 0x82, 0x9b, 0, 12, 0, 0, 1, 2, 3, 4];
        let mut message = vec![EXCEEDED_V4, 0, 0, 0, 0, 0, 0, 0];
        message.extend(ipv4(0x8a, 1, 17, &datagram));
        let packet = ipv4(0xc0, 61, 1, &message);
        let quote = Quote::of_ipv4(&packet).unwrap();
        assert_eq!((quote.octet, quote.hops_left, quote.protocol), (0x8a, 1, 17));
        assert_eq!(quote.to, "10.0.9.2".parse::<IpAddr>().unwrap());
        assert_eq!(quote.ports(), Some((40_000, 33_435)));
        assert_eq!(quote.transport, datagram);
        // An echo reply quotes nothing, and a truncated message is not an error.
        assert_eq!(Quote::of_ipv4(&ipv4(0, 64, 1, &[0; 64])), None);
        for length in 0..48 {
            assert_eq!(Quote::of_ipv4(&packet[..length]), None, "{length}");
        }
    }

    #[test]
    fn a_quote_of_ipv6_likewise() {
        let mut message = vec![EXCEEDED_V6, 0, 0, 0, 0, 0, 0, 0];
        let mut header = [0u8; IPV6_HEADER];
        (header[0], header[1], header[6], header[7], header[39]) = (0x68, 0xa0, 58, 1, 9);
        message.extend(header);
        message.extend([128, 0, 0, 0, 0xab, 0xcd, 0, 7]);
        let quote = Quote::of_ipv6(&message).unwrap();
        assert_eq!((quote.octet, quote.hops_left, quote.ports()), (0x8a, 1, Some((0xabcd, 7))));
        assert_eq!(Quote::of_ipv6(&message[..47]), None);
        assert_eq!(Quote::of_ipv6(&[129; 100]), None);
    }
}
