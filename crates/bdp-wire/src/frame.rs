//! Frames: a big-endian `u32` length, then that many bytes of JSON.

use std::io::{self, BufWriter, Read, Write};

use bdp_model::plain::of_json;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Size of the pieces in which a frame is written, bytes.
const PIECE_BYTES: usize = 32 << 10;

/// Longest body that is accepted, bytes. The samples of a case stay far below it.
pub const LONGEST_BODY: usize = 64 << 20;

/// Why a frame could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The other end closed the stream between two frames.
    #[error("the other end closed the control stream")]
    Closed,
    /// Nothing arrived within the reader's deadline.
    #[error("no answer on the control stream within its deadline")]
    Silent,
    /// The length exceeds the reader's limit, [`LONGEST_BODY`] at most.
    #[error("a frame of {length} bytes exceeds the maximum of {longest}")]
    TooLong {
        /// Length in the frame's header.
        length: usize,
        /// Longest length accepted.
        longest: usize,
    },
    /// The body is not the expected message.
    #[error("invalid message: {}", of_json(.0))]
    Malformed(#[from] serde_json::Error),
    /// The stream failed.
    #[error("control stream: {0}")]
    Io(io::Error),
}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                Self::Closed
            }
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::Silent,
            _ => Self::Io(error),
        }
    }
}

/// Encodes a message as a frame.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - 4;
    if length > LONGEST_BODY {
        return Err(FrameError::TooLong { length, longest: LONGEST_BODY });
    }
    bytes[..4].copy_from_slice(&(length as u32).to_be_bytes());
    Ok(bytes)
}

/// Writes one message piece by piece, so that a long one is never in memory as a whole.
pub fn write(writer: &mut impl Write, message: &impl Serialize) -> Result<(), FrameError> {
    let mut length = Length(0);
    serde_json::to_writer(&mut length, message)?;
    let Length(length) = length;
    if length > LONGEST_BODY {
        return Err(FrameError::TooLong { length, longest: LONGEST_BODY });
    }
    let mut pieces = BufWriter::with_capacity(PIECE_BYTES.min(4 + length), writer);
    pieces.write_all(&(length as u32).to_be_bytes())?;
    serde_json::to_writer(&mut pieces, message).map_err(io::Error::from)?;
    Ok(pieces.flush()?)
}

/// A writer that counts bytes.
struct Length(usize);

impl Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads one message. Memory grows with the data received, not with the claimed length.
pub fn read<M: DeserializeOwned>(reader: &mut impl Read) -> Result<M, FrameError> {
    read_bounded(reader, LONGEST_BODY)
}

/// Reads one message of at most `longest` bytes.
pub fn read_bounded<M: DeserializeOwned>(reader: &mut impl Read, longest: usize) -> Result<M, FrameError> {
    let mut length = [0; 4];
    reader.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > longest {
        return Err(FrameError::TooLong { length, longest });
    }
    let mut body = Vec::new();
    let got = reader.take(length as u64).read_to_end(&mut body)?;
    if got < length {
        return Err(FrameError::Closed);
    }
    Ok(serde_json::from_slice(&body)?)
}

/// Decodes one message from the start of the bytes received: the message and the length of its frame, or `None` until the
/// frame is complete.
pub fn decode<M: DeserializeOwned>(arrived: &[u8]) -> Result<Option<(M, usize)>, FrameError> {
    decode_bounded(arrived, LONGEST_BODY)
}

/// Decodes one message of at most `longest` bytes, as [`decode`] does.
pub fn decode_bounded<M: DeserializeOwned>(
    arrived: &[u8],
    longest: usize,
) -> Result<Option<(M, usize)>, FrameError> {
    let Some((head, rest)) = arrived.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_be_bytes(*head) as usize;
    if length > longest {
        return Err(FrameError::TooLong { length, longest });
    }
    match rest.get(..length) {
        Some(body) => Ok(Some((serde_json::from_slice(body)?, 4 + length))),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_back() {
        let bytes = encode(&("window", 30_408)).unwrap();
        assert_eq!(&bytes[..4], &(bytes.len() as u32 - 4).to_be_bytes());
        let back: (String, u32) = read(&mut bytes.as_slice()).unwrap();
        assert_eq!(back, ("window".to_owned(), 30_408));
    }

    #[test]
    fn long_message_is_written_in_pieces() {
        struct Pieces(Vec<usize>, Vec<u8>);
        impl Write for Pieces {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.push(bytes.len());
                self.1.extend_from_slice(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let message: Vec<u64> = (0..100_000).collect();
        let mut pieces = Pieces(Vec::new(), Vec::new());
        write(&mut pieces, &message).unwrap();
        assert!(
            pieces.0.len() > 10 && pieces.0.iter().all(|&length| length <= PIECE_BYTES),
            "{:?}",
            pieces.0
        );
        assert_eq!(pieces.1, encode(&message).unwrap());
        let mut pieces = Pieces(Vec::new(), Vec::new());
        write(&mut pieces, &"short").unwrap();
        assert_eq!(pieces.0.len(), 1, "a short one goes by one call");
    }

    #[test]
    fn a_frame_is_taken_once_it_is_whole() {
        let mut bytes = encode(&"one").unwrap();
        let first = bytes.len();
        bytes.extend(encode(&"two").unwrap());
        for cut in 0..first {
            assert!(decode::<String>(&bytes[..cut]).unwrap().is_none(), "{cut}");
        }
        assert_eq!(decode::<String>(&bytes).unwrap(), Some(("one".to_owned(), first)));
        assert_eq!(decode::<String>(&bytes[first..]).unwrap(), Some(("two".to_owned(), bytes.len() - first)));
        assert!(matches!(decode::<String>(&[0xff; 4]), Err(FrameError::TooLong { .. })));
        assert!(matches!(decode::<u32>(&bytes), Err(FrameError::Malformed(_))));
    }

    #[test]
    fn broken_frames_are_errors() {
        let bytes = encode(&"hello").unwrap();
        for cut in 0..bytes.len() {
            assert!(matches!(read::<String>(&mut &bytes[..cut]), Err(FrameError::Closed)), "{cut}");
        }
        assert!(matches!(read::<String>(&mut &[0xff; 64][..]), Err(FrameError::TooLong { .. })));
        assert!(matches!(read::<u32>(&mut bytes.as_slice()), Err(FrameError::Malformed(_))));
    }
}
