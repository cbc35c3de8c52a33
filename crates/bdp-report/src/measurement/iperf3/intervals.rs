//! Data moved in a direction over time, in pieces that iperf3 calls intervals.

use bdp_model::measurement::{Direction, DirectionResult, Measurement};

/// Kernel readings of a stream sent by the near end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SenderReading {
    /// Segments retransmitted so far.
    pub retransmits: u64,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Receive window of the other end.
    pub window_bytes: u64,
    /// Smoothed round-trip time.
    pub rtt_ns: u64,
    /// Mean deviation of the round-trip time.
    pub rtt_variation_ns: u64,
    /// Path MTU.
    pub path_mtu: u64,
    /// Number of reordering events seen so far.
    pub reorder_seen: u64,
}

/// Counts of a datagram stream received by the near end so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceiverReading {
    /// Datagrams sent, by the highest number received.
    pub sent: u64,
    /// Distinct datagrams received.
    pub received: u64,
    /// Interarrival jitter (RFC 3550).
    pub jitter_ns: u64,
}

/// One direction's share of a piece.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Direction.
    pub way: Direction,
    /// Bytes per stream since the start of the piece, in order of connection; a single entry if streams can't be distinguished.
    pub stream_bytes: Vec<f64>,
    /// Latest readings of each stream; empty if the remote end sends.
    pub senders: Vec<SenderReading>,
    /// Latest readings of each datagram stream; empty for TCP, and if the near end sends.
    pub receivers: Vec<ReceiverReading>,
    /// Payload of the datagrams sent by the near end; `None` if it sends none.
    pub datagram_bytes: Option<u64>,
}

/// A piece of a test's time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Piece {
    /// Start, from the beginning of the test.
    pub from_ns: u64,
    /// End, from the beginning of the test.
    pub to_ns: u64,
    /// Directions that ran.
    pub parts: Vec<Part>,
}

impl Piece {
    fn add(&mut self, other: Self) {
        self.to_ns = other.to_ns;
        for part in other.parts {
            match self.parts.iter_mut().find(|mine| mine.way == part.way) {
                Some(mine) => {
                    mine.stream_bytes.resize(mine.stream_bytes.len().max(part.stream_bytes.len()), 0.0);
                    mine.stream_bytes.iter_mut().zip(part.stream_bytes).for_each(|(sum, more)| *sum += more);
                    if !part.senders.is_empty() {
                        mine.senders = part.senders;
                    }
                    if !part.receivers.is_empty() {
                        mine.receivers = part.receivers;
                    }
                    mine.datagram_bytes = part.datagram_bytes.or(mine.datagram_bytes);
                }
                None => self.parts.push(part),
            }
        }
    }

    /// Splits the piece at a time within it, its bytes in proportion to the durations; the readings belong to its end.
    fn split(mut self, at_ns: u64) -> (Self, Self) {
        let mut behind = self.clone();
        let share = (at_ns - self.from_ns) as f64 / (self.to_ns - self.from_ns).max(1) as f64;
        for (mine, rest) in self.parts.iter_mut().zip(&mut behind.parts) {
            for (bytes, left) in mine.stream_bytes.iter_mut().zip(&mut rest.stream_bytes) {
                *bytes = (*bytes * share).floor();
                *left -= *bytes;
            }
        }
        (self.to_ns, behind.from_ns) = (at_ns, at_ns);
        (self, behind)
    }

    /// Rounds to whole bytes.
    fn round(&mut self) {
        for part in &mut self.parts {
            part.stream_bytes.iter_mut().for_each(|bytes| *bytes = bytes.round());
        }
    }

    fn is_empty(&self) -> bool {
        self.to_ns <= self.from_ns
    }
}

/// Merges pieces into intervals of equal length.
#[derive(Debug, Clone)]
pub struct Intervals {
    length_ns: u64,
    omit_ns: u64,
    /// Time of the last movement of data.
    moved_ns: u64,
    done: Vec<Piece>,
    open: Piece,
    /// Readings of each stream of a direction taken at its end.
    last: Vec<(Direction, Vec<SenderReading>)>,
}

impl Intervals {
    /// Returns intervals of this length, or a single one if it is 0; an interval ends at the end of omit.
    pub fn new(length_ns: u64, omit_ns: u64) -> Self {
        Self { length_ns, omit_ns, moved_ns: 0, done: Vec::new(), open: Piece::default(), last: Vec::new() }
    }

    /// Returns the length of an interval; 0 if there is a single one.
    pub fn length_ns(&self) -> u64 {
        self.length_ns
    }

    /// Adds the next piece, split among the intervals that it spans.
    pub fn add(&mut self, mut piece: Piece) {
        if piece.parts.iter().flat_map(|part| &part.stream_bytes).any(|&bytes| bytes > 0.0) {
            self.moved_ns = piece.to_ns;
        }
        loop {
            let due = self.due();
            if piece.to_ns < due {
                return self.open.add(piece);
            }
            let (first, rest) = piece.split(due);
            self.open.add(first);
            self.close();
            if rest.is_empty() {
                return;
            }
            piece = rest;
        }
    }

