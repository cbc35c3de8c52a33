//! Lines of a running measurement, one interval at a time, in the layout of `iperf3 -i`.

use bdp_model::measurement::{Direction, MeasureRequest};
use bdp_model::statistics::median;
use bdp_model::units::{Nanos, format_bps};

use super::iperf3::{Intervals, Part, Piece, ReceiverReading, SenderReading};
use crate::number::{RateUnit, percent, size, three_digits};

/// Most streams with a row each; of more, only the smallest, median and largest are printed.
pub(crate) const MOST_STREAM_ROWS: usize = 16;
/// Line between intervals with several rows, as in iperf3.
const RULE: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -\n";

/// Intervals of one stage of a measurement, printed as each completes.
#[derive(Debug)]
pub struct IntervalLines {
    intervals: Intervals,
    omit_ns: u64,
    is_udp: bool,
    unit: Option<RateUnit>,
    every_stream: bool,
    /// Counts of each stream up to the last interval.
    before: Vec<(Direction, Vec<Counts>)>,
    is_begun: bool,
}

impl IntervalLines {
    /// Returns intervals of this length, with bitrates in `unit` or a fitting one; with `every_stream` the number of rows is unlimited.
    pub fn new(request: &MeasureRequest, length: Nanos, unit: Option<RateUnit>, every_stream: bool) -> Self {
        Self {
            intervals: Intervals::new(length.as_ns(), request.spec.omit.as_ns()),
            omit_ns: request.spec.omit.as_ns(),
            is_udp: request.spec.udp.is_some(),
            unit,
            every_stream,
            before: Vec::new(),
            is_begun: false,
        }
    }

    /// Returns the lines of the intervals completed by this piece; `rtt_ns` is the latest round trip of the probe flow.
    pub fn add(&mut self, piece: Piece, rtt_ns: Option<u64>) -> String {
        self.intervals.add(piece);
        self.print(rtt_ns)
    }

    /// Returns the lines of the rest when the stage ends, unless it is shorter than a tenth of an interval and follows others, as in
    /// iperf3.
    pub fn end(&mut self, rtt_ns: Option<u64>) -> String {
        self.intervals.close_moved(self.is_begun);
        self.print(rtt_ns)
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
        let counts = match Columns::of(piece, self.is_udp) {
            Columns::Arrivals => format!("{:>12}{:>18}", "Jitter", "Lost/Total"),
            Columns::Datagrams => format!("{:>11}{:>11}", "Datagrams", "RTT"),
            Columns::Sender => format!("{:>6}{:>10}{:>11}", "Retr", "Cwnd", "RTT"),
            Columns::Bytes => format!("{:>11}", "RTT"),
        };
        format!("[ ID]{role}{:<16}{:>11}{:>14}{counts}\n", " Interval", "Transfer", "Bitrate")
    }

