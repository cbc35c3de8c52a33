//! UDP and ICMP in a capture: streams of datagrams with unencrypted numbers and times (RTP, bdp, iperf3, iperf2), echoes, and the
//! unencrypted parts of QUIC. A flow counts as one of these only if its datagrams can be nothing else; payloads are not examined.
//!
//! A flow takes at most 0.6 MB: [`MOST_STREAMS`] streams of 1.7 KB per direction, [`Echoes`] of 110 KB per direction, and 250 KB of a QUIC
//! connection's round trips. Most take a few hundred bytes.

mod echoes;
mod iperf;
mod jitter;
mod numbers;
mod quic;
#[cfg(test)]
mod random;
mod rtp;
mod stream;

use bdp_model::capture::{CapturedDatagrams, CapturedQuic, CapturedStream};
use bdp_wire::datagram::{Header, Opening};
use bdp_wire::echo::Echo as Ping;

use self::echoes::{Asked, Echoes};
use self::iperf::Beginning;
use self::quic::Quic;
use self::rtp::Candidates;
use self::stream::{Datagram, Format, Sent, Stream};
use crate::decode::Echo;

/// Most streams followed per direction.
const MOST_STREAMS: usize = 8;
/// Bytes of a payload that contain all headers examined, except the longest ones of QUIC.
const HEADERS: usize = 32;

/// Datagrams of a flow.
#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    sides: [Side; 2],
    seen: u64,
    /// Whether bdp's stream opening or iperf3's hello was captured, so that the first number is known.
    is_opened: bool,
    hello: bool,
    quic: Option<Box<Quic>>,
}

/// One direction.
#[derive(Debug, Default)]
struct Side {
    headers_cut: u64,
    streams: Vec<Stream>,
    more_streams: bool,
    rtp: Option<Box<Candidates>>,
    iperf: Option<Beginning>,
    echoes: Option<Box<Echoes>>,
}

impl Datagrams {
    /// Whether a datagram can only be identified by more than its first [`HEADERS`] bytes.
    pub(crate) fn needs_whole(kept: &[u8], length: u32) -> bool {
        let datagram = quic::Datagram { side: 0, at: None, kept, length };
        kept.first() == Some(&bdp_wire::session::MAGIC[0]) || Quic::starting(&datagram, true).is_some()
    }

