//! Type of the first TLS record of a payload, from the unencrypted headers.

/// Type of the first TLS record at the start of a segment's payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Record {
    /// No record starts here: the middle of one, or another protocol.
    #[default]
    None,
    /// ClientHello, in its own record or after a ChangeCipherSpec.
    ClientHello,
    /// Another handshake message.
    Handshake,
    /// ChangeCipherSpec; encrypted records follow. TLS 1.3 sends it only for middleboxes (RFC 8446, appendix D.4).
    ChangeCipherSpec,
    /// Alert.
    Alert,
    /// Application data; in TLS 1.3 also the rest of the handshake.
    Data,
    /// Not TLS: an SSH version string (RFC 4253, section 4.2).
    Ssh,
}

/// Length of a record header, bytes.
const HEADER: usize = 5;
/// Longest record (RFC 5246, section 6.2.3), bytes.
const LARGEST: u16 = (1 << 14) + 2048;

impl Record {
    const ALL: [Self; 7] = [
        Self::None,
        Self::ClientHello,
        Self::Handshake,
        Self::ChangeCipherSpec,
        Self::Alert,
        Self::Data,
        Self::Ssh,
    ];

    /// Returns the type by its position in the order above.
    pub(crate) fn numbered(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).copied().unwrap_or_default()
    }

    /// Returns the type of the record at the start of a payload, as far as it was captured.
    pub(crate) fn of(payload: &[u8]) -> Self {
        let &[kind @ 20..=23, 3, 0..=4, high, low, ref rest @ ..] = payload else {
            return match payload {
                [b'S', b'S', b'H', b'-', ..] => Self::Ssh,
                _ if is_old_hello(payload) => Self::ClientHello,
                _ => Self::None,
            };
        };
        let length = u16::from_be_bytes([high, low]);
        match kind {
            _ if length == 0 || length > LARGEST => Self::None,
            20 if length == 1 => {
                let is_hello = rest.get(1..).is_some_and(|next| Self::of(next) == Self::ClientHello);
                if is_hello { Self::ClientHello } else { Self::ChangeCipherSpec }
            }
            20 => Self::None,
            21 => Self::Alert,
            22 => match rest {
                // Its own length fills the record; for an encrypted handshake message the lengths do not match.
                [1, 0, a, b, ..] if length == u16::from_be_bytes([*a, *b]).saturating_add(4) => {
                    Self::ClientHello
                }
                [1] | [1, 0] | [1, 0, _] => Self::ClientHello,
                _ => Self::Handshake,
            },
            _ => Self::Data,
        }
    }
}

/// Whether this is a ClientHello in SSL 2 format that requests a later version (RFC 5246, appendix E.2).
fn is_old_hello(payload: &[u8]) -> bool {
    matches!(payload, [high, low, 1, 3, 0..=3, ..]
        if high & 0x80 != 0 && usize::from(u16::from_be_bytes([high & 0x7F, *low])) >= HEADER + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_record_is_known_by_its_header_alone() {
        let hello = [22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3];
        // Cut by a short snapshot length, as far as the header and without it.
        for kept in [6, 8, 9, 11] {
            assert_eq!(Record::of(&hello[..kept]), Record::ClientHello, "{kept}");
        }
        assert_eq!(Record::of(&hello[..5]), Record::Handshake);
        assert_eq!(Record::of(&hello[..4]), Record::None);
        assert_eq!(Record::of(&[22, 3, 3, 0, 122, 2, 0, 0, 118]), Record::Handshake);
        let cipher = [20, 3, 3, 0, 1, 1];
        assert_eq!(Record::of(&cipher), Record::ChangeCipherSpec);
        assert_eq!(
            Record::of(&[&cipher[..], &[22, 3, 3, 0, 40, 1, 9, 9, 9]].concat()),
            Record::ChangeCipherSpec
        );
        // The second ClientHello, after HelloRetryRequest.
        assert_eq!(Record::of(&[&cipher[..], &hello].concat()), Record::ClientHello);
        assert_eq!(Record::of(&[23, 3, 3, 1, 0]), Record::Data);
        assert_eq!(Record::of(&[21, 3, 3, 0, 2, 1, 0]), Record::Alert);
        // SSL 2 ClientHello.
        assert_eq!(Record::of(&[0x80, 0x2E, 1, 3, 1, 0, 0x15]), Record::ClientHello);
        for other in
            [&b"GET / HTTP/1.1"[..], &[], &[22], &[22, 3, 3, 0, 0], &[20, 3, 3, 0, 9, 1], &[23, 9, 3, 0, 9]]
        {
            assert_eq!(Record::of(other), Record::None, "{other:?}");
        }
    }

    #[test]
    fn number_of_a_record_gives_it_back() {
        for record in Record::ALL {
            assert_eq!(Record::numbered(record as u8), record);
        }
    }
}
