//! One direction of a visit as it runs: its connections with their readings, and the bytes of all over time.

use std::net::Shutdown;
use std::sync::Arc;

use bdp_agent::server::places::StreamPlaces;
use bdp_model::facts::Facts;
use bdp_model::measurement::HostFacts;
use bdp_model::statistics::percentile;
use bdp_model::visit::{RAMP_NS, VisitDirection};
use bdp_sys::socket;
use bdp_sys::tcp_info::TcpInfo;

use super::connection::Connection;
use super::live::LiveConnection;
use crate::watch::OwnConnection;

/// Most connections of a direction, one after another.
const MOST_PATHS: usize = 1000;
/// How long the transfers of a direction may take to end, one after another.
const CLOSING_NS: u64 = 1_000_000_000;
/// Readings over which a live rate is formed.
const LIVE: usize = 4;

/// A direction with its readings.
pub(super) struct Stage {
    pub(super) direction: VisitDirection,
    pub(super) began_ns: u64,
    /// When it ended, by a mark of the page or with its last transfer.
    ended_ns: Option<u64>,
    /// When the first transfer broke off of those that do at its end: then the others have less to do.
    broken_ns: Option<u64>,
    paths: Vec<Path>,
    /// Time and bytes of all connections.
    series: Vec<(u64, u64)>,
}

/// One connection's part.
struct Path {
    /// The connection's number.
    number: u64,
    /// The connection while a transfer runs: held for longer, it would stay open.
    connection: Option<Arc<Connection>>,
    own: OwnConnection,
    first: Option<TcpInfo>,
    last: Option<TcpInfo>,
    /// Bytes moved before the first reading.
    base: u64,
    bytes: u64,
    /// The last readings: time and bytes.
    live: Vec<(u64, u64)>,
    /// The place of the transfer that runs.
    runs: Option<StreamPlaces>,
}

impl Stage {
    pub(super) fn new(direction: VisitDirection, now_ns: u64) -> Self {
        Self {
            direction,
            began_ns: now_ns,
            ended_ns: None,
            broken_ns: None,
            paths: Vec::new(),
            series: Vec::new(),
        }
    }

    pub(super) fn end(&mut self, now_ns: u64) {
        self.ended_ns.get_or_insert(now_ns);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended_ns.is_some()
    }

    /// Number of transfers that run.
    pub(super) fn running(&self) -> usize {
        self.paths.iter().filter(|path| path.runs.is_some()).count()
    }

    pub(super) fn elapsed_ns(&self, now_ns: u64) -> u64 {
        self.ended_ns.unwrap_or(now_ns).saturating_sub(self.began_ns)
    }

    /// Begins a transfer on a connection; whether there is room for it.
    pub(super) fn begin(&mut self, connection: &Arc<Connection>, places: StreamPlaces, now_ns: u64) -> bool {
        if self.paths.iter().all(|path| path.runs.is_none()) && self.series.is_empty() {
            // The time between the mark and the first request is not the transfer's.
            self.began_ns = now_ns;
        }
        self.broken_ns = None;
        let is_full = self.paths.len() >= MOST_PATHS;
        let known = self.paths.iter_mut().find(|path| path.number == connection.number);
        match known {
            Some(path) => {
                path.connection = Some(Arc::clone(connection));
                path.runs = Some(places);
            }
            None if is_full => return false,
            None => self.paths.push(Path {
                number: connection.number,
                connection: Some(Arc::clone(connection)),
                own: OwnConnection::default(),
                first: None,
                last: None,
                base: 0,
                bytes: 0,
                live: Vec::new(),
                runs: Some(places),
            }),
        }
        self.sample(now_ns);
        true
    }

    /// Ends a connection's transfer; unless it is whole, it broke off.
    pub(super) fn finish(&mut self, number: u64, is_whole: bool, now_ns: u64) {
        let direction = self.direction;
        let Some(path) = self.paths.iter_mut().find(|path| path.number == number) else { return };
        // A connection that was closed has no more figures.
        path.sample(direction, now_ns);
        path.runs = None;
        path.connection = None;
        if !is_whole {
            self.broken_ns.get_or_insert(now_ns);
        }
    }

    /// Takes a reading of each connection that runs; returns how many bytes were moved since the last.
    pub(super) fn sample(&mut self, now_ns: u64) -> u64 {
        if self.running() == 0 {
            return 0;
        }
        // The others go on without it.
        self.broken_ns = self.broken_ns.filter(|&at| now_ns.saturating_sub(at) < CLOSING_NS);
        let before = self.bytes();
        for path in self.paths.iter_mut().filter(|path| path.runs.is_some()) {
            path.sample(self.direction, now_ns);
        }
        let bytes = self.bytes();
        self.series.push((now_ns, bytes));
        bytes - before
    }

    /// Bytes of all connections so far.
    pub(super) fn bytes(&self) -> u64 {
        self.paths.iter().map(|path| path.bytes).sum()
    }

    /// Divides a rate among the connections that send.
    pub(super) fn pace(&self, rate_bps: Option<u64>) {
        let running = self.running() as u64;
        if let (VisitDirection::Down, Some(rate)) = (self.direction, rate_bps) {
            for connection in self.paths.iter().filter_map(|path| path.connection.as_ref()) {
                // Every kernel that has TCP_INFO's figures takes it.
                let _ = socket::pace(&connection.stream, rate / running.max(1));
            }
        }
    }

