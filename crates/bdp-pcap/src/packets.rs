//! The packets of a capture as it is read from a stream, in memory that does not grow with it: pcap in all its forms, and pcapng.

use std::collections::BTreeMap;
use std::io::{self, Read};

use bdp_model::units::Nanos;

use crate::PcapError;
use crate::block::{BLOCK_OVERHEAD, SECTION_HEADER};
use crate::reader::{Block, Order, Resolution, State, word};

/// Bytes that are read at once, and that are kept.
const ROOM: usize = 1 << 16;
/// No packet and no block is longer: a length beyond it is none.
const MOST: usize = 1 << 26;
/// Header of a file in pcap, and of each of its packets.
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
/// The magic number of pcap with microseconds, and with nanoseconds.
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// The same as patched by Kuznetsov, with microseconds: each packet's header ends with eight bytes of its interface and protocol.
const PATCHED: u32 = 0xa1b2_cd34;
const PATCHED_BYTES: usize = 8;

/// A packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Captured<'a> {
    /// When, since 1970; `None` where the capture does not say.
    pub at: Option<Nanos>,
    /// What it begins with, such as [`crate::LINKTYPE_RAW`].
    pub link_type: u16,
    /// Its length before it was cut, bytes.
    pub length: u32,
    /// What was kept.
    pub data: &'a [u8],
}

/// Why a capture could not be read on.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Reading failed.
    #[error("at byte {at}: {source}")]
    Io {
        /// What was read before.
        at: u64,
        /// Why.
        source: io::Error,
    },
    /// These bytes are no capture.
    #[error("not pcap or pcapng: it starts with {0:02x?}")]
    Unknown(Vec<u8>),
    /// The bytes end within a packet.
    #[error("at byte {at}: truncated: only {left} of {wanted} bytes")]
    CutShort {
        /// Where the packet begins.
        at: u64,
        /// Bytes of it.
        wanted: usize,
        /// Those that are there.
        left: usize,
    },
    /// A length that no packet has.
    #[error("at byte {at}: invalid packet length of {length} bytes")]
    TooLong {
        /// Where the packet begins.
        at: u64,
        /// What it says.
        length: u64,
    },
    /// A block of pcapng.
    #[error(transparent)]
    Block(#[from] PcapError),
}

type Result<T> = std::result::Result<T, ReadError>;

/// The packets of a capture, in order. After an error there are no more.
#[derive(Debug)]
pub struct Packets<R> {
    input: Input<R>,
    format: Format,
    /// By interface, those that the capturing program says it dropped.
    dropped: BTreeMap<u32, u64>,
    broken: bool,
}

#[derive(Debug)]
enum Format {
    Classic(Classic),
    Blocks(State),
}

/// What the head of a file in pcap says of its packets.
#[derive(Debug, Clone, Copy)]
struct Classic {
    order: Order,
    resolution: Resolution,
    link_type: u16,
    lengths: Lengths,
    record_header: usize,
}

/// In which order a packet's header has its two lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lengths {
    /// What was kept, then what it was before it was cut.
    KeptFirst,
    /// The other way round.
    WholeFirst,
    /// Either: what was kept is not more than the whole.
    Either,
}

impl Lengths {
    /// Programs swapped them in version 2.3, some before and some after its number changed; DG/UX, whose version is 543.0, never did.
    fn of(major: u16, minor: u16) -> Self {
        match (major, minor) {
            (2, 0..=2) | (543, _) => Self::WholeFirst,
            (2, 3) => Self::Either,
            _ => Self::KeptFirst,
        }
    }

    /// What was kept, and the whole.
    fn in_order(self, first: u32, second: u32) -> (u32, u32) {
        match self {
            Self::WholeFirst => (second, first),
            Self::Either if first > second => (second, first),
            Self::KeptFirst | Self::Either => (first, second),
        }
    }
}

impl<R: Read> Packets<R> {
    /// Reads the head of a capture. A stream without a byte is an error.
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
                // The upper half may say that packets end with a checksum, which is of no interest.
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

    /// The next packet; `None` at the end.
    pub fn next_packet(&mut self) -> Option<Result<Captured<'_>>> {
        if self.broken {
            return None;
        }
        // Where it is, so that it can be borrowed once more when all else is known.
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

    /// Packets that the capturing program says it dropped, so far.
    pub fn dropped(&self) -> u64 {
        self.dropped.values().sum()
    }

    /// Bytes of the capture that were read so far.
    pub fn bytes(&self) -> u64 {
        self.input.passed + self.input.from as u64
    }
}

/// A packet by its place in the input's room.
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
            // Each counts from the beginning on.
            Block::Statistics(statistics) => {
                dropped.insert(statistics.interface, statistics.dropped);
            }
            Block::Section { .. } | Block::Interface { .. } | Block::Other { .. } => {}
        }
    }
}

/// What was read and not yet used up.
#[derive(Debug)]
struct Input<R> {
    source: R,
    room: Vec<u8>,
    from: usize,
    to: usize,
    /// Bytes of the stream before the room's first one.
    passed: u64,
    ended: bool,
}

impl<R: Read> Input<R> {
    fn there(&self) -> &[u8] {
        &self.room[self.from..self.to]
    }

    /// Reads until so many bytes are there, or the stream ends.
    fn fill(&mut self, wanted: usize) -> Result<()> {
        if self.to - self.from >= wanted || self.ended {
            return Ok(());
        }
        self.room.copy_within(self.from..self.to, 0);
        self.passed += self.from as u64;
        (self.from, self.to) = (0, self.to - self.from);
        // What is wanted is no reason to take memory before its bytes are there.
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

    /// So many bytes, which have to be there.
    fn whole(&self, wanted: usize) -> Result<&[u8]> {
        let there = self.there();
        there.get(..wanted).ok_or(ReadError::CutShort {
            at: self.passed + self.from as u64,
            wanted,
            left: there.len(),
        })
    }

    /// The same, used up.
    fn take(&mut self, wanted: usize) -> Result<&[u8]> {
        self.whole(wanted)?;
        self.from += wanted;
        Ok(&self.room[self.from - wanted..self.from])
    }
}
