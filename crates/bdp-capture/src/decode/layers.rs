//! Link layers by their numbers in captures (<https://www.tcpdump.org/linktypes.html>), IPv4, IPv6 with its extension headers, and tunnels, in which each may
//! carry the others.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::bytes::{Bytes, Unread};
use super::packet::{Carries, Echo, Packet, Span};
use super::tcp;

/// Within so many headers around each other there is a packet, or none.
const DEEPEST: usize = 12;

const NULL: u16 = 0;
const ETHERNET: u16 = 1;
const PPP: u16 = 9;
const PPP_HDLC: u16 = 50;
const RAW: [u16; 3] = [12, 14, 101];
const LOOP: u16 = 108;
const LINUX_SLL: u16 = 113;
const LINKTYPE_IPV4: u16 = 228;
const LINKTYPE_IPV6: u16 = 229;
const LINUX_SLL2: u16 = 276;

pub(super) fn packet(link_type: u16, frame: &[u8], length: u32) -> Result<Packet, Unread> {
    let mut bytes = Bytes { rest: frame, length: length.max(frame.len() as u32), at: 0 };
    match link_type {
        ETHERNET => ethernet(bytes, 0),
        LINUX_SLL => {
            bytes.take(14)?;
            let kind = bytes.u16()?;
            by_type(kind, bytes, 0)
        }
        LINUX_SLL2 => {
            let kind = bytes.u16()?;
            bytes.take(18)?;
            by_type(kind, bytes, 0)
        }
        LINKTYPE_IPV4 | LINKTYPE_IPV6 => ip_packet(bytes, 0),
        raw if RAW.contains(&raw) => ip_packet(bytes, 0),
        // Four bytes of a system's own number for the family, in its own order: what follows says itself which it is.
        NULL | LOOP => {
            bytes.take(4)?;
            ip_packet(bytes, 0)
        }
        PPP | PPP_HDLC => ppp(bytes, 0),
        other => Err(Unread::LinkType(other)),
    }
}

fn ethernet(mut bytes: Bytes<'_>, tunnels: u8) -> Result<Packet, Unread> {
    bytes.take(12)?;
    let kind = bytes.u16()?;
    by_type(kind, bytes, tunnels)
}

/// What follows an Ethernet type.
fn by_type(mut kind: u16, mut bytes: Bytes<'_>, tunnels: u8) -> Result<Packet, Unread> {
    for _ in 0..DEEPEST {
        match kind {
            0x0800 | 0x86dd => return ip_packet(bytes, tunnels),
            // VLAN, and VLANs in VLANs.
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
                bytes.take(2)?;
                kind = bytes.u16()?;
            }
            0x8847 | 0x8848 => return mpls(bytes, tunnels),
            // PPPoE: a session's header, and PPP.
            0x8864 => {
                bytes.take(6)?;
                return ppp(bytes, tunnels);
            }
            // Transparent Ethernet bridging, of GRE and its kind.
            0x6558 => return ethernet(bytes, tunnels),
            other => return Err(Unread::NotIp(other)),
        }
    }
    Err(Unread::Malformed)
}

/// Labels until the bottom of the stack (RFC 3032). What follows does not say what it is but by its first four bits.
fn mpls(mut bytes: Bytes<'_>, tunnels: u8) -> Result<Packet, Unread> {
    loop {
        let label = bytes.u32()?;
        if label & 0x100 != 0 {
            break;
        }
    }
    match bytes.rest.first().map(|byte| byte >> 4) {
        Some(4 | 6) => ip_packet(bytes, tunnels),
        // A control word, and an Ethernet frame (RFC 4448).
        Some(0) => {
            bytes.take(4)?;
            ethernet(bytes, tunnels.saturating_add(1))
        }
        Some(_) => ethernet(bytes, tunnels.saturating_add(1)),
        None => Err(Unread::Cut),
    }
}

