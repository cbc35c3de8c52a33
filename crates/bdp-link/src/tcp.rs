//! A checked view of a TCP header that updates the checksum with every change.

use std::ops::Range;

use bdp_model::link::checksum;

/// A TCP header with its options (RFC 9293, section 3.1), its length checked.
#[derive(Debug)]
pub(crate) struct TcpHeader<'a> {
    bytes: &'a mut [u8],
    /// Whether the checksum field holds only the pseudo-header's sum, which no change of the header affects.
    partial_checksum: bool,
}

const WINDOW: Range<usize> = 14..16;
const CHECKSUM: Range<usize> = 16..18;
const OPTIONS: usize = 20;

/// Option kinds (RFC 9293, section 3.2, and RFC 7323, section 2.2).
const END_OF_OPTIONS: u8 = 0;
pub(crate) const NO_OPERATION: u8 = 1;
const WINDOW_SCALE: u8 = 3;

impl<'a> TcpHeader<'a> {
    /// The header at the front of an IP payload; `None` if its data offset is too small or exceeds the payload.
    pub(crate) fn new(payload: &'a mut [u8], partial_checksum: bool) -> Option<Self> {
        let header_len = usize::from(payload.get(12)? >> 4) * 4;
        if header_len < OPTIONS {
            return None;
        }
        Some(Self { bytes: payload.get_mut(..header_len)?, partial_checksum })
    }

    pub(crate) fn is_syn(&self) -> bool {
        self.bytes[13] & 0x02 != 0
    }

    /// The raw window field, not scaled.
    pub(crate) fn window(&self) -> u16 {
        self.word(WINDOW.start)
    }

    pub(crate) fn set_window(&mut self, window: u16) {
        self.replace(WINDOW.start, &window.to_be_bytes());
    }

    /// Offset of the first window scale option at or after `from`: kind, length 3, shift count.
    ///
    /// The walk ends at an option that is malformed or exceeds the header.
    pub(crate) fn window_scale_from(&self, from: usize) -> Option<usize> {
        let mut at = from.max(OPTIONS);
        loop {
            match *self.bytes.get(at)? {
                END_OF_OPTIONS => return None,
                NO_OPERATION => at += 1,
                kind => {
                    let length = usize::from(*self.bytes.get(at + 1)?);
                    if length < 2 || at + length > self.bytes.len() {
                        return None;
                    }
                    if kind == WINDOW_SCALE && length == 3 {
                        return Some(at);
                    }
                    at += length;
                }
            }
        }
    }

    /// Overwrites bytes within the header, none of the checksum's, and updates the checksum by RFC 1624, equation 3: HC' = ~(~HC + ~m + m').
    ///
    /// The sum is over 16-bit words counted from the header's start, so a byte at an odd offset includes its even
    /// neighbour. A header's length is a multiple of four, hence every word is whole.
    pub(crate) fn replace(&mut self, at: usize, new: &[u8]) {
        let words = (at & !1)..(at + new.len()).next_multiple_of(2);
        debug_assert!(words.end <= CHECKSUM.start || words.start >= CHECKSUM.end);
        let mut sum = u64::from(!self.word(CHECKSUM.start));
        for word in words.clone().step_by(2) {
            sum += u64::from(!self.word(word));
        }
        self.bytes[at..at + new.len()].copy_from_slice(new);
        for word in words.step_by(2) {
            sum += u64::from(self.word(word));
        }
        if self.partial_checksum {
            return;
        }
        let checksum = !checksum::fold(sum);
        self.bytes[CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }
}
