//! Parser of the chunked transfer coding (RFC 9112, section 7.1): finds the bytes of the file, and its end.

/// Longest line of a chunk's size and extensions, or of a trailer field, that is put up with.
const LONGEST_LINE: usize = 16 << 10;
/// Most bytes of trailer fields.
const LONGEST_TRAILER: usize = 64 << 10;

/// The parser's progress in a chunked body.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    state: State,
    /// Bytes of the current line or trailer section.
    length: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The size so far, and whether it has any digits.
    Size(u64, bool),
    /// Blanks or extensions after a size.
    Extension(u64),
    Data(u64),
    /// The line end after the data.
    AfterData,
    /// The trailer section, and whether its current line has any bytes.
    Trailer(bool),
    Ended,
}

impl Default for State {
    fn default() -> Self {
        Self::Size(0, false)
    }
}

impl Chunks {
    /// Parses the next bytes; returns how many of them belong to the file.
    ///
    /// # Errors
    ///
    /// Why the bytes are not valid chunked coding.
    pub(super) fn take(&mut self, mut bytes: &[u8]) -> Result<u64, &'static str> {
        let mut content = 0;
        while let (Some((&first, rest)), false) = (bytes.split_first(), self.is_over()) {
            if let State::Data(left) = self.state {
                let here = left.min(bytes.len() as u64);
                content += here;
                bytes = &bytes[here as usize..];
                self.state = if here == left { State::AfterData } else { State::Data(left - here) };
                continue;
            }
            bytes = rest;
            self.length += 1;
            self.state = self.after(first)?;
        }
        Ok(content)
    }

    /// Whether the last chunk and its trailer section have been parsed.
    pub(super) fn is_over(&self) -> bool {
        self.state == State::Ended
    }

    fn after(&mut self, byte: u8) -> Result<State, &'static str> {
        let longest = if matches!(self.state, State::Trailer(_)) { LONGEST_TRAILER } else { LONGEST_LINE };
        if self.length > longest {
            return Err("a chunk's size or trailer is too long");
        }
        Ok(match (self.state, byte) {
            (State::Size(size, _), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = u64::from((byte as char).to_digit(16).unwrap_or(0));
                let size = size.checked_mul(16).and_then(|size| size.checked_add(digit));
                State::Size(size.ok_or("a chunk's size is too large")?, true)
            }
            (State::Size(size, true) | State::Extension(size), b'\n') => self.begin(size),
            (State::Size(size, true), b'\r' | b';' | b' ' | b'\t') | (State::Extension(size), _) => {
                State::Extension(size)
            }
            (State::AfterData, b'\r') => State::AfterData,
            (State::AfterData, b'\n') => {
                self.length = 0;
                State::default()
            }
            (State::Trailer(false), b'\n') => State::Ended,
            (State::Trailer(_), b'\n') => State::Trailer(false),
            (State::Trailer(any), b'\r') => State::Trailer(any),
            (State::Trailer(_), _) => State::Trailer(true),
            (State::Size(..), _) => return Err("a chunk has no size"),
            _ => return Err("a chunk is longer than its size"),
        })
    }

    fn begin(&mut self, size: u64) -> State {
        self.length = 0;
        if size == 0 { State::Trailer(false) } else { State::Data(size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body in three chunks, one with an extension and one that contains a fake end; and trailer fields.
    const BODY: &[u8] =
        b"4\r\nWiki\r\n00A;name=\"v;x\"\r\n0\r\n\r\npedia\r\nb \r\n in\r\nchunks\r\n0\r\nDigest: x\r\n\r\n";
    const FILE: u64 = 4 + 10 + 11;

    #[test]
    fn what_is_counted_is_the_file_however_it_comes() {
        for step in 1..=BODY.len() {
            let mut chunks = Chunks::default();
            let mut content = 0;
            for (at, piece) in BODY.chunks(step).enumerate() {
                assert!(!chunks.is_over(), "by {step}: over at piece {at}");
                content += chunks.take(piece).unwrap();
            }
            assert!(chunks.is_over(), "by {step}");
            assert_eq!(content, FILE, "by {step}");
        }
    }

    #[test]
    fn what_follows_the_end_is_not_the_file() {
        let mut chunks = Chunks::default();
        assert_eq!(chunks.take(b"3\r\nabc\r\n0\r\n\r\nHTTP/1.1 200 OK"), Ok(3));
        assert!(chunks.is_over());
        assert_eq!(chunks.take(b"5\r\nabcde\r\n"), Ok(0));
    }

    #[test]
    fn unknown_coding_is_named() {
        for wrong in [&b"\r\n"[..], b"xyz\r\n", b"3\r\nabcd\r\n", b"11111111111111111\r\n", &[b'1'; 20_000]] {
            assert!(Chunks::default().take(wrong).is_err(), "{:?}", String::from_utf8_lossy(wrong));
        }
        let mut endless = b"0\r\n".to_vec();
        endless.extend(b"X: y\r\n".repeat(20_000));
        assert!(Chunks::default().take(&endless).is_err());
    }
}