/// PPP (RFC 1661), with address and control in front or without.
fn ppp(mut bytes: Bytes<'_>, tunnels: u8) -> Result<Packet, Unread> {
    if bytes.rest.starts_with(&[0xff, 0x03]) {
        bytes.take(2)?;
    }
    // A protocol's number may be of one byte, which is odd.
    let first = *bytes.rest.first().ok_or(Unread::Cut)?;
    let protocol = if first & 1 == 1 { u16::from(bytes.array::<1>()?[0]) } else { bytes.u16()? };
    match protocol {
        0x0021 | 0x0057 => ip_packet(bytes, tunnels),
        0x0281 => mpls(bytes, tunnels),
        other => Err(Unread::NotIp(other)),
    }
}

const ICMP: u8 = 1;
const IPIP: u8 = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;
const IPV6: u8 = 41;
const GRE: u8 = 47;
const ICMPV6: u8 = 58;
const VXLAN: u16 = 4789;

/// What an IP header says of its packet.
struct Head {
    source: IpAddr,
    destination: IpAddr,
    length: u32,
    identification: Option<u32>,
    ecn: u8,
    dscp: u8,
    hop_limit: u8,
    /// Of a fragment, whether it is the first.
    is_first: bool,
    is_fragment: bool,
}

fn ip_packet(bytes: Bytes<'_>, tunnels: u8) -> Result<Packet, Unread> {
    if usize::from(tunnels) > DEEPEST {
        return Err(Unread::Malformed);
    }
    match bytes.rest.first().map(|byte| byte >> 4) {
        Some(4) => v4(bytes, tunnels),
        Some(6) => v6(bytes, tunnels),
        Some(_) => Err(Unread::Malformed),
        None => Err(Unread::Cut),
    }
}

fn v4(mut bytes: Bytes<'_>, tunnels: u8) -> Result<Packet, Unread> {
    let captured = bytes.length;
    let head: [u8; 20] = bytes.array()?;
    let header = usize::from(head[0] & 15) * 4;
    let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let options = header.checked_sub(20).ok_or(Unread::Malformed)?;
    bytes.take(options)?;
    // Segmentation offload leaves what does not fit the field.
    let length = match word(2) {
        0 => captured,
        length => u32::from(length),
    };
    let payload = length.checked_sub(header as u32).ok_or(Unread::Malformed)?;
    let fragment = word(6);
    let address = |at: usize| IpAddr::V4(Ipv4Addr::new(head[at], head[at + 1], head[at + 2], head[at + 3]));
    let known = Head {
        source: address(12),
        destination: address(16),
        length,
        identification: Some(u32::from(word(4))),
        ecn: head[1] & 3,
        dscp: head[1] >> 2,
        hop_limit: head[8],
        is_first: fragment & 0x1fff == 0,
        is_fragment: fragment & 0x3fff != 0,
    };
    inner(known, head[9], within(bytes, payload), tunnels)
}

