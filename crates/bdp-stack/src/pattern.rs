//! The bytes that stacks send: each is its position in the stream modulo 251, so that bytes less than 251 positions apart differ
//! and segments begin with any value.

/// Largest piece that [`bytes_from`] returns.
pub const PIECE: usize = 1 << 16;
const PERIOD: usize = 251;

/// Returns the byte at a position.
pub fn byte_at(position: u64) -> u8 {
    (position % PERIOD as u64) as u8
}

/// Returns the bytes from a position on, at most [`PIECE`].
pub fn bytes_from(position: u64, length: usize) -> &'static [u8] {
    static TABLE: [u8; PIECE + PERIOD] = {
        let mut table = [0; PIECE + PERIOD];
        let mut i = 0;
        while i < table.len() {
            table[i] = (i % PERIOD) as u8;
            i += 1;
        }
        table
    };
    let begin = (position % PERIOD as u64) as usize;
    &TABLE[begin..begin + length.min(PIECE)]
}

/// CRC-32 of bytes that arrive in pieces.
#[derive(Debug, Clone, Default)]
pub struct Crc(crc32fast::Hasher);

impl Crc {
    /// Adds the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the CRC of all bytes so far.
    pub fn value(&self) -> u32 {
        self.0.clone().finalize()
    }
}

/// Returns the CRC-32 of bytes.
pub fn crc(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// Returns the CRC-32 of the first `bytes` bytes of a stream.
pub fn crc_of(bytes: u64) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    let mut at = 0;
    while at < bytes {
        let piece = bytes_from(at, usize::try_from(bytes - at).unwrap_or(PIECE));
        crc.update(piece);
        at += piece.len() as u64;
    }
    crc.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join() {
        for at in [0, 1, 250, 251, 65_535, 1 << 40] {
            let bytes = bytes_from(at, 600);
            assert!(bytes.iter().zip(at..).all(|(&byte, position)| byte == byte_at(position)));
        }
        assert_eq!(bytes_from(3, usize::MAX).len(), PIECE);
    }

    #[test]
    fn the_check_value_of_crc_32() {
        // The CRC of "123456789" is cbf43926; that of the bytes 0, 1, 2 is 0854897f.
        assert_eq!(crc_of(3), 0x0854_897f);
        assert_eq!(crc_of(0), 0);
    }
}
