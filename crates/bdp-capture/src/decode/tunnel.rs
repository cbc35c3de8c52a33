//! Tunnels over IP and UDP. Each reads its header and returns the type of the next one.

use super::bytes::{Bytes, Next, Unread};

/// IP protocols that carry packets or frames.
pub(super) fn by_protocol(protocol: u8, bytes: &mut Bytes<'_>) -> Option<Result<Next, Unread>> {
    const IPIP: u8 = 4;
    const IPV6: u8 = 41;
    const GRE: u8 = 47;
    const ETHERIP: u8 = 97;
    const MPLS: u8 = 137;
    let next = match protocol {
        IPIP | IPV6 => Ok(Next::Ip),
        GRE => gre(bytes),
        // RFC 3378: a version, and a frame.
        ETHERIP => bytes.take(2).map(|_| Next::Ethernet),
        MPLS => Ok(Next::Mpls),
        _ => return None,
    };
    Some(next)
}

/// GRE (RFC 2784, RFC 2890), with checksum, key and sequence number if flagged.
fn gre(bytes: &mut Bytes<'_>) -> Result<Next, Unread> {
    const PPTP: u16 = 0x880b;
    const WCCP: u16 = 0x883e;
    const NUMBERED: u16 = 0x1000;
    let flags = bytes.u16()?;
    let kind = bytes.u16()?;
    let options: &[u16] = match (flags & 7, kind) {
        (0, _) => &[0x8000, 0x2000, NUMBERED],
        // PPTP (RFC 2637): length and call ID, then sequence and acknowledgement numbers.
        (1, PPTP) => &[0x2000, NUMBERED, 0x0080],
        _ => return Err(Unread::NotIp(kind)),
    };
    for bit in options {
        if flags & bit != 0 {
            bytes.take(4)?;
        }
    }
    match kind {
        // Type I has neither a sequence number nor a header of its own.
        ERSPAN_II if flags & NUMBERED == 0 => Ok(Next::Ethernet),
        ERSPAN_II | ERSPAN_III => erspan(kind, bytes),
        // A redirected packet; version 2 has its own header.
        WCCP => {
            if bytes.rest.first().is_some_and(|byte| byte >> 4 != 4) {
                bytes.take(4)?;
            }
            Ok(Next::Ip)
        }
        // In Ethernet this would be a length.
        0..=1500 => Err(Unread::NotIp(kind)),
        _ => Ok(Next::Type(kind)),
    }
}

const ERSPAN_II: u16 = 0x88be;
const ERSPAN_III: u16 = 0x22eb;

/// Mirrored traffic of Cisco switches (ERSPAN, draft-foschiano-erspan), with a header of type II or III.
fn erspan(kind: u16, bytes: &mut Bytes<'_>) -> Result<Next, Unread> {
    if kind == ERSPAN_II {
        bytes.take(8)?;
        return Ok(Next::Ethernet);
    }
    let head: [u8; 12] = bytes.array()?;
    if head[11] & 1 != 0 {
        bytes.take(8)?;
    }
    // Frame type: Ethernet, or IP alone.
    match (head[10] >> 2) & 0x1f {
        0 => Ok(Next::Ethernet),
        2 => Ok(Next::Ip),
        _ => Err(Unread::NotIp(kind)),
    }
}

/// Tunnels over UDP by destination port; `None` if the payload is not a tunnel's.
pub(super) fn by_port(port: u16, bytes: &mut Bytes<'_>) -> Option<Next> {
    match port {
        // The assigned port, and Linux's default.
        4789 | 8472 => vxlan(bytes),
        4790 => vxlan_gpe(bytes),
        6081 => geneve(bytes),
        2152 => gtp(bytes),
        1701 => l2tp(bytes),
        6635 => Some(Next::Mpls),
        37008 => tzsp(bytes),
        _ => None,
    }
}

