//! Lines of a measurement while it runs, an interval at a time, laid out as `iperf3 -i` prints them.

use bdp_model::measurement::{MeasureRequest, Way};
use bdp_model::stats::median;
use bdp_model::units::{Nanos, format_bps};

use super::iperf3::{Intervals, Part, Piece};
use crate::number::{RateUnit, size, three_digits};

/// Streams that have a row each; of more the smallest, the median and the largest are printed.
pub(crate) const MOST_STREAM_ROWS: usize = 16;
/// Between the intervals of several rows, as iperf3 has it.
const RULE: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -\n";

/// The intervals of one stage of a measurement, printed as each is complete.
#[derive(Debug)]
pub struct IntervalLines {
    intervals: Intervals,
    omit_ns: u64,
    /// Payload of a datagram; `None` of TCP, and where the path decides it.
    datagram_bytes: Option<u64>,
    is_udp: bool,
    unit: Option<RateUnit>,
    every_stream: bool,
    /// Retransmits of each stream up to the last interval.
    retransmits: Vec<(Way, Vec<u64>)>,
    is_begun: bool,
}

impl IntervalLines {
    /// Intervals of this length, bitrates in `unit` or in what fits; `every_stream` sets no bound to the rows.
    pub fn new(request: &MeasureRequest, length: Nanos, unit: Option<RateUnit>, every_stream: bool) -> Self {
        let udp = request.udp.as_ref();
        Self {
            intervals: Intervals::new(length.as_ns(), request.omit.as_ns()),
            omit_ns: request.omit.as_ns(),
            datagram_bytes: udp.and_then(|udp| udp.datagram_bytes).map(u64::from),
            is_udp: udp.is_some(),
            unit,
            every_stream,
            retransmits: Vec::new(),
            is_begun: false,
        }
    }

    /// The lines of the intervals that this piece completes; `rtt_ns` is the last round trip of the probe flow.
    pub fn add(&mut self, piece: Piece, rtt_ns: Option<u64>) -> String {
        self.intervals.add(piece);
        self.print(rtt_ns)
    }

    /// The lines of what is left when the stage is over.
    pub fn end(&mut self) -> String {
        self.intervals.close_moved();
        self.print(None)
    }

    fn print(&mut self, rtt_ns: Option<u64>) -> String {
        let mut text = String::new();
        for piece in self.intervals.take_done() {
            let heading = if self.is_begun { String::new() } else { self.heading(&piece) };
            let rows = self.rows(&piece, rtt_ns);
            if self.is_begun && rows.lines().count() > 1 {
                text.push_str(RULE);
            }
            self.is_begun = true;
            text.push_str(&heading);
            text.push_str(&rows);
        }
        text
    }

    fn heading(&self, piece: &Piece) -> String {
        let role = if piece.parts.len() > 1 { "    " } else { "" };
        let both_tcp = !self.is_udp && piece.parts.iter().any(|part| !part.senders.is_empty());
        let counts = match (self.is_udp, both_tcp) {
            (true, _) => format!("{:>11}", "Datagrams"),
            (_, true) => format!("{:>6}{:>10}", "Retr", "Cwnd"),
            _ => String::new(),
        };
        format!("[ ID]{role}{:<16}{:>11}{:>14}{counts}{:>11}\n", " Interval", "Transfer", "Bitrate", "RTT")
    }

