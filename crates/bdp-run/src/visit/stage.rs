//! One direction of a visit as it runs: its connections with their readings, and the bytes of all over time.

use std::net::Shutdown;
use std::sync::Arc;

use bdp_flow::meter::Meter;
use bdp_model::facts::Facts;
use bdp_model::measurement::HostFacts;
use bdp_model::statistics::percentile;
use bdp_model::visit::{RAMP_NS, VisitDirection};
use bdp_sys::socket;
use bdp_sys::tcp_info::TcpInfo;

use super::connection::Connection;
use super::live::LiveConnection;
use crate::watch::{OwnConnection, READING_BYTES};

/// Most connections of a direction, one after another.
const MOST_PATHS: usize = 64;
/// Readings kept of a direction; beyond them, each connection loses its oldest for a new one.
const MOST_READINGS: usize = 2048;
/// Entries of a series; then every second one is dropped, and they are added half as often.
const MOST_SERIES: usize = 4096;
/// Least time between two readings of a connection that are kept, and between two entries of a series.
const EACH_NS: u64 = 40_000_000;
/// Memory of a direction, with room to grow.
pub(super) const STAGE_BYTES: usize = 2
    * (MOST_READINGS * READING_BYTES
        + MOST_SERIES * size_of::<(u64, u64)>()
        + MOST_PATHS * size_of::<Path>());
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
    /// Time between two entries.
    each_ns: u64,
    /// Bytes that [`Self::take_moved`] has returned.
    taken: u64,
}

