//! An IP packet, and access to its TCP header.

use std::ops::Range;

use crate::tcp::TcpHeader;
use bdp_model::link::checksum;

/// One IP packet, version 4 or 6: a wire segment, or a super-packet that stands for several.
///
/// Any bytes are accepted: unknown content passes unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packet {
    /// From the first byte of the IP header to the last of its payload.
    pub data: Vec<u8>,
    /// Work that the sender left to the device.
    pub offload: Offload,
}

/// Work that the sending stack left to its device (virtio 1.2, section 5.1.6). By default nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offload {
    /// How it is split into wire segments.
    pub segmentation: Option<Segmentation>,
    /// The transport checksum to be completed.
    pub checksum: Option<PartialChecksum>,
}

/// How a super-packet is split into wire segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segmentation {
    /// Transport protocol of the segments.
    pub transport: Transport,
    /// Payload bytes of each segment; the last may have fewer.
    pub size: u16,
}

/// The transport protocol of a super-packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// One range of the byte stream.
    Tcp,
    /// Consecutive datagrams.
    Udp,
}

/// A checksum field that holds only the sum of the pseudo-header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartialChecksum {
    /// Offset of the transport header in the packet, where the summed bytes begin.
    pub start: u16,
    /// Offset of the checksum field from there.
    pub offset: u16,
}

impl From<Vec<u8>> for Packet {
    /// Returns a wire segment with complete checksums.
    fn from(data: Vec<u8>) -> Self {
        Self { data, offload: Offload::default() }
    }
}

impl Packet {
    /// Length in IP bytes.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.data.len() as u64
    }

    /// Range of the IP payload; `None` if this is no well-formed IP packet.
    pub(crate) fn payload(&self) -> Option<Range<usize>> {
        match self.data.first()? >> 4 {
            4 => ipv4_payload(&self.data),
            6 => ipv6_upper_layer(&self.data).map(|(_, payload)| payload),
            _ => None,
        }
    }

    /// DSCP of the packet (RFC 2474); zero if it is no IP packet.
    pub(crate) fn dscp(&self) -> u8 {
        match (self.data.first().map_or(0, |first| first >> 4), self.data.get(..2)) {
            (4, Some(head)) => head[1] >> 2,
            (6, Some(head)) => ((head[0] & 0x0f) << 2) | (head[1] >> 6),
            _ => 0,
        }
    }

    /// Flow identity: both addresses, the protocol, and the ports if it has any.
    pub(crate) fn flow(&self) -> (&[u8], u8, &[u8]) {
        let data = self.data.as_slice();
        let (addresses, protocol, payload) = match data.first().map_or(0, |first| first >> 4) {
            4 if data.len() >= 20 => {
                let whole = u16::from_be_bytes([data[6], data[7]]) & 0x3fff == 0;
                (&data[12..20], data[9], whole.then(|| ipv4_payload(data)).flatten())
            }
            6 if data.len() >= 40 => match ipv6_upper_layer(data) {
                Some((Some(protocol), payload)) => (&data[8..40], protocol, Some(payload)),
                _ => (&data[8..40], data[6], None),
            },
            _ => (&[] as &[u8], 0, None),
        };
        let ports = payload.filter(|_| matches!(protocol, TCP | UDP)).and_then(|payload| {
            let start = payload.start;
            data.get(start..start + 4)
        });
        (addresses, protocol, ports.unwrap_or(&[]))
    }

    /// The TCP header, if this is a TCP segment (or the first fragment of one) that is well formed so far.
    pub(crate) fn tcp_header_mut(&mut self) -> Option<TcpHeader<'_>> {
        let payload = match self.data.first()? >> 4 {
            4 => ipv4_tcp_payload(&self.data),
            6 => ipv6_tcp_payload(&self.data),
            _ => None,
        }?;
        TcpHeader::new(self.data.get_mut(payload)?, self.offload.checksum.is_some())
    }
}

impl PartialChecksum {
    /// Completes the checksum, whose field held the pseudo-header's sum. A UDP checksum of zero would mean none (RFC 768), so it is sent as all ones.
    pub(crate) fn complete(self, data: &mut [u8]) {
        const UDP_OFFSET: u16 = 6;
        let start = usize::from(self.start);
        let Some(sum) = data.get(start..).map(checksum::of) else { return };
        let sum = if sum == 0 && self.offset == UDP_OFFSET { 0xffff } else { sum };
        if let Some(field) = self.field(data) {
            field.copy_from_slice(&sum.to_be_bytes());
        }
    }

    /// Updates the pseudo-header's sum for another length of the transport segment: old, new.
    pub(crate) fn replace_length(self, data: &mut [u8], [old, new]: [u16; 2]) {
        if let Some(field) = self.field(data) {
            let sum = u64::from(u16::from_be_bytes([field[0], field[1]])) + u64::from(!old) + u64::from(new);
            field.copy_from_slice(&checksum::fold(sum).to_be_bytes());
        }
    }

    fn field(self, data: &mut [u8]) -> Option<&mut [u8]> {
        let at = usize::from(self.start) + usize::from(self.offset);
        data.get_mut(at..at + 2)
    }
}

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Payload range of an IPv4 packet (RFC 791, section 3.1).
fn ipv4_payload(data: &[u8]) -> Option<Range<usize>> {
    let header = data.get(..20)?;
    let header_len = usize::from(header[0] & 0x0f) * 4;
    let total_len = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let well_formed = header_len >= 20 && header_len <= total_len && total_len <= data.len();
    well_formed.then_some(header_len..total_len)
}

/// Payload range of an IPv4 packet if it begins with a TCP header.
fn ipv4_tcp_payload(data: &[u8]) -> Option<Range<usize>> {
    let payload = ipv4_payload(data)?;
    let fragment_offset = u16::from_be_bytes([data[6], data[7]]) & 0x1fff;
    (fragment_offset == 0 && data[9] == TCP).then_some(payload)
}

/// Upper-layer payload range of an IPv6 packet if it begins with a TCP header.
fn ipv6_tcp_payload(data: &[u8]) -> Option<Range<usize>> {
    ipv6_upper_layer(data).filter(|(next_header, _)| *next_header == Some(TCP)).map(|(_, payload)| payload)
}

/// Protocol and range behind an IPv6 packet's extension headers; the protocol is `None` for a later fragment (RFC 8200, section 4).
///
/// Skips hop-by-hop, routing, fragment and destination options headers. Others end the walk: behind an
/// authentication header nothing may be rewritten, behind the rest there is no TCP.
fn ipv6_upper_layer(data: &[u8]) -> Option<(Option<u8>, Range<usize>)> {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const DESTINATION_OPTIONS: u8 = 60;

    let header = data.get(..40)?;
    let end = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let data = data.get(..end)?;
    let mut next_header = header[6];
    let mut at = 40;
    // Each round advances by at least 8 bytes, so the packet's end bounds the walk.
    loop {
        let length = match next_header {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => 8 + usize::from(*data.get(at + 1)?) * 8,
            FRAGMENT => {
                let fragment_offset = u16::from_be_bytes([*data.get(at + 2)?, *data.get(at + 3)?]) >> 3;
                if fragment_offset != 0 {
                    return (at + 8 <= end).then(|| (None, at + 8..end));
                }
                8
            }
            protocol => return Some((Some(protocol), at..end)),
        };
        next_header = *data.get(at)?;
        at += length;
        if at > end {
            return None;
        }
    }
}