    fn rows(&mut self, piece: &Piece, rtt_ns: Option<u64>) -> String {
        let seconds = piece.to_ns.saturating_sub(piece.from_ns) as f64 / 1e9;
        // After the omit time begins anew, as iperf3's does.
        let is_omitted = piece.from_ns + piece.to_ns < 2 * self.omit_ns;
        let zero = if is_omitted { 0 } else { self.omit_ns };
        let at = |ns: u64| ns.saturating_sub(zero) as f64 / 1e9;
        let interval = format!("{:>6.2}-{:<6.2} s", at(piece.from_ns), at(piece.to_ns));
        let last = match rtt_ns {
            _ if is_omitted => "(omitted)".to_owned(),
            Some(ns) => format!("{} ms", three_digits(ns as f64 / 1e6)),
            None => "-".to_owned(),
        };
        let mut text = String::new();
        let (both, with_senders) = (piece.parts.len() > 1, piece.parts.iter().any(|p| !p.senders.is_empty()));
        for part in &piece.parts {
            let retransmits = self.retransmits_since(part);
            let role = match (both, part.way) {
                (false, _) => "",
                (_, Way::To) => "[TX]",
                (_, Way::From) => "[RX]",
            };
            for row in self.table(part, retransmits.as_deref()) {
                let counts = match (self.is_udp, with_senders) {
                    (true, _) => format!("{:>11}", self.datagrams(part.way, row.bytes)),
                    (_, true) => {
                        let number = row.retransmits.map_or_else(String::new, |n| n.to_string());
                        let cwnd = row.cwnd_bytes.map_or_else(String::new, |bytes| size(bytes as f64));
                        format!("{number:>6}{cwnd:>10}")
                    }
                    _ => String::new(),
                };
                let bps = row.bytes * 8.0 / seconds.max(1e-9);
                let (transfer, bitrate) = (size(row.bytes), self.bitrate(bps));
                let last = if row.is_last || is_omitted { last.as_str() } else { "" };
                let line =
                    format!("{}{role} {interval}{transfer:>11}{bitrate:>14}{counts}{last:>11}", row.name);
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
        text
    }

    /// Each stream's retransmits since the interval before; `None` where the far end sends.
    fn retransmits_since(&mut self, part: &Part) -> Option<Vec<u64>> {
        if part.senders.is_empty() {
            return None;
        }
        let now: Vec<u64> = part.senders.iter().map(|sender| sender.retransmits).collect();
        let at = self.retransmits.iter().position(|(way, _)| *way == part.way).unwrap_or_else(|| {
            self.retransmits.push((part.way, Vec::new()));
            self.retransmits.len() - 1
        });
        let before = std::mem::replace(&mut self.retransmits[at].1, now.clone());
        let since = |(i, n): (usize, u64)| n.saturating_sub(before.get(i).copied().unwrap_or(0));
        Some(now.into_iter().enumerate().map(since).collect())
    }

    /// A row for each stream, or the smallest, median and largest of many, and their sum.
    fn table(&self, part: &Part, retransmits: Option<&[u64]>) -> Vec<TableRow> {
        let sum = TableRow {
            name: "[SUM]".to_owned(),
            bytes: part.stream_bytes.iter().sum(),
            retransmits: retransmits.map(|all| all.iter().sum()),
            cwnd_bytes: None,
            is_last: true,
        };
        let streams = part.stream_bytes.len();
        let cwnd = |stream: usize| part.senders.get(stream).map(|sender| sender.cwnd_bytes);
        if streams <= 1 {
            let name = if part.senders.len() > 1 { sum.name } else { "[  1]".to_owned() };
            let cwnd_bytes = if part.senders.len() > 1 { None } else { cwnd(0) };
            return vec![TableRow { name, cwnd_bytes, ..sum }];
        }
        let mut rows: Vec<TableRow> = if self.every_stream || streams <= MOST_STREAM_ROWS {
            let row = |(stream, bytes): (usize, &f64)| TableRow {
                name: format!("[{:>3}]", stream + 1),
                bytes: *bytes,
                retransmits: retransmits.and_then(|all| all.get(stream).copied()),
                cwnd_bytes: cwnd(stream),
                is_last: false,
            };
            part.stream_bytes.iter().enumerate().map(row).collect()
        } else {
            let smallest = part.stream_bytes.iter().copied().fold(f64::INFINITY, f64::min);
            let largest = part.stream_bytes.iter().copied().fold(0.0, f64::max);
            let middle = median(&mut part.stream_bytes.clone()).unwrap_or(0.0);
            [("[min]", smallest), ("[med]", middle), ("[max]", largest)]
                .map(|(name, bytes)| TableRow { name: name.to_owned(), bytes, ..TableRow::default() })
                .into()
        };
        rows.push(sum);
        rows
    }

    fn datagrams(&self, way: Way, bytes: f64) -> String {
        match (way, self.datagram_bytes) {
            (_, Some(each)) if each > 0 => format!("{:.0}", bytes / each as f64),
            _ => "-".to_owned(),
        }
    }

    fn bitrate(&self, bps: f64) -> String {
        self.unit.map_or_else(|| format_bps(bps), |unit| format!("{} {}", unit.format(bps), unit.name))
    }
}

#[derive(Debug, Default)]
struct TableRow {
    name: String,
    bytes: f64,
    retransmits: Option<u64>,
    cwnd_bytes: Option<u64>,
    /// Whether what belongs to the whole direction stands here.
    is_last: bool,
}

#[cfg(test)]
mod tests {
    use bdp_model::udp::UdpRequest;

    use super::super::iperf3::SenderReading;
    use super::*;

    fn request(omit_ms: u64) -> MeasureRequest {
        MeasureRequest { omit: Nanos::millis(omit_ms), ..MeasureRequest::to("ams1") }
    }

    fn lines(request: &MeasureRequest) -> IntervalLines {
        IntervalLines::new(request, Nanos::secs(1), None, false)
    }

    fn part(way: Way, stream_bytes: &[f64], retransmits: &[u64]) -> Part {
        let reading =
            |&retransmits: &u64| SenderReading { retransmits, cwnd_bytes: 65_536, ..Default::default() };
        Part { way, stream_bytes: stream_bytes.to_vec(), senders: retransmits.iter().map(reading).collect() }
    }

    fn piece(from_ms: u64, to_ms: u64, parts: Vec<Part>) -> Piece {
        Piece { from_ns: from_ms * 1_000_000, to_ns: to_ms * 1_000_000, parts }
    }

    #[test]
    fn one_stream_has_one_row_an_interval() {
        let mut lines = lines(&request(0));
        let mut text = String::new();
        for i in 0..25 {
            let part = part(Way::To, &[1e7], &[i / 10]);
            text.push_str(&lines.add(piece(100 * i, 100 * (i + 1), vec![part]), Some(24_200_000)));
        }
        text.push_str(&lines.end());
        assert_eq!(
            text,
            "\
[ ID] Interval          Transfer       Bitrate  Retr      Cwnd        RTT
[  1]   0.00-1.00   s   95.4 MiB    800 Mbit/s     0  64.0 KiB    24.2 ms
[  1]   1.00-2.00   s   95.4 MiB    800 Mbit/s     1  64.0 KiB    24.2 ms
[  1]   2.00-2.50   s   47.7 MiB    800 Mbit/s     1  64.0 KiB          -
"
        );
    }

    #[test]
    fn streams_have_a_row_each_and_a_sum_and_the_omit_is_marked() {
        let mut lines = lines(&request(1000));
        let streams = || vec![part(Way::From, &[1e6, 2e6], &[])];
        let mut text = lines.add(piece(0, 1000, streams()), Some(1_000_000));
        text.push_str(&lines.add(piece(1000, 2000, streams()), Some(1_000_000)));
        assert_eq!(
            text,
            "\
[ ID] Interval          Transfer       Bitrate        RTT
[  1]   0.00-1.00   s    977 KiB      8 Mbit/s  (omitted)
[  2]   0.00-1.00   s   1.91 MiB     16 Mbit/s  (omitted)
[SUM]   0.00-1.00   s   2.86 MiB     24 Mbit/s  (omitted)
- - - - - - - - - - - - - - - - - - - - - - - - -
[  1]   0.00-1.00   s    977 KiB      8 Mbit/s
[  2]   0.00-1.00   s   1.91 MiB     16 Mbit/s
[SUM]   0.00-1.00   s   2.86 MiB     24 Mbit/s    1.00 ms
"
        );
    }

    #[test]
    fn both_directions_are_told_apart_and_many_streams_are_bounded() {
        let mut lines = lines(&request(0));
        let many: Vec<f64> = (1..=17).map(|n| f64::from(n) * 1e6).collect();
        let parts = vec![part(Way::To, &many, &[1; 17]), part(Way::From, &[5e5], &[])];
        let text = lines.add(piece(0, 1000, parts), None);
        let names: Vec<&str> = text.lines().map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(names, ["[", "[min][TX]", "[med][TX]", "[max][TX]", "[SUM][TX]", "["], "{text}");
        assert!(text.contains("[max][TX]   0.00-1.00   s   16.2 MiB    136 Mbit/s\n"), "{text}");
        assert!(text.contains("146 MiB   1.22 Gbit/s    17"), "{text}");
        let longest = text.lines().map(str::len).max();
        assert!(longest <= Some(80), "{text}");
    }

    #[test]
    fn datagrams_are_counted_and_the_unit_is_kept() {
        let udp =
            UdpRequest { rate_bps: None, search: None, datagram_bytes: Some(1000), dont_fragment: false };
        let request = MeasureRequest { udp: Some(udp), ..request(0) };
        let mut lines = IntervalLines::new(&request, Nanos::secs(1), RateUnit::of_letter('K'), false);
        let text = lines.add(piece(0, 1000, vec![part(Way::To, &[1_024_000.0], &[])]), None);
        assert!(text.contains("  Datagrams"), "{text}");
        assert!(text.contains("1000 KiB    1000 KiB/s       1024"), "{text}");
    }
}
