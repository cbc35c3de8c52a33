//! When readings of a flow are due, and which of it counts: by the flow's own time, passed as an argument.

use bdp_model::units::Nanos;
use bdp_wire::control::Mark;

/// Shortest time between two samples.
const SHORTEST: u64 = 1_000_000;

/// When samples are due: at multiples of an interval, the first at once. A late sample does not shift later ones.
#[derive(Debug, Clone, Copy)]
pub struct Cadence {
    interval_ns: u64,
    next_ns: u64,
}

impl Cadence {
    /// Creates a cadence with this interval, at least a millisecond.
    pub fn every(interval: Nanos) -> Self {
        Self { interval_ns: interval.as_ns().max(SHORTEST), next_ns: 0 }
    }

    /// Returns when the next sample is due.
    pub const fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Whether a sample is due; if so, advances to the next.
    pub fn take(&mut self, at_ns: u64) -> bool {
        let is_due = at_ns >= self.next_ns;
        if is_due {
            self.next_ns = at_ns - at_ns % self.interval_ns + self.interval_ns;
        }
        is_due
    }
}

/// Bytes of each stream at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Time since the first byte.
    pub at_ns: u64,
    /// Bytes of each stream.
    pub streams: Vec<u64>,
}

impl Reading {
    /// Returns the sum of all streams.
    pub fn mark(&self) -> Mark {
        Mark { at_ns: self.at_ns, bytes: self.streams.iter().sum() }
    }
}

/// The part of a flow that counts if its beginning may be omitted: from the first reading after that to the last.
#[derive(Debug, Clone)]
pub struct Counting {
    omit_ns: u64,
    /// The last reading within the omitted beginning.
    before: Reading,
    from: Option<Reading>,
    last: Reading,
}

impl Counting {
    /// Creates the counting of this many streams.
    pub fn new(omit: Nanos, streams: usize) -> Self {
        let start = Reading { at_ns: 0, streams: vec![0; streams] };
        Self { omit_ns: omit.as_ns(), before: start.clone(), from: None, last: start }
    }

    /// Returns the last reading.
    pub const fn last(&self) -> &Reading {
        &self.last
    }

    /// Whether counting begins with a reading at this moment.
    pub const fn begins(&self, at_ns: u64) -> bool {
        self.from.is_none() && at_ns >= self.omit_ns
    }

    /// Whether counting has begun at this moment.
    pub fn has_begun(&self, at_ns: u64) -> bool {
        self.from.as_ref().is_some_and(|from| from.at_ns < at_ns)
    }

    /// Returns when the reading is due with which counting begins, until it was taken.
    pub fn due_ns(&self) -> u64 {
        if self.from.is_none() { self.omit_ns } else { u64::MAX }
    }

    /// Adds a reading. If nothing is omitted, everything counts from the first byte on.
    pub fn note(&mut self, at_ns: u64, streams: Vec<u64>) {
        self.note_from(at_ns, streams, |streams| vec![0; streams.len()]);
    }

    /// Adds a reading of a flow whose time begins after its first read: the bytes of that read do not count.
    pub fn note_after_first_read(&mut self, at_ns: u64, streams: Vec<u64>) {
        self.note_from(at_ns, streams, <[u64]>::to_vec);
    }

    /// `first` returns what the streams had when the flow began.
    fn note_from(&mut self, at_ns: u64, streams: Vec<u64>, first: impl FnOnce(&[u64]) -> Vec<u64>) {
        let before = std::mem::replace(&mut self.last, Reading { at_ns, streams });
        if self.begins(at_ns) {
            self.from = Some(match self.omit_ns {
                0 => Reading { at_ns: 0, streams: first(&self.last.streams) },
                _ => self.last.clone(),
            });
            self.before = before;
        }
    }

    /// Returns where counting began in a flow that ended with the last reading, and the bytes of each stream since.
    /// If the machine paused until the end, the last reading within the omitted beginning counts too, so that there
    /// is something to count; a flow that ended within the omitted beginning has nothing.
    pub fn counted(&self) -> (Mark, Vec<u64>) {
        let from = match &self.from {
            Some(from) if from.at_ns < self.last.at_ns => from,
            _ if self.omit_ns > 0 && self.last.at_ns > self.omit_ns => &self.before,
            Some(from) if self.omit_ns == 0 => from,
            _ => &self.last,
        };
        let since = |(now, before): (&u64, &u64)| now.saturating_sub(*before);
        (from.mark(), self.last.streams.iter().zip(&from.streams).map(since).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn samples_are_due_at_multiples_of_the_interval_however_late_one_is() {
        let mut cadence = Cadence::every(Nanos::millis(100));
        let taken: Vec<u64> =
            [0, 1, 99, 100, 150, 350, 399, 400].into_iter().filter(|&ms| cadence.take(ms * MS)).collect();
        assert_eq!(taken, [0, 100, 350, 400]);
        assert_eq!(cadence.next_ns(), 500 * MS);
        let mut shortest = Cadence::every(Nanos::ZERO);
        assert!(shortest.take(7));
        assert_eq!(shortest.next_ns(), MS);
    }

    /// Returns what counts of readings at these milliseconds, of one stream: from when, from which byte on, and how
    /// many bytes.
    fn counted(omit_ms: u64, readings: &[(u64, u64)]) -> (u64, u64, u64) {
        let mut counting = Counting::new(Nanos::millis(omit_ms), 1);
        readings.iter().for_each(|&(ms, bytes)| counting.note(ms * MS, vec![bytes]));
        let (from, streams) = counting.counted();
        (from.at_ns / MS, from.bytes, streams[0])
    }

    #[test]
    fn what_came_since_the_first_reading_past_the_omit_counts() {
        assert_eq!(counted(100, &[(0, 1), (90, 50), (105, 60), (200, 160)]), (105, 60, 100));
        assert_eq!(counted(0, &[(5, 10), (200, 160)]), (0, 0, 160));
        assert_eq!(counted(0, &[]), (0, 0, 0));
        // Paused from within the omit to the end, and ended within it.
        assert_eq!(counted(100, &[(0, 1), (90, 50), (200, 160)]), (90, 50, 110));
        assert_eq!(counted(100, &[(200, 160)]), (0, 0, 160));
        assert_eq!(counted(100, &[(0, 1), (90, 50)]), (90, 50, 0));
        // The end was before the last check.
        assert_eq!(counted(100, &[(90, 50), (210, 160), (200, 160)]), (90, 50, 110));
        assert_eq!(counted(100, &[(90, 50), (210, 160), (95, 60)]), (95, 60, 0));
    }

    #[test]
    fn what_the_first_read_took_came_before_the_time_of_the_flow() {
        let mut counting = Counting::new(Nanos::ZERO, 2);
        assert!(counting.begins(0) && !counting.has_begun(5));
        counting.note_after_first_read(0, vec![7, 0]);
        counting.note_after_first_read(10, vec![17, 4]);
        assert!(!counting.begins(0) && counting.has_begun(5) && counting.due_ns() == u64::MAX);
        assert_eq!(counting.counted(), (Mark { at_ns: 0, bytes: 7 }, vec![10, 4]));
    }
}
