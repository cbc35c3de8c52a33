//! Link layers by their numbers in captures (<https://www.tcpdump.org/linktypes.html>), and Ethernet types. Each reads its own header and
//! returns the type of the next one.

use super::bytes::{Bytes, Next, Unread};
use super::{host, wireless};

const NULL: u16 = 0;
const ETHERNET: u16 = 1;
const TOKEN_RING: u16 = 6;
const SLIP: u16 = 8;
const PPP: u16 = 9;
const FDDI: u16 = 10;
const PPP_HDLC: u16 = 50;
const PPP_ETHER: u16 = 51;
const ATM_RFC1483: u16 = 100;
const RAW: [u16; 3] = [12, 14, 101];
const C_HDLC: u16 = 104;
const IEEE802_11: u16 = 105;
const FRAME_RELAY: u16 = 107;
const LOOP: u16 = 108;
const ENC: u16 = 109;
const LINUX_SLL: u16 = 113;
const PFLOG: u16 = 117;
const IEEE802_11_PRISM: u16 = 119;
const IP_OVER_FC: u16 = 122;
const IEEE802_11_RADIOTAP: u16 = 127;
const IP_OVER_IEEE1394: u16 = 138;
/// For private use; Apple systems use it for PKTAP.
const USER2: u16 = 149;
const IEEE802_11_AVS: u16 = 163;
const PPP_PPPD: u16 = 166;
const PPI: u16 = 192;
const ERF: u16 = 197;
const PPP_WITH_DIR: u16 = 204;
const C_HDLC_WITH_DIR: u16 = 205;
const FRAME_RELAY_WITH_DIR: u16 = 206;
const MPLS: u16 = 219;
const IPNET: u16 = 226;
const IPV4: u16 = 228;
const IPV6: u16 = 229;
const NFLOG: u16 = 239;
const IPOIB: u16 = 242;
const PKTAP: u16 = 258;
const LINUX_SLL2: u16 = 276;

/// Linux devices with 802.11 frames, by `ARPHRD_`.
const ARPHRD_IEEE80211: u16 = 801;
const ARPHRD_IEEE80211_RADIOTAP: u16 = 803;

/// Reads the header of a link layer.
pub(super) fn header(number: u16, bytes: &mut Bytes<'_>) -> Result<Next, Unread> {
    match number {
        ETHERNET => Ok(Next::Ethernet),
        LINUX_SLL => {
            bytes.take(2)?;
            let device = bytes.u16()?;
            bytes.take(10)?;
            let kind = bytes.u16()?;
            Ok(cooked(device, kind))
        }
        LINUX_SLL2 => {
            let kind = bytes.u16()?;
            bytes.take(6)?;
            let device = bytes.u16()?;
            bytes.take(10)?;
            Ok(cooked(device, kind))
        }
        IPV4 | IPV6 => Ok(Next::Ip),
        raw if RAW.contains(&raw) => Ok(Next::Ip),
        // Four bytes with a system-specific address family in host order; the IP version is taken from the packet.
        NULL | LOOP => after(bytes, 4, Next::Ip),
        PPP => Ok(Next::Ppp),
        PPP_HDLC if matches!(bytes.rest, [0x0f | 0x8f, 0, ..]) => cisco_hdlc(bytes),
        PPP_HDLC => Ok(Next::Ppp),
        // PPPoE session header.
        PPP_ETHER => after(bytes, 6, Next::Ppp),
        PPP_WITH_DIR => after(bytes, 1, Next::Ppp),
        // A direction byte replaces the address.
        PPP_PPPD => {
            bytes.take(1)?;
            if bytes.rest.first() == Some(&0x03) {
                bytes.take(1)?;
            }
            Ok(Next::Ppp)
        }
        C_HDLC => cisco_hdlc(bytes),
        C_HDLC_WITH_DIR => {
            bytes.take(1)?;
            cisco_hdlc(bytes)
        }
        FRAME_RELAY => frame_relay(bytes),
        FRAME_RELAY_WITH_DIR => {
            bytes.take(1)?;
            frame_relay(bytes)
        }
        MPLS => Ok(Next::Mpls),
        SLIP => after(bytes, 16, Next::Ip),
        TOKEN_RING => token_ring(bytes),
        FDDI => fddi(bytes),
        ATM_RFC1483 => Ok(Next::Llc),
        IP_OVER_FC => after(bytes, 16, Next::Llc),
        IP_OVER_IEEE1394 => {
            bytes.take(16)?;
            by_number(bytes)
        }
        // Two hardware addresses of 20 bytes, and the header of RFC 4391.
        IPOIB => {
            bytes.take(40)?;
            let kind = bytes.u16()?;
            bytes.take(2)?;
            Ok(Next::Type(kind))
        }
        IPNET => after(bytes, 24, Next::Ip),
        ERF => host::erf(bytes),
        ENC => after(bytes, 12, Next::Ip),
        PFLOG => host::pflog(bytes),
        NFLOG => host::nflog(bytes),
        PKTAP | USER2 => host::pktap(bytes, number),
        IEEE802_11 => wireless::frame(bytes, false),
        IEEE802_11_RADIOTAP => wireless::radiotap(bytes),
        IEEE802_11_PRISM => wireless::prism(bytes),
        IEEE802_11_AVS => wireless::avs(bytes),
        PPI => wireless::ppi(bytes),
        other => Err(Unread::LinkType(other)),
    }
}

