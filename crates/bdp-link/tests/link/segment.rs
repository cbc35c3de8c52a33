//! Hand-made TCP segments, and checksums computed in full.

use bdp_link::{Offload, Packet, PartialChecksum, Segmentation, Transport};

pub const SYN: u8 = 0x02;
pub const ACK: u8 = 0x10;
pub const PSH: u8 = 0x08;
pub const RST: u8 = 0x04;
pub const FIN: u8 = 0x01;

/// A TCP segment to be put into an IP packet.
#[derive(Debug, Clone)]
pub struct Segment {
    pub flags: u8,
    pub window: u16,
    /// Padded to a multiple of four with end-of-options.
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Segment {
    pub fn new(flags: u8, window: u16, options: &[u8]) -> Self {
        Self { flags, window, options: options.to_vec(), payload: Vec::new() }
    }

    pub fn with_payload(mut self, payload: &[u8]) -> Self {
        self.payload = payload.to_vec();
        self
    }

    /// Header, options and payload, with a checksum of zero.
    fn bytes(&self) -> Vec<u8> {
        let mut options = self.options.clone();
        options.resize(options.len().next_multiple_of(4), 0);
        let mut tcp = Vec::new();
        tcp.extend(50_001u16.to_be_bytes());
        tcp.extend(5_201u16.to_be_bytes());
        tcp.extend(0x1234_5678u32.to_be_bytes());
        tcp.extend(0x9abc_def0u32.to_be_bytes());
        tcp.push((((20 + options.len()) / 4) << 4) as u8);
        tcp.push(self.flags);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0, 0, 0, 0]);
        tcp.extend(options);
        tcp.extend(&self.payload);
        tcp
    }

    /// In an IPv4 packet with these IP options (a multiple of four bytes).
    pub fn v4(&self, ip_options: &[u8]) -> Packet {
        let mut tcp = self.bytes();
        let header_len = 20 + ip_options.len();
        let mut data = vec![0x40 | (header_len / 4) as u8, 0];
        data.extend(((header_len + tcp.len()) as u16).to_be_bytes());
        data.extend([0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 7, 198, 51, 100, 20]);
        data.extend(ip_options);
        let ip_checksum = !sum(&data);
        data[10..12].copy_from_slice(&ip_checksum.to_be_bytes());
        let checksum = full_checksum(&data[12..20], &tcp);
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        data.extend(tcp);
        Packet::from(data)
    }

    /// In an IPv6 packet behind these extension headers, each with its type; next header fields are filled in.
    pub fn v6(&self, extensions: &[(u8, Vec<u8>)]) -> Packet {
        let mut tcp = self.bytes();
        let extensions_len: usize = extensions.iter().map(|(_, header)| header.len()).sum();
        let mut data = vec![0x60, 0, 0, 0];
        data.extend(((extensions_len + tcp.len()) as u16).to_be_bytes());
        data.push(extensions.first().map_or(6, |(kind, _)| *kind));
        data.push(64);
        data.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        data.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 2]);
        let checksum = full_checksum(&data[8..40], &tcp);
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        for (n, (_, header)) in extensions.iter().enumerate() {
            let mut header = header.clone();
            header[0] = extensions.get(n + 1).map_or(6, |(kind, _)| *kind);
            data.extend(header);
        }
        data.extend(tcp);
        Packet::from(data)
    }

    /// In every envelope there is: plain, and behind options and extension headers.
    pub fn enveloped(&self) -> Vec<Packet> {
        let hop_by_hop = (0, vec![0, 0, 1, 4, 0, 0, 0, 0]);
        let routing = (43, vec![0; 8]);
        let first_fragment = (44, vec![0, 0, 0, 1, 0xde, 0xad, 0xbe, 0xef]);
        let destination_options = (60, [vec![0, 1, 1, 12], vec![0; 12]].concat());
        vec![
            self.v4(&[]),
            self.v4(&[1, 1, 1, 0]),
            self.v4(&[0; 40]),
            self.v6(&[]),
            self.v6(std::slice::from_ref(&hop_by_hop)),
            self.v6(&[hop_by_hop, routing, first_fragment, destination_options]),
        ]
    }
}

/// A packet of [`Segment`] as a device gets it that does segmentation and checksums: the field holds the sum over the
/// pseudo header.
pub fn offloaded(mut packet: Packet, segment: &Segment, size: u16) -> Packet {
    let tcp_len = segment.bytes().len();
    let start = packet.data.len() - tcp_len;
    let addresses = if packet.data[0] >> 4 == 4 { &packet.data[12..20] } else { &packet.data[8..40] };
    let pseudo = sum(&[addresses, &(tcp_len as u32).to_be_bytes(), &[0, 0, 0, 6]].concat());
    packet.data[start + 16..start + 18].copy_from_slice(&pseudo.to_be_bytes());
    packet.offload = Offload {
        segmentation: Some(Segmentation { transport: Transport::Tcp, size }),
        checksum: Some(PartialChecksum { start: start as u16, offset: 16 }),
    };
    packet
}

/// Datagrams of up to `size` bytes as a device gets them that cuts and sums them, in one IPv4 packet.
pub fn offloaded_datagrams(payload: &[u8], size: u16) -> Packet {
    let mut data = vec![0x45, 0, 0, 0, 0xff, 0xff, 0x40, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2];
    data.extend([0x13, 0x88, 0x14, 0x51, 0, 0, 0, 0]);
    data.extend(payload);
    let length = data.len() as u16;
    data[2..4].copy_from_slice(&length.to_be_bytes());
    let ip_checksum = !sum(&data[..20]);
    data[10..12].copy_from_slice(&ip_checksum.to_be_bytes());
    let udp_len = length - 20;
    data[24..26].copy_from_slice(&udp_len.to_be_bytes());
    let pseudo = sum(&[&data[12..20], &[0, 17], &udp_len.to_be_bytes()[..]].concat());
    data[26..28].copy_from_slice(&pseudo.to_be_bytes());
    Packet {
        data,
        offload: Offload {
            segmentation: Some(Segmentation { transport: Transport::Udp, size }),
            checksum: Some(PartialChecksum { start: 20, offset: 6 }),
        },
    }
}

/// Whether the TCP checksum is right, computed in full (RFC 9293, section 3.1; RFC 8200, section 8.1).
///
/// Counts from the packet's end, where hand-made packets have their TCP segment.
pub fn checksum_is_right(packet: &Packet, segment: &Segment) -> bool {
    checksum_is_right_from(packet, packet.data.len() - segment.bytes().len())
}

/// The same of a packet whose TCP header begins at `start`.
pub fn checksum_is_right_from(packet: &Packet, start: usize) -> bool {
    let data = &packet.data;
    let tcp = &data[start..];
    let addresses = if data[0] >> 4 == 4 { &data[12..20] } else { &data[8..40] };
    full_checksum(addresses, tcp) == 0
}

/// The complement of the sum over pseudo header and segment. Both versions' pseudo headers sum to the same.
fn full_checksum(addresses: &[u8], tcp: &[u8]) -> u16 {
    let pseudo = [addresses, &(tcp.len() as u32).to_be_bytes(), &[0, 0, 0, 6], tcp].concat();
    !sum(&pseudo)
}

/// The ones' complement sum of 16-bit words, the last padded with zero (RFC 1071).
pub fn sum(bytes: &[u8]) -> u16 {
    let mut sum: u32 =
        bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Whether the checksum of an IPv4 header is right.
pub fn ip_checksum_is_right(packet: &Packet) -> bool {
    let header_len = usize::from(packet.data[0] & 0x0f) * 4;
    sum(&packet.data[..header_len]) == 0xffff
}
