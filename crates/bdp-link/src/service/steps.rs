//! A wire whose rate changes in steps.

use bdp_model::units::{Nanos, Rate};

use super::rate::{self, Finish};

/// A rate that changes at given instants. A packet that is on the wire then goes on at the new rate; zero is an outage.
#[derive(Debug, Clone)]
pub struct Steps {
    initial: Rate,
    /// Ascending.
    changes: Vec<(Nanos, Rate)>,
}

impl Steps {
    /// `initial` from the beginning of the clock, then each rate from its instant on; of two at one instant the later given.
    pub fn new(initial: Rate, mut changes: Vec<(Nanos, Rate)>) -> Self {
        changes.sort_by_key(|(at, _)| *at);
        Self { initial, changes }
    }

    pub(super) fn finish(&self, start: Nanos, mut work: u128) -> Option<Finish> {
        if work == 0 {
            return Some(Finish { at: start, left: 0 });
        }
        for (rate, from, to) in self.stretches(start) {
            let whole = rate::capacity(rate, from, to);
            if work <= whole {
                return rate::finish(rate, from, work);
            }
            work -= whole;
        }
        None
    }

    pub(super) fn capacity(&self, from: Nanos, to: Nanos) -> u128 {
        self.stretches(from)
            .take_while(|(_, begin, _)| *begin < to)
            .map(|(rate, begin, end)| rate::capacity(rate, begin, end.min(to)))
            .fold(0, u128::saturating_add)
    }

    /// Each rate from `from` on with its first instant and the next one's, to the end of the clock.
    fn stretches(&self, from: Nanos) -> impl Iterator<Item = (Rate, Nanos, Nanos)> {
        let next = self.changes.partition_point(|(at, _)| *at <= from);
        let current = next.checked_sub(1).map_or(self.initial, |last| self.changes[last].1);
        let later = &self.changes[next..];
        let ends = later.iter().map(|(at, _)| *at).chain([Nanos(u64::MAX)]);
        [(from, current)]
            .into_iter()
            .chain(later.iter().copied())
            .zip(ends)
            .map(|((at, rate), end)| (rate, at, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::work;

    fn steps(initial: u64, changes: &[(u64, u64)]) -> Steps {
        Steps::new(
            Rate::bps(initial),
            changes.iter().map(|&(at, rate)| (Nanos(at), Rate::bps(rate))).collect(),
        )
    }

    #[test]
    fn one_step_is_one_rate() {
        for rate_bps in [3, 7, 999_999_937] {
            let (one, stepped) = (Rate::bps(rate_bps), steps(rate_bps, &[(5, rate_bps), (1_000, rate_bps)]));
            for (start, bits) in [(0, 1), (4, 8), (5, 12_304), (999, 3), (1_000, 77)] {
                let expected = rate::finish(one, Nanos(start), work(bits));
                assert_eq!(stepped.finish(Nanos(start), work(bits)), expected);
                let end = Nanos(start + bits);
                assert_eq!(stepped.capacity(Nanos(start), end), rate::capacity(one, Nanos(start), end));
            }
        }
    }

    #[test]
    fn work_that_ends_with_a_stretch_does_not_wait_for_the_next() {
        // 10 bits at 1 Gbit/s take 10 ns; then there is an outage of 90.
        let outage = steps(1_000_000_000, &[(10, 0), (100, 2_000_000_000)]);
        assert_eq!(outage.finish(Nanos(0), work(10)), Some(Finish { at: Nanos(10), left: 0 }));
        assert_eq!(outage.finish(Nanos(0), work(11)), Some(Finish { at: Nanos(100), left: 1_000_000_000 }));
        assert_eq!(outage.finish(Nanos(50), work(4)), Some(Finish { at: Nanos(102), left: 0 }));
        assert_eq!(outage.finish(Nanos(50), 0), Some(Finish { at: Nanos(50), left: 0 }));
        assert_eq!(outage.capacity(Nanos(5), Nanos(105)), work(5 + 10));
        assert_eq!(steps(0, &[]).finish(Nanos(0), 1), None);
    }

    #[test]
    fn of_two_steps_at_one_instant_the_later_given_holds() {
        let twice = steps(1, &[(10, 5), (10, 7)]);
        assert_eq!(twice.capacity(Nanos(10), Nanos(20)), 70);
        assert_eq!(twice.capacity(Nanos(8), Nanos(12)), 2 + 14);
    }
}
