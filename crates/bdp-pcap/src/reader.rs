//! Reads a capture from memory, block by block.

use bdp_model::units::Nanos;

use crate::PcapError;
use crate::block::{self, BLOCK_OVERHEAD, Direction, option, padding};
use crate::writer::Statistics;

type Result<T> = std::result::Result<T, PcapError>;

/// A block; invalid UTF-8 in text is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block<'a> {
    /// Start of a section; interfaces are numbered from 0 again.
    Section {
        /// Hardware of the machine.
        hardware: Option<String>,
        /// Operating system.
        os: Option<String>,
        /// Program that wrote the section.
        application: Option<String>,
        /// Comments.
        comments: Vec<String>,
    },
    /// An interface, in numerical order.
    Interface {
        /// Link type of its packets, such as [`crate::LINKTYPE_RAW`].
        link_type: u16,
        /// Most bytes captured per packet; 0 for no limit.
        snap_length: u32,
        /// Name of the interface.
        name: Option<String>,
        /// Description of the interface.
        description: Option<String>,
    },
    /// A packet.
    Packet {
        /// Number of its interface.
        interface: u32,
        /// Time since 1970; `None` if the block has none.
        at: Option<Nanos>,
        /// Direction, if recorded.
        direction: Option<Direction>,
        /// Original length, before truncation, bytes.
        length: u32,
        /// Bytes captured.
        data: &'a [u8],
        /// Comments.
        comments: Vec<String>,
    },
    /// Statistics of an interface; fields not recorded are 0.
    Statistics(Statistics),
    /// A block of another kind.
    Other {
        /// Type of the block.
        kind: u32,
    },
}

/// Returns the blocks of a capture. Ends after an error.
pub fn blocks(bytes: &[u8]) -> Blocks<'_> {
    Blocks { bytes, at: 0, state: State::default(), broken: false }
}

/// Iterator over the blocks of a capture, returned by [`blocks`].
#[derive(Debug, Clone)]
pub struct Blocks<'a> {
    bytes: &'a [u8],
    at: usize,
    state: State,
    broken: bool,
}

/// Reader state carried from block to block.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    order: Order,
    /// Interfaces of the section, by number.
    interfaces: Vec<Described>,
    in_section: bool,
}

/// Description of an interface.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Described {
    /// Link type of its packets.
    pub(crate) link_type: u16,
    /// Most bytes captured per packet; 0 for no limit.
    snap_length: u32,
    /// Unit of its timestamps.
    resolution: Resolution,
    /// Seconds to add to its timestamps.
    offset: i64,
}

/// Byte order of a section or a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Order {
    #[default]
    Little,
    Big,
}

/// Unit of timestamps: a power of ten or of two, below a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolution {
    Decimal(u32),
    Binary(u32),
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Result<Block<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.broken || self.at >= self.bytes.len() {
            return None;
        }
        let block = self.read();
        self.broken = block.is_err();
        Some(block)
    }
}

impl<'a> Blocks<'a> {
    fn read(&mut self) -> Result<Block<'a>> {
        let at = self.at;
        let rest = &self.bytes[at..];
        let length = self.state.length(rest, at)?;
        let whole =
            rest.get(..length).ok_or(PcapError::Truncated { at, length: length as u64, left: rest.len() })?;
        self.at += length;
        self.state.block(whole, at)
    }
}

impl State {
    /// Returns the length of the block that starts here; the first twelve bytes must be available.
    pub(crate) fn length(&mut self, rest: &[u8], at: usize) -> Result<usize> {
        if rest.len() < BLOCK_OVERHEAD {
            return Err(if self.in_section {
                PcapError::Truncated { at, length: BLOCK_OVERHEAD as u64, left: rest.len() }
            } else {
                PcapError::NoSection { at }
            });
        }
        let kind_bytes = word(rest, 0);
        if kind_bytes == block::SECTION_HEADER.to_le_bytes() {
            self.order = match word(rest, 8) {
                magic if magic == block::BYTE_ORDER_MAGIC.to_le_bytes() => Order::Little,
                magic if magic == block::BYTE_ORDER_MAGIC.to_be_bytes() => Order::Big,
                _ => return Err(PcapError::NoSection { at }),
            };
            self.in_section = true;
            self.interfaces.clear();
        } else if !self.in_section {
            return Err(PcapError::NoSection { at });
        }
        let length = self.order.u32(word(rest, 4)) as usize;
        if length < BLOCK_OVERHEAD || !length.is_multiple_of(4) {
            return Err(PcapError::Malformed { at, what: "length" });
        }
        Ok(length)
    }

