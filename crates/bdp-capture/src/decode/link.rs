//! Link layers by their numbers in captures (<https://www.tcpdump.org/linktypes.html>), and what stands between them and IP.

use super::{Bytes, DEEPEST, Packet, Unread, ip};

const NULL: u16 = 0;
const ETHERNET: u16 = 1;
const PPP: u16 = 9;
const PPP_HDLC: u16 = 50;
const RAW: [u16; 3] = [12, 14, 101];
const LOOP: u16 = 108;
const LINUX_SLL: u16 = 113;
const IPV4: u16 = 228;
const IPV6: u16 = 229;
const LINUX_SLL2: u16 = 276;

pub(super) fn packet(link_type: u16, frame: &[u8], length: u32) -> Result<Packet, Unread> {
    let mut bytes = Bytes { rest: frame, length: length.max(frame.len() as u32) };
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
        IPV4 | IPV6 => ip::packet(bytes, 0),
        raw if RAW.contains(&raw) => ip::packet(bytes, 0),
        // Four bytes of a system's own number for the family, in its own order: what follows says itself which it is.
        NULL | LOOP => {
            bytes.take(4)?;
            ip::packet(bytes, 0)
        }
        PPP | PPP_HDLC => ppp(bytes, 0),
        other => Err(Unread::LinkType(other)),
    }
}

pub(super) fn ethernet(mut bytes: Bytes<'_>, tunnels: u8) -> Result<Packet, Unread> {
    bytes.take(12)?;
    let kind = bytes.u16()?;
    by_type(kind, bytes, tunnels)
}

/// What follows an Ethernet type.
pub(super) fn by_type(mut kind: u16, mut bytes: Bytes<'_>, tunnels: u8) -> Result<Packet, Unread> {
    for _ in 0..DEEPEST {
        match kind {
            0x0800 | 0x86dd => return ip::packet(bytes, tunnels),
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
        Some(4 | 6) => ip::packet(bytes, tunnels),
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
        0x0021 | 0x0057 => ip::packet(bytes, tunnels),
        0x0281 => mpls(bytes, tunnels),
        other => Err(Unread::NotIp(other)),
    }
}
