//! The readings of a socket in the last seconds, in bounded memory.

use std::collections::VecDeque;
use std::net::TcpStream;

use bdp_model::watch::ConnectionState;
use bdp_sys::diag::{self, SocketReport};
use bdp_sys::socket;
use bdp_sys::tcp_info::{self, TcpInfo};

/// Bytes kept of `TCP_INFO`: all that [`tcp_info::decode`] reads.
const KEPT: usize = 248;
/// Most readings of all sockets together, while each may have [`LEAST_READINGS`]: 64 MiB.
const MOST_READINGS: usize = (64 << 20) / size_of::<Reading>();
/// Readings that a socket may have, however many there are: enough for a finding.
const LEAST_READINGS: usize = 16;

/// Most segments of a first question.
pub(super) const OPENING: u32 = 3;

/// The figures of one socket at one moment, or at several in a row without change.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    /// The first moment, since watching began.
    pub since_ns: u64,
    /// The last moment.
    pub at_ns: u64,
    /// Number of moments.
    pub times: u32,
    /// Bytes received but not read.
    pub unread: u32,
    /// Bytes written but not acknowledged.
    pub queued: u32,
    /// Memory used by packets to be acknowledged or sent.
    pub taken: u32,
    /// `SO_SNDBUF` at that moment.
    pub send_buffer: u32,
    /// State of the connection.
    pub state: ConnectionState,
    /// Consecutive timeouts of its timer.
    pub tries: u8,
    length: u8,
    info: [u8; KEPT],
}

impl Reading {
    pub fn of(report: &SocketReport<'_>, at_ns: u64) -> Self {
        let mut info = [0; KEPT];
        let length = report.info.len().min(KEPT);
        info[..length].copy_from_slice(&report.info[..length]);
        Self {
            since_ns: at_ns,
            at_ns,
            times: 1,
            unread: report.receive_queue(),
            queued: report.send_queue(),
            taken: report.memory.map_or(0, |memory| memory.queued),
            send_buffer: report.memory.map_or(0, |memory| memory.send_buffer),
            state: ConnectionState::of_linux(report.state()),
            tries: report.tries(),
            length: length as u8,
            info,
        }
    }

    /// A reading of a connection of this process.
    pub fn of_own(socket: &TcpStream, at_ns: u64) -> bdp_sys::Result<Self> {
        let mut room = [0; tcp_info::MOST_BYTES];
        let length = tcp_info::read_bytes(socket, &mut room)?.min(KEPT);
        let mut info = [0; KEPT];
        info[..length].copy_from_slice(&room[..length]);
        let figures = tcp_info::decode(&info[..length]);
        let (out, mss) = (figures.unacked_segments.unwrap_or(0), figures.snd_mss.unwrap_or(0));
        let not_sent = figures.notsent_bytes.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(0);
        let memory = diag::memory_of(socket);
        Ok(Self {
            since_ns: at_ns,
            at_ns,
            times: 1,
            unread: socket::unread_bytes(socket).and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(0),
            queued: not_sent.saturating_add(out.saturating_mul(mss)),
            taken: memory.map_or(0, |memory| memory.queued),
            send_buffer: memory.map_or(0, |memory| memory.send_buffer),
            state: ConnectionState::of_linux(figures.state.unwrap_or(0)),
            tries: 0,
            length: length as u8,
            info,
        })
    }

    pub fn info(&self) -> TcpInfo {
        tcp_info::decode(&self.info[..usize::from(self.length)])
    }

    /// Whether its kernel had figures for it: for an unconfirmed connection request it has none.
    pub const fn has_figures(&self) -> bool {
        self.length > 0
    }

    /// Whether the connection is not yet established.
    pub const fn is_being_made(&self) -> bool {
        matches!(self.state, ConnectionState::SynSent | ConnectionState::SynReceived)
    }

    /// Returns when this end last sent data, received data, and received an acknowledgement; since watching began,
    /// negative if before that.
    pub fn last(&self) -> Last {
        let at = |at: usize| self.since_ns as i64 - i64::from(self.word(at)) * 1_000_000;
        Last { sent_ns: at(44), received_ns: at(52), acknowledged_ns: at(56) }
    }

    /// Returns the segments so far.
    pub fn segments(&self) -> Segments {
        let [all_out, all_in, data_in, data_out] = [136, 140, 152, 156].map(|at| self.word(at));
        Segments {
            data_in,
            data_out,
            bare_in: all_in.saturating_sub(data_in),
            bare_out: all_out.saturating_sub(data_out),
        }
    }

