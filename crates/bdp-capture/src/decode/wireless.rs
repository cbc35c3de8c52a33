//! IEEE 802.11 frames, and the headers that drivers add.

use super::bytes::{Bytes, Next, Unread};

/// Bits of the second byte of frame control.
const TO_DISTRIBUTION: u8 = 0x01;
const FROM_DISTRIBUTION: u8 = 0x02;
const PROTECTED: u8 = 0x40;
const ORDER: u8 = 0x80;
/// First bytes of unencrypted data: LLC and SNAP.
const SNAP: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0];
/// Length of the IV and key number that may precede data decrypted by the device: WEP, or TKIP and CCMP.
const VECTORS: [usize; 3] = [0, 4, 8];

/// Reads a data frame up to its content. Some devices pad the header to whole words.
pub(super) fn frame(bytes: &mut Bytes<'_>, is_padded: bool) -> Result<Next, Unread> {
    const DATA: u8 = 0x08;
    const WITHOUT_DATA: u8 = 0x40;
    const QOS: u8 = 0x80;
    const AGGREGATE: u8 = 0x80;
    let [kind, flags] = bytes.array()?;
    if kind & 3 != 0 {
        return Err(Unread::Malformed);
    }
    if kind & 0x0c != DATA || kind & WITHOUT_DATA != 0 {
        return Err(Unread::Control);
    }
    let head: [u8; 22] = bytes.array()?;
    let mut length = 24;
    if flags & TO_DISTRIBUTION != 0 && flags & FROM_DISTRIBUTION != 0 {
        bytes.take(6)?;
        length += 6;
    }
    let mut is_aggregate = false;
    if kind & QOS != 0 {
        let [control, _] = bytes.array()?;
        is_aggregate = control & AGGREGATE != 0;
        length += 2;
        if flags & ORDER != 0 {
            bytes.take(4)?;
            length += 4;
        }
    }
    if is_padded {
        bytes.take(usize::wrapping_neg(length) % 4)?;
    }
    // Fragment number, next to the sequence number.
    if head[20] & 0x0f != 0 {
        return Err(Unread::Fragment);
    }
    if flags & PROTECTED != 0 {
        let of_data = if is_aggregate { 14 } else { 0 };
        let starts = |at: usize| bytes.rest.get(at + of_data..).is_some_and(|data| data.starts_with(&SNAP));
        let vector = VECTORS.into_iter().find(|vector| starts(*vector)).ok_or(Unread::Encrypted)?;
        bytes.take(vector)?;
    }
    if is_aggregate {
        // First subframe: two addresses and its length.
        bytes.take(14)?;
    }
    Ok(Next::Llc)
}

/// Radiotap: a length, a bitmap of fields, and the fields, each aligned to its size.
pub(super) fn radiotap(bytes: &mut Bytes<'_>) -> Result<Next, Unread> {
    const TIME: u32 = 1;
    const FLAGS: u32 = 2;
    const MORE_WORDS: u32 = 1 << 31;
    const PADDED: u8 = 0x20;
    const BAD_CHECKSUM: u8 = 0x40;
    let whole = bytes.rest;
    let [_, _, low, high] = bytes.array()?;
    let length = usize::from(u16::from_le_bytes([low, high]));
    let mut read = 8;
    let present = u32::from_le_bytes(bytes.array()?);
    let mut word = present;
    while word & MORE_WORDS != 0 {
        word = u32::from_le_bytes(bytes.array()?);
        read += 4;
    }
    bytes.skip_to(length, read)?;
    let at = if present & TIME != 0 { read.next_multiple_of(8) + 8 } else { read };
    let flags = whole[..length].get(at).filter(|_| present & FLAGS != 0).map_or(0, |flags| *flags);
    if flags & BAD_CHECKSUM != 0 {
        return Err(Unread::Damaged);
    }
    frame(bytes, flags & PADDED != 0)
}

/// Per-Packet Information: a length, a link type, and fields with a length each.
pub(super) fn ppi(bytes: &mut Bytes<'_>) -> Result<Next, Unread> {
    const HEADER: usize = 8;
    const ALIGNED: u8 = 1;
    const COMMON: u16 = 2;
    /// Bad checksum, or an error reported by the radio.
    const DAMAGED: u8 = 0x04 | 0x08;
    let whole = bytes.rest;
    let [_, flags, low, high] = bytes.array()?;
    let link = u32::from_le_bytes(bytes.array()?);
    let length = usize::from(u16::from_le_bytes([low, high]));
    bytes.skip_to(length, HEADER)?;
    let mut fields = &whole[HEADER..length];
    while let [a, b, c, d, rest @ ..] = fields {
        let (kind, size) = (u16::from_le_bytes([*a, *b]), usize::from(u16::from_le_bytes([*c, *d])));
        if kind == COMMON && rest.get(8).is_some_and(|flags| flags & DAMAGED != 0) {
            return Err(Unread::Damaged);
        }
        let size = if flags & ALIGNED != 0 { size.next_multiple_of(4) } else { size };
        fields = rest.get(size..).unwrap_or_default();
    }
    Ok(Next::Link(u16::try_from(link).map_err(|_| Unread::Malformed)?))
}

/// Prism driver header, in host byte order, or its successor AVS, recognised by its first bytes.
pub(super) fn prism(bytes: &mut Bytes<'_>) -> Result<Next, Unread> {
    if bytes.rest.starts_with(&[0x80, 0x21, 0x10]) {
        return avs(bytes);
    }
    let head: [u8; 8] = bytes.array()?;
    let word = |of: fn([u8; 4]) -> u32| of([head[4], head[5], head[6], head[7]]);
    let length = word(u32::from_le_bytes).min(word(u32::from_be_bytes));
    bytes.skip_to(length as usize, head.len())?;
    frame(bytes, false)
}

/// AVS header: a version and its length.
pub(super) fn avs(bytes: &mut Bytes<'_>) -> Result<Next, Unread> {
    bytes.take(4)?;
    let length = bytes.u32()?;
    bytes.skip_to(length as usize, 8)?;
    frame(bytes, false)
}
