//! What the datagrams of a stream begin with: bdp's own header, or that of iperf3.

use bdp_wire::datagram::{HEADER_BYTES, Header};
use bdp_wire::iperf3::datagram as iperf3;

/// Whose header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// bdp's own. A sender marks its end.
    Bdp {
        /// What each datagram bears.
        tag: [u8; 8],
    },
    /// iperf3's, to the microsecond. Nothing marks the end.
    Iperf3 {
        /// Whether it counts by 64 bits, not 32.
        wide: bool,
    },
}

/// What a datagram tells of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label {
    /// Whether there are no more; its number is then how many there were.
    pub(super) last: bool,
    /// Which, from 0.
    pub(super) number: u64,
    /// When it was sent, by the sender's own clock.
    pub(super) sent_ns: u64,
}

impl Layout {
    /// Bytes of the smallest datagram.
    pub(super) fn header_bytes(self) -> usize {
        match self {
            Self::Bdp { .. } => HEADER_BYTES,
            Self::Iperf3 { wide } => iperf3::header_bytes(wide),
        }
    }

    /// Labels a datagram, which is no shorter than the header.
    pub(super) fn write(self, datagram: &mut [u8], number: u64, sent_ns: u64) {
        match self {
            Self::Bdp { tag } => {
                if let Some(header) = datagram.first_chunk_mut() {
                    Header { last: false, tag, number, sent_ns }.write(header);
                }
            }
            Self::Iperf3 { wide } => {
                iperf3::Header { sent_us: sent_ns / 1000, number: number + 1 }.encode(wide, datagram);
            }
        }
    }

    /// What a datagram tells where `next` is the number after the highest so far; `None` of anything else.
    pub(super) fn read(self, datagram: &[u8], next: u64) -> Option<Label> {
        match self {
            Self::Bdp { tag } => {
                let Header { last, number, sent_ns, .. } = Header::read(datagram, &tag)?;
                Some(Label { last, number, sent_ns })
            }
            Self::Iperf3 { wide } => {
                let header = iperf3::Header::decode(wide, datagram)?;
                let number = if wide {
                    header.number.checked_sub(1)?
                } else {
                    // Of 32 bits they begin anew after some minutes of small datagrams.
                    let ahead = (header.number as u32).wrapping_sub(next as u32).wrapping_sub(1) as i32;
                    next.checked_add_signed(i64::from(ahead))?
                };
                Some(Label { last: false, number, sent_ns: header.sent_us.checked_mul(1000)? })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_come_back_in_every_layout() {
        for layout in
            [Layout::Bdp { tag: *b"the tag!" }, Layout::Iperf3 { wide: false }, Layout::Iperf3 { wide: true }]
        {
            let mut datagram = [0xee; 40];
            layout.write(&mut datagram, 7, 5_000_001_000);
            assert!(datagram[layout.header_bytes()..].iter().all(|&byte| byte == 0xee));
            let label = Label { last: false, number: 7, sent_ns: 5_000_001_000 };
            assert_eq!(layout.read(&datagram, 3), Some(label), "{layout:?}");
            assert_eq!(layout.read(&datagram[..layout.header_bytes() - 1], 3), None, "{layout:?}");
        }
    }

    #[test]
    fn numbers_of_32_bits_go_on_past_their_end() {
        let narrow = Layout::Iperf3 { wide: false };
        let mut datagram = [0; 12];
        for (number, next) in [
            (0, 0),
            (u64::from(u32::MAX) - 1, u64::from(u32::MAX) - 1),
            (u64::from(u32::MAX), u64::from(u32::MAX) - 3),
            ((1 << 32) + 5, (1 << 32) - 2),
            ((1 << 32) - 9, (1 << 32) + 4),
            (5 << 32, (5 << 32) + 1),
        ] {
            narrow.write(&mut datagram, number, 0);
            assert_eq!(narrow.read(&datagram, next).map(|label| label.number), Some(number), "{number}");
        }
        // The first is number 1: what names 0 before anything came is of no sender.
        assert_eq!(narrow.read(&[0; 12], 0), None);
        assert_eq!(Layout::Iperf3 { wide: true }.read(&[0; 16], 0), None);
    }
}