    fn rows(&mut self, piece: &Piece, rtt_ns: Option<u64>) -> String {
        let seconds = piece.to_ns.saturating_sub(piece.from_ns) as f64 / 1e9;
        // Time restarts after the omitted start, as in iperf3.
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
        let (both, columns) = (piece.parts.len() > 1, Columns::of(piece, self.is_udp));
        for part in &piece.parts {
            let role = match (both, part.way) {
                (false, _) => "",
                (_, Direction::To) => "[TX]",
                (_, Direction::From) => "[RX]",
            };
            let since = self.counts_since(part);
            for row in self.table(part, &since) {
                let rtt = if row.is_last || is_omitted { last.as_str() } else { "" };
                let counts = match columns {
                    Columns::Arrivals => {
                        format!(
                            "{}{}",
                            self.arrivals(part, &row),
                            if is_omitted { "  (omitted)" } else { "" }
                        )
                    }
                    Columns::Datagrams => format!("{:>11}{rtt:>11}", datagrams(part, row.bytes)),
                    Columns::Sender => {
                        let number = row.counts.retransmits.map_or_else(String::new, |n| n.to_string());
                        let cwnd = row.cwnd_bytes.map_or_else(String::new, |bytes| size(bytes as f64));
                        format!("{number:>6}{cwnd:>10}{rtt:>11}")
                    }
                    Columns::Bytes => format!("{rtt:>11}"),
                };
                let bps = row.bytes * 8.0 / seconds.max(1e-9);
                let (transfer, bitrate) = (size(row.bytes), self.bitrate(bps));
                let line = format!("{}{role} {interval}{transfer:>11}{bitrate:>14}{counts}", row.name);
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
        text
    }

    /// Returns the counts of each stream since the previous interval.
    fn counts_since(&mut self, part: &Part) -> Vec<Counts> {
        let of_sender =
            |sender: &SenderReading| Counts { retransmits: Some(sender.retransmits), ..Counts::default() };
        let of_receiver = |receiver: &ReceiverReading| Counts {
            sent: receiver.sent,
            received: receiver.received,
            jitter_ns: Some(receiver.jitter_ns),
            ..Counts::default()
        };
        let now: Vec<Counts> =
            part.senders.iter().map(of_sender).chain(part.receivers.iter().map(of_receiver)).collect();
        let at = self.before.iter().position(|(way, _)| *way == part.way).unwrap_or_else(|| {
            self.before.push((part.way, Vec::new()));
            self.before.len() - 1
        });
        let before = std::mem::replace(&mut self.before[at].1, now.clone());
        let since = |(i, now): (usize, Counts)| now.since(before.get(i).copied().unwrap_or_default());
        now.into_iter().enumerate().map(since).collect()
    }

    /// Returns a row for each stream, or smallest, median and largest of many, and their sum.
    fn table(&self, part: &Part, counts: &[Counts]) -> Vec<TableRow> {
        let sum = TableRow {
            name: "[SUM]".to_owned(),
            bytes: part.stream_bytes.iter().sum(),
            counts: counts.iter().copied().reduce(Counts::plus).unwrap_or_default(),
            cwnd_bytes: None,
            is_last: true,
        };
        let streams = part.stream_bytes.len();
        let cwnd = |stream: usize| part.senders.get(stream).map(|sender| sender.cwnd_bytes);
        if streams <= 1 {
            let is_sum = part.senders.len() > 1;
            let name = if is_sum { sum.name } else { "[  1]".to_owned() };
            return vec![TableRow { name, cwnd_bytes: if is_sum { None } else { cwnd(0) }, ..sum }];
        }
        let mut rows: Vec<TableRow> = if self.every_stream || streams <= MOST_STREAM_ROWS {
            let row = |(stream, bytes): (usize, &f64)| TableRow {
                name: format!("[{:>3}]", stream + 1),
                bytes: *bytes,
                counts: counts.get(stream).copied().unwrap_or_default(),
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

    /// Returns jitter and datagrams lost of those sent; for datagrams sent by this end, only their number.
    fn arrivals(&self, part: &Part, row: &TableRow) -> String {
        let Counts { sent, received, jitter_ns, .. } = row.counts;
        let (jitter, lost) = match jitter_ns {
            Some(ns) => {
                let lost = sent.saturating_sub(received);
                let share = lost as f64 / sent.max(1) as f64;
                (
                    format!("{} ms", three_digits(ns as f64 / 1e6)),
                    format!("{lost}/{sent} ({})", percent(share)),
                )
            }
            None if part.receivers.is_empty() => (String::new(), datagrams(part, row.bytes)),
            None => Default::default(),
        };
        format!("{jitter:>12}{lost:>18}")
    }

    fn bitrate(&self, bps: f64) -> String {
        self.unit.map_or_else(|| format_bps(bps), |unit| format!("{} {}", unit.format(bps), unit.name))
    }
}

/// Returns the number of datagrams, if their size is known.
fn datagrams(part: &Part, bytes: f64) -> String {
    match part.datagram_bytes {
        Some(each) if each > 0 => format!("{:.0}", bytes / each as f64),
        _ => "-".to_owned(),
    }
}

/// Columns next to the bitrate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Columns {
    /// Loss and jitter of datagrams received by this end.
    Arrivals,
    /// Number of datagrams sent by this end.
    Datagrams,
    /// Retransmits and congestion window of connections on which this end sends.
    Sender,
    /// No per-stream columns.
    Bytes,
}

impl Columns {
    fn of(piece: &Piece, is_udp: bool) -> Self {
        match is_udp {
            true if piece.parts.iter().any(|part| !part.receivers.is_empty()) => Self::Arrivals,
            true => Self::Datagrams,
            false if piece.parts.iter().any(|part| !part.senders.is_empty()) => Self::Sender,
            false => Self::Bytes,
        }
    }
}

/// Counts of a stream.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// Known if the near end sends.
    retransmits: Option<u64>,
    /// Datagrams sent by the remote end, by the highest number received.
    sent: u64,
    received: u64,
    /// Latest estimate, if datagrams are received.
    jitter_ns: Option<u64>,
}

impl Counts {
    fn since(self, before: Self) -> Self {
        Self {
            retransmits: self.retransmits.map(|now| now.saturating_sub(before.retransmits.unwrap_or(0))),
            sent: self.sent.saturating_sub(before.sent),
            received: self.received.saturating_sub(before.received),
            jitter_ns: self.jitter_ns,
        }
    }

    /// Returns the sum of two streams, with the larger jitter.
    fn plus(self, other: Self) -> Self {
        Self {
            retransmits: self.retransmits.zip(other.retransmits).map(|(a, b)| a + b),
            sent: self.sent + other.sent,
            received: self.received + other.received,
            jitter_ns: self.jitter_ns.max(other.jitter_ns),
        }
    }
}

#[derive(Debug, Default)]
struct TableRow {
    name: String,
    bytes: f64,
    counts: Counts,
    cwnd_bytes: Option<u64>,
    /// Whether this row shows the values of the whole direction.
    is_last: bool,
}

#[cfg(test)]
mod tests {
    use bdp_model::flow::FlowSpec;
    use bdp_model::flow::udp::UdpRequest;

    use super::*;

    fn request(omit_ms: u64) -> MeasureRequest {
        let spec = FlowSpec { omit: Nanos::millis(omit_ms), ..FlowSpec::default() };
        MeasureRequest { spec, ..MeasureRequest::to("ams1") }
    }

    fn asking(udp: UdpRequest) -> MeasureRequest {
        let mut request = request(0);
        request.spec.udp = Some(udp);
        request
    }

    fn lines(request: &MeasureRequest) -> IntervalLines {
        IntervalLines::new(request, Nanos::secs(1), None, false)
    }

    fn part(way: Direction, stream_bytes: &[f64], retransmits: &[u64]) -> Part {
        let reading =
            |&retransmits: &u64| SenderReading { retransmits, cwnd_bytes: 65_536, ..Default::default() };
        let senders = retransmits.iter().map(reading).collect();
        Part {
            way,
            stream_bytes: stream_bytes.to_vec(),
            senders,
            receivers: Vec::new(),
            datagram_bytes: None,
        }
    }

    fn piece(from_ms: u64, to_ms: u64, parts: Vec<Part>) -> Piece {
        Piece { from_ns: from_ms * 1_000_000, to_ns: to_ms * 1_000_000, parts }
    }

    #[test]
    fn one_stream_has_one_row_an_interval() {
        let mut lines = lines(&request(0));
        let mut text = String::new();
        for i in 0..25 {
            let part = part(Direction::To, &[1e7], &[i / 10]);
            text.push_str(&lines.add(piece(100 * i, 100 * (i + 1), vec![part]), Some(24_200_000)));
        }
        text.push_str(&lines.end(None));
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
    fn lines_end_where_they_are_due_and_a_short_rest_has_none() {
        let mut lines = lines(&request(0));
        let of = |from, to| piece(from, to, vec![part(Direction::To, &[1e6], &[0])]);
        let mut text = lines.add(of(0, 910), None);
        for (from, to) in [(910, 1015), (1015, 1930), (1930, 2050)] {
            text.push_str(&lines.add(of(from, to), None));
        }
        text.push_str(&lines.end(None));
        let times: Vec<&str> = text.lines().skip(1).map(|line| &line[5..20]).collect();
        assert_eq!(times, ["   0.00-1.00   ", "   1.00-2.00   "], "{text}");
    }

    #[test]
    fn streams_have_a_row_each_and_a_sum_and_the_omit_is_marked() {
        let mut lines = lines(&request(1000));
        let streams = || vec![part(Direction::From, &[1e6, 2e6], &[])];
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
        let parts = vec![part(Direction::To, &many, &[1; 17]), part(Direction::From, &[5e5], &[])];
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
        let udp = UdpRequest { rate_bps: None, search: None, datagram_bytes: None, dont_fragment: false };
        let request = asking(udp);
        let mut lines = IntervalLines::new(&request, Nanos::secs(1), RateUnit::of_letter('K'), false);
        let part = Part { datagram_bytes: Some(1000), ..part(Direction::To, &[1_024_000.0], &[]) };
        let text = lines.add(piece(0, 1000, vec![part]), None);
        assert!(text.contains("  Datagrams"), "{text}");
        assert!(text.contains("1000 KiB    1000 KiB/s       1024"), "{text}");
    }

    #[test]
    fn received_datagrams_have_their_loss_and_jitter() {
        let udp = UdpRequest { rate_bps: None, search: None, datagram_bytes: None, dont_fragment: false };
        let mut lines = lines(&asking(udp));
        let part = |sent, received| Part {
            receivers: vec![ReceiverReading { sent, received, jitter_ns: 14_000 }],
            datagram_bytes: None,
            ..part(Direction::From, &[1e6], &[])
        };
        let mut text = lines.add(piece(0, 1000, vec![part(1000, 990)]), None);
        text.push_str(&lines.add(piece(1000, 2000, vec![part(2000, 1990)]), None));
        assert_eq!(
            text,
            "\
[ ID] Interval          Transfer       Bitrate      Jitter        Lost/Total
[  1]   0.00-1.00   s    977 KiB      8 Mbit/s   0.0140 ms   10/1000 (1.0 %)
[  1]   1.00-2.00   s    977 KiB      8 Mbit/s   0.0140 ms      0/1000 (0 %)
"
        );
    }
}
