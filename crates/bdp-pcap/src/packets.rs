//! Reads the packets of a capture from a stream, in constant memory: pcap in all its variants, and pcapng.

use std::collections::BTreeMap;
use std::io::{self, Read};

use bdp_model::units::Nanos;

use crate::PcapError;
use crate::block::{BLOCK_OVERHEAD, SECTION_HEADER};
use crate::reader::{Block, Order, Resolution, State, word};

/// Size of reads and of the buffer kept, bytes.
const ROOM: usize = 1 << 16;
/// Longest packet or block; a larger length is an error.
const MOST: usize = 1 << 26;
/// Length of the header of a pcap file, and of each packet.
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
/// Magic numbers of pcap with microseconds and with nanoseconds.
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Magic number of pcap patched by Kuznetsov, with microseconds: each packet header has eight more bytes with interface and protocol.
const PATCHED: u32 = 0xa1b2_cd34;
const PATCHED_BYTES: usize = 8;

/// A captured packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Captured<'a> {
    /// Time since 1970; `None` if the capture has no times.
    pub at: Option<Nanos>,
    /// Link type, such as [`crate::LINKTYPE_RAW`].
    pub link_type: u16,
    /// Original length, before truncation, bytes.
    pub length: u32,
    /// Bytes captured.
    pub data: &'a [u8],
}

/// Why a capture could not be read any further.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Reading failed.
    #[error("at byte {at}: {source}")]
    Io {
        /// Bytes read before the error.
        at: u64,
        /// System error.
        source: io::Error,
    },
    /// The input is not a capture.
    #[error("not pcap or pcapng: {}", other(.0))]
    Unknown(Vec<u8>),
    /// The input ends within a packet.
    #[error("at byte {at}: truncated: only {left} of {wanted} bytes")]
    CutShort {
        /// Offset of the packet.
        at: u64,
        /// Length of the packet, bytes.
        wanted: usize,
        /// Bytes available.
        left: usize,
    },
    /// Implausible length.
    #[error("at byte {at}: invalid packet length of {length} bytes")]
    TooLong {
        /// Offset of the packet.
        at: u64,
        /// Length stated.
        length: u64,
    },
    /// An invalid pcapng block.
    #[error(transparent)]
    Block(#[from] PcapError),
}

type Result<T> = std::result::Result<T, ReadError>;

/// The packets of a capture, in order. Ends after an error.
#[derive(Debug)]
pub struct Packets<R> {
    input: Input<R>,
    format: Format,
    /// Packets reported as dropped by the capturing program, per interface.
    dropped: BTreeMap<u32, u64>,
    broken: bool,
}

#[derive(Debug)]
enum Format {
    Classic(Classic),
    Blocks(State),
}

/// Properties of the packets from the header of a pcap file.
#[derive(Debug, Clone, Copy)]
struct Classic {
    order: Order,
    resolution: Resolution,
    link_type: u16,
    lengths: Lengths,
    record_header: usize,
}

/// Order of the two lengths in a packet's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lengths {
    /// Captured length, then original length.
    KeptFirst,
    /// Original length, then captured length.
    WholeFirst,
    /// Either order: the captured length is the smaller one.
    Either,
}

impl Lengths {
    /// Programs swapped the lengths in version 2.3, some before and some after the version changed; DG/UX, with version 543.0, never did.
    fn of(major: u16, minor: u16) -> Self {
        match (major, minor) {
            (2, 0..=2) | (543, _) => Self::WholeFirst,
            (2, 3) => Self::Either,
            _ => Self::KeptFirst,
        }
    }

    /// Returns the captured length and the original length.
    fn in_order(self, first: u32, second: u32) -> (u32, u32) {
        match self {
            Self::WholeFirst => (second, first),
            Self::Either if first > second => (second, first),
            Self::KeptFirst | Self::Either => (first, second),
        }
    }
}

/// What a file that is no capture starts with, and what to do.
fn other(head: &[u8]) -> String {
    match head {
        [] => "it is empty; capture again".to_owned(),
        [b'P', b'K', ..] | [b'B', b'Z', b'h', ..] | [0xfd, b'7', b'z', ..] => {
            "it is packed, and neither by gzip nor by zstd; unpack it first".to_owned()
        }
        _ => format!(
            "it starts with the bytes {}; 'tcpdump -w FILE' writes pcap, Wireshark saves as pcapng",
            head.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
        ),
    }
}

impl<R: Read> Packets<R> {
    /// Reads the header of a capture. An empty stream is an error.
    pub fn new(source: R) -> Result<Self> {
        let mut input = Input { source, room: vec![0; ROOM], from: 0, to: 0, passed: 0, ended: false };
        input.fill(FILE_HEADER)?;
        let head = input.there();
        let unknown = || ReadError::Unknown(head[..head.len().min(4)].to_vec());
        let magic = head.first_chunk::<4>().copied().ok_or_else(unknown)?;
        let classic = [Order::Little, Order::Big].into_iter().find_map(|order| match order.u32(magic) {
            MICROSECONDS => Some((order, Resolution::Decimal(6), RECORD_HEADER)),
            NANOSECONDS => Some((order, Resolution::Decimal(9), RECORD_HEADER)),
            PATCHED => Some((order, Resolution::Decimal(6), RECORD_HEADER + PATCHED_BYTES)),
            _ => None,
        });
        let format = match classic {
            Some((order, resolution, record_header)) => {
                let header = input.take(FILE_HEADER)?;
                // The upper half may state that packets end with a checksum, which is ignored.
                let link_type = (order.u32(word(header, 20)) & 0xffff) as u16;
                let half = |at: usize| order.u16([header[at], header[at + 1]]);
                let lengths = Lengths::of(half(4), half(6));
                Format::Classic(Classic { order, resolution, link_type, lengths, record_header })
            }
            None if magic == SECTION_HEADER.to_le_bytes() => Format::Blocks(State::default()),
            None => return Err(unknown()),
        };
        Ok(Self { input, format, dropped: BTreeMap::new(), broken: false })
    }

