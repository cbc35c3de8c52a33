//! RTP (RFC 3550): its packets can't be identified individually, so only a stream that continues as RTP does is accepted.

use super::jitter::rate_of;
use super::stream::{Datagram, Format, Sent, Stream};

/// Most packets per direction kept as possible starts of a stream.
const CANDIDATES: usize = 4;
/// Consecutive matching packets that confirm a stream.
const SURE: u32 = 7;
/// Largest step between sequence numbers until then.
const SKIP: i16 = 16;
/// Range of timestamp steps until then: ten seconds of the fastest clock ahead, and back for video frames sent before others are shown.
const TICKS: std::ops::RangeInclusive<i32> = -90_000..=900_000;

/// Relevant fields of a header (RFC 3550, section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub payload_type: u8,
    pub number: u16,
    pub timestamp: u32,
    pub ssrc: u32,
}

impl Header {
    /// Decodes the start of a datagram of this length; `None` if it can't be RTP, including RTCP and STUN (RFC 5761, RFC 7983).
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

    /// Whether another packet may be next in its stream.
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

/// Packets that may start a stream.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    all: [Option<(Header, Datagram)>; CANDIDATES],
    next: usize,
}

impl Candidates {
    /// Returns the stream that this packet forms with an earlier one; otherwise keeps the packet.
    pub(super) fn paired(&mut self, header: &Header, at: Option<u64>, length: u32) -> Option<Stream> {
        let mut before = self.all.iter_mut();
        if let Some(place) = before.find(|place| place.is_some_and(|(first, _)| first.goes_on_as(header))) {
            let (first, datagram) = place.take()?;
            let mut stream = Stream::starting(Format::Rtp(first.ssrc), &datagram, None);
            stream.has_payload_type(first.payload_type);
            return Some(stream);
        }
        // The number is offset by 2^16, so that packets sent before the first have valid numbers too.
        let number = u64::from(header.number) + (1 << 16);
        let datagram = Datagram { at, length, number, sent: Sent::Ticks(header.timestamp) };
        self.all[self.next] = Some((*header, datagram));
        self.next = (self.next + 1) % CANDIDATES;
        None
    }
}

/// Adds a packet of the stream.
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

/// Whether the stream is confirmed.
pub(super) fn is_sure(stream: &Stream) -> bool {
    stream.agreeing >= SURE && stream.changes >= 2 && stream.disagreeing <= stream.agreeing / 2
}
