//! Decodes a frame to its innermost packet: link layers and tunnels in any nesting, IPv4, and IPv6 with extension headers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::bytes::{Bytes, Next, Unread};
use super::packet::{About, Carries, Echo, Packet, Span};
use super::{link, tcp, tunnel};

/// Most IPv6 extension headers in a packet.
const DEEPEST: usize = 12;
/// Most nested headers of any other kind.
const HEADERS: u8 = 32;

pub(super) fn packet(link_type: u16, frame: &[u8], length: u32) -> Result<Packet, Unread> {
    let bytes = Bytes { rest: frame, length: length.max(frame.len() as u32), at: 0, tunnels: 0 };
    innermost(Next::Link(link_type), bytes, HEADERS)
}

/// Result of reading a header.
enum Read {
    Packet(Packet),
    Header(Next),
}

/// Returns the packet behind at most `headers` headers.
fn innermost(mut next: Next, mut bytes: Bytes<'_>, headers: u8) -> Result<Packet, Unread> {
    for left in (0..headers).rev() {
        next = match next {
            Next::Link(number) => link::header(number, &mut bytes)?,
            Next::Ethernet => link::ethernet(&mut bytes)?,
            Next::Type(kind) => link::by_type(kind, &mut bytes)?,
            Next::Llc => link::llc(&mut bytes)?,
            Next::Ppp => link::ppp(&mut bytes)?,
            Next::Mpls => link::mpls(&mut bytes)?,
            Next::Ip => match ip(&mut bytes, left)? {
                Read::Packet(packet) => return Ok(packet),
                Read::Header(next) => next,
            },
        };
    }
    Err(Unread::Malformed)
}

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const AUTHENTICATION: u8 = 51;
const ICMPV6: u8 = 58;

/// Fields of an IP header.
struct Head {
    source: IpAddr,
    destination: IpAddr,
    length: u32,
    identification: Option<u32>,
    ecn: u8,
    dscp: u8,
    hop_limit: u8,
    /// Whether a fragment is the first.
    is_first: bool,
    is_fragment: bool,
}

fn ip(bytes: &mut Bytes<'_>, headers: u8) -> Result<Read, Unread> {
    match bytes.rest.first().map(|byte| byte >> 4) {
        Some(4) => v4(bytes, headers),
        Some(6) => v6(bytes, headers),
        Some(_) => Err(Unread::Malformed),
        None => Err(Unread::Cut),
    }
}

fn v4(bytes: &mut Bytes<'_>, headers: u8) -> Result<Read, Unread> {
    let captured = bytes.length;
    let head: [u8; 20] = bytes.array()?;
    let header = usize::from(head[0] & 15) * 4;
    let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let options = header.checked_sub(20).ok_or(Unread::Malformed)?;
    bytes.take(options)?;
    // Segmentation offload leaves 0 in the field if the length does not fit.
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
    within(bytes, payload);
    let mut protocol = head[9];
    if protocol == AUTHENTICATION && known.is_first {
        protocol = authentication(bytes)?;
    }
    inner(known, protocol, bytes, headers)
}

