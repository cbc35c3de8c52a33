//! What went through a direction while it ran, piece by piece: what iperf3 calls its intervals.

use bdp_model::measurement::{Direction, DirectionResult, Measurement};

/// What the near end's kernel tells of a stream that it sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SenderReading {
    /// Segments sent again so far.
    pub retransmits: u64,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// The receiver's window.
    pub window_bytes: u64,
    /// Smoothed round trip.
    pub rtt_ns: u64,
    /// Its mean deviation.
    pub rtt_variation_ns: u64,
    /// Path MTU.
    pub path_mtu: u64,
    /// Times that segments were seen to have been reordered so far.
    pub reorder_seen: u64,
}

/// What the near end received of a stream of datagrams so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceiverReading {
    /// Datagrams sent, by the highest number that came.
    pub sent: u64,
    /// Different ones that came.
    pub received: u64,
    /// Interarrival jitter (RFC 3550).
    pub jitter_ns: u64,
}

/// A direction's part of a piece.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Which direction.
    pub way: Direction,
    /// Bytes of each stream since the piece began, in order of connection; of all in one where they are not told apart.
    pub stream_bytes: Vec<f64>,
    /// The last readings of each stream; empty where the far end sends.
    pub senders: Vec<SenderReading>,
    /// The last readings of each stream of datagrams; empty of TCP, and where the near end sends.
    pub receivers: Vec<ReceiverReading>,
    /// Payload of the datagrams that the near end sends; `None` where it sends none.
    pub datagram_bytes: Option<u64>,
}

/// A piece of a test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Piece {
    /// Since the test began.
    pub from_ns: u64,
    /// The same of its end.
    pub to_ns: u64,
    /// The directions that ran.
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

    /// Parts it at a time within it, its bytes by how long either is; the readings are those of its end.
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

    /// Has whole bytes.
    fn round(&mut self) {
        for part in &mut self.parts {
            part.stream_bytes.iter_mut().for_each(|bytes| *bytes = bytes.round());
        }
    }

    fn is_empty(&self) -> bool {
        self.to_ns <= self.from_ns
    }
}

/// Pieces put together to intervals of the same length.
#[derive(Debug, Clone)]
pub struct Intervals {
    length_ns: u64,
    omit_ns: u64,
    /// Up to when anything moved.
    moved_ns: u64,
    done: Vec<Piece>,
    open: Piece,
    /// The last readings of each stream of a direction, taken when it was over.
    last: Vec<(Direction, Vec<SenderReading>)>,
}

impl Intervals {
    /// Of this length, or one for all where it is 0; one ends where the omit does.
    pub fn new(length_ns: u64, omit_ns: u64) -> Self {
        Self { length_ns, omit_ns, moved_ns: 0, done: Vec::new(), open: Piece::default(), last: Vec::new() }
    }

    /// How long one is; 0 where there is one for all.
    pub fn length_ns(&self) -> u64 {
        self.length_ns
    }

    /// Takes the piece that follows the last one, a part for each interval that it reaches into.
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

    /// When the interval that is open is over: at a multiple of the length since the zero of its clock.
    fn due(&self) -> u64 {
        let from = self.open.from_ns;
        let after = |zero: u64| {
            let past = (from - zero).checked_div(self.length_ns);
            past.map_or(u64::MAX, |past| zero + (past + 1) * self.length_ns)
        };
        if from < self.omit_ns { after(0).min(self.omit_ns) } else { after(self.omit_ns) }
    }

    /// The intervals that are complete, once each.
    pub(crate) fn take_done(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.done)
    }

    /// Completes the interval that is open, where anything moved in it; beside others not for less than a tenth.
    pub(crate) fn close_moved(&mut self, has_others: bool) {
        let is_short = (self.open.to_ns - self.open.from_ns) * 10 < self.length_ns;
        if self.moved_ns > self.open.from_ns && !(has_others && is_short) {
            self.close();
        }
    }

    /// Takes the readings of when all was over: a short transfer has no others.
    pub fn note_last(&mut self, readings: Vec<(Direction, Vec<SenderReading>)>) {
        self.last = readings;
    }

    fn close(&mut self) {
        let next = Piece { from_ns: self.open.to_ns, to_ns: self.open.to_ns, parts: Vec::new() };
        self.done.push(std::mem::replace(&mut self.open, next));
    }

    /// All of them, with what a measurement has beyond: its end comes after the last piece.
    pub fn complete(mut self, m: &Measurement) -> Vec<Piece> {
        let end = m.directions.iter().map(|d| d.duration_ns).max().unwrap_or(0);
        let parts: Vec<Part> = m.directions.iter().filter_map(|d| self.rest(d)).collect();
        if end > self.open.to_ns || !parts.is_empty() {
            self.open.add(Piece { from_ns: self.open.to_ns, to_ns: end.max(self.open.to_ns), parts });
        }
        // What is waited for once all has come is no part of it.
        let until = end.max(self.moved_ns);
        let last = if self.open.is_empty() { self.done.last_mut() } else { Some(&mut self.open) };
        if let Some(last) = last {
            last.to_ns = last.to_ns.min(until).max(last.from_ns);
        }
        let length = self.open.to_ns - self.open.from_ns;
        match self.done.last_mut() {
            // Too short to stand alone, and the same side of the omit.
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

    /// What a direction moved that no piece has, shared out as its streams were.
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
            // Of datagrams this end counts what it sent.
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

/// Has the last interval of each direction end with what was read when it was over.
fn end_with_last(pieces: &mut [Piece], last: Vec<(Direction, Vec<SenderReading>)>) {
    for (way, readings) in last {
        let mut parts = pieces.iter_mut().rev().flat_map(|piece| &mut piece.parts);
        let Some(part) = parts.find(|part| part.way == way) else { continue };
        // A kernel that tells nothing any more of a connection tells zeros.
        let is_told = readings.iter().all(|reading| reading.cwnd_bytes > 0);
        if is_told && readings.len() == part.stream_bytes.len() {
            part.senders = readings;
        }
    }
}

/// Has what counts begin where the receiver noted that the omit was over, in time and in bytes, and not with the first look after
/// it. Where that would be in another interval all stays as it was seen.
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

/// The readings of a stream before a piece, for what has changed since.
pub(super) fn before(pieces: &[Piece], at: usize, way: Direction, stream: usize) -> SenderReading {
    let parts = pieces[..at].iter().rev().flat_map(|piece| &piece.parts);
    parts
        .filter(|part| part.way == way)
        .find_map(|part| part.senders.get(stream).copied())
        .unwrap_or_default()
}

/// Whether more of a piece lies before the end of the omit than behind it.
pub(super) fn is_omitted(m: &Measurement, piece: &Piece) -> bool {
    piece.from_ns + piece.to_ns < 2 * m.request.spec.omit.as_ns()
}

/// Bytes of each stream since the receiver began to count, which without omit is when it had read for the first time.
pub(super) fn counted_streams(d: &DirectionResult) -> Vec<u64> {
    let counted = d.duration_ns.saturating_sub(d.omit_ns);
    d.stream_goodput_bps.iter().map(|bps| (bps * counted as f64 / 8e9).round() as u64).collect()
}

/// So many bytes in as many shares as there are weights, in whole bytes that add up to them; equal where no weight is positive.
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
