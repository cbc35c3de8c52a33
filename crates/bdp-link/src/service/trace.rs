//! A wire with delivery opportunities, as mahimahi's: each takes a number of bytes, of as many packets as are
//! there. An unused opportunity is lost. A packet is finished at the opportunity that takes its last byte.

use bdp_model::link::trace::{OPPORTUNITY_BYTES, Trace as Opportunities};
use bdp_model::units::Nanos;

use super::rate::Finish;
use super::work::work_of_bytes;

const NS_PER_MS: u64 = 1_000_000;

/// Opportunities since time zero.
#[derive(Debug, Clone)]
pub(super) struct Trace {
    /// Instants with opportunities, ascending, and the number before each.
    at: Vec<(u64, u64)>,
    /// Number of opportunities up to and including the last instant.
    all: u64,
    /// Number of opportunities at the last instant.
    last: u64,
    /// The last instant, at which the trace repeats if it does.
    length: u64,
    repeat: bool,
}

impl Trace {
    pub(super) fn new(trace: &Opportunities) -> Self {
        let mut all = 0;
        let at = trace.opportunities().iter().map(|(ms, count)| {
            let before = all;
            all += count;
            (ms * NS_PER_MS, before)
        });
        let at: Vec<_> = at.collect();
        let last = trace.opportunities().last().map_or(0, |(_, count)| *count);
        Self { at, all, last, length: trace.length_ms() * NS_PER_MS, repeat: trace.repeats() }
    }

    pub(super) fn finish(&self, start: Nanos, work: u128) -> Option<Finish> {
        if work == 0 {
            return Some(Finish { at: start, left: 0 });
        }
        let each = work_of_bytes(OPPORTUNITY_BYTES);
        let before = self.before(start.as_ns());
        let at = self.instant(before + (work - 1) / each)?;
        // Work that the instant's opportunities have done: the next packet continues there. Less than 2^64, since the
        // number of opportunities of an instant is bounded.
        let left = work - each * (self.before(at) - before);
        Some(Finish { at: Nanos(at), left: u64::try_from(left).ok()? })
    }

    pub(super) fn capacity(&self, from: Nanos, to: Nanos) -> u128 {
        let (from, to) = (from.as_ns(), to.as_ns().max(from.as_ns()));
        (self.before(to) - self.before(from)).saturating_mul(work_of_bytes(OPPORTUNITY_BYTES))
    }

    /// Number of opportunities before an instant.
    fn before(&self, at: u64) -> u128 {
        let (rounds, within) = match self.repeat {
            true => (at / self.length, at % self.length),
            false => (0, at),
        };
        let next = self.at.partition_point(|(instant, _)| *instant < within);
        let own = self.at.get(next).map_or(self.all, |(_, before)| *before);
        // At the instant at which a round ends and the next one begins.
        let ending = if rounds > 0 && within == 0 { self.last } else { 0 };
        u128::from(rounds) * u128::from(self.all) + u128::from(own) - u128::from(ending)
    }

    /// When the opportunity comes that has this many before it.
    fn instant(&self, index: u128) -> Option<u64> {
        let all = u128::from(self.all);
        if index >= all && !self.repeat {
            return None;
        }
        let (rounds, within) = (u64::try_from(index / all).ok()?, (index % all) as u64);
        let (instant, _) = self.at[self.at.partition_point(|(_, before)| *before <= within) - 1];
        rounds.checked_mul(self.length)?.checked_add(instant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(repeat: bool, at: &[(u64, u64)]) -> Trace {
        Trace::new(&Opportunities::new("t", repeat, at.to_vec()).unwrap())
    }

    /// Opportunities one by one, as mahimahi burns them.
    fn listed(repeat: bool, at: &[(u64, u64)]) -> Vec<u64> {
        let length = at[at.len() - 1].0;
        let rounds = if repeat { 5 } else { 1 };
        (0..rounds)
            .flat_map(|round| at.iter().map(move |(ms, count)| (round * length + ms, *count)))
            .flat_map(|(ms, count)| std::iter::repeat_n(ms * NS_PER_MS, count as usize))
            .collect()
    }

    #[test]
    fn finds_each_opportunity_of_the_list() {
        for (repeat, at) in [
            (true, vec![(0, 2), (3, 1), (10, 3)]),
            (true, vec![(7, 1)]),
            (true, vec![(0, 1), (1, 1)]),
            (false, vec![(0, 2), (3, 1), (10, 3)]),
        ] {
            let (trace, list) = (trace(repeat, &at), listed(repeat, &at));
            let each = work_of_bytes(OPPORTUNITY_BYTES);
            // Not the last round, which the list doesn't repeat.
            let most = list.len() - if repeat { at.len() * 4 } else { 0 };
            for start in (0..=list[most - 1]).step_by(500_000) {
                let later: Vec<u64> = list.iter().copied().filter(|at| *at >= start).collect();
                for (index, at) in later.iter().take(6).enumerate() {
                    for work in [index as u128 * each + 1, (index as u128 + 1) * each] {
                        let finish = trace.finish(Nanos(start), work).unwrap();
                        assert_eq!(finish.at, Nanos(*at), "{work} from {start} of {list:?}");
                        let before = later.iter().filter(|earlier| **earlier < *at).count() as u128;
                        assert_eq!(u128::from(finish.left), work - before * each);
                    }
                    let before = later.iter().filter(|earlier| **earlier < *at).count() as u128;
                    assert_eq!(trace.capacity(Nanos(start), Nanos(*at)), before * each);
                }
            }
            let end = trace.finish(Nanos::ZERO, (list.len() as u128 + 1) * each);
            assert_eq!(end.is_none(), !repeat);
        }
    }
}
