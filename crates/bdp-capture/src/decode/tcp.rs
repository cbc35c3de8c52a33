//! TCP header and its relevant options.

use super::bytes::{Bytes, Unread};
use super::tls::Record;

/// A segment without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number, valid if `ACK` is set.
    pub ack: u32,
    /// Flags.
    pub flags: Flags,
    /// Window field, unscaled.
    pub window: u16,
    /// Urgent pointer, relative to `seq`; valid if `URG` is set.
    pub urgent: u16,
    /// Payload length before truncation, bytes.
    pub payload: u32,
    /// Payload bytes captured.
    pub kept: u32,
    /// TLS record at the start of the payload.
    pub record: Record,
    /// Options; truncated ones are missing.
    pub options: Options,
}

/// The flags of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    const FIN: u8 = 1;
    /// Flags of a SYN that begins a connection.
    pub(crate) const SYN: u8 = 2;
    const RST: u8 = 4;
    const PSH: u8 = 8;
    const ACK: u8 = 16;
    const URG: u8 = 32;
    const ECE: u8 = 64;
    const CWR: u8 = 128;

    /// Returns flags from the header's bits.
    pub const fn new(bits: u8) -> Self {
        Self(bits)
    }

    /// Returns the header's bits.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// FIN: no more data follow.
    pub const fn fin(self) -> bool {
        self.0 & Self::FIN != 0
    }

    /// SYN: begins a connection.
    pub const fn syn(self) -> bool {
        self.0 & Self::SYN != 0
    }

    /// RST: resets the connection.
    pub const fn rst(self) -> bool {
        self.0 & Self::RST != 0
    }

    /// PSH: the receiver should deliver the data.
    pub const fn psh(self) -> bool {
        self.0 & Self::PSH != 0
    }

    /// ACK: the acknowledgement number is valid.
    pub const fn ack(self) -> bool {
        self.0 & Self::ACK != 0
    }

    /// URG: the urgent pointer is valid.
    pub const fn urg(self) -> bool {
        self.0 & Self::URG != 0
    }

    /// ECE: congestion was experienced, or on a SYN, ECN is supported.
    pub const fn ece(self) -> bool {
        self.0 & Self::ECE != 0
    }

    /// CWR: the congestion window was reduced.
    pub const fn cwr(self) -> bool {
        self.0 & Self::CWR != 0
    }
}

/// SACK blocks, four at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u32, u32); 4],
    count: u8,
}

impl SackBlocks {
    /// Returns the blocks as first byte and end (exclusive).
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }

    fn push(&mut self, block: (u32, u32)) {
        if let Some(place) = self.blocks.get_mut(usize::from(self.count)) {
            *place = block;
            self.count += 1;
        }
    }
}

/// Multipath TCP option (RFC 8684).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Multipath {
    /// `MP_CAPABLE`: begins a connection.
    Capable,
    /// `MP_JOIN`: a subflow joins a connection.
    Join,
    /// Any other, such as data sequence numbers.
    Other,
}

/// Options of a segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Window scale, bits.
    pub window_scale: Option<u8>,
    /// Whether selective acknowledgements are permitted.
    pub sack_permitted: bool,
    /// Timestamp value and echo reply.
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks.
    pub sack: SackBlocks,
    /// Multipath TCP option.
    pub multipath: Option<Multipath>,
    /// Length of all options, bytes.
    length: u8,
}

impl Options {
    /// Returns options of this length without any that are examined.
    pub(crate) fn of_length(length: u8) -> Self {
        Self { length, ..Self::default() }
    }

    /// Length of all options including padding, bytes.
    pub const fn length(&self) -> u32 {
        self.length as u32
    }
}

pub(super) fn segment(mut bytes: Bytes<'_>) -> Result<Segment, Unread> {
    let length = bytes.length;
    let (source, destination) = (bytes.u16()?, bytes.u16()?);
    let (seq, ack) = (bytes.u32()?, bytes.u32()?);
    let [offset, flags] = bytes.array()?;
    let window = bytes.u16()?;
    bytes.take(2)?;
    let urgent = bytes.u16()?;
    let header = usize::from(offset >> 4) * 4;
    let behind = header.checked_sub(20).ok_or(Unread::Malformed)?;
    let payload = length.checked_sub(header as u32).ok_or(Unread::Malformed)?;
    let kept = bytes.rest.len().min(behind);
    let options = Options { length: behind as u8, ..options(&bytes.rest[..kept]) };
    let data = &bytes.rest[kept..];
    let (kept, record) = (data.len() as u32, Record::of(data));
    let flags = Flags(flags);
    Ok(Segment { source, destination, seq, ack, flags, window, urgent, payload, kept, record, options })
}

/// Parses the options up to the first invalid one.
fn options(mut rest: &[u8]) -> Options {
    let mut found = Options::default();
    while let [kind, after @ ..] = rest {
        match kind {
            0 => break,
            1 => {
                rest = after;
                continue;
            }
            _ => {}
        }
        let Some(value) = rest.get(1).and_then(|&length| rest.get(2..usize::from(length))) else { break };
        let word = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| value[at + i]));
        match (kind, value.len()) {
            (2, 2) => found.mss = Some(u16::from_be_bytes([value[0], value[1]])),
            // RFC 7323, section 2.3: larger values count as 14.
            (3, 1) => found.window_scale = Some(value[0].min(14)),
            (4, 0) => found.sack_permitted = true,
            (5, n) if n % 8 == 0 => {
                (0..n).step_by(8).for_each(|at| found.sack.push((word(at), word(at + 4))))
            }
            (30, 1..) => {
                found.multipath = Some(match value[0] >> 4 {
                    0 => Multipath::Capable,
                    1 => Multipath::Join,
                    _ => Multipath::Other,
                });
            }
            (8, 8) => found.timestamps = Some((word(0), word(4))),
            _ => {}
        }
        rest = &rest[value.len() + 2..];
    }
    found
}
