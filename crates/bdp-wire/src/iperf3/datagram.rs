//! Datagrams: the hello that announces a stream, and the header of data.

/// A client's hello, as sent by releases since 3.12 on little-endian machines.
pub const HELLO: [u8; 4] = *b"9876";
/// Hellos and their answers: numbers in the sender's byte order, so each has a byte-swapped form;
/// the last two are from releases before 3.12.
const GREETINGS: [([u8; 4], [u8; 4]); 4] = [
    (HELLO, *b"6789"),
    (*b"6789", *b"9876"),
    (123_456_789_u32.to_le_bytes(), 987_654_321_u32.to_le_bytes()),
    (123_456_789_u32.to_be_bytes(), 987_654_321_u32.to_be_bytes()),
];

/// Returns the answer to a hello, in the form of its release; `None` if it is not a hello.
pub fn answer(hello: &[u8]) -> Option<[u8; 4]> {
    GREETINGS.iter().find(|(known, _)| known == hello).map(|&(_, answer)| answer)
}

/// Whether a datagram is a server's answer to a hello, in the form of any release and byte order.
pub fn is_answer(datagram: &[u8]) -> bool {
    GREETINGS.iter().any(|(_, answer)| answer == datagram)
}

/// Length of the header of a data datagram, bytes.
pub const fn header_bytes(wide: bool) -> usize {
    if wide { 16 } else { 12 }
}

/// Header of a data datagram, big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Time of sending, by the sender's clock from an arbitrary epoch, microseconds.
    pub sent_us: u64,
    /// Sequence number, from 1.
    pub number: u64,
}

impl Header {
    /// Writes the header to the start of a datagram, which must be long enough.
    pub fn encode(&self, wide: bool, datagram: &mut [u8]) {
        let (seconds, micros) = ((self.sent_us / 1_000_000) as u32, (self.sent_us % 1_000_000) as u32);
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&seconds.to_be_bytes());
        bytes[4..8].copy_from_slice(&micros.to_be_bytes());
        if wide {
            bytes[8..].copy_from_slice(&self.number.to_be_bytes());
        } else {
            bytes[8..12].copy_from_slice(&(self.number as u32).to_be_bytes());
        }
        let length = header_bytes(wide).min(datagram.len());
        datagram[..length].copy_from_slice(&bytes[..length]);
    }

    /// Reads the header; `None` if the datagram is too short.
    pub fn decode(wide: bool, datagram: &[u8]) -> Option<Self> {
        let word = |at: usize| datagram.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
        let number =
            if wide { u64::from(word(8)?) << 32 | u64::from(word(12)?) } else { u64::from(word(8)?) };
        Some(Self { sent_us: u64::from(word(0)?) * 1_000_000 + u64::from(word(4)?), number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hello_is_answered_in_its_own_words() {
        assert_eq!(answer(b"9876"), Some(*b"6789"));
        assert_eq!(answer(b"6789"), Some(*b"9876"));
        assert_eq!(answer(&[0x15, 0xcd, 0x5b, 0x07]), Some([0xb1, 0x68, 0xde, 0x3a]));
        assert_eq!(answer(&[0x07, 0x5b, 0xcd, 0x15]), Some([0x3a, 0xde, 0x68, 0xb1]));
        for other in [b"".as_slice(), b"987", b"98765", b"6790", &[0; 4]] {
            assert_eq!((answer(other), is_answer(other)), (None, false), "{other:?}");
        }
        assert!(is_answer(b"6789") && is_answer(&[0xb1, 0x68, 0xde, 0x3a]));
        assert!(!is_answer(&[0x15, 0xcd, 0x5b, 0x07]), "a hello of the older ones is no answer");
    }

    #[test]
    fn headers_come_back_and_short_ones_do_not() {
        let header = Header { sent_us: 1_234_567_890, number: (1 << 33) + 7 };
        let mut bytes = [0xee; 20];
        header.encode(true, &mut bytes);
        assert_eq!((Header::decode(true, &bytes), bytes[16]), (Some(header), 0xee));
        assert_eq!(Header::decode(true, &bytes[..15]), None);
        header.encode(false, &mut bytes);
        assert_eq!(Header::decode(false, &bytes[..12]), Some(Header { number: 7, ..header }));
        assert_eq!(Header::decode(false, &bytes[..11]), None);
    }
}
