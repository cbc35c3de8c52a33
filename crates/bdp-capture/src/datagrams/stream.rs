//! A stream of datagrams with numbers and times.

use bdp_model::capture::{CapturedStream, NumberedProtocol};

use super::jitter::{Jitter, Timestamps};
use super::numbers::{Numbers, Place};

/// Format of a stream, and its identifier within the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// RTP, by SSRC.
    Rtp(u32),
    /// bdp, by tag.
    Bdp([u8; 8]),
    /// iperf3 with 32-bit numbers.
    Iperf3,
    /// iperf3 with 64-bit numbers.
    Iperf3Wide,
    Iperf2,
}

/// Time of sending, by the sender's clock.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sent {
    Ns(u64),
    Ticks(u32),
}

/// A datagram of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Datagram {
    /// Time at which it passed the capture; `None` if the capture has no times.
    pub at: Option<u64>,
    /// Payload length before truncation, bytes.
    pub length: u32,
    pub number: u64,
    pub sent: Sent,
}

/// Clock of a stream's times.
#[derive(Debug)]
enum Clock {
    Ticks(Box<Timestamps>),
    Ns { last: (u64, u64), jitter: Jitter },
}

#[derive(Debug)]
pub(super) struct Stream {
    pub format: Format,
    /// Number of datagrams that continued the stream as expected, and of those that did not.
    pub agreeing: u32,
    pub disagreeing: u32,
    /// Number of changes of the time of sending.
    pub changes: u32,
    pub last: Datagram,
    numbers: Numbers,
    clock: Option<Clock>,
    payload_types: u128,
    packets: u64,
    bytes: u64,
    times: Option<(u64, u64)>,
}

impl Stream {
    /// Returns a stream first seen with this datagram; `began` is its first number, if known.
    pub(super) fn starting(format: Format, first: &Datagram, began: Option<u64>) -> Self {
        let clock = first.at.map(|at| match first.sent {
            Sent::Ticks(timestamp) => Clock::Ticks(Box::new(Timestamps::starting(at, timestamp))),
            Sent::Ns(sent) => Clock::Ns { last: (at, sent), jitter: Jitter::default() },
        });
        Self {
            format,
            agreeing: 0,
            disagreeing: 0,
            changes: 0,
            last: *first,
            numbers: Numbers::starting(first.number, began, !matches!(format, Format::Rtp(_))),
            clock,
            payload_types: 0,
            packets: 1,
            bytes: u64::from(first.length),
            times: first.at.map(|at| (at, at)),
        }
    }

    pub(super) fn note(&mut self, datagram: &Datagram) {
        self.packets += 1;
        self.bytes += u64::from(datagram.length);
        if let (Some(times), Some(at)) = (&mut self.times, datagram.at) {
            times.1 = at;
        }
        let place = self.numbers.note(datagram.number);
        self.last = *datagram;
        let Some(at) = datagram.at else { return };
        match (&mut self.clock, datagram.sent, place) {
            (_, _, Place::Copy | Place::Stale) => {}
            (Some(Clock::Ticks(all)), Sent::Ticks(timestamp), Place::Anew) => all.anew(at, timestamp),
            (Some(Clock::Ticks(all)), Sent::Ticks(timestamp), Place::Counts) => all.note(at, timestamp),
            (Some(Clock::Ns { last, jitter }), Sent::Ns(sent), place) => {
                let (last_at, last_sent) = std::mem::replace(last, (at, sent));
                if place == Place::Counts {
                    jitter.note(
                        at.wrapping_sub(last_at) as i64 as f64 - sent.wrapping_sub(last_sent) as i64 as f64,
                    );
                }
            }
            _ => {}
        }
    }

    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    pub(super) fn has_payload_type(&mut self, kind: u8) {
        self.payload_types |= 1 << (kind & 127);
    }

    /// Records the sender's end mark: the first number that it did not send.
    pub(super) fn end(&mut self, number: u64) {
        self.numbers.end(number);
    }

    /// Returns the full number from its lowest bits.
    pub(super) fn extended(&self, low: u32, bits: u32) -> u64 {
        let highest = self.numbers.highest();
        let unused = 32 - bits;
        let ahead = ((low << unused).wrapping_sub((highest as u32) << unused) as i32) >> unused;
        highest.saturating_add_signed(i64::from(ahead))
    }

    pub(super) fn report(&self) -> CapturedStream {
        let counts = self.numbers.counts();
        let (protocol, ssrc) = match self.format {
            Format::Rtp(ssrc) => (NumberedProtocol::Rtp, Some(ssrc)),
            Format::Bdp(_) => (NumberedProtocol::Bdp, None),
            Format::Iperf3 | Format::Iperf3Wide => (NumberedProtocol::Iperf3, None),
            Format::Iperf2 => (NumberedProtocol::Iperf2, None),
        };
        let (rate, jitter) = match &self.clock {
            Some(Clock::Ticks(all)) => {
                let report = all.report(self.payload_types);
                (report.map(|(rate, source, _)| (rate, source)), report.and_then(|(_, _, jitter)| jitter))
            }
            Some(Clock::Ns { jitter, .. }) => (None, jitter.report()),
            None => (None, None),
        };
        let took = self.times.map_or(0, |(from, to)| to.saturating_sub(from));
        CapturedStream {
            protocol,
            ssrc,
            payload_types: (0..128).filter(|kind| self.payload_types >> kind & 1 == 1).collect(),
            packets: self.packets,
            payload_bytes: self.bytes,
            rate_bps: (took > 0).then(|| self.bytes as f64 * 8e9 / took as f64),
            expected: counts.expected,
            lost: counts.lost,
            reordered: counts.reordered,
            duplicates: counts.duplicates,
            stale: counts.stale,
            restarts: counts.restarts,
            clock_rate_hz: rate.map(|(rate, _)| rate),
            clock_rate_from: rate.map(|(_, source)| source),
            jitter_ns: jitter.map(|jitter| jitter.last),
            jitter_mean_ns: jitter.map(|jitter| jitter.mean),
            jitter_max_ns: jitter.map(|jitter| jitter.max),
        }
    }
}
