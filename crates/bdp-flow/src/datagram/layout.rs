//! What the datagrams of a stream begin with: the header of bdp, iperf3 or iperf2.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bdp_wire::datagram::{HEADER_BYTES, Header};
use bdp_wire::iperf2::{STAMP_BYTES, ServerReport, Stamp};
use bdp_wire::iperf3::datagram as iperf3;

use crate::lock::lock;

/// How long iperf2's other end may refuse datagrams at the beginning.
const REFUSALS_NS: u64 = 1_000_000_000;

/// The layout of a datagram's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// bdp's own. The sender marks its end.
    Bdp {
        /// The tag in each datagram.
        tag: [u8; 8],
    },
    /// iperf3's, with microseconds. Nothing marks the end.
    Iperf3 {
        /// Whether it counts with 64 bits instead of 32.
        wide: bool,
    },
    /// iperf2's, with 64-bit sequence numbers. A negated number marks the end, which the client sends: the other end
    /// answers.
    Iperf2 {
        /// What follows the number and time: the header of the test, as far as it fits.
        header: Vec<u8>,
        /// Delay of the stream's start after the others.
        delay: Duration,
        /// The other end's report on what it received, which may arrive among the datagrams of a stream.
        report: ReportSlot,
    },
}

/// Holds the report of iperf2's other end.
#[derive(Debug, Clone, Default)]
pub struct ReportSlot(Arc<Mutex<Option<ServerReport>>>);

impl ReportSlot {
    /// Keeps a datagram if it is a report.
    pub fn keep(&self, datagram: &[u8]) {
        if let Some(report) = ServerReport::decode(datagram) {
            *lock(&self.0) = Some(report);
        }
    }

    /// Returns the latest report.
    pub fn report(&self) -> Option<ServerReport> {
        *lock(&self.0)
    }
}

impl PartialEq for ReportSlot {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ReportSlot {}

/// The label of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label {
    /// Whether it is the last; its number is then the count of all.
    pub(super) last: bool,
    /// The sequence number, from 0.
    pub(super) number: u64,
    /// When it was sent, by the sender's clock.
    pub(super) sent_ns: u64,
}

impl Layout {
    /// Returns the bytes of the smallest datagram.
    pub(super) fn header_bytes(&self) -> usize {
        match self {
            Self::Bdp { .. } => HEADER_BYTES,
            Self::Iperf3 { wide } => iperf3::header_bytes(*wide),
            Self::Iperf2 { .. } => STAMP_BYTES,
        }
    }

    /// Returns the delay of the stream's start after the others.
    pub(super) fn delay(&self) -> Duration {
        match self {
            Self::Iperf2 { delay, .. } => *delay,
            _ => Duration::ZERO,
        }
    }

    /// Whether a refusal is temporary this long after the start: iperf2's server has no socket for others while it
    /// accepts one.
    pub(super) fn outlasts(&self, elapsed_ns: u64) -> bool {
        matches!(self, Self::Iperf2 { .. }) && elapsed_ns < REFUSALS_NS
    }

    /// Writes the constant part of all datagrams.
    pub fn write_header(&self, datagram: &mut [u8]) {
        if let (Self::Iperf2 { header, .. }, Some(room)) = (self, datagram.get_mut(STAMP_BYTES..)) {
            let length = header.len().min(room.len());
            room[..length].copy_from_slice(&header[..length]);
        }
    }

    /// Labels a datagram that is at least as long as the header.
    pub(super) fn write(&self, datagram: &mut [u8], number: u64, sent_ns: u64) {
        match self {
            Self::Bdp { tag } => {
                if let Some(header) = datagram.first_chunk_mut() {
                    Header { last: false, tag: *tag, number, sent_ns }.write(header);
                }
            }
            Self::Iperf3 { wide } => {
                iperf3::Header { sent_us: sent_ns / 1000, number: number + 1 }.encode(*wide, datagram);
            }
            Self::Iperf2 { .. } => {
                if let Some(stamp) = datagram.first_chunk_mut() {
                    *stamp = Stamp { number: number as i64 + 1, sent_us: sent_ns / 1000 }.encode();
                }
            }
        }
    }

    /// Returns a datagram's label, if `next` is the number after the highest so far; `None` for anything else.
    pub(super) fn read(&self, datagram: &[u8], next: u64) -> Option<Label> {
        match self {
            Self::Bdp { tag } => {
                let Header { last, number, sent_ns, .. } = Header::read(datagram, tag)?;
                Some(Label { last, number, sent_ns })
            }
            Self::Iperf3 { wide } => {
                let header = iperf3::Header::decode(*wide, datagram)?;
                let number = if *wide {
                    header.number.checked_sub(1)?
                } else {
                    // 32-bit numbers wrap after some minutes of small datagrams.
                    let ahead = (header.number as u32).wrapping_sub(next as u32).wrapping_sub(1) as i32;
                    next.checked_add_signed(i64::from(ahead))?
                };
                Some(Label { last: false, number, sent_ns: header.sent_us.checked_mul(1000)? })
            }
            Self::Iperf2 { report, .. } => {
                let Stamp { number, sent_us } = Stamp::decode(datagram, true)?;
                if number == 0 {
                    report.keep(datagram);
                    return None;
                }
                let sent_ns = sent_us.checked_mul(1000)?;
                Some(Label { last: number < 0, number: number.unsigned_abs() - 1, sent_ns })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iperf2(header: Vec<u8>, report: ReportSlot) -> Layout {
        Layout::Iperf2 { header, delay: Duration::ZERO, report }
    }

    #[test]
    fn labels_come_back_in_every_layout() {
        for layout in [
            Layout::Bdp { tag: *b"the tag!" },
            Layout::Iperf3 { wide: false },
            Layout::Iperf3 { wide: true },
            iperf2(Vec::new(), ReportSlot::default()),
        ] {
            let mut datagram = [0xee; 40];
            layout.write(&mut datagram, 7, 5_000_001_000);
            assert!(datagram[layout.header_bytes()..].iter().all(|&byte| byte == 0xee));
            let label = Label { last: false, number: 7, sent_ns: 5_000_001_000 };
            assert_eq!(layout.read(&datagram, 3), Some(label), "{layout:?}");
            assert_eq!(layout.read(&datagram[..layout.header_bytes() - 1], 3), None, "{layout:?}");
        }
    }

    #[test]
    fn a_negated_number_ends_a_stream_of_iperf2_and_a_report_is_kept() {
        let slot = ReportSlot::default();
        let layout = iperf2(vec![1, 2, 3], slot.clone());
        let mut datagram = [0; 18];
        layout.write_header(&mut datagram);
        assert_eq!(datagram[16..], [1, 2]);
        let last = Stamp { number: -11, sent_us: 3 }.encode();
        assert_eq!(layout.read(&last, 0), Some(Label { last: true, number: 10, sent_ns: 3000 }));
        let report = ServerReport { bytes: 7, datagrams: 9, ..Default::default() };
        assert_eq!(layout.read(&report.encode(&[0; STAMP_BYTES]), 0), None);
        assert_eq!(slot.report(), Some(report));
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
        // The first number is 1: 0 before anything arrived is from no sender.
        assert_eq!(narrow.read(&[0; 12], 0), None);
        assert_eq!(Layout::Iperf3 { wide: true }.read(&[0; 16], 0), None);
    }
}
