//! Server report at the end of a datagram flow.

use super::{STAMP_BYTES, halves, put, word};

/// Length of a report, bytes, stamp included: ten words, fifteen of an extension, three with the upper halves of counts.
pub const REPORT_BYTES: usize = STAMP_BYTES + 28 * 4;

/// Flags: the report is valid; counts have upper halves.
const VERSION_1: u32 = 0x8000_0000;
const WIDE: u32 = 0x0800_0000;
/// Positions of the words, stamp included.
const FLAGS: usize = 4;
const UPPER: usize = 29;

/// A server's report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerReport {
    /// Payload bytes received.
    pub bytes: u64,
    /// Time from the first datagram to the last, microseconds.
    pub took_us: u64,
    /// Datagrams that did not arrive.
    pub lost: u64,
    /// Datagrams that arrived after a later one.
    pub out_of_order: u64,
    /// Datagrams sent, as far as the server knows.
    pub datagrams: u64,
    /// Jitter (RFC 3550, section 6.4.1), microseconds.
    pub jitter_us: u64,
}

impl ServerReport {
    /// Encodes the report as an answer to the datagram with this stamp.
    pub fn encode(&self, stamp: &[u8; STAMP_BYTES]) -> [u8; REPORT_BYTES] {
        let mut bytes = [0; REPORT_BYTES];
        bytes[..STAMP_BYTES].copy_from_slice(stamp);
        let parts = |us: u64| [u32::try_from(us / 1_000_000).unwrap_or(u32::MAX), (us % 1_000_000) as u32];
        let [bytes_high, bytes_low] = halves(self.bytes);
        let [seconds, micros] = parts(self.took_us);
        let [jitter, jitter_micros] = parts(self.jitter_us);
        let counts = [self.lost, self.out_of_order, self.datagrams];
        let low = counts.map(|count| halves(count)[1]);
        let words =
            [VERSION_1 | WIDE, bytes_high, bytes_low, seconds, micros, low[0], low[1], low[2], jitter];
        for (index, value) in words.into_iter().enumerate() {
            put(&mut bytes, FLAGS + index, value);
        }
        put(&mut bytes, FLAGS + words.len(), jitter_micros);
        for (index, count) in counts.into_iter().enumerate() {
            put(&mut bytes, UPPER + index, halves(count)[0]);
        }
        bytes
    }

    /// Decodes a datagram; `None` if it is not a report.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let flags = word(bytes, FLAGS)?;
        if flags & VERSION_1 == 0 {
            return None;
        }
        let at = |index| word(bytes, FLAGS + index).map(u64::from);
        let count = |index: usize| -> Option<u64> {
            let upper = if flags & WIDE != 0 { word(bytes, UPPER + index - 5).unwrap_or(0) } else { 0 };
            Some(u64::from(upper) << 32 | at(index)?)
        };
        Some(Self {
            bytes: at(1)? << 32 | at(2)?,
            took_us: at(3)? * 1_000_000 + at(4)?,
            lost: count(5)?,
            out_of_order: count(6)?,
            datagrams: count(7)?,
            jitter_us: at(8)? * 1_000_000 + at(9)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_come_back_and_halves_do_not() {
        let report = ServerReport {
            bytes: 5 << 33 | 7,
            took_us: 10_000_123,
            lost: 1 << 32 | 3,
            out_of_order: 4,
            datagrams: 9 << 32,
            jitter_us: 42,
        };
        let bytes = report.encode(&[7; 16]);
        assert_eq!(bytes.len(), 128);
        assert_eq!(ServerReport::decode(&bytes), Some(report));
        assert_eq!(ServerReport::decode(&bytes[..52]), None);
        assert_eq!(ServerReport::decode(&[0; 128]), None);
        for cut in 0..bytes.len() {
            let _ = ServerReport::decode(&bytes[..cut]);
        }
    }
}
