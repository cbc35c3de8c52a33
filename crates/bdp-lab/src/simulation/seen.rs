//! Facts of a host's connections from its packets, whatever its stack: those of a kernel's `TCP_INFO`, as far as packets show them.

use std::collections::BTreeMap;

const TCP: u8 = 6;
const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// Connections by the host's own ports.
#[derive(Debug, Default)]
pub struct Seen {
    by_port: BTreeMap<u16, Connection>,
}

/// One connection, as its host sends it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Connection {
    /// Sequence number of the SYN, if it was seen.
    begun: Option<u32>,
    /// Bytes sent after the SYN, without retransmissions.
    sent: u64,
    /// Bytes acknowledged after the SYN.
    pub acked_bytes: u64,
    /// Data segments without new bytes.
    pub retransmits: u64,
    /// Data segments.
    pub segments: u64,
    /// Largest payload of a segment.
    pub largest: u64,
    /// Window last advertised by the other end.
    pub window_bytes: Option<u64>,
    /// Shift counts offered by this end and the other.
    scale: [Option<u8>; 2],
    /// Sequence number of the other end's SYN, if it was received.
    other_begun: Option<u32>,
    /// End of the bytes received after it, and their number, including repeated ones.
    reached: u64,
    came: u64,
    /// Acknowledgements from the other end with a SACK option.
    pub sacks: u64,
}

impl Connection {
    /// Bytes in flight.
    pub fn in_flight(&self) -> u64 {
        self.sent.saturating_sub(self.acked_bytes)
    }

    /// Upper bound of the bytes that a stack can have read by now.
    pub(super) fn readable(&self) -> u64 {
        self.reached.min(self.came)
    }

    /// Whether both ends offered window scaling, once both have begun.
    pub fn window_scaling(&self) -> Option<bool> {
        (self.begun.is_some() && self.other_begun.is_some()).then(|| self.scale.iter().all(Option::is_some))
    }
}

impl Seen {
    pub(super) fn watch(&mut self, port: u16) {
        self.by_port.insert(port, Connection::default());
    }

    /// The connection of a port.
    pub fn of(&self, port: u16) -> Option<&Connection> {
        self.by_port.get(&port)
    }

    pub(super) fn sent(&mut self, packet: &[u8]) {
        let Some(segment) = Segment::of(packet) else { return };
        let Some(seen) = self.by_port.get_mut(&segment.ports.0) else { return };
        if segment.flags & SYN != 0 {
            seen.begun.get_or_insert(segment.sequence);
            seen.scale[0] = segment.scale;
            return;
        }
        let Some(begun) = seen.begun else { return };
        let payload = segment.payload;
        if payload == 0 {
            return;
        }
        let end = beyond(seen.sent, begun.wrapping_add(1), segment.sequence.wrapping_add(payload as u32));
        seen.segments += 1;
        seen.largest = seen.largest.max(payload);
        if end > seen.sent {
            seen.sent = end;
        } else {
            seen.retransmits += 1;
        }
    }

    pub(super) fn arrived(&mut self, packet: &[u8]) {
        let Some(segment) = Segment::of(packet) else { return };
        let Some(seen) = self.by_port.get_mut(&segment.ports.1) else { return };
        let syn = segment.flags & SYN != 0;
        if syn {
            seen.other_begun.get_or_insert(segment.sequence);
            seen.scale[1] = segment.scale;
        }
        let scale = if syn || seen.scale[0].is_none() { 0 } else { seen.scale[1].unwrap_or(0).min(14) };
        seen.window_bytes = Some(u64::from(segment.window) << scale);
        if let Some(begun) = seen.other_begun.filter(|_| segment.payload > 0) {
            let first = begun.wrapping_add(1);
            let sequence = if syn { first } else { segment.sequence };
            let end = beyond(seen.reached, first, sequence.wrapping_add(segment.payload as u32));
            seen.reached = seen.reached.max(end);
            seen.came += segment.payload;
        }
        if segment.flags & ACK == 0 {
            return;
        }
        seen.sacks += u64::from(segment.sacks);
        let Some(begun) = seen.begun else { return };
        let acked = beyond(seen.acked_bytes, begun.wrapping_add(1), segment.acknowledgement);
        // A FIN has its own sequence number.
        seen.acked_bytes = seen.acked_bytes.max(acked.min(seen.sent));
    }
}

/// Stream position of a sequence number, `first` being that of the first byte, nearest to a known position.
fn beyond(known: u64, first: u32, number: u32) -> u64 {
    let at = first.wrapping_add(known as u32);
    known.saturating_add_signed(i64::from(number.wrapping_sub(at) as i32))
}

