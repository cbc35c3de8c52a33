//! Payload in which each byte is determined by its position in the stream, so that a receiver can check every byte.
//!
//! Byte `i` of stream `s` is byte `i % 8`, least significant first, of the 64-bit word `(s + 1) * STREAM + (i
//! 8) * STEP`. The words
//! of one stream repeat after 2^64; two streams do not overlap in practice. Only additions are needed, so
//! a processor generates and checks several words at a time.

/// Difference between consecutive words: 2^64
/// the golden ratio, odd, so that all words differ.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// Difference between consecutive streams.
const STREAM: u64 = 0xd1b5_4a32_d192_ed03;
/// Bytes compared as a block before a mismatch is located byte by byte.
const BLOCK_BYTES: usize = 4096;

fn word(stream: u32, index: u64) -> u64 {
    (u64::from(stream) + 1).wrapping_mul(STREAM).wrapping_add(index.wrapping_mul(STEP))
}

/// Fills `room` with the bytes of a stream from offset `at`.
pub fn fill(stream: u32, at: u64, room: &mut [u8]) {
    let (head, rest) = room.split_at_mut(head_bytes(at, room.len()));
    for (i, byte) in (at..).zip(head) {
        *byte = byte_at(stream, i);
    }
    let mut next = word(stream, at.div_ceil(8));
    let mut words = rest.chunks_exact_mut(8);
    for chunk in &mut words {
        chunk.copy_from_slice(&next.to_le_bytes());
        next = next.wrapping_add(STEP);
    }
    for (byte, of_word) in words.into_remainder().iter_mut().zip(next.to_le_bytes()) {
        *byte = of_word;
    }
}

/// Returns the number of bytes before the next whole word.
fn head_bytes(at: u64, length: usize) -> usize {
    (((8 - at % 8) % 8) as usize).min(length)
}

fn byte_at(stream: u32, at: u64) -> u8 {
    word(stream, at / 8).to_le_bytes()[(at % 8) as usize]
}

/// Checks the bytes of one stream, in order, against the pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checker {
    stream: u32,
    at: u64,
    wrong_bytes: u64,
    first_wrong: Option<u64>,
}

impl Checker {
    /// Returns a checker that starts at the first byte of a stream.
    pub const fn new(stream: u32) -> Self {
        Self { stream, at: 0, wrong_bytes: 0, first_wrong: None }
    }

    /// Checks the next bytes.
    pub fn check(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(head_bytes(self.at, bytes.len()));
        self.compare(head);
        let (whole, tail) = rest.split_at(rest.len() - rest.len() % 8);
        for block in whole.chunks(BLOCK_BYTES) {
            if self.is_right(block) {
                self.at += block.len() as u64;
            } else {
                self.compare(block);
            }
        }
        self.compare(tail);
    }

    /// Number of bytes checked so far.
    pub const fn checked_bytes(&self) -> u64 {
        self.at
    }

    /// Number of bytes that differ from the pattern.
    pub const fn wrong_bytes(&self) -> u64 {
        self.wrong_bytes
    }

    /// Offset in the stream of the first wrong byte.
    pub const fn first_wrong(&self) -> Option<u64> {
        self.first_wrong
    }

    /// Whether a block of whole words matches the pattern.
    fn is_right(&self, block: &[u8]) -> bool {
        let mut expected = word(self.stream, self.at / 8);
        let mut differing = 0;
        for chunk in block.chunks_exact(8) {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(chunk);
            differing |= u64::from_le_bytes(bytes) ^ expected;
            expected = expected.wrapping_add(STEP);
        }
        differing == 0
    }

    fn compare(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte != byte_at(self.stream, self.at) {
                self.wrong_bytes += 1;
                self.first_wrong.get_or_insert(self.at);
            }
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_comes_back_right_however_it_is_cut() {
        let whole = 3 * BLOCK_BYTES + 13;
        let mut bytes = vec![0; whole];
        fill(7, 0, &mut bytes);
        for cut in [1, 3, 8, 4095, 4096, 4097, 10_000, whole] {
            let mut checker = Checker::new(7);
            let mut again = Vec::new();
            for part in bytes.chunks(cut) {
                let mut filled = vec![0; part.len()];
                fill(7, again.len() as u64, &mut filled);
                again.extend(filled);
                checker.check(part);
            }
            assert!(again == bytes, "cut at {cut}");
            assert_eq!((checker.wrong_bytes(), checker.checked_bytes()), (0, whole as u64), "cut at {cut}");
        }
    }

    #[test]
    fn every_wrong_byte_is_counted_and_the_first_is_named() {
        let mut bytes = vec![0; 20_000];
        fill(0, 0, &mut bytes);
        for at in [5_000, 5_001, 19_999] {
            bytes[at] ^= 0x10;
        }
        let mut checker = Checker::new(0);
        bytes.chunks(1448).for_each(|part| checker.check(part));
        assert_eq!((checker.wrong_bytes(), checker.first_wrong()), (3, Some(5_000)));
    }

    #[test]
    fn a_lost_word_and_another_stream_are_seen() {
        let mut bytes = vec![0; 20_000];
        fill(0, 0, &mut bytes);
        bytes.drain(8_192..8_200);
        let mut checker = Checker::new(0);
        checker.check(&bytes);
        assert!(checker.wrong_bytes() > 11_000 && checker.first_wrong() == Some(8_192));
        fill(1, 0, &mut bytes);
        let mut checker = Checker::new(0);
        checker.check(&bytes);
        assert_eq!(checker.first_wrong(), Some(0));
    }

    #[test]
    fn words_are_what_the_protocol_says() {
        let mut bytes = [0; 9];
        fill(0, 7, &mut bytes);
        assert_eq!(bytes[0], (STREAM >> 56) as u8);
        assert_eq!(bytes[1..], STREAM.wrapping_add(STEP).to_le_bytes());
    }
}
