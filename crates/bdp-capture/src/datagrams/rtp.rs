//! RTP (RFC 3550): nothing in a packet says that it is one, so that only a stream of them that goes on as RTP does is believed.

use super::jitter::rate_of;
use super::stream::{Datagram, Format, Sent, Stream};

/// Packets that may be the first of a stream, of one way.
const CANDIDATES: usize = 4;
/// Streams that go on are known by so many packets that fit the one before.
const SURE: u32 = 7;
/// Numbers that a stream may skip meanwhile.
const SKIP: i16 = 16;
/// Ticks that timestamps may go on meanwhile, ten seconds of the fastest clock, and back: frames of video that are sent before others are shown.
const TICKS: std::ops::RangeInclusive<i32> = -90_000..=900_000;

/// What matters of a header (RFC 3550, section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub payload_type: u8,
    pub number: u16,
    pub timestamp: u32,
    pub ssrc: u32,
}

impl Header {
    /// From the beginning of a datagram of this length; `None` of what can't be RTP, RTCP and STUN among it (RFC 5761, RFC 7983).
    pub(super) fn decode(kept: &[u8], length: u32) -> Option<Self> {
        let bytes: &[u8; 12] = kept.first_chunk()?;
        let sources = u32::from(bytes[0] & 15);
        let payload_type = bytes[1] & 127;
        let is_assigned = rate_of(payload_type).is_some() || matches!(payload_type, 35..=63 | 96..=127);
        if bytes[0] >> 6 != 2 || !is_assigned || length < 12 + 4 * sources {
            return None;
        }
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let number = u16::from_be_bytes([bytes[2], bytes[3]]);
        Some(Self { payload_type, number, timestamp: word(4), ssrc: word(8) })
            .filter(|header| header.ssrc != 0)
    }

    /// Whether another one may come next in its stream.
    fn goes_on_as(&self, next: &Self) -> bool {
        let ahead = next.number.wrapping_sub(self.number) as i16;
        next.ssrc == self.ssrc
            && (1..=SKIP).contains(&ahead)
            && TICKS.contains(&(next.timestamp.wrapping_sub(self.timestamp) as i32))
    }

    fn of(stream: &Stream) -> Option<Self> {
        let (Format::Rtp(ssrc), Sent::Ticks(timestamp)) = (stream.format, stream.last.sent) else {
            return None;
        };
        Some(Self { payload_type: 0, number: stream.last.number as u16, timestamp, ssrc })
    }
}

/// Packets that may be the first of a stream.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    all: [Option<(Header, Datagram)>; CANDIDATES],
    next: usize,
}

impl Candidates {
    /// The stream that this packet makes of one before it; the packet is kept where there is none.
    pub(super) fn paired(&mut self, header: &Header, at: Option<u64>, length: u32) -> Option<Stream> {
        let mut before = self.all.iter_mut();
        if let Some(place) = before.find(|place| place.is_some_and(|(first, _)| first.goes_on_as(header))) {
            let (first, datagram) = place.take()?;
            let mut stream = Stream::starting(Format::Rtp(first.ssrc), &datagram, None);
            stream.has_payload_type(first.payload_type);
            return Some(stream);
        }
        // The other half of 2^16 is ahead of it, so that what came before the first has a number, too.
        let number = u64::from(header.number) + (1 << 16);
        let datagram = Datagram { at, length, number, sent: Sent::Ticks(header.timestamp) };
        self.all[self.next] = Some((*header, datagram));
        self.next = (self.next + 1) % CANDIDATES;
        None
    }
}

/// Notes a packet of its stream.
pub(super) fn note(stream: &mut Stream, header: &Header, at: Option<u64>, length: u32) {
    if stream.agreeing < SURE || stream.changes < 2 {
        if Header::of(stream).is_some_and(|last| last.goes_on_as(header)) {
            stream.agreeing += 1;
        } else {
            stream.disagreeing += 1;
        }
    }
    if !matches!(stream.last.sent, Sent::Ticks(last) if last == header.timestamp) {
        stream.changes = stream.changes.saturating_add(1);
    }
    stream.has_payload_type(header.payload_type);
    let number = stream.extended(u32::from(header.number), 16);
    stream.note(&Datagram { at, length, number, sent: Sent::Ticks(header.timestamp) });
}

/// Whether it can be nothing else.
pub(super) fn is_sure(stream: &Stream) -> bool {
    stream.agreeing >= SURE && stream.changes >= 2 && stream.disagreeing <= stream.agreeing / 2
}