    /// Parses a complete block.
    pub(crate) fn block<'a>(&mut self, whole: &'a [u8], at: usize) -> Result<Block<'a>> {
        let order = self.order;
        let kind = order.u32(word(whole, 0));
        if order.u32(word(whole, whole.len() - 4)) as usize != whole.len() {
            return Err(PcapError::Malformed { at, what: "length" });
        }
        let body = &whole[8..whole.len() - 4];
        match kind {
            block::SECTION_HEADER => section(body, order, at),
            block::INTERFACE_DESCRIPTION => self.interface(body, at),
            block::ENHANCED_PACKET => self.packet(body, at),
            block::SIMPLE_PACKET => self.simple_packet(body, at),
            block::OBSOLETE_PACKET => self.obsolete_packet(body, at),
            block::INTERFACE_STATISTICS => self.statistics(body, at),
            kind => Ok(Block::Other { kind }),
        }
    }

    /// Returns an interface by its number.
    pub(crate) fn described(&self, interface: u32, at: usize) -> Result<Described> {
        self.interfaces.get(interface as usize).copied().ok_or(PcapError::NoInterface { at, interface })
    }

    fn interface<'a>(&mut self, body: &'a [u8], at: usize) -> Result<Block<'a>> {
        let (fixed, rest) = split(body, 8, at)?;
        let options = options(rest, self.order, at)?;
        let find = |wanted| options.iter().find(|(code, _)| *code == wanted).map(|(_, value)| *value);
        let resolution = match find(option::IF_TSRESOL).and_then(<[u8]>::first) {
            None => Resolution::Decimal(6),
            Some(&r) if r & 0x80 == 0 => Resolution::Decimal(u32::from(r)),
            Some(&r) => Resolution::Binary(u32::from(r & 0x7f)),
        };
        let offset = find(option::IF_TSOFFSET).filter(|value| value.len() == 8);
        let (link_type, snap_length) = (self.order.u16([fixed[0], fixed[1]]), self.order.u32(word(fixed, 4)));
        let offset = offset.map_or(0, |value| self.order.u64(value).cast_signed());
        self.interfaces.push(Described { link_type, snap_length, resolution, offset });
        Ok(Block::Interface {
            link_type,
            snap_length,
            name: text(&options, option::IF_NAME),
            description: text(&options, option::IF_DESCRIPTION),
        })
    }

    fn packet<'a>(&self, body: &'a [u8], at: usize) -> Result<Block<'a>> {
        let order = self.order;
        let (fixed, rest) = split(body, 20, at)?;
        let interface = order.u32(word(fixed, 0));
        let described = self.described(interface, at)?;
        let kept = order.u32(word(fixed, 12)) as usize;
        let data = rest.get(..kept).ok_or(PcapError::Malformed { at, what: "captured length" })?;
        let rest = rest.get(kept + padding(kept)..).unwrap_or_default();
        let options = options(rest, order, at)?;
        let flags = options.iter().find(|(code, value)| *code == option::EPB_FLAGS && value.len() == 4);
        Ok(Block::Packet {
            interface,
            at: Some(described.time(order.stamp(fixed, 4))),
            direction: flags.and_then(|(_, value)| Direction::of(order.u32(word(value, 0)))),
            length: order.u32(word(fixed, 16)),
            data,
            comments: comments(&options),
        })
    }

    /// Parses a packet of the first interface, without a time.
    fn simple_packet<'a>(&self, body: &'a [u8], at: usize) -> Result<Block<'a>> {
        let (fixed, rest) = split(body, 4, at)?;
        let length = self.order.u32(word(fixed, 0));
        let snap_length = match self.described(0, at)?.snap_length {
            0 => u32::MAX,
            limit => limit,
        };
        // The rest is padding.
        let kept = rest.len().min(length.min(snap_length) as usize);
        Ok(Block::Packet {
            interface: 0,
            at: None,
            direction: None,
            length,
            data: &rest[..kept],
            comments: Vec::new(),
        })
    }

    /// Parses a Packet Block, as written before 2010.
    fn obsolete_packet<'a>(&self, body: &'a [u8], at: usize) -> Result<Block<'a>> {
        let order = self.order;
        let (fixed, rest) = split(body, 20, at)?;
        let interface = u32::from(order.u16([fixed[0], fixed[1]]));
        let described = self.described(interface, at)?;
        let kept = order.u32(word(fixed, 12)) as usize;
        Ok(Block::Packet {
            interface,
            at: Some(described.time(order.stamp(fixed, 4))),
            direction: None,
            length: order.u32(word(fixed, 16)),
            data: rest.get(..kept).ok_or(PcapError::Malformed { at, what: "captured length" })?,
            comments: Vec::new(),
        })
    }

    fn statistics<'a>(&self, body: &'a [u8], at: usize) -> Result<Block<'a>> {
        let order = self.order;
        let (fixed, rest) = split(body, 12, at)?;
        let interface = order.u32(word(fixed, 0));
        let described = self.described(interface, at)?;
        let options = options(rest, order, at)?;
        let find = |code: u16| {
            options.iter().find(|(c, value)| *c == code && value.len() == 8).map(|(_, value)| *value)
        };
        let time = |code| find(code).map_or(Nanos::ZERO, |v| described.time(order.stamp(v, 0)));
        let count = |code| find(code).map_or(0, |v| order.u64(v));
        Ok(Block::Statistics(Statistics {
            interface,
            started: time(option::ISB_STARTTIME),
            ended: time(option::ISB_ENDTIME),
            received: count(option::ISB_IFRECV),
            dropped: count(option::ISB_IFDROP),
        }))
    }
}