fn v6(mut bytes: Bytes<'_>, tunnels: u8) -> Result<Packet, Unread> {
    let captured = bytes.length;
    let head: [u8; 40] = bytes.array()?;
    let class = (u16::from_be_bytes([head[0], head[1]]) >> 4) as u8;
    let payload = match u16::from_be_bytes([head[4], head[5]]) {
        0 => captured.saturating_sub(40),
        payload => u32::from(payload),
    };
    let address = |at: usize| {
        let octets: [u8; 16] = std::array::from_fn(|i| head[at + i]);
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    let mut known = Head {
        source: address(8),
        destination: address(24),
        length: payload + 40,
        identification: None,
        ecn: class & 3,
        dscp: class >> 2,
        hop_limit: head[7],
        is_first: true,
        is_fragment: false,
    };
    let mut bytes = within(bytes, payload);
    let mut next = head[6];
    for _ in 0..DEEPEST {
        match next {
            // Hop by hop, routing, destination: a length in units of 8 bytes, less one.
            0 | 43 | 60 => {
                let [following, length] = bytes.array()?;
                bytes.take(usize::from(length) * 8 + 6)?;
                next = following;
            }
            // Authentication, in units of 4 bytes, less two.
            51 => {
                let [following, length] = bytes.array()?;
                bytes.take(usize::from(length) * 4 + 6)?;
                next = following;
            }
            44 => {
                let [following, _] = bytes.array()?;
                let place = bytes.u16()?;
                known.identification = Some(bytes.u32()?);
                known.is_first = place & 0xfff8 == 0;
                known.is_fragment = place & 0xfff9 != 0;
                next = following;
                if !known.is_first {
                    break;
                }
            }
            _ => break,
        }
    }
    inner(known, next, bytes, tunnels)
}

/// The payload of a packet, without what a link added behind it.
fn within(bytes: Bytes<'_>, payload: u32) -> Bytes<'_> {
    let kept = bytes.rest.len().min(payload as usize);
    Bytes { rest: &bytes.rest[..kept], length: payload, at: bytes.at }
}

fn inner(head: Head, protocol: u8, mut bytes: Bytes<'_>, tunnels: u8) -> Result<Packet, Unread> {
    let carries = match protocol {
        _ if !head.is_first => Carries::Fragment(protocol),
        TCP => Carries::Tcp(tcp::segment(bytes)?),
        UDP => {
            let (source, destination) = (bytes.u16()?, bytes.u16()?);
            let length = u32::from(bytes.u16()?);
            bytes.take(2)?;
            if destination == VXLAN
                && !head.is_fragment
                && let Some(packet) = vxlan(bytes, tunnels)
            {
                return Ok(packet);
            }
            // A length of 0 is one that does not fit the field.
            let payload =
                if length == 0 || head.is_fragment { bytes.length } else { length.saturating_sub(8) };
            let kept = Span::new(bytes.at, bytes.rest.len().min(payload as usize));
            Carries::Udp { source, destination, payload, kept }
        }
        ICMP | ICMPV6 => {
            let [kind, code] = bytes.array()?;
            Carries::Icmp { kind, code, echo: echo(kind, bytes) }
        }
        IPIP | IPV6 if !head.is_fragment => return ip_packet(bytes, tunnels + 1),
        GRE if !head.is_fragment => return gre(bytes, tunnels + 1),
        other => Carries::Other(other),
    };
    Ok(Packet {
        source: head.source,
        destination: head.destination,
        length: head.length,
        identification: head.identification,
        ecn: head.ecn,
        dscp: head.dscp,
        hop_limit: head.hop_limit,
        tunnels,
        carries,
    })
}

/// Of an echo its identifier and number (RFC 792, RFC 4443).
fn echo(kind: u8, mut bytes: Bytes<'_>) -> Option<Echo> {
    let is_reply = match kind {
        8 | 128 => false,
        0 | 129 => true,
        _ => return None,
    };
    bytes.take(2).ok()?;
    Some(Echo { is_reply, id: bytes.u16().ok()?, number: bytes.u16().ok()? })
}

/// GRE (RFC 2784, RFC 2890): checksum, key and number where their bits say so.
fn gre(mut bytes: Bytes<'_>, tunnels: u8) -> Result<Packet, Unread> {
    let flags = bytes.u16()?;
    let kind = bytes.u16()?;
    // Version 1 is PPTP's, with a length and numbers of its own (RFC 2637).
    if flags & 7 != 0 {
        return Err(Unread::NotIp(kind));
    }
    for bit in [0x8000, 0x2000, 0x1000] {
        if flags & bit != 0 {
            bytes.take(4)?;
        }
    }
    by_type(kind, bytes, tunnels)
}

/// VXLAN (RFC 7348): a header whose bits say that it is one, and an Ethernet frame.
fn vxlan(mut bytes: Bytes<'_>, tunnels: u8) -> Option<Packet> {
    let flags = bytes.u32().ok()?;
    bytes.take(4).ok()?;
    if flags & 0x0800_0000 == 0 || usize::from(tunnels) > DEEPEST {
        return None;
    }
    ethernet(bytes, tunnels + 1).ok()
}
