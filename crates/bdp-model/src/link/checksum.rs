//! The Internet checksum (RFC 1071).

/// Returns the checksum of `bytes`, to be stored big-endian.
pub fn of(bytes: &[u8]) -> u16 {
    !fold(sum(bytes))
}

/// Returns the checksum after one of the covered words changed (RFC 1624, equation 3: HC' = ~(~HC + ~m + m')).
pub fn updated(sum: u16, old: u16, new: u16) -> u16 {
    !fold(u64::from(!sum) + u64::from(!old) + u64::from(new))
}

/// Returns the sum of 16-bit big-endian words, an odd byte at the end padded with zero. Sums can be added before folding.
pub fn sum(bytes: &[u8]) -> u64 {
    // Two words at once: the carry of the lower word into the upper is one that folding would have added anyway. In native byte
    // order, which can be corrected in the folded sum (RFC 1071, section 2 B), so that the compiler can vectorise.
    let mut words = bytes.chunks_exact(4);
    let mut sum: u64 =
        words.by_ref().map(|word| u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))).sum();
    let rest = words.remainder();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    sum += u64::from(u32::from_ne_bytes(last));
    u64::from(u16::from_be(fold(sum)))
}

/// Folds a sum to 16 bits in one's complement.
pub fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        // Section 3: 0001 f203 f4f5 f6f7 sum to ddf2.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(sum(&bytes)), 0xddf2);
        assert_eq!(of(&bytes), !0xddf2);
    }

    #[test]
    fn every_length_agrees_with_word_by_word() {
        let bytes: Vec<u8> = (0..97u32).map(|n| (n * 151 + 200) as u8).collect();
        for end in 0..bytes.len() {
            let slow: u64 = bytes[..end]
                .chunks(2)
                .map(|w| u64::from(w[0]) << 8 | u64::from(w.get(1).copied().unwrap_or(0)))
                .sum();
            assert_eq!(fold(sum(&bytes[..end])), fold(slow), "{end} bytes");
        }
    }
}
