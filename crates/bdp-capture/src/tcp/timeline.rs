//! Time spent by one direction in bounded memory: a sum for each state and time bucket. The buckets double in width when there are
//! too many; their nanoseconds add up to the recorded time.

use bdp_model::facts::{Stretch, TimeSpent, TimeState};

/// Most buckets.
const MOST: u64 = 256;
/// Initial width of a bucket.
const NARROWEST_NS: u64 = 1_000_000;

#[derive(Debug, Clone, Default)]
pub(super) struct Timeline {
    began: Option<u64>,
    until: u64,
    width: u64,
    /// Sums, in order of the buckets.
    sums: Vec<Sum>,
    /// Time before which something is missing from the capture.
    lacks: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sum {
    bucket: u32,
    state: TimeState,
    /// No packet of this interval is known to be missing from the capture.
    is_seen: bool,
    ns: u64,
}

/// Whether a state without packets is known regardless of gaps in the capture.
const fn is_known_alone(state: TimeState) -> bool {
    matches!(
        state,
        TimeState::Unanswered
            | TimeState::Handshake
            | TimeState::TlsSetup
            | TimeState::NotAsked
            | TimeState::Answering
            | TimeState::RoundTrips
            | TimeState::SenderApplication
            | TimeState::Timeout
            | TimeState::Finished
    )
}

impl Timeline {
    /// Heap memory in use, bytes.
    pub fn held_bytes(&self) -> usize {
        self.sums.capacity() * size_of::<Sum>()
    }

    /// Starts the time, if it has not started.
    pub fn begin(&mut self, at: u64) {
        if self.began.is_none() {
            (self.began, self.until, self.width) = (Some(at), at, NARROWEST_NS);
        }
    }

    /// Returns the start of the time.
    pub fn began(&self) -> u64 {
        self.began.unwrap_or(0)
    }

    /// Returns the end of the recorded time.
    pub fn until(&self) -> u64 {
        self.until
    }

    /// Records that something before this moment is missing from the capture: the time until then is unknown.
    pub fn lacks(&mut self, now: u64) {
        self.lacks = self.lacks.max(now);
    }

    /// Records the time from the last record until now.
    pub fn add(&mut self, until: u64, state: TimeState) {
        if self.lacks > self.until {
            self.put_until(until.min(self.lacks), state, false);
        }
        self.put_until(until, state, true);
    }

    fn put_until(&mut self, until: u64, state: TimeState, is_seen: bool) {
        let Some(began) = self.began.filter(|_| until > self.until) else { return };
        while (until - began) / self.width >= MOST {
            self.widen();
        }
        while self.until < until {
            let bucket = (self.until - began) / self.width;
            let to = until.min(began + (bucket + 1) * self.width);
            self.put(Sum { bucket: bucket as u32, state, is_seen, ns: to - self.until });
            self.until = to;
        }
    }

    fn put(&mut self, of: Sum) {
        let is_same = |sum: &&mut Sum| sum.state == of.state && sum.is_seen == of.is_seen;
        let own = self.sums.iter_mut().rev().take_while(|sum| sum.bucket == of.bucket).find(is_same);
        match own {
            Some(sum) => sum.ns += of.ns,
            None => self.sums.push(of),
        }
    }

    fn widen(&mut self) {
        self.width *= 2;
        let before = std::mem::take(&mut self.sums);
        before.into_iter().for_each(|sum| self.put(Sum { bucket: sum.bucket / 2, ..sum }));
    }

    /// Renames one state to another in the last part, since a moment.
    pub fn retell(&mut self, since: u64, from: TimeState, to: TimeState) {
        let Some(began) = self.began.filter(|_| since < self.until) else { return };
        let mut left = self.until - since;
        let first = ((since - began) / self.width) as u32;
        let before = std::mem::take(&mut self.sums);
        for sum in before {
            let part = if sum.state == from && sum.bucket >= first { sum.ns.min(left) } else { 0 };
            // In the first bucket, only the part after the moment.
            let part = match sum.bucket == first {
                true => part.min(began + (u64::from(first) + 1) * self.width - since),
                false => part,
            };
            left -= part;
            self.put(Sum { ns: sum.ns - part, ..sum });
            if part > 0 {
                self.put(Sum { state: to, ns: part, ..sum });
            }
        }
        self.sums.retain(|sum| sum.ns > 0);
    }

    /// Renames one state to another.
    pub fn rename(&mut self, from: TimeState, to: TimeState) {
        self.rename_where(|sum| if sum.state == from { to } else { sum.state });
    }

    /// Removes what a capture with too many gaps can't show.
    pub fn doubt(&mut self) {
        self.rename_where(|sum| match sum.state {
            // The other direction shows whose turn it was.
            TimeState::OtherWay => sum.state,
            state if sum.is_seen && is_known_alone(state) => state,
            _ => TimeState::NotCaptured,
        });
    }

    fn rename_where(&mut self, name: impl Fn(&Sum) -> TimeState) {
        let before = std::mem::take(&mut self.sums);
        before.into_iter().for_each(|sum| self.put(Sum { state: name(&sum), is_seen: true, ..sum }));
    }

    /// Returns the nanoseconds in a state.
    #[cfg(test)]
    pub fn of(&self, state: TimeState) -> u64 {
        self.sums.iter().filter(|sum| sum.state == state).map(|sum| sum.ns).sum()
    }

    /// Returns all time since the start.
    pub fn spent(&self) -> TimeSpent {
        let Some(began) = self.began else { return TimeSpent::default() };
        let bound = |bucket: u32| (u64::from(bucket) * self.width).min(self.until - began);
        let stretches = self
            .sums
            .chunk_by(|a, b| a.bucket == b.bucket)
            .map(|sums| Stretch {
                from_ns: bound(sums[0].bucket),
                to_ns: bound(sums[0].bucket + 1),
                states: sums.iter().map(|sum| (sum.state, sum.ns)).collect(),
            })
            .collect();
        TimeSpent { stretches }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// In any sequence of records, every nanosecond is in one state, without gaps, in a bounded number of buckets.
        #[test]
        fn states_add_up_to_the_nanosecond(steps in prop::collection::vec((0..5_usize, 0..40_u32), 1..200)) {
            let mut line = Timeline::default();
            line.begin(7);
            let mut sums = [0_u64; 5];
            let mut at = 7;
            for (state, power) in steps {
                let ns = 1_u64 << power;
                at += ns;
                sums[state] += ns;
                line.add(at, TimeState::ALL[state]);
            }
            let spent = line.spent();
            prop_assert_eq!(spent.total_ns(), at - 7);
            for (state, sum) in sums.into_iter().enumerate() {
                prop_assert_eq!(line.of(TimeState::ALL[state]), sum);
            }
            for stretch in &spent.stretches {
                prop_assert_eq!(stretch.states.iter().map(|s| s.1).sum::<u64>(), stretch.to_ns - stretch.from_ns);
            }
            prop_assert!(spent.stretches.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
            prop_assert!(spent.stretches.len() as u64 <= MOST);
        }
    }
}
