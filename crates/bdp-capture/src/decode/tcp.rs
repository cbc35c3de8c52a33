//! The head of a TCP segment, with the options that matter here.

use super::bytes::{Bytes, Unread};
use super::tls::Record;

/// A segment without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Port that it comes from.
    pub source: u16,
    /// Port that it goes to.
    pub destination: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number, where `ACK` is set.
    pub ack: u32,
    /// Flags.
    pub flags: Flags,
    /// Window as it is written, not scaled.
    pub window: u16,
    /// Up to where data are urgent, from `seq` on, where `URG` is set.
    pub urgent: u16,
    /// Bytes of payload before it was cut.
    pub payload: u32,
    /// Bytes of payload that were kept.
    pub kept: u32,
    /// The record of TLS that its payload begins with.
    pub record: Record,
    /// Options; those that were cut off are not there.
    pub options: Options,
}

/// The flags of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    const FIN: u8 = 1;
    /// Of a SYN that begins a connection, and nothing else.
    pub(crate) const SYN: u8 = 2;
    const RST: u8 = 4;
    const PSH: u8 = 8;
    const ACK: u8 = 16;
    const URG: u8 = 32;
    const ECE: u8 = 64;
    const CWR: u8 = 128;

    /// As they stand in the header.
    pub const fn new(bits: u8) -> Self {
        Self(bits)
    }

    /// As they stand in the header.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// No more data follow.
    pub const fn fin(self) -> bool {
        self.0 & Self::FIN != 0
    }

    /// The connection begins.
    pub const fn syn(self) -> bool {
        self.0 & Self::SYN != 0
    }

    /// The connection is reset.
    pub const fn rst(self) -> bool {
        self.0 & Self::RST != 0
    }

    /// The receiver is to hand on what it has.
    pub const fn psh(self) -> bool {
        self.0 & Self::PSH != 0
    }

    /// The acknowledgement number counts.
    pub const fn ack(self) -> bool {
        self.0 & Self::ACK != 0
    }

    /// The urgent pointer counts.
    pub const fn urg(self) -> bool {
        self.0 & Self::URG != 0
    }

    /// Congestion was experienced, or, of a SYN, ECN is known.
    pub const fn ece(self) -> bool {
        self.0 & Self::ECE != 0
    }

    /// The congestion window was reduced.
    pub const fn cwr(self) -> bool {
        self.0 & Self::CWR != 0
    }
}

/// Selective acknowledgements, four at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u32, u32); 4],
    count: u8,
}

impl SackBlocks {
    /// From, and the first that is no longer part of it.
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

/// What the option of multipath TCP (RFC 8684) says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Multipath {
    /// A connection begins.
    Capable,
    /// A subflow joins one.
    Join,
    /// Anything else, as the numbers of its data.
    Other,
}

/// Options of a segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Largest segment that this end takes.
    pub mss: Option<u16>,
    /// By how many bits its windows are shifted.
    pub window_scale: Option<u8>,
    /// It takes selective acknowledgements.
    pub sack_permitted: bool,
    /// Its own time stamp, and the one that it echoes.
    pub timestamps: Option<(u32, u32)>,
    /// What it has beyond what it acknowledges.
    pub sack: SackBlocks,
    /// It belongs to a subflow of multipath TCP, or asks for one.
    pub multipath: Option<Multipath>,
    /// Bytes of all options.
    length: u8,
}

impl Options {
    /// None of those that are looked at, of so many bytes.
    pub(crate) fn of_length(length: u8) -> Self {
        Self { length, ..Self::default() }
    }

    /// Bytes that all options take, with those that fill up.
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

/// As many as make sense: what follows one that does not is unknown.
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
            // RFC 7323, section 2.3: more counts as 14.
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