fn after(bytes: &mut Bytes<'_>, header: usize, next: Next) -> Result<Next, Unread> {
    bytes.take(header)?;
    Ok(next)
}

fn by_number(bytes: &mut Bytes<'_>) -> Result<Next, Unread> {
    bytes.u16().map(Next::Type)
}

/// Returns what follows the Linux cooked header, used for devices without their own.
fn cooked(device: u16, kind: u16) -> Next {
    match device {
        ARPHRD_IEEE80211 => Next::Link(IEEE802_11),
        ARPHRD_IEEE80211_RADIOTAP => Next::Link(IEEE802_11_RADIOTAP),
        _ => Next::Type(kind),
    }
}

/// Reads an Ethernet header.
pub(super) fn ethernet(bytes: &mut Bytes<'_>) -> Result<Next, Unread> {
    bytes.take(12)?;
    by_number(bytes)
}

/// Returns what follows an Ethernet type, or the length in its place.
pub(super) fn by_type(kind: u16, bytes: &mut Bytes<'_>) -> Result<Next, Unread> {
    match kind {
        0x0800 | 0x86dd => Ok(Next::Ip),
        // VLAN tags, also nested.
        0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
            bytes.take(2)?;
            by_number(bytes)
        }
        0x8847 | 0x8848 => Ok(Next::Mpls),
        // PPPoE session header, then PPP.
        0x8864 => after(bytes, 6, Next::Ppp),
        // Transparent Ethernet bridging, as in GRE.
        0x6558 => Ok(Next::Ethernet),
        // PPP in the GRE of PPTP (RFC 2637).
        0x880b => Ok(Next::Ppp),
        // Port tags other than VLAN: Cisco VN-Tag, IEEE 802.1BR E-TAG, Cisco metadata.
        0x8926 => {
            bytes.take(4)?;
            by_number(bytes)
        }
        0x893f | 0x8909 => {
            bytes.take(6)?;
            by_number(bytes)
        }
        // Provider backbone bridges (IEEE 802.1ah): a service tag, then the customer's frame.
        0x88e7 => after(bytes, 4, Next::Ethernet),
        0x88e5 => macsec(bytes),
        0..=1500 => Ok(Next::Llc),
        other => Err(Unread::NotIp(other)),
    }
}

/// MACsec (IEEE 802.1AE), which may authenticate without encrypting.
fn macsec(bytes: &mut Bytes<'_>) -> Result<Next, Unread> {
    const HAS_CHANNEL: u8 = 0x20;
    const ENCRYPTED_OR_CHANGED: u8 = 0x0c;
    let flags = bytes.u8()?;
    bytes.take(if flags & HAS_CHANNEL != 0 { 13 } else { 5 })?;
    if flags & ENCRYPTED_OR_CHANGED != 0 {
        return Err(Unread::Encrypted);
    }
    by_number(bytes)
}

/// IEEE 802.2, with SNAP or without.
pub(super) fn llc(bytes: &mut Bytes<'_>) -> Result<Next, Unread> {
    let [to, _, control] = bytes.array()?;
    match (to, control) {
        (0xaa, 0x03) => {
            let [a, b, c] = bytes.array()?;
            let kind = bytes.u16()?;
            match [a, b, c] {
                // RFC 1042, and the bridge tunnel encapsulation.
                [0, 0, 0] | [0, 0, 0xf8] => Ok(Next::Type(kind)),
                _ => Err(Unread::NotIp(kind)),
            }
        }
        // IP without SNAP (RFC 948).
        (0x06, 0x03) => Ok(Next::Ip),
        _ => Err(Unread::Llc(to)),
    }
}