/// Fields of a segment.
struct Segment {
    ports: (u16, u16),
    sequence: u32,
    acknowledgement: u32,
    flags: u8,
    window: u16,
    scale: Option<u8>,
    sacks: bool,
    payload: u64,
}

impl Segment {
    fn of(packet: &[u8]) -> Option<Self> {
        let ip = match packet.first()? >> 4 {
            4 if *packet.get(9)? == TCP => usize::from(packet[0] & 15) * 4,
            6 if *packet.get(6)? == TCP => 40,
            _ => return None,
        };
        let tcp = packet.get(ip..)?;
        let header = usize::from(*tcp.get(12)? >> 4) * 4;
        let word = |at: usize| Some(u16::from_be_bytes([*tcp.get(at)?, *tcp.get(at + 1)?]));
        let long = |at: usize| Some(u32::from(word(at)?) << 16 | u32::from(word(at + 2)?));
        let mut segment = Self {
            ports: (word(0)?, word(2)?),
            sequence: long(4)?,
            acknowledgement: long(8)?,
            flags: tcp[13] & (FIN | SYN | ACK),
            window: word(14)?,
            scale: None,
            sacks: false,
            payload: tcp.len().checked_sub(header)? as u64,
        };
        let mut options = tcp.get(20..header)?;
        while let [kind, rest @ ..] = options {
            match (kind, rest) {
                (0, _) => break,
                (1, rest) => options = rest,
                (kind, [length, ..]) if *length >= 2 => {
                    if *kind == 3 {
                        segment.scale = rest.get(1).copied();
                    }
                    segment.sacks |= *kind == 5;
                    options = options.get(usize::from(*length)..).unwrap_or(&[]);
                }
                _ => break,
            }
        }
        Some(segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_go_past_four_gibibytes_and_back() {
        let first = 0xffff_ff00;
        assert_eq!(beyond(0, first, first), 0);
        assert_eq!(beyond(0, first, 0x100), 0x200);
        assert_eq!(beyond(0x1_0000_0000, first, first.wrapping_add(5)), 0x1_0000_0005);
        assert_eq!(beyond(0x1_0000_0000, first, first.wrapping_sub(5)), 0xffff_fffb);
    }

    #[test]
    fn a_connection_is_followed_by_its_packets() {
        let segment = |ports: (u16, u16),
                       sequence: u32,
                       ack: u32,
                       flags: u8,
                       window: u16,
                       options: &[u8],
                       data: usize| {
            let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, TCP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            packet.extend(ports.0.to_be_bytes().iter().chain(&ports.1.to_be_bytes()));
            packet.extend(sequence.to_be_bytes().iter().chain(&ack.to_be_bytes()));
            packet.extend([(((20 + options.len()) / 4) << 4) as u8, flags]);
            packet.extend(window.to_be_bytes());
            packet.extend([0; 4]);
            packet.extend(options);
            packet.resize(packet.len() + data, 7);
            packet
        };
        let (there, back) = ((40_000, 5_001), (5_001, 40_000));
        let mut seen = Seen::default();
        seen.watch(40_000);
        seen.sent(&segment(there, u32::MAX, 0, SYN, 100, &[3, 3, 7, 0], 0));
        seen.arrived(&segment(back, 900, 0, SYN | ACK, 1_000, &[1, 3, 3, 2], 0));
        assert_eq!(seen.of(40_000).unwrap().window_scaling(), Some(true));
        assert_eq!(seen.of(40_000).unwrap().window_bytes, Some(1_000));
        seen.sent(&segment(there, 0, 901, ACK, 100, &[], 1_000));
        seen.sent(&segment(there, 1_000, 901, ACK, 100, &[], 500));
        seen.sent(&segment(there, 0, 901, ACK, 100, &[], 1_000));
        seen.arrived(&segment(back, 901, 1_000, ACK, 50, &[1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2], 0));
        let one = seen.of(40_000).unwrap();
        assert_eq!((one.acked_bytes, one.in_flight(), one.retransmits), (1_000, 500, 1));
        assert_eq!((one.window_bytes, one.largest, one.sacks), (Some(200), 1_000, 1));
        assert_eq!(one.readable(), 0);
        assert_eq!(seen.of(5_001), None);
        // Data received twice, or behind a gap, adds nothing readable.
        for (sequence, data, readable) in
            [(901, 1_000, 1_000), (901, 1_000, 1_000), (2_901, 500, 2_500), (1_901, 10, 2_500)]
        {
            seen.arrived(&segment(back, sequence, 1_000, ACK, 50, &[], data));
            assert_eq!(seen.of(40_000).unwrap().readable(), readable);
        }
    }
}
