//! Headers that a host, firewall or capture card adds to logged packets.

use super::bytes::{Bytes, Next, Unread};

/// Linux netfilter log (NFLOG): a family, then attributes with length and type in the host's byte order.
pub(super) fn nflog(bytes: &mut Bytes<'_>) -> Result<Next, Unread> {
    const VALUE_HEADER: usize = 4;
    const PAYLOAD: u16 = 9;
    let [_, version, _, _] = bytes.array()?;
    if version != 0 {
        return Err(Unread::Malformed);
    }
    loop {
        let [a, b, c, d] = bytes.array()?;
        // Types are below 256: the zero byte shows the byte order.
        let is_big = c == 0 && d != 0;
        let of = |pair| if is_big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) };
        // The upper bits of a type are netlink flags.
        let (length, kind) = (usize::from(of([a, b])), of([c, d]) & 0x3fff);
        let value = length.checked_sub(VALUE_HEADER).ok_or(Unread::Malformed)?;
        if kind == PAYLOAD {
            bytes.rest = &bytes.rest[..value.min(bytes.rest.len())];
            return Ok(Next::Ip);
        }
        bytes.take(value.next_multiple_of(4))?;
    }
}

/// BSD packet filter log (PFLOG): the header states its length without padding to whole words.
pub(super) fn pflog(bytes: &mut Bytes<'_>) -> Result<Next, Unread> {
    let length = usize::from(bytes.u8()?);
    bytes.skip_to(length.next_multiple_of(4), 1)?;
    Ok(Next::Ip)
}

/// Apple's PKTAP header for captures on several interfaces: its length, a packet flag, and the link type. `number` is its own link type.
pub(super) fn pktap(bytes: &mut Bytes<'_>, number: u16) -> Result<Next, Unread> {
    const PACKET: u32 = 1;
    const NOTHING: u32 = 0;
    const LEAST: usize = 108;
    let head: [u8; 12] = bytes.array()?;
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| head[at + i]));
    let length = word(0) as usize;
    match word(4) {
        PACKET if length >= LEAST => {}
        NOTHING if length >= LEAST => return Err(Unread::Control),
        _ => return Err(Unread::LinkType(number)),
    }
    let link = u16::try_from(word(8)).map_err(|_| Unread::Malformed)?;
    bytes.skip_to(length, head.len())?;
    Ok(Next::Link(link))
}

/// Records of Endace cards (ERF): times, a type whose top bit announces extension headers of eight bytes, lengths.
pub(super) fn erf(bytes: &mut Bytes<'_>) -> Result<Next, Unread> {
    const MORE: u8 = 0x80;
    const C_HDLC: u16 = 104;
    let head: [u8; 16] = bytes.array()?;
    let mut more = head[8] & MORE;
    while more != 0 {
        more = bytes.array::<8>()?[0] & MORE;
    }
    match head[8] & !MORE {
        // Ethernet record types, with two bytes of padding.
        2 | 11 | 16 | 20 => {
            bytes.take(2)?;
            Ok(Next::Ethernet)
        }
        1 | 10 | 15 | 17 if matches!(bytes.rest, [0x0f | 0x8f, 0, ..]) => Ok(Next::Link(C_HDLC)),
        1 | 10 | 15 | 17 => Ok(Next::Ppp),
        22 | 23 => Ok(Next::Ip),
        other => Err(Unread::Llc(other)),
    }
}