    /// Returns the end of the open interval: a multiple of the length on its clock.
    fn due(&self) -> u64 {
        let from = self.open.from_ns;
        let after = |zero: u64| {
            let past = (from - zero).checked_div(self.length_ns);
            past.map_or(u64::MAX, |past| zero + (past + 1) * self.length_ns)
        };
        if from < self.omit_ns { after(0).min(self.omit_ns) } else { after(self.omit_ns) }
    }

    /// Returns the completed intervals, each once.
    pub(crate) fn take_done(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.done)
    }

    /// Completes the open interval if data moved in it; if it follows others, not for less than a tenth.
    pub(crate) fn close_moved(&mut self, has_others: bool) {
        let is_short = (self.open.to_ns - self.open.from_ns) * 10 < self.length_ns;
        if self.moved_ns > self.open.from_ns && !(has_others && is_short) {
            self.close();
        }
    }

    /// Records readings taken at the end: a short transfer has no others.
    pub fn note_last(&mut self, readings: Vec<(Direction, Vec<SenderReading>)>) {
        self.last = readings;
    }

    fn close(&mut self) {
        let next = Piece { from_ns: self.open.to_ns, to_ns: self.open.to_ns, parts: Vec::new() };
        self.done.push(std::mem::replace(&mut self.open, next));
    }

    /// Returns all intervals, completed with the rest of the measurement, which ends after the last piece.
    pub fn complete(mut self, m: &Measurement) -> Vec<Piece> {
        let end = m.directions.iter().map(|d| d.duration_ns).max().unwrap_or(0);
        let parts: Vec<Part> = m.directions.iter().filter_map(|d| self.rest(d)).collect();
        if end > self.open.to_ns || !parts.is_empty() {
            self.open.add(Piece { from_ns: self.open.to_ns, to_ns: end.max(self.open.to_ns), parts });
        }
        // Time spent waiting after all data arrived is excluded.
        let until = end.max(self.moved_ns);
        let last = if self.open.is_empty() { self.done.last_mut() } else { Some(&mut self.open) };
        if let Some(last) = last {
            last.to_ns = last.to_ns.min(until).max(last.from_ns);
        }
        let length = self.open.to_ns - self.open.from_ns;
        match self.done.last_mut() {
            // Too short for an interval of its own, and on the same side of omit.
            Some(last) if length * 2 < self.length_ns && (last.to_ns > self.omit_ns || self.omit_ns == 0) => {
                last.add(self.open);
            }
            _ if self.open.is_empty() => {}
            _ => self.done.push(self.open),
        }
        self.done.iter_mut().for_each(Piece::round);
        end_with_last(&mut self.done, self.last);
        if let [d] = m.directions.as_slice()
            && d.direction == Direction::From
        {
            begin_where_noted(&mut self.done, m, d);
        }
        self.done
    }

    /// Returns the data of a direction missing from the pieces, distributed like its streams.
    fn rest(&self, d: &DirectionResult) -> Option<Part> {
        let seen: f64 = self
            .done
            .iter()
            .chain([&self.open])
            .flat_map(|piece| &piece.parts)
            .filter(|part| part.way == d.direction)
            .flat_map(|part| &part.stream_bytes)
            .sum();
        let moved = match &d.udp {
            // This end counts the datagrams it sent.
            Some(udp) if d.direction == Direction::To => udp.sent * udp.datagram_bytes,
            _ => d.bytes,
        };
        let left = moved.saturating_sub(seen.round() as u64);
        if left == 0 {
            return None;
        }
        let shares = share(left, &d.stream_goodput_bps);
        let stream_bytes = shares.into_iter().map(|bytes| bytes as f64).collect();
        Some(Part {
            way: d.direction,
            stream_bytes,
            senders: Vec::new(),
            receivers: Vec::new(),
            datagram_bytes: None,
        })
    }
}

/// Sets the readings at the end of each direction in its last interval.
fn end_with_last(pieces: &mut [Piece], last: Vec<(Direction, Vec<SenderReading>)>) {
    for (way, readings) in last {
        let mut parts = pieces.iter_mut().rev().flat_map(|piece| &mut piece.parts);
        let Some(part) = parts.find(|part| part.way == way) else { continue };
        // A kernel that no longer knows a connection reports zeros.
        let is_told = readings.iter().all(|reading| reading.cwnd_bytes > 0);
        if is_told && readings.len() == part.stream_bytes.len() {
            part.senders = readings;
        }
    }
}

