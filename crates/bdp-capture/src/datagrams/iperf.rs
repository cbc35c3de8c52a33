//! Datagrams of iperf3 and iperf2: they begin with a number and a time of sending, without any identification. A flow is accepted
//! only if its datagrams have one length, consecutive numbers, and times that advance like those of the capture.

use bdp_wire::iperf2::Stamp;
use bdp_wire::iperf3::datagram as iperf3;

use super::stream::{Datagram, Format, Sent, Stream};

/// Consecutive matching datagrams that confirm a stream; fewer if its hello was captured.
const SURE: u32 = 15;
const SURE_AFTER_HELLO: u32 = 3;
/// Largest step between numbers until then.
const SKIP: u64 = 64;
/// Largest deviation of the times of sending from those of the capture between two datagrams.
const OFF_NS: u64 = 200_000_000;
const LONGEST_PAUSE_NS: u64 = 10_000_000_000;

/// Start of a datagram, kept until another one matches it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beginning {
    at: Option<u64>,
    length: u32,
    bytes: [u8; 16],
}

impl Beginning {
    /// Returns `None` if it is too short, originally or after truncation.
    pub(super) fn of(kept: &[u8], length: u32, at: Option<u64>) -> Option<Self> {
        Some(Self { at, length, bytes: *kept.first_chunk()? })
    }

    /// Returns the stream that it starts, if the next datagram matches it.
    pub(super) fn paired(&self, next: &Self, hello: bool) -> Option<Stream> {
        let of_iperf3 = [Format::Iperf3, Format::Iperf3Wide];
        let formats = of_iperf3.into_iter().chain((!hello).then_some(Format::Iperf2));
        formats.into_iter().find_map(|format| {
            let (first, second) = (self.datagram(format)?, next.datagram(format)?);
            let began = hello.then_some(1);
            goes_on_as(&first, &second).then(|| Stream::starting(format, &first, began))
        })
    }

    /// Interprets a datagram in this format; `None` if it is invalid.
    fn datagram(&self, format: Format) -> Option<Datagram> {
        let (number, sent_us) = label(format, &self.bytes)?;
        let number = u64::try_from(number).ok().filter(|&number| number > 0)?;
        Some(Datagram {
            at: self.at,
            length: self.length,
            number,
            sent: Sent::Ns(sent_us.checked_mul(1000)?),
        })
    }
}

/// Adds a datagram of the flow.
pub(super) fn note(stream: &mut Stream, beginning: &Beginning) {
    if let (Format::Iperf2, Some((number, _))) = (stream.format, label(stream.format, &beginning.bytes))
        && number < 0
        && beginning.length == stream.last.length
    {
        stream.end(number.unsigned_abs());
        return;
    }
    let Some(datagram) = beginning.datagram(stream.format) else {
        stream.disagreeing = stream.disagreeing.saturating_add(1);
        return;
    };
    let number = match stream.format {
        Format::Iperf3 => stream.extended(datagram.number as u32, 32),
        _ => datagram.number,
    };
    let datagram = Datagram { number, ..datagram };
    if goes_on_as(&stream.last, &datagram) {
        stream.agreeing = stream.agreeing.saturating_add(1);
    } else {
        stream.disagreeing = stream.disagreeing.saturating_add(1);
        // A datagram of another length belongs to something else.
        if datagram.length != stream.last.length {
            return;
        }
    }
    stream.note(&datagram);
}

/// Whether the stream is confirmed.
pub(super) fn is_sure(stream: &Stream, hello: bool) -> bool {
    let least = if hello { SURE_AFTER_HELLO } else { SURE };
    stream.agreeing >= least && stream.disagreeing <= stream.agreeing / 2
}

/// Whether a payload is a hello of iperf3 or its answer.
pub(super) fn is_hello(kept: &[u8], length: u32) -> bool {
    length == 4 && (iperf3::answer(kept).is_some() || iperf3::is_answer(kept))
}

fn goes_on_as(first: &Datagram, second: &Datagram) -> bool {
    let (Sent::Ns(sent), Sent::Ns(then)) = (first.sent, second.sent) else { return false };
    let Some(pause) = then.checked_sub(sent) else { return false };
    let keeps_time = match first.at.zip(second.at) {
        Some((at, later)) => later.saturating_sub(at).abs_diff(pause) <= OFF_NS,
        None => true,
    };
    let ahead = second.number.wrapping_sub(first.number);
    first.length == second.length && (1..=SKIP).contains(&ahead) && pause <= LONGEST_PAUSE_NS && keeps_time
}

/// Returns the number and the time of sending in microseconds.
fn label(format: Format, bytes: &[u8; 16]) -> Option<(i64, u64)> {
    let word = |index: usize| {
        let at = index * 4;
        u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    };
    let micros = match format {
        Format::Iperf3 | Format::Iperf3Wide => word(1),
        Format::Iperf2 => word(2),
        Format::Rtp(_) | Format::Bdp(_) => return None,
    };
    if micros >= 1_000_000 {
        return None;
    }
    match format {
        Format::Iperf2 => {
            // Upper half of the number; before version 2.0.10 the next header is here.
            let wide = matches!(word(3), 0 | u32::MAX);
            Stamp::decode(bytes, wide).map(|stamp| (stamp.number, stamp.sent_us))
        }
        _ => {
            let header = iperf3::Header::decode(format == Format::Iperf3Wide, bytes)?;
            Some((i64::try_from(header.number).ok()?, header.sent_us))
        }
    }
}