    /// Returns the next packet; `None` at the end.
    pub fn next_packet(&mut self) -> Option<Result<Captured<'_>>> {
        if self.broken {
            return None;
        }
        // Its position, so that it can be borrowed again once the rest is known.
        let found = match &mut self.format {
            Format::Classic(file) => classic(&mut self.input, *file),
            Format::Blocks(state) => blocks(&mut self.input, state, &mut self.dropped),
        };
        match found {
            Ok(None) => {
                self.broken = true;
                None
            }
            Ok(Some(found)) => Some(Ok(Captured {
                at: found.at,
                link_type: found.link_type,
                length: found.length,
                data: &self.input.room[found.from..found.to],
            })),
            Err(error) => {
                self.broken = true;
                Some(Err(error))
            }
        }
    }

    /// Number of packets reported as dropped by the capturing program so far.
    pub fn dropped(&self) -> u64 {
        self.dropped.values().sum()
    }

    /// Number of bytes of the capture read so far.
    pub fn bytes(&self) -> u64 {
        self.input.passed + self.input.from as u64
    }
}

/// A packet, by its position in the input buffer.
struct Found {
    at: Option<Nanos>,
    link_type: u16,
    length: u32,
    from: usize,
    to: usize,
}

fn classic<R: Read>(input: &mut Input<R>, file: Classic) -> Result<Option<Found>> {
    let Classic { order, resolution, link_type, lengths, record_header } = file;
    input.fill(record_header)?;
    if input.there().is_empty() {
        return Ok(None);
    }
    let at = input.passed + input.from as u64;
    let header = input.whole(record_header)?;
    let (seconds, fraction) = (order.u32(word(header, 0)), order.u32(word(header, 4)));
    let (kept, length) = lengths.in_order(order.u32(word(header, 8)), order.u32(word(header, 12)));
    let kept = kept as usize;
    if kept > MOST {
        return Err(ReadError::TooLong { at, length: kept as u64 });
    }
    input.fill(record_header + kept)?;
    input.take(record_header + kept)?;
    let ns = u64::from(seconds) * 1_000_000_000 + resolution.nanos(u64::from(fraction)).0;
    Ok(Some(Found { at: Some(Nanos(ns)), link_type, length, from: input.from - kept, to: input.from }))
}

fn blocks<R: Read>(
    input: &mut Input<R>,
    state: &mut State,
    dropped: &mut BTreeMap<u32, u64>,
) -> Result<Option<Found>> {
    loop {
        input.fill(BLOCK_OVERHEAD)?;
        if input.there().is_empty() {
            return Ok(None);
        }
        let at = input.passed + input.from as u64;
        let offset = usize::try_from(at).unwrap_or(usize::MAX);
        let length = state.length(input.there(), offset)?;
        if length > MOST {
            return Err(ReadError::TooLong { at, length: length as u64 });
        }
        input.fill(length)?;
        let begins = input.from;
        let whole = input.take(length)?;
        match state.block(whole, offset)? {
            Block::Packet { interface, at, length, data, .. } => {
                let from = begins + (data.as_ptr().addr() - whole.as_ptr().addr());
                let link_type = state.described(interface, offset)?.link_type;
                return Ok(Some(Found { at, link_type, length, from, to: from + data.len() }));
            }
            // Counts are cumulative from the beginning.
            Block::Statistics(statistics) => {
                dropped.insert(statistics.interface, statistics.dropped);
            }
            Block::Section { .. } | Block::Interface { .. } | Block::Other { .. } => {}
        }
    }
}

/// Input read but not yet consumed.
#[derive(Debug)]
struct Input<R> {
    source: R,
    room: Vec<u8>,
    from: usize,
    to: usize,
    /// Offset in the stream of the buffer's first byte.
    passed: u64,
    ended: bool,
}

impl<R: Read> Input<R> {
    fn there(&self) -> &[u8] {
        &self.room[self.from..self.to]
    }

    /// Reads until `wanted` bytes are available or the stream ends.
    fn fill(&mut self, wanted: usize) -> Result<()> {
        if self.to - self.from >= wanted || self.ended {
            return Ok(());
        }
        self.room.copy_within(self.from..self.to, 0);
        self.passed += self.from as u64;
        (self.from, self.to) = (0, self.to - self.from);
        // Memory is not allocated before the bytes have arrived.
        while self.to < wanted && !self.ended {
            if self.to == self.room.len() {
                self.room.resize((2 * self.room.len()).min(MOST + ROOM), 0);
            }
            match self.source.read(&mut self.room[self.to..]) {
                Ok(0) => self.ended = true,
                Ok(n) => self.to += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(ReadError::Io { at: self.passed + self.to as u64, source }),
            }
        }
        Ok(())
    }

    /// Returns `wanted` bytes, or an error if they are not available.
    fn whole(&self, wanted: usize) -> Result<&[u8]> {
        let there = self.there();
        there.get(..wanted).ok_or(ReadError::CutShort {
            at: self.passed + self.from as u64,
            wanted,
            left: there.len(),
        })
    }

    /// Returns `wanted` bytes and consumes them.
    fn take(&mut self, wanted: usize) -> Result<&[u8]> {
        self.whole(wanted)?;
        self.from += wanted;
        Ok(&self.room[self.from - wanted..self.from])
    }
}
