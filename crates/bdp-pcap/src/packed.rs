//! Compressed captures: gzip and zstd, recognised by their first bytes.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Skippable frames of zstd (RFC 8878, section 3.1.2): the upper 28 bits of their magic number.
const SKIPPED: [u8; 3] = [0x2a, 0x4d, 0x18];
/// Read buffer size, bytes.
const ROOM: usize = 1 << 18;

/// Returns the bytes of a capture, decompressed if necessary.
pub fn unpacked<'a>(source: impl Read + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
    let mut source = BufReader::with_capacity(ROOM, source);
    let first = begins(&mut source)?;
    if first.starts_with(&GZIP) {
        return Ok(Box::new(MultiGzDecoder::new(source)));
    }
    if first == ZSTD || first[1..] == SKIPPED && first[0] & 0xf0 == 0x50 {
        return Ok(Box::new(Frames { source, decoder: FrameDecoder::new(), is_within: false }));
    }
    Ok(Box::new(source))
}

/// Returns the first four bytes without consuming them, padded with zeros.
fn begins(source: &mut impl BufRead) -> io::Result<[u8; 4]> {
    let there = source.fill_buf()?;
    let mut first = [0; 4];
    let length = there.len().min(4);
    first[..length].copy_from_slice(&there[..length]);
    Ok(first)
}

/// Decompresses consecutive zstd frames.
struct Frames<R> {
    source: BufReader<R>,
    decoder: FrameDecoder,
    is_within: bool,
}

impl<R: Read> Frames<R> {
    /// Starts the next frame; returns whether there is one.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut self.source.by_ref().take(u64::from(length)), &mut io::sink())?;
                }
                Err(error) => return Err(broken(&error)),
            }
        }
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.is_within {
                self.is_within = self.begin()?;
                if !self.is_within {
                    return Ok(0);
                }
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let strategy = BlockDecodingStrategy::UptoBytes(ROOM);
                self.decoder.decode_blocks(&mut self.source, strategy).map_err(|error| broken(&error))?;
            }
            let taken = self.decoder.read(to)?;
            if taken > 0 {
                return Ok(taken);
            }
            self.is_within = false;
        }
    }
}

fn broken(error: &FrameDecoderError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}