    /// Heap memory in use, including that of the report, bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        // Bitmap of the last 8192 numbers of a stream.
        const NUMBERS: usize = 1024;
        const REPORT: usize = size_of::<CapturedDatagrams>();
        let sides = self.sides.iter().map(|side| {
            REPORT
                + side.streams.capacity() * (size_of::<Stream>() + NUMBERS + size_of::<CapturedStream>())
                + side.rtp.as_ref().map_or(0, |_| size_of::<Candidates>())
                + side.echoes.as_ref().map_or(0, |echoes| echoes.held_bytes())
        });
        sides.sum::<usize>() + self.quic.as_ref().map_or(0, |quic| quic.held_bytes())
    }

    /// Adds a UDP datagram from this side, as far as it was captured.
    pub(crate) fn udp(&mut self, at: Option<u64>, side: usize, kept: &[u8], length: u32) {
        self.seen += 1;
        let is_known = self.quic(at, side, kept, length)
            || self.bdp(at, side, kept, length)
            || self.sides[side].rtp(at, kept, length)
            || self.iperf(at, side, kept, length);
        if !is_known && kept.len() < HEADERS.min(length as usize) {
            self.sides[side].headers_cut += 1;
        }
    }

    /// Adds an ICMP echo from this side.
    pub(crate) fn icmp(&mut self, at: Option<u64>, side: usize, echo: &Echo) {
        let asked = (u64::from(echo.id), u64::from(echo.number));
        self.echo(at, side, asked, echo.is_reply);
    }

    fn echo(&mut self, at: Option<u64>, side: usize, asked: Asked, is_reply: bool) {
        let of = if is_reply { 1 - side } else { side };
        let echoes = self.sides[of].echoes.get_or_insert_default();
        if is_reply { echoes.reply(asked, at) } else { echoes.request(asked, at) }
    }

    fn quic(&mut self, at: Option<u64>, side: usize, kept: &[u8], length: u32) -> bool {
        let datagram = quic::Datagram { side, at, kept, length };
        match &mut self.quic {
            Some(quic) => quic.datagram(&datagram),
            None => self.quic = Quic::starting(&datagram, self.seen == 1).map(Box::new),
        }
        self.quic.as_ref().is_some_and(|quic| quic.is_sure())
    }

    /// Adds a datagram of bdp, identified by its first eight bytes.
    fn bdp(&mut self, at: Option<u64>, side: usize, kept: &[u8], length: u32) -> bool {
        if kept.first() != Some(&bdp_wire::session::MAGIC[0]) {
            return false;
        }
        if let Some(header) = Header::of_any(kept) {
            let (format, number) = (Format::Bdp(header.tag), header.number);
            let datagram = Datagram { at, length, number, sent: Sent::Ns(header.sent_ns) };
            match self.sides[side].stream(format) {
                Some(stream) if header.last => stream.end(number),
                Some(stream) => stream.note(&datagram),
                None if header.last => {}
                None => {
                    let began = self.is_opened.then_some(0);
                    self.sides[side].follow(Stream::starting(format, &datagram, began));
                }
            }
            return true;
        }
        if let Some(ping) = Ping::read(kept) {
            let half = |at: usize| ping.key[at..].first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
            self.echo(at, side, (half(0) ^ half(8), ping.number), ping.far.is_some());
            return true;
        }
        let is_opening = Opening::decode(kept).is_some();
        self.is_opened |= is_opening;
        is_opening
    }

    fn iperf(&mut self, at: Option<u64>, side: usize, kept: &[u8], length: u32) -> bool {
        self.hello |= iperf::is_hello(kept, length);
        let hello = self.hello;
        let side = &mut self.sides[side];
        let Some(beginning) = Beginning::of(kept, length, at) else { return false };
        let before = side.iperf.replace(beginning);
        let is_iperf = |stream: &Stream| !matches!(stream.format, Format::Rtp(_) | Format::Bdp(_));
        if let Some(place) = side.streams.iter().position(is_iperf) {
            let stream = &mut side.streams[place];
            let was_sure = iperf::is_sure(stream, hello);
            iperf::note(stream, &beginning);
            let is_sure = iperf::is_sure(stream, hello);
            if is_sure && !was_sure {
                // The captured part was sufficient.
                side.headers_cut = side.headers_cut.saturating_sub(stream.packets() - 1);
            }
            if !is_sure && stream.disagreeing > 2 + stream.agreeing / 2 {
                side.streams.remove(place);
            }
            return is_sure;
        }
        if let Some(mut stream) = before.and_then(|before| before.paired(&beginning, hello)) {
            iperf::note(&mut stream, &beginning);
            side.follow(stream);
        }
        false
    }

    /// Returns the report of one direction.
    pub(crate) fn report(&self, side: usize) -> CapturedDatagrams {
        let hello = self.hello;
        let side = &self.sides[side];
        let sure = side.streams.iter().filter(|stream| is_sure(stream, hello));
        CapturedDatagrams {
            headers_cut: side.headers_cut,
            streams: sure.map(Stream::report).collect(),
            more_streams: side.more_streams,
            echo: side.echoes.as_ref().and_then(|echoes| echoes.report()),
        }
    }

    /// Returns the report of the QUIC connection, if it is one.
    pub(crate) fn quic_report(&self) -> Option<CapturedQuic> {
        self.quic.as_ref().filter(|quic| quic.is_sure()).map(|quic| quic.report())
    }
}

impl Side {
    fn rtp(&mut self, at: Option<u64>, kept: &[u8], length: u32) -> bool {
        let Some(header) = rtp::Header::decode(kept, length) else { return false };
        if self.stream(Format::Rtp(header.ssrc)).is_none() {
            let Some(stream) = self.rtp.get_or_insert_default().paired(&header, at, length) else {
                return false;
            };
            if !self.follow(stream) {
                return false;
            }
        }
        let Some(stream) = self.stream(Format::Rtp(header.ssrc)) else { return false };
        let was_sure = rtp::is_sure(stream);
        rtp::note(stream, &header, at, length);
        let (is_sure, packets) = (rtp::is_sure(stream), stream.packets());
        if is_sure && !was_sure {
            // The captured part was sufficient.
            self.headers_cut = self.headers_cut.saturating_sub(packets - 1);
        }
        is_sure
    }

    fn stream(&mut self, format: Format) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|stream| stream.format == format)
    }

    /// Follows a stream; if there are too many, it replaces an unconfirmed one.
    fn follow(&mut self, stream: Stream) -> bool {
        if self.streams.len() >= MOST_STREAMS {
            let Some(unsure) = self.streams.iter().position(|stream| !is_sure(stream, false)) else {
                self.more_streams = true;
                return false;
            };
            self.streams.remove(unsure);
        }
        self.streams.push(stream);
        true
    }
}

fn is_sure(stream: &Stream, hello: bool) -> bool {
    match stream.format {
        Format::Rtp(_) => rtp::is_sure(stream),
        Format::Bdp(_) => true,
        Format::Iperf3 | Format::Iperf3Wide | Format::Iperf2 => iperf::is_sure(stream, hello),
    }
}

#[cfg(test)]
mod tests;
