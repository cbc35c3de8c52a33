//! An IP packet, and the way to the TCP header in it.

use std::ops::Range;

use crate::tcp::TcpHeader;

/// One IP packet, version 4 or 6, with full checksums (none left for a device to complete).
///
/// Any bytes are accepted: what is not understood passes unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// From the first byte of the IP header to the last of its payload.
    pub data: Vec<u8>,
}

impl Packet {
    /// Its length in IP bytes.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.data.len() as u64
    }

    /// The TCP header, if this is a TCP segment (or the first fragment of one) that is well formed so far.
    pub(crate) fn tcp_header_mut(&mut self) -> Option<TcpHeader<'_>> {
        let payload = match self.data.first()? >> 4 {
            4 => ipv4_tcp_payload(&self.data),
            6 => ipv6_tcp_payload(&self.data),
            _ => None,
        }?;
        TcpHeader::new(self.data.get_mut(payload)?)
    }
}

const TCP: u8 = 6;

/// Where the payload of an IPv4 packet lies if it begins with a TCP header (RFC 791, section 3.1).
fn ipv4_tcp_payload(data: &[u8]) -> Option<Range<usize>> {
    let header = data.get(..20)?;
    let header_len = usize::from(header[0] & 0x0f) * 4;
    let total_len = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let fragment_offset = u16::from_be_bytes([header[6], header[7]]) & 0x1fff;
    let well_formed = header_len >= 20 && header_len <= total_len && total_len <= data.len();
    (well_formed && fragment_offset == 0 && header[9] == TCP).then_some(header_len..total_len)
}

/// Where the upper-layer payload of an IPv6 packet lies if it begins with a TCP header (RFC 8200, section 4).
///
/// Passes over hop-by-hop, routing, fragment and destination options headers. Others end the walk: behind
/// an authentication header nothing may be rewritten, behind the rest there is no TCP.
fn ipv6_tcp_payload(data: &[u8]) -> Option<Range<usize>> {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const DESTINATION_OPTIONS: u8 = 60;

    let header = data.get(..40)?;
    let end = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let data = data.get(..end)?;
    let mut next_header = header[6];
    let mut at = 40;
    // Each round moves at least 8 bytes on, so the packet's end bounds the walk.
    loop {
        let length = match next_header {
            TCP => return Some(at..end),
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => 8 + usize::from(*data.get(at + 1)?) * 8,
            FRAGMENT => {
                let fragment_offset = u16::from_be_bytes([*data.get(at + 2)?, *data.get(at + 3)?]) >> 3;
                if fragment_offset != 0 {
                    return None;
                }
                8
            }
            _ => return None,
        };
        next_header = *data.get(at)?;
        at += length;
        if at > end {
            return None;
        }
    }
}
