//! Messages that a server echoes with the times of arrival and return, specified in `docs/protocol.md`: each a
//! datagram, or as many bytes of a connection of kind echo. The rest of a message is payload.

use crate::session::{Key, Kind, PREAMBLE_BYTES, Preamble};

/// Length of the smallest message, bytes: preamble, key, number, arrival, return.
pub const ECHO_BYTES: usize = PREAMBLE_BYTES + 40;
/// Length of the largest message, bytes: the payload of the largest datagram (RFC 768 and 791).
pub const LONGEST_ECHO: usize = 65_507;

/// Bit set in an arrival time that the kernel stamped.
const BY_KERNEL: u64 = 1 << 63;

/// Header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// Session key.
    pub key: Key,
    /// Message number, from 0.
    pub number: u64,
    /// Times of arrival at and departure from the server; `None` in a request.
    pub far: Option<FarStamps>,
}

/// Times at the server, nanoseconds since 1970 by its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FarStamps {
    /// Time of arrival.
    pub arrived_ns: u64,
    /// Whether the arrival time is a kernel timestamp, rather than taken by the program after reading.
    pub by_kernel: bool,
    /// Time just before the message was returned.
    pub returned_ns: u64,
}

impl Echo {
    /// Writes the header into a message. Panics if the message is shorter than [`ECHO_BYTES`].
    pub fn put(&self, message: &mut [u8]) {
        let (arrived, returned) = self.far.map_or((0, 0), |far| {
            (far.arrived_ns & !BY_KERNEL | if far.by_kernel { BY_KERNEL } else { 0 }, far.returned_ns)
        });
        message[..8].copy_from_slice(&Preamble::new(Kind::Echo).encode());
        message[8..24].copy_from_slice(&self.key);
        message[24..32].copy_from_slice(&self.number.to_be_bytes());
        message[32..40].copy_from_slice(&arrived.to_be_bytes());
        message[40..48].copy_from_slice(&returned.to_be_bytes());
    }

    /// Reads the header of a whole message; `None` for anything else.
    pub fn read(message: &[u8]) -> Option<Self> {
        let bytes: &[u8; ECHO_BYTES] = message.first_chunk()?;
        if bytes[..8] != Preamble::new(Kind::Echo).encode() || message.len() > LONGEST_ECHO {
            return None;
        }
        let word = |at: usize| bytes[at..].first_chunk().map(|b| u64::from_be_bytes(*b)).unwrap_or_default();
        let (arrived, returned_ns) = (word(32), word(40));
        let far = (returned_ns > 0).then_some(FarStamps {
            arrived_ns: arrived & !BY_KERNEL,
            by_kernel: arrived & BY_KERNEL != 0,
            returned_ns,
        });
        Some(Self { key: *bytes[8..].first_chunk()?, number: word(24), far })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_come_back_and_halves_do_not() {
        let asked = Echo { key: *b"0123456789abcdef", number: 1 << 50, far: None };
        let far = FarStamps { arrived_ns: 1_790_000_000_000_000_001, by_kernel: true, returned_ns: 7 };
        let answered = Echo { far: Some(far), ..asked };
        let by_program = Echo { far: Some(FarStamps { by_kernel: false, ..far }), ..asked };
        let mut message = [9; 64];
        for echo in [asked, answered, by_program] {
            echo.put(&mut message);
            assert_eq!(Echo::read(&message), Some(echo));
            assert_eq!(message[ECHO_BYTES..], [9; 64 - ECHO_BYTES]);
        }
        assert_eq!(Echo::read(&message[..ECHO_BYTES - 1]), None);
        message[5] = 3;
        assert_eq!(Echo::read(&message), None);
        assert_eq!(Echo::read(&vec![0; LONGEST_ECHO + 1]), None);
    }
}