    /// Whether one end alone has spoken so far, and little: what it sent before this reading is a question that waits
    /// for its answer.
    pub fn is_opening(&self) -> bool {
        let Segments { data_in, data_out, .. } = self.segments();
        data_in.min(data_out) == 0 && (1..=OPENING).contains(&data_in.max(data_out))
    }

    fn word(&self, at: usize) -> u32 {
        self.info[at..at + 4].try_into().map_or(0, u32::from_ne_bytes)
    }

    /// Whether bytes were acknowledged, received or retransmitted since the other reading.
    pub fn has_moved_since(&self, other: &Self) -> bool {
        /// Bytes of `struct tcp_info`: segments retransmitted, bytes acknowledged and received.
        const COUNTS: [std::ops::Range<usize>; 2] = [100..104, 120..136];
        COUNTS.into_iter().any(|at| self.info[at.clone()] != other.info[at])
    }

    /// Whether nothing differs that a finding reads; times since the last packet do, and say nothing.
    fn is_as(&self, other: &Self) -> bool {
        /// Bytes of `struct tcp_info`: times since data and acknowledgements were last sent and received.
        const TIMERS: std::ops::Range<usize> = 44..60;
        self.unread == other.unread
            && self.queued == other.queued
            && (self.state, self.tries) == (other.state, other.tries)
            && self.length == other.length
            && self.info[..TIMERS.start] == other.info[..TIMERS.start]
            && self.info[TIMERS.end..] == other.info[TIMERS.end..]
    }
}

/// Moments of a connection, in the kernel's ticks of up to 10 ms.
#[derive(Debug, Clone, Copy)]
pub(super) struct Last {
    pub sent_ns: i64,
    pub received_ns: i64,
    pub acknowledged_ns: i64,
}

/// Segments with data, and without.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Segments {
    pub data_in: u32,
    pub data_out: u32,
    pub bare_in: u32,
    pub bare_out: u32,
}

/// The readings of one socket, oldest first.
#[derive(Debug, Default)]
pub(super) struct History(VecDeque<Reading>);

impl History {
    /// Adds a reading. Those older than `span_ns`, or too many for this number of sockets, are dropped.
    pub fn push(&mut self, reading: Reading, span_ns: u64, sockets: usize) {
        let at_ns = reading.at_ns;
        self.push_within(reading, MOST_READINGS / sockets.max(1));
        while self.0.len() > 1 && self.0.front().is_some_and(|first| first.at_ns + span_ns < at_ns) {
            self.0.pop_front();
        }
    }

    /// Adds a reading; the oldest beyond so many are dropped.
    pub fn push_within(&mut self, reading: Reading, most: usize) {
        let at_ns = reading.at_ns;
        match self.0.back_mut() {
            Some(last) if last.is_as(&reading) => {
                last.at_ns = at_ns;
                last.times += 1;
            }
            _ => self.0.push_back(reading),
        }
        while self.0.len() > most.max(LEAST_READINGS) {
            self.0.pop_front();
        }
    }

    pub fn latest(&self) -> Option<&Reading> {
        self.0.back()
    }

    /// Returns the first and the last reading.
    pub fn ends(&self) -> Vec<(u64, &Reading, TcpInfo)> {
        let ends = [self.0.front(), self.0.back()];
        ends.into_iter().flatten().map(|reading| (reading.at_ns, reading, reading.info())).collect()
    }

    /// Returns each moment with its reading, for the last `span_ns`.
    pub fn moments(&self, span_ns: u64) -> Vec<(u64, &Reading, TcpInfo)> {
        let from = self.latest().map_or(0, |last| last.at_ns.saturating_sub(span_ns));
        let mut all = Vec::new();
        for reading in &self.0 {
            let info = reading.info();
            let steps = u64::from(reading.times - 1).max(1);
            // If nothing moved, the moments in between are as good as known.
            let moment = |i: u64| reading.since_ns + (reading.at_ns - reading.since_ns) * i / steps;
            let moments = (0..u64::from(reading.times)).map(moment).filter(|&at| at >= from);
            all.extend(moments.map(|at| (at, reading, info)));
        }
        all
    }

    /// Returns the number of readings.
    pub fn held(&self) -> usize {
        self.0.len()
    }
}
