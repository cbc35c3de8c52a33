//! Where the time of one way went, in memory that does not grow: a sum for each state and bucket of time. Buckets become twice as wide when there are
//! too many; the nanoseconds in them add up to the time that was told.

use bdp_model::facts::{Stretch, TimeSpent, TimeState};

/// Buckets at the most.
const MOST: u64 = 256;
/// Width of a bucket at first.
const NARROWEST_NS: u64 = 1_000_000;

#[derive(Debug, Clone, Default)]
pub(super) struct Timeline {
    began: Option<u64>,
    until: u64,
    width: u64,
    /// Bucket, state, nanoseconds; in order of the buckets.
    sums: Vec<(u32, TimeState, u64)>,
}

impl Timeline {
    /// Memory that it has beside its own place.
    pub fn held_bytes(&self) -> usize {
        self.sums.capacity() * size_of::<(u32, TimeState, u64)>()
    }

    /// The time begins here, if it has not begun.
    pub fn begin(&mut self, at: u64) {
        if self.began.is_none() {
            (self.began, self.until, self.width) = (Some(at), at, NARROWEST_NS);
        }
    }

    /// Up to when the time is told.
    pub fn until(&self) -> u64 {
        self.until
    }

    /// Tells the time from where it was told up to now.
    pub fn add(&mut self, until: u64, state: TimeState) {
        let Some(began) = self.began.filter(|_| until > self.until) else { return };
        while (until - began) / self.width >= MOST {
            self.widen();
        }
        while self.until < until {
            let bucket = (self.until - began) / self.width;
            let to = until.min(began + (bucket + 1) * self.width);
            self.put(bucket as u32, state, to - self.until);
            self.until = to;
        }
    }

    fn put(&mut self, bucket: u32, state: TimeState, ns: u64) {
        let own = self.sums.iter_mut().rev().take_while(|sum| sum.0 == bucket).find(|sum| sum.1 == state);
        match own {
            Some(sum) => sum.2 += ns,
            None => self.sums.push((bucket, state, ns)),
        }
    }

    fn widen(&mut self) {
        self.width *= 2;
        let before = std::mem::take(&mut self.sums);
        before.into_iter().for_each(|(bucket, state, ns)| self.put(bucket / 2, state, ns));
    }

    /// Calls what was told by one name since a moment, the last of it, by another.
    pub fn retell(&mut self, since: u64, from: TimeState, to: TimeState) {
        let Some(began) = self.began.filter(|_| since < self.until) else { return };
        let mut left = self.until - since;
        let first = ((since - began) / self.width) as u32;
        let before = std::mem::take(&mut self.sums);
        for (bucket, state, ns) in before {
            let part = if state == from && bucket >= first { ns.min(left) } else { 0 };
            // Of the first bucket only what is behind the moment.
            let part = match bucket == first {
                true => part.min(began + (u64::from(bucket) + 1) * self.width - since),
                false => part,
            };
            left -= part;
            self.put(bucket, state, ns - part);
            if part > 0 {
                self.put(bucket, to, part);
            }
        }
        self.sums.retain(|sum| sum.2 > 0);
    }

    /// Calls what was told by one name by another.
    pub fn rename(&mut self, from: TimeState, to: TimeState) {
        let before = std::mem::take(&mut self.sums);
        before
            .into_iter()
            .for_each(|(bucket, state, ns)| self.put(bucket, if state == from { to } else { state }, ns));
    }

    /// Nanoseconds of a state.
    #[cfg(test)]
    pub fn of(&self, state: TimeState) -> u64 {
        self.sums.iter().filter(|sum| sum.1 == state).map(|sum| sum.2).sum()
    }

    /// All of it, since it began.
    pub fn spent(&self) -> TimeSpent {
        let Some(began) = self.began else { return TimeSpent::default() };
        let bound = |bucket: u32| (u64::from(bucket) * self.width).min(self.until - began);
        let stretches = self
            .sums
            .chunk_by(|a, b| a.0 == b.0)
            .map(|sums| Stretch {
                from_ns: bound(sums[0].0),
                to_ns: bound(sums[0].0 + 1),
                states: sums.iter().map(|&(_, state, ns)| (state, ns)).collect(),
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
        /// Whatever is told: every nanosecond is in one state, without gaps, in a bounded number of buckets.
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