impl Described {
    fn time(&self, stamp: u64) -> Nanos {
        let ns = i128::from(self.resolution.nanos(stamp).0) + i128::from(self.offset) * 1_000_000_000;
        Nanos(u64::try_from(ns.max(0)).unwrap_or(u64::MAX))
    }
}

fn section<'a>(body: &'a [u8], order: Order, at: usize) -> Result<Block<'a>> {
    let (_, rest) = split(body, 16, at)?;
    let options = options(rest, order, at)?;
    Ok(Block::Section {
        hardware: text(&options, option::SHB_HARDWARE),
        os: text(&options, option::SHB_OS),
        application: text(&options, option::SHB_USERAPPL),
        comments: comments(&options),
    })
}

/// Returns the code and value of each option, section 3.5; the end-of-options marker may be missing.
fn options(mut bytes: &[u8], order: Order, at: usize) -> Result<Vec<(u16, &[u8])>> {
    let mut found = Vec::new();
    while bytes.len() >= 4 {
        let code = order.u16([bytes[0], bytes[1]]);
        let length = usize::from(order.u16([bytes[2], bytes[3]]));
        if code == option::END {
            break;
        }
        let value = bytes.get(4..4 + length).ok_or(PcapError::Malformed { at, what: "option" })?;
        found.push((code, value));
        bytes = bytes.get(4 + length + padding(length)..).unwrap_or_default();
    }
    Ok(found)
}

fn text(options: &[(u16, &[u8])], code: u16) -> Option<String> {
    let found = options.iter().find(|(c, _)| *c == code);
    found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
}

fn comments(options: &[(u16, &[u8])]) -> Vec<String> {
    let these = options.iter().filter(|(code, _)| *code == option::COMMENT);
    these.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect()
}

fn split(body: &[u8], fixed: usize, at: usize) -> Result<(&[u8], &[u8])> {
    body.split_at_checked(fixed).ok_or(PcapError::Malformed { at, what: "fixed part" })
}

/// Returns four bytes from `at`, which must exist.
pub(crate) fn word(bytes: &[u8], at: usize) -> [u8; 4] {
    [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]
}

impl Order {
    pub(crate) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    pub(crate) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// Reads a 64-bit number from eight bytes.
    fn u64(self, bytes: &[u8]) -> u64 {
        let (first, second) = (u64::from(self.u32(word(bytes, 0))), u64::from(self.u32(word(bytes, 4))));
        match self {
            Self::Little => second << 32 | first,
            Self::Big => first << 32 | second,
        }
    }

    /// Reads a timestamp of two words, the higher one first.
    fn stamp(self, bytes: &[u8], at: usize) -> u64 {
        u64::from(self.u32(word(bytes, at))) << 32 | u64::from(self.u32(word(bytes, at + 4)))
    }
}

impl Resolution {
    /// Converts a timestamp to nanoseconds, rounded down and saturating at 64 bits.
    pub(crate) fn nanos(self, stamp: u64) -> Nanos {
        let stamp = u128::from(stamp);
        let ns = match self {
            Self::Decimal(power @ 0..=9) => stamp * 10u128.pow(9 - power),
            Self::Decimal(power) => 10u128.checked_pow(power - 9).map_or(0, |unit| stamp / unit),
            Self::Binary(power) => (stamp * 1_000_000_000) >> power.min(127),
        };
        Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}