/// MPLS labels up to the bottom of the stack (RFC 3032). Only the next four bits show what follows.
pub(super) fn mpls(bytes: &mut Bytes<'_>) -> Result<Next, Unread> {
    while bytes.u32()? & 0x100 == 0 {}
    let next = match bytes.rest.first().map(|byte| byte >> 4) {
        Some(4 | 6) => return Ok(Next::Ip),
        // A control word, and an Ethernet frame (RFC 4448).
        Some(0) => after(bytes, 4, Next::Ethernet)?,
        Some(_) => Next::Ethernet,
        None => return Err(Unread::Cut),
    };
    *bytes = bytes.within_tunnel();
    Ok(next)
}

/// PPP (RFC 1661), with address and control in front or without.
pub(super) fn ppp(bytes: &mut Bytes<'_>) -> Result<Next, Unread> {
    /// Encrypted by ECP (RFC 1968), for all links together and for each.
    const ENCRYPTED: [u16; 2] = [0x0053, 0x0055];
    if bytes.rest.starts_with(&[0xff, 0x03]) {
        bytes.take(2)?;
    }
    // A protocol number may be a single odd byte.
    let first = *bytes.rest.first().ok_or(Unread::Cut)?;
    let protocol = if first & 1 == 1 { u16::from(bytes.u8()?) } else { bytes.u16()? };
    match protocol {
        0x0021 | 0x0057 => Ok(Next::Ip),
        0x0281 => Ok(Next::Mpls),
        // Bridged frames (RFC 3185): flags, frame type, and the frame.
        0x0031 => match bytes.array()? {
            [_, 1] => Ok(Next::Ethernet),
            _ => Err(Unread::NotIp(protocol)),
        },
        protocol if ENCRYPTED.contains(&protocol) => Err(Unread::Encrypted),
        other => Err(Unread::NotIp(other)),
    }
}

/// Cisco HDLC: an address, a zero, and an Ethernet type.
fn cisco_hdlc(bytes: &mut Bytes<'_>) -> Result<Next, Unread> {
    bytes.take(2)?;
    by_number(bytes)
}

/// Frame Relay (RFC 2427): an address of two or more bytes, the last one odd, then a protocol number or, with Cisco, an Ethernet type.
fn frame_relay(bytes: &mut Bytes<'_>) -> Result<Next, Unread> {
    while bytes.u8()? & 1 == 0 {}
    if bytes.rest.first() != Some(&0x03) {
        return by_number(bytes);
    }
    bytes.take(1)?;
    let padding = bytes.rest.iter().take_while(|byte| **byte == 0).count();
    bytes.take(padding)?;
    match bytes.u8()? {
        0xcc | 0x8e => Ok(Next::Ip),
        0x80 => {
            let [a, b, c] = bytes.array()?;
            let kind = bytes.u16()?;
            if [a, b, c] == [0; 3] { Ok(Next::Type(kind)) } else { Err(Unread::NotIp(kind)) }
        }
        other => Err(Unread::Llc(other)),
    }
}

/// Token Ring (IEEE 802.5): access and frame control, two addresses, and a route if the group bit of the source address is set.
fn token_ring(bytes: &mut Bytes<'_>) -> Result<Next, Unread> {
    const LLC: u8 = 0x40;
    let head: [u8; 14] = bytes.array()?;
    if head[1] & 0xc0 != LLC {
        return Err(Unread::Control);
    }
    if head[8] & 0x80 != 0 {
        let length = bytes.u8()? & 0x1f;
        bytes.skip_to(usize::from(length), 1)?;
    }
    Ok(Next::Llc)
}

/// FDDI: frame control, and two addresses.
fn fddi(bytes: &mut Bytes<'_>) -> Result<Next, Unread> {
    let control = bytes.u8()?;
    bytes.take(12)?;
    // Asynchronous and synchronous data frames.
    if control & 0x70 == 0x50 { Ok(Next::Llc) } else { Err(Unread::Control) }
}
