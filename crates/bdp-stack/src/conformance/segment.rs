//! TCP segments in IPv4 packets as the suite sends and reads them: every field can be set, right or wrong.

use std::net::Ipv4Addr;

pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;
pub(super) const ACK: u8 = 16;
const PUSH: u8 = 8;
const TCP: u8 = 6;
const IP_BYTES: usize = 20;

/// A TCP segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) from_port: u16,
    pub(super) to_port: u16,
    pub(super) sequence: u32,
    pub(super) acknowledgement: u32,
    pub(super) flags: u8,
    pub(super) window: u16,
    pub(super) options: Options,
    pub(super) payload: Vec<u8>,
}

/// TCP options known to the suite.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) mss: Option<u16>,
    pub(super) scale: Option<u8>,
    pub(super) sack_permitted: bool,
    pub(super) sack: Vec<(u32, u32)>,
    pub(super) timestamps: Option<(u32, u32)>,
}

impl Options {
    /// Returns the options that a current stack offers.
    pub(super) fn usual() -> Self {
        Self {
            mss: Some(1460),
            scale: Some(7),
            sack_permitted: true,
            timestamps: Some((1, 0)),
            sack: Vec::new(),
        }
    }

    /// Returns the maximum segment size alone.
    pub(super) fn plain() -> Self {
        Self { mss: Some(1460), ..Self::default() }
    }
}

impl Segment {
    /// Encodes the packet with correct checksums.
    pub(super) fn encode(&self, from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
        let options = self.options.encode();
        let mut tcp = Vec::with_capacity(20 + options.len() + self.payload.len());
        tcp.extend(self.from_port.to_be_bytes().iter().chain(&self.to_port.to_be_bytes()));
        tcp.extend(self.sequence.to_be_bytes().iter().chain(&self.acknowledgement.to_be_bytes()));
        let push = if self.payload.is_empty() { 0 } else { PUSH };
        tcp.extend([(((20 + options.len()) / 4) << 4) as u8, self.flags | push]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(options);
        tcp.extend(&self.payload);
        let mut summed: Vec<u8> = from.octets().iter().chain(&to.octets()).copied().collect();
        summed.extend([0, TCP]);
        summed.extend((tcp.len() as u16).to_be_bytes());
        summed.extend(&tcp);
        tcp[16..18].copy_from_slice(&checksum(&summed).to_be_bytes());
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, TCP, 0, 0];
        packet[2..4].copy_from_slice(&((IP_BYTES + tcp.len()) as u16).to_be_bytes());
        packet.extend(from.octets().iter().chain(&to.octets()));
        let sum = checksum(&packet).to_be_bytes();
        packet[10..12].copy_from_slice(&sum);
        packet.extend(tcp);
        packet
    }

    /// Decodes a packet; `None` if it contains no TCP, or its checksums are wrong.
    pub(super) fn decode(packet: &[u8]) -> Option<Self> {
        let header = usize::from(packet.first()? & 15) * 4;
        let length = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
        let packet = packet.get(..length)?;
        if packet[0] >> 4 != 4 || *packet.get(9)? != TCP || checksum(packet.get(..header)?) != 0 {
            return None;
        }
        let tcp = packet.get(header..)?;
        let mut summed = packet.get(12..20)?.to_vec();
        summed.extend([0, TCP]);
        summed.extend((tcp.len() as u16).to_be_bytes());
        summed.extend(tcp);
        let data = usize::from(*tcp.get(12)? >> 4) * 4;
        if checksum(&summed) != 0 || data < 20 {
            return None;
        }
        let word = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let long = |at: usize| u32::from(word(at)) << 16 | u32::from(word(at + 2));
        Some(Self {
            from_port: word(0),
            to_port: word(2),
            sequence: long(4),
            acknowledgement: long(8),
            flags: tcp[13] & (FIN | SYN | RST | ACK),
            window: word(14),
            options: Options::decode(tcp.get(20..data)?),
            payload: tcp.get(data..)?.to_vec(),
        })
    }

    pub(super) fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    /// Returns the sequence number after its last byte, counting SYN and FIN.
    pub(super) fn end(&self) -> u32 {
        let flags = u32::from(self.has(SYN)) + u32::from(self.has(FIN));
        self.sequence.wrapping_add(self.payload.len() as u32).wrapping_add(flags)
    }
}

impl Options {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(mss) = self.mss {
            bytes.extend([2, 4]);
            bytes.extend(mss.to_be_bytes());
        }
        if self.sack_permitted {
            bytes.extend([4, 2]);
        }
        if let Some((value, echo)) = self.timestamps {
            bytes.extend([8, 10]);
            bytes.extend(value.to_be_bytes().iter().chain(&echo.to_be_bytes()));
        }
        if let Some(scale) = self.scale {
            bytes.extend([3, 3, scale]);
        }
        if !self.sack.is_empty() {
            bytes.extend([5, (2 + 8 * self.sack.len()) as u8]);
            for (left, right) in &self.sack {
                bytes.extend(left.to_be_bytes().iter().chain(&right.to_be_bytes()));
            }
        }
        bytes.resize(bytes.len().next_multiple_of(4), 1);
        bytes
    }

    fn decode(mut bytes: &[u8]) -> Self {
        let mut options = Self::default();
        while let [kind, rest @ ..] = bytes {
            if *kind == 0 {
                break;
            }
            if *kind == 1 {
                bytes = rest;
                continue;
            }
            let Some(body) = rest.first().and_then(|&length| bytes.get(2..usize::from(length))) else {
                break;
            };
            let long = |at: usize| Some(u32::from_be_bytes(*body.get(at..)?.first_chunk()?));
            match kind {
                2 => options.mss = body.first_chunk().map(|&mss| u16::from_be_bytes(mss)),
                3 => options.scale = body.first().copied(),
                4 => options.sack_permitted = true,
                5 => {
                    options.sack =
                        (0..body.len() / 8).filter_map(|i| Some((long(8 * i)?, long(8 * i + 4)?))).collect()
                }
                8 => options.timestamps = long(0).zip(long(4)),
                _ => {}
            }
            bytes = &bytes[2 + body.len()..];
        }
        options
    }
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_read_as_they_are_written() {
        let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let segment = Segment {
            from_port: 1,
            to_port: 2,
            sequence: u32::MAX,
            acknowledgement: 7,
            flags: SYN | ACK,
            window: 100,
            options: Options {
                mss: Some(1400),
                scale: Some(7),
                sack_permitted: true,
                sack: vec![(1, 2)],
                timestamps: Some((3, 4)),
            },
            payload: vec![9; 5],
        };
        let mut packet = segment.encode(from, to);
        assert_eq!(Segment::decode(&packet), Some(segment.clone()));
        assert_eq!(segment.end(), 5);
        let last = packet.len() - 1;
        packet[last] ^= 1;
        assert_eq!(Segment::decode(&packet), None);
        assert_eq!(Segment::decode(&packet[..30]), None);
    }
}