/// One connection's part.
#[derive(Default)]
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
    /// When the last kept reading was taken, or the transfer began.
    kept_ns: u64,
    /// The transfer that runs: the meter of its place, and the connection's bytes at its begin.
    runs: Option<(Arc<Meter>, u64)>,
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
            each_ns: EACH_NS,
            taken: 0,
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
    pub(super) fn begin(&mut self, connection: &Arc<Connection>, meter: Arc<Meter>, now_ns: u64) -> bool {
        let at = match self.paths.iter().position(|path| path.number == connection.number) {
            Some(at) if self.paths[at].runs.is_some() => return false,
            Some(at) => at,
            None if self.paths.len() >= MOST_PATHS => return false,
            None => {
                self.paths.push(Path { number: connection.number, ..Path::default() });
                self.paths.len() - 1
            }
        };
        if self.series.is_empty() {
            // The time between the mark and the first request is not the transfer's.
            self.began_ns = now_ns;
        }
        self.broken_ns = None;
        let (direction, most) = (self.direction, self.most_readings());
        let path = &mut self.paths[at];
        path.connection = Some(Arc::clone(connection));
        path.sample(direction, now_ns, most);
        path.kept_ns = now_ns;
        path.runs = Some((meter, path.bytes));
        self.note(now_ns, self.bytes());
        true
    }

    /// Ends a connection's transfer; unless it is whole, it broke off.
    pub(super) fn finish(&mut self, number: u64, is_whole: bool, now_ns: u64) {
        let (direction, most) = (self.direction, self.most_readings());
        let Some(path) = self.paths.iter_mut().find(|path| path.number == number) else { return };
        // A connection that was closed has no more figures.
        path.sample(direction, now_ns, most);
        path.runs = None;
        path.connection = None;
        if !is_whole {
            self.broken_ns.get_or_insert(now_ns);
        }
    }

    /// Takes a reading of each connection that runs.
    pub(super) fn sample(&mut self, now_ns: u64) {
        if self.running() == 0 {
            return;
        }
        // The others go on without it.
        self.broken_ns = self.broken_ns.filter(|&at| now_ns.saturating_sub(at) < CLOSING_NS);
        for at in 0..self.paths.len() {
            let most = self.most_readings();
            if self.paths[at].runs.is_some() {
                self.paths[at].sample(self.direction, now_ns, most);
            }
        }
        self.note(now_ns, self.bytes());
    }

    /// Adds to the series, unless the last entry is too young.
    fn note(&mut self, now_ns: u64, bytes: u64) {
        let is_due = |last: &(u64, u64)| now_ns.saturating_sub(last.0) >= self.each_ns;
        if self.series.last().is_none_or(is_due) {
            if self.series.len() >= MOST_SERIES {
                let mut at = 0;
                self.series.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.each_ns *= 2;
            }
            self.series.push((now_ns, bytes));
        }
    }

    /// How many readings each connection may keep with the next.
    fn most_readings(&self) -> Option<usize> {
        let held: usize = self.paths.iter().map(|path| path.own.held()).sum();
        (held < MOST_READINGS).then_some(usize::MAX)
    }

    /// Returns the bytes moved since this was last asked.
    pub(super) fn take_moved(&mut self) -> u64 {
        let more = self.bytes() - self.taken;
        self.taken += more;
        more
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
        self.series.last().map_or(0, |last| last.0.saturating_sub(self.began_ns))
    }

    /// The readings until its transfers end.
    fn counted(&self) -> &[(u64, u64)] {
        let until = self.broken_ns.unwrap_or(u64::MAX);
        &self.series[..self.series.partition_point(|(at, _)| *at <= until)]
    }

    /// Goodput after the ramp; `None` if it ended before.
    pub(super) fn goodput_bps(&self) -> Option<f64> {
        let from = self.counted().iter().find(|(at, _)| at.saturating_sub(self.began_ns) >= RAMP_NS)?;
        let last = self.counted().last().filter(|last| last.0 > from.0)?;
        Some((last.1 - from.1) as f64 * 8e9 / (last.0 - from.0) as f64)
    }

    /// Lower / upper quartile of the goodput of all connections after the ramp.
    pub(super) fn steadiness(&self) -> Option<f64> {
        /// Readings of an interval.
        const EACH: usize = 4;
        let counted: Vec<_> =
            self.counted().iter().filter(|(at, _)| at.saturating_sub(self.began_ns) >= RAMP_NS).collect();
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
            (pair[1].0.saturating_sub(self.began_ns), bps)
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
    /// Takes a reading; keeps it if the last kept one is old enough, and at most `most` of them; as many as now if none.
    fn sample(&mut self, direction: VisitDirection, now_ns: u64, most: Option<usize>) {
        let Some(connection) = &self.connection else { return };
        let is_kept = self.first.is_none() || now_ns.saturating_sub(self.kept_ns) >= EACH_NS;
        let most = is_kept.then(|| most.unwrap_or(self.own.held()));
        let Some((figures, unread)) = self.own.read(&connection.stream, now_ns, most) else { return };
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
        if let Some((meter, begun)) = &self.runs {
            meter.set(self.bytes - begun);
        }
        if is_kept {
            self.kept_ns = now_ns;
            if self.live.len() > LIVE {
                self.live.remove(0);
            }
            self.live.push((now_ns, self.bytes));
        }
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::super::connection::Connections;
    use super::*;

    /// A browser's end, and the server's.
    fn connected(all: &Arc<Connections>) -> (TcpStream, Arc<Connection>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let browser = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, peer) = listener.accept().unwrap();
        (browser, all.enter(&stream, peer).unwrap().unwrap())
    }

    /// Sends bytes and reads them.
    fn carry(browser: &mut TcpStream, connection: &Connection, bytes: usize) {
        browser.write_all(&vec![0; bytes]).unwrap();
        (&connection.stream).read_exact(&mut vec![0; bytes]).unwrap();
    }

    #[test]
    fn readings_of_a_direction_are_bounded() {
        let all = Arc::default();
        let mut stage = Stage::new(VisitDirection::Up, 0);
        let open: Vec<_> = (0..MOST_PATHS).map(|_| connected(&all)).collect();
        // As often as a browser likes, at once.
        for _ in 0..20 {
            for (_, connection) in &open {
                assert!(stage.begin(connection, Arc::default(), 1));
                stage.finish(connection.number, true, 1);
            }
        }
        let held = |stage: &Stage| stage.paths.iter().map(|path| path.own.held()).sum::<usize>();
        assert_eq!((stage.series.len(), held(&stage)), (1, MOST_PATHS));
        drop(open);
        let (mut browser, connection) = connected(&all);
        assert!(!stage.begin(&connection, Arc::default(), 1), "it has had too many");

        let mut stage = Stage::new(VisitDirection::Up, 0);
        assert!(stage.begin(&connection, Arc::default(), 0));
        let moments = 2 * MOST_SERIES as u64;
        for moment in 1..=moments {
            carry(&mut browser, &connection, 1);
            stage.sample(moment * EACH_NS);
            stage.sample(moment * EACH_NS + 1);
            assert!(stage.series.len() <= MOST_SERIES && held(&stage) <= MOST_READINGS);
        }
        assert!(stage.series.len() >= MOST_SERIES / 2 && held(&stage) == MOST_READINGS);
        assert_eq!(stage.duration_ns() / EACH_NS, moments - moments % 2);
    }

    #[test]
    fn each_byte_counts_once_whenever_its_transfer_ends() {
        let all = Arc::default();
        let (mut browser, connection) = connected(&all);
        let mut stage = Stage::new(VisitDirection::Up, 0);
        let (first, second) = (Arc::<Meter>::default(), Arc::<Meter>::default());
        carry(&mut browser, &connection, 7);
        assert!(stage.begin(&connection, Arc::clone(&first), 0));
        assert!(!stage.begin(&connection, Arc::clone(&second), 0), "one runs on it");
        carry(&mut browser, &connection, 1_000);
        // It ends before anybody looks.
        stage.finish(connection.number, true, 1);
        assert_eq!((stage.running(), stage.take_moved(), first.moved()), (0, 1_000, 1_000));
        carry(&mut browser, &connection, 20);
        assert!(stage.begin(&connection, Arc::clone(&second), 2));
        carry(&mut browser, &connection, 300);
        stage.sample(3);
        assert_eq!((stage.take_moved(), second.moved()), (320, 300), "of this transfer alone");
        assert_eq!(stage.take_moved(), 0);
    }

    #[test]
    fn a_clock_that_was_read_early_does_no_harm() {
        let all = Arc::default();
        let (_browser, connection) = connected(&all);
        let mut stage = Stage::new(VisitDirection::Up, 5);
        assert!(stage.begin(&connection, Arc::default(), 10));
        stage.sample(3);
        assert_eq!((stage.duration_ns(), stage.goodput_bps(), stage.series()), (0, None, Vec::new()));
    }
}