/// Starts the counted intervals where the receiver noted the end of omit, in time and bytes, rather than at the first reading after
/// it. If that lies in another interval, nothing is changed.
fn begin_where_noted(pieces: &mut [Piece], m: &Measurement, d: &DirectionResult) {
    let Some(at) = pieces.iter().position(|piece| !is_omitted(m, piece)) else { return };
    let (omitted, counted) = pieces.split_at_mut(at);
    let seen = counted.iter().flat_map(|piece| &piece.parts).fold(Vec::new(), |mut sums: Vec<f64>, part| {
        sums.resize(sums.len().max(part.stream_bytes.len()), 0.0);
        sums.iter_mut().zip(&part.stream_bytes).for_each(|(sum, bytes)| *sum += bytes);
        sums
    });
    let noted = counted_streams(d);
    let end = counted.last().map_or(0, |piece| piece.to_ns);
    let begin = end.saturating_sub(d.duration_ns.saturating_sub(d.omit_ns));
    let (Some(before), Some(first)) = (omitted.last_mut(), counted.first_mut()) else { return };
    let ([part_before], [part_first]) = (before.parts.as_mut_slice(), first.parts.as_mut_slice()) else {
        return;
    };
    let (was, is) = (&mut part_before.stream_bytes, &mut part_first.stream_bytes);
    let more: Vec<f64> = noted.iter().zip(&seen).map(|(noted, seen)| *noted as f64 - seen).collect();
    let fits = more.len() == was.len() && more.len() == is.len() && noted.len() == seen.len();
    let fits = fits
        && more.iter().zip(was.iter()).zip(is.iter()).all(|((m, was), is)| was - m >= 0.0 && is + m >= 0.0);
    if !fits || begin <= before.from_ns || begin >= first.to_ns {
        return;
    }
    for ((more, was), is) in more.iter().zip(was).zip(is) {
        *was -= more;
        *is += more;
    }
    (before.to_ns, first.from_ns) = (begin, begin);
}

/// Returns the readings of a stream before a piece, for differences.
pub(super) fn before(pieces: &[Piece], at: usize, way: Direction, stream: usize) -> SenderReading {
    let parts = pieces[..at].iter().rev().flat_map(|piece| &piece.parts);
    parts
        .filter(|part| part.way == way)
        .find_map(|part| part.senders.get(stream).copied())
        .unwrap_or_default()
}

/// Whether most of a piece lies before the end of omit.
pub(super) fn is_omitted(m: &Measurement, piece: &Piece) -> bool {
    piece.from_ns + piece.to_ns < 2 * m.request.spec.omit.as_ns()
}

/// Returns the bytes per stream since the receiver began to count; without omit, since its first read.
pub(super) fn counted_streams(d: &DirectionResult) -> Vec<u64> {
    let counted = d.duration_ns.saturating_sub(d.omit_ns);
    d.stream_goodput_bps.iter().map(|bps| (bps * counted as f64 / 8e9).round() as u64).collect()
}

/// Distributes bytes by weights, in whole bytes that add up exactly; equally if no weight is positive.
pub(super) fn share(bytes: u64, weights: &[f64]) -> Vec<u64> {
    let sum: f64 = weights.iter().sum();
    let equal = 1.0 / weights.len().max(1) as f64;
    let (mut upto, mut given) = (0.0, 0);
    weights
        .iter()
        .enumerate()
        .map(|(i, weight)| {
            upto += if sum > 0.0 { weight / sum } else { equal };
            let all = if i + 1 == weights.len() {
                bytes
            } else {
                ((bytes as f64 * upto).round() as u64).min(bytes)
            };
            let own = all.saturating_sub(given);
            given += own;
            own
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(from_ms: u64, to_ms: u64, bytes: f64) -> Piece {
        let stream_bytes = vec![bytes, 2.0 * bytes];
        let part = Part {
            way: Direction::To,
            stream_bytes,
            senders: Vec::new(),
            receivers: Vec::new(),
            datagram_bytes: None,
        };
        Piece { from_ns: from_ms * 1_000_000, to_ns: to_ms * 1_000_000, parts: vec![part] }
    }

    fn all(intervals: &Intervals) -> Vec<(u64, u64, f64)> {
        intervals
            .done
            .iter()
            .chain([&intervals.open])
            .filter(|p| !p.is_empty())
            .map(|p| (p.from_ns / 1_000_000, p.to_ns / 1_000_000, p.parts[0].stream_bytes.iter().sum()))
            .collect()
    }

    #[test]
    fn pieces_come_together_to_intervals() {
        let mut intervals = Intervals::new(1_000_000_000, 0);
        for i in 0..23 {
            intervals.add(piece(100 * i, 100 * (i + 1), 10.0));
        }
        assert_eq!(all(&intervals), [(0, 1000, 300.0), (1000, 2000, 300.0), (2000, 2300, 90.0)]);
    }

    #[test]
    fn late_pieces_are_shared_out_to_intervals_of_the_same_length() {
        let mut intervals = Intervals::new(1_000_000_000, 0);
        for (from, to) in [(0, 510), (510, 980), (980, 1450), (1450, 2040), (2040, 2100)] {
            intervals.add(piece(from, to, 1.0));
        }
        assert_eq!(all(&intervals), [(0, 1000, 6.0), (1000, 2000, 4.0), (2000, 2100, 5.0)]);
    }

    #[test]
    fn the_omit_ends_an_interval() {
        let mut intervals = Intervals::new(1_000_000_000, 300_000_000);
        for i in 0..15 {
            intervals.add(piece(100 * i, 100 * (i + 1), 1.0));
        }
        assert_eq!(all(&intervals), [(0, 300, 9.0), (300, 1300, 30.0), (1300, 1500, 6.0)]);
    }
}
