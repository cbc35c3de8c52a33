//! iperf2's protocol as spoken by version 2.1.8: big-endian words at fixed positions.
//!
//! A connection may begin with a [`TestHeader`], followed by payload; a datagram begins with a [`Stamp`], which
//! the same header may follow. A client ends a datagram flow with a negated number, which it repeats until the
//! [`ServerReport`] arrives.

mod bounceback;
mod burst;
mod header;
mod report;
mod tally;

pub use bounceback::{BOUNCEBACK_BYTES, Bounceback, LONGEST_BOUNCEBACK};
pub use burst::{BURST_BYTES, Burst, OPENING_BYTES, datagram_header, opening};
pub use header::{
    Amount, Back, HEADER_BYTES, TestHeader, Unserved, acknowledgement, bare, read_acknowledgement,
};
pub use report::{REPORT_BYTES, ServerReport};
pub use tally::Tally;

/// Default port, TCP and UDP.
pub const PORT: u16 = 5001;
/// Length of a [`Stamp`], bytes, and so of the smallest datagram.
pub const STAMP_BYTES: usize = 16;

/// Header of every datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Sequence number, from 1; negated in the datagrams that end a flow.
    pub number: i64,
    /// Time of sending, by the sender's clock, microseconds since 1970.
    pub sent_us: u64,
}

impl Stamp {
    /// Encodes the stamp.
    pub fn encode(&self) -> [u8; STAMP_BYTES] {
        let mut bytes = [0; STAMP_BYTES];
        let [high, low] = halves(self.number as u64);
        put(&mut bytes, 0, low);
        put(&mut bytes, 1, u32::try_from(self.sent_us / 1_000_000).unwrap_or(u32::MAX));
        put(&mut bytes, 2, (self.sent_us % 1_000_000) as u32);
        put(&mut bytes, 3, high);
        bytes
    }

    /// Decodes the start of a datagram; `None` if it is too short. Without `wide` the number has 32 bits, as
    /// before version 2.0.10.
    pub fn decode(bytes: &[u8], wide: bool) -> Option<Self> {
        let low = word(bytes, 0)?;
        let (seconds, micros) = (u64::from(word(bytes, 1)?), u64::from(word(bytes, 2)?));
        let number = if wide {
            (u64::from(word(bytes, 3)?) << 32 | u64::from(low)) as i64
        } else {
            i64::from(low as i32)
        };
        Some(Self { number, sent_us: seconds * 1_000_000 + micros })
    }
}

/// Returns the upper and the lower 32 bits.
fn halves(value: u64) -> [u32; 2] {
    [(value >> 32) as u32, value as u32]
}

/// Returns the word at an index, counted in words; `None` past the end.
fn word(bytes: &[u8], index: usize) -> Option<u32> {
    let bytes = bytes.get(index * 4..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*bytes))
}

/// Writes a word at an index, counted in words; does nothing past the end.
fn put(bytes: &mut [u8], index: usize, value: u32) {
    if let Some(place) = bytes.get_mut(index * 4..index * 4 + 4) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_come_back_and_old_ones_have_32_bits() {
        for number in [1, -1, 1 << 40, -(1 << 40), i64::from(i32::MAX)] {
            let stamp = Stamp { number, sent_us: 1_700_000_000_123_456 };
            assert_eq!(Stamp::decode(&stamp.encode(), true), Some(stamp));
        }
        let old = Stamp { number: -7, sent_us: 5 };
        assert_eq!(Stamp::decode(&old.encode(), false), Some(old));
        assert_eq!(Stamp::decode(&old.encode()[..12], false), Some(old));
        assert_eq!(Stamp::decode(&old.encode()[..15], true), None);
        assert_eq!(Stamp::decode(&[], false), None);
    }
}