    /// Breaks the transfers that run.
    pub(super) fn break_off(&self) {
        for connection in self.paths.iter().filter_map(|path| path.connection.as_ref()) {
            let _ = connection.stream.shutdown(Shutdown::Both);
        }
    }

    pub(super) fn live(&self) -> Vec<LiveConnection> {
        self.paths.iter().filter(|path| path.runs.is_some()).map(Path::live).collect()
    }

    /// Number of connections that moved data.
    pub(super) fn connections(&self) -> usize {
        self.paths.iter().filter(|path| path.bytes > 0).count()
    }

    /// Time from its begin to the last reading.
    pub(super) fn duration_ns(&self) -> u64 {
        self.series.last().map_or(0, |last| last.0 - self.began_ns)
    }

    /// The readings until its transfers end.
    fn counted(&self) -> &[(u64, u64)] {
        let until = self.broken_ns.unwrap_or(u64::MAX);
        &self.series[..self.series.partition_point(|(at, _)| *at <= until)]
    }

    /// Goodput after the ramp; `None` if it ended before.
    pub(super) fn goodput_bps(&self) -> Option<f64> {
        let from = self.counted().iter().find(|(at, _)| at - self.began_ns >= RAMP_NS)?;
        let last = self.counted().last().filter(|last| last.0 > from.0)?;
        Some((last.1 - from.1) as f64 * 8e9 / (last.0 - from.0) as f64)
    }

    /// Lower / upper quartile of the goodput of all connections after the ramp.
    pub(super) fn steadiness(&self) -> Option<f64> {
        /// Readings of an interval.
        const EACH: usize = 4;
        let counted: Vec<_> = self.counted().iter().filter(|(at, _)| at - self.began_ns >= RAMP_NS).collect();
        let ends: Vec<_> = counted.into_iter().step_by(EACH).collect();
        let rate = |a: &(u64, u64), b: &(u64, u64)| (b.1 - a.1) as f64 / (b.0 - a.0).max(1) as f64;
        let mut rates: Vec<f64> = ends.windows(2).map(|pair| rate(pair[0], pair[1])).collect();
        let (low, high) = (percentile(&mut rates, 25.0)?, percentile(&mut rates, 75.0)?);
        (high > 0.0).then(|| low / high)
    }

    /// Goodput over time.
    pub(super) fn series(&self) -> Vec<(u64, f64)> {
        let rates = self.counted().windows(2).filter(|pair| pair[1].0 > pair[0].0).map(|pair| {
            let bps = (pair[1].1 - pair[0].1) as f64 * 8e9 / (pair[1].0 - pair[0].0) as f64;
            (pair[1].0 - self.began_ns, bps)
        });
        rates.collect()
    }

    /// Segments retransmitted by this end.
    pub(super) fn retransmits(&self) -> Option<u64> {
        let of = |path: &Path| {
            Some(u64::from(path.last?.total_retrans?.saturating_sub(path.first?.total_retrans?)))
        };
        self.paths.iter().map(of).sum()
    }

    pub(super) fn congestion(&self) -> Option<&str> {
        self.paths.iter().map(|path| path.own.congestion()).find(|name| !name.is_empty())
    }

    /// The facts of each connection after the ramp, those with most bytes first.
    pub(super) fn facts(&self, here: &str, there: &str, host: &HostFacts) -> Vec<Facts> {
        let span_ns = self.duration_ns().saturating_sub(RAMP_NS);
        let mut paths: Vec<&Path> = self.paths.iter().collect();
        paths.sort_by_key(|path| std::cmp::Reverse(path.bytes));
        paths.iter().filter_map(|path| path.own.facts(here, there, host, span_ns)).collect()
    }
}

impl Path {
    fn sample(&mut self, direction: VisitDirection, now_ns: u64) {
        let Some(connection) = &self.connection else { return };
        let Some((figures, unread)) = self.own.read(&connection.stream, now_ns) else { return };
        let moved = match direction {
            VisitDirection::Down => figures.bytes_acked,
            VisitDirection::Up => figures.bytes_received.map(|bytes| bytes.saturating_sub(u64::from(unread))),
        }
        .unwrap_or(0);
        if self.first.is_none() {
            self.base = moved;
            self.first = Some(figures);
        }
        self.last = Some(figures);
        self.bytes = self.bytes.max(moved.saturating_sub(self.base));
        if let Some(runs) = &self.runs {
            runs.meter().set(self.bytes);
        }
        if self.live.len() > LIVE {
            self.live.remove(0);
        }
        self.live.push((now_ns, self.bytes));
    }

    fn live(&self) -> LiveConnection {
        let goodput = match (self.live.first(), self.live.last()) {
            (Some(first), Some(last)) if last.0 > first.0 => {
                (last.1 - first.1) as f64 * 8e9 / (last.0 - first.0) as f64
            }
            _ => 0.0,
        };
        let of = self.last.unwrap_or_default();
        let retransmits = of.total_retrans.zip(self.first.and_then(|first| first.total_retrans));
        LiveConnection {
            goodput_bps: goodput,
            rtt_ns: of.rtt_ns,
            min_rtt_ns: of.min_rtt_ns.filter(|&ns| ns < u64::from(u32::MAX) * 1_000),
            cwnd: of.cwnd_segments,
            snd_wnd: of.snd_wnd,
            unacked: of.unacked_segments,
            retransmits: retransmits.map(|(last, first)| last.saturating_sub(first)),
            rcv_rtt_ns: of.rcv_rtt_ns,
        }
    }
}