fn v6(bytes: &mut Bytes<'_>, headers: u8) -> Result<Read, Unread> {
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
    within(bytes, payload);
    let mut next = head[6];
    for _ in 0..DEEPEST {
        match next {
            // Hop-by-hop, routing, destination options: length in units of 8 bytes, minus one.
            0 | 43 | 60 => {
                let [following, length] = bytes.array()?;
                bytes.take(usize::from(length) * 8 + 6)?;
                next = following;
            }
            AUTHENTICATION => next = authentication(bytes)?,
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
    inner(known, next, bytes, headers)
}

/// Authentication Header (RFC 4302), with a length in units of 4 bytes, minus two; returns the next protocol.
fn authentication(bytes: &mut Bytes<'_>) -> Result<u8, Unread> {
    let [following, length] = bytes.array()?;
    bytes.take(usize::from(length) * 4 + 6)?;
    Ok(following)
}

/// Limits the bytes to the packet's payload, without trailing bytes added by a link.
fn within(bytes: &mut Bytes<'_>, payload: u32) {
    bytes.rest = &bytes.rest[..bytes.rest.len().min(payload as usize)];
    bytes.length = payload;
}

fn inner(head: Head, protocol: u8, bytes: &mut Bytes<'_>, headers: u8) -> Result<Read, Unread> {
    let tunnels = bytes.tunnels;
    let carries = match protocol {
        _ if !head.is_first => Carries::Fragment(protocol),
        TCP => Carries::Tcp(tcp::segment(*bytes)?),
        UDP => {
            let (source, destination) = (bytes.u16()?, bytes.u16()?);
            let length = u32::from(bytes.u16()?);
            bytes.take(2)?;
            if !head.is_fragment {
                let mut within = bytes.within_tunnel();
                // A payload that is not a tunnel's belongs to another program.
                if let Some(next) = tunnel::by_port(destination, &mut within)
                    && let Ok(packet) = innermost(next, within, headers)
                {
                    return Ok(Read::Packet(packet));
                }
            }
            // A length of 0 means that it does not fit the field.
            let payload =
                if length == 0 || head.is_fragment { bytes.length } else { length.saturating_sub(8) };
            let kept = Span::new(bytes.at, bytes.rest.len().min(payload as usize));
            Carries::Udp { source, destination, payload, kept }
        }
        ICMP | ICMPV6 => {
            let [kind, code] = bytes.array()?;
            Carries::Icmp { kind, code, echo: echo(kind, *bytes), about: about(protocol, kind, *bytes) }
        }
        other => {
            let mut within = bytes.within_tunnel();
            match tunnel::by_protocol(other, &mut within).filter(|_| !head.is_fragment) {
                Some(next) => {
                    *bytes = within;
                    return next.map(Read::Header);
                }
                None => Carries::Other(other),
            }
        }
    };
    Ok(Read::Packet(Packet {
        source: head.source,
        destination: head.destination,
        length: head.length,
        identification: head.identification,
        ecn: head.ecn,
        dscp: head.dscp,
        hop_limit: head.hop_limit,
        tunnels,
        carries,
    }))
}

/// Returns the packet quoted in "destination unreachable" (RFC 792, RFC 4443).
fn about(protocol: u8, kind: u8, mut bytes: Bytes<'_>) -> Option<About> {
    match (protocol, kind) {
        (ICMP, 3) | (ICMPV6, 1) => {}
        _ => return None,
    }
    bytes.take(6).ok()?;
    let [first] = bytes.array().ok()?;
    let (protocol, source, destination) = match first >> 4 {
        4 => {
            let [_, _, _, _, _, _, _, _, protocol, _, _] = bytes.array().ok()?;
            let [source, destination]: [[u8; 4]; 2] = [bytes.array().ok()?, bytes.array().ok()?];
            bytes.take((usize::from(first & 15) * 4).saturating_sub(20)).ok()?;
            (protocol, IpAddr::from(source), IpAddr::from(destination))
        }
        6 => {
            let [_, _, _, _, _, protocol, _] = bytes.array().ok()?;
            let [source, destination]: [[u8; 16]; 2] = [bytes.array().ok()?, bytes.array().ok()?];
            (protocol, IpAddr::from(source), IpAddr::from(destination))
        }
        _ => return None,
    };
    let ports = (bytes.u16().ok()?, bytes.u16().ok()?);
    Some(About { protocol, source: (source, ports.0), destination: (destination, ports.1) })
}

/// Returns the identifier and sequence number of an echo (RFC 792, RFC 4443).
fn echo(kind: u8, mut bytes: Bytes<'_>) -> Option<Echo> {
    let is_reply = match kind {
        8 | 128 => false,
        0 | 129 => true,
        _ => return None,
    };
    bytes.take(2).ok()?;
    Some(Echo { is_reply, id: bytes.u16().ok()?, number: bytes.u16().ok()? })
}