/// VXLAN (RFC 7348): a header with valid flags, then an Ethernet frame.
fn vxlan(bytes: &mut Bytes<'_>) -> Option<Next> {
    let flags = bytes.u32().ok()?;
    bytes.take(4).ok()?;
    (flags & 0x0800_0000 != 0).then_some(Next::Ethernet)
}

/// VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe): VXLAN with a next-protocol field.
fn vxlan_gpe(bytes: &mut Bytes<'_>) -> Option<Next> {
    let [flags, _, _, protocol] = bytes.array().ok()?;
    bytes.take(4).ok()?;
    match protocol {
        _ if flags & 0x0c != 0x0c => None,
        1 | 2 => Some(Next::Ip),
        3 => Some(Next::Ethernet),
        5 => Some(Next::Mpls),
        _ => None,
    }
}

/// Geneve (RFC 8926): version 0, options in words, an Ethernet type.
fn geneve(bytes: &mut Bytes<'_>) -> Option<Next> {
    let [first, _] = bytes.array().ok()?;
    let kind = bytes.u16().ok()?;
    bytes.take(4 + usize::from(first & 0x3f) * 4).ok()?;
    (first >> 6 == 0 && kind > 1500).then_some(Next::Type(kind))
}

/// GTP-U (3GPP TS 29.281): a user packet after extension headers in words, each ending with the type of the next.
fn gtp(bytes: &mut Bytes<'_>) -> Option<Next> {
    const PACKET: u8 = 255;
    const EXTENSIONS: u8 = 0x04;
    let [flags, kind] = bytes.array().ok()?;
    bytes.take(6).ok()?;
    // Version 1, and not the charging protocol.
    if flags >> 4 != 3 || kind != PACKET {
        return None;
    }
    if flags & 7 != 0 {
        let [_, _, _, mut next] = bytes.array().ok()?;
        while flags & EXTENSIONS != 0 && next != 0 {
            let length = usize::from(bytes.u8().ok()?) * 4;
            next = *bytes.take(length.checked_sub(1)?).ok()?.last()?;
        }
    }
    match bytes.rest.first()? >> 4 {
        4 | 6 => Some(Next::Ip),
        // An Ethernet session; a PPP session starts with its address field.
        _ if bytes.rest.starts_with(&[0xff, 0x03]) => Some(Next::Ppp),
        _ => Some(Next::Ethernet),
    }
}

/// L2TP (RFC 2661): a data message, with length, sequence numbers and offset if flagged.
fn l2tp(bytes: &mut Bytes<'_>) -> Option<Next> {
    const CONTROL: u16 = 0x8000;
    const LENGTH: u16 = 0x4000;
    const NUMBERS: u16 = 0x0800;
    const OFFSET: u16 = 0x0200;
    let flags = bytes.u16().ok()?;
    if flags & 15 != 2 || flags & CONTROL != 0 {
        return None;
    }
    let length = if flags & LENGTH != 0 { 2 } else { 0 };
    let numbers = if flags & NUMBERS != 0 { 4 } else { 0 };
    bytes.take(length + 4 + numbers).ok()?;
    if flags & OFFSET != 0 {
        let offset = bytes.u16().ok()?;
        bytes.take(usize::from(offset)).ok()?;
    }
    Some(Next::Ppp)
}

/// TZSP, used by access points and MikroTik routers for remote capture: tags up to the end tag.
fn tzsp(bytes: &mut Bytes<'_>) -> Option<Next> {
    const IEEE802_11: u16 = 105;
    let [version, kind] = bytes.array().ok()?;
    let protocol = bytes.u16().ok()?;
    if version != 1 || kind > 1 {
        return None;
    }
    loop {
        match bytes.u8().ok()? {
            0 => {}
            1 => break,
            _ => {
                let length = bytes.u8().ok()?;
                bytes.take(usize::from(length)).ok()?;
            }
        }
    }
    match protocol {
        1 => Some(Next::Ethernet),
        18 => Some(Next::Link(IEEE802_11)),
        _ => None,
    }
}
