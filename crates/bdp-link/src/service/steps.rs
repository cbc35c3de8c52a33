//! A wire whose rate changes in steps.

use bdp_model::link::over_time::{Between, Timeline};
use bdp_model::units::{Nanos, Rate};

use super::rate::{self, Finish};

/// A rate that changes at given instants. A packet on the wire continues at the new rate; zero is an outage.
#[derive(Debug, Clone)]
pub struct Steps {
    /// The first starts with the clock; no two start at one instant.
    stretches: Vec<Stretch>,
}

#[derive(Debug, Clone, Copy)]
struct Stretch {
    from: Nanos,
    rate: Rate,
    /// Work done before it, since the start of the clock.
    done: u128,
}

/// A ramp is a staircase of steps of this length, each with the rate of its middle.
const RAMP_STEP: Nanos = Nanos::millis(1);
/// Number of steps of a longer ramp.
const RAMP_STEPS: u64 = 10_000;

impl Steps {
    /// `initial` from the start of the clock, then each rate from its instant on; at equal instants the later entry applies.
    pub fn new(initial: Rate, mut changes: Vec<(Nanos, Rate)>) -> Self {
        changes.sort_by_key(|(at, _)| *at);
        let mut stretches = vec![Stretch { from: Nanos::ZERO, rate: initial, done: 0 }];
        for (from, rate) in changes {
            let last = stretches[stretches.len() - 1];
            if last.from == from {
                stretches.pop();
            }
            let done = last.done + rate::capacity(last.rate, last.from, from);
            stretches.push(Stretch { from, rate, done });
        }
        Self { stretches }
    }

    /// Steps of a timeline, with ramps as staircases.
    pub(super) fn of(timeline: &Timeline<Rate>) -> Self {
        let moments = timeline.moments();
        let mut changes: Vec<(Nanos, Rate)> = Vec::new();
        for (moment, next) in moments.iter().zip(moments.iter().skip(1).map(Some).chain([None])) {
            let (Timeline::Ramp(_), Some(next)) = (timeline, next) else {
                changes.push((moment.at, moment.value));
                continue;
            };
            let whole = (next.at - moment.at).as_ns();
            let steps = whole.div_ceil(RAMP_STEP.as_ns()).clamp(1, RAMP_STEPS);
            let begin = |step: u64| (u128::from(whole) * u128::from(step) / u128::from(steps)) as u64;
            changes.extend((0..steps).map(|step| {
                let middle = begin(step).midpoint(begin(step + 1));
                (moment.at + Nanos(begin(step)), moment.value.towards(next.value, middle, whole))
            }));
        }
        Self::new(changes.first().map_or(Rate::bps(0), |(_, rate)| *rate), changes)
    }

    /// The largest rate.
    pub(super) fn most(&self) -> Rate {
        self.stretches.iter().map(|stretch| stretch.rate).max().unwrap_or_default()
    }

    pub(super) fn finish(&self, start: Nanos, work: u128) -> Option<Finish> {
        if work == 0 {
            return Some(Finish { at: start, left: 0 });
        }
        let target = self.done_by(start).checked_add(work)?;
        // The last stretch that begins before the target is done.
        let stretch = self.stretches[self.stretches.partition_point(|stretch| stretch.done < target) - 1];
        let from = stretch.from.max(start);
        let done = stretch.done + rate::capacity(stretch.rate, stretch.from, from);
        rate::finish(stretch.rate, from, target - done)
    }

    pub(super) fn capacity(&self, from: Nanos, to: Nanos) -> u128 {
        self.done_by(to.max(from)) - self.done_by(from)
    }

    /// Work done from the start of the clock to an instant.
    fn done_by(&self, at: Nanos) -> u128 {
        let stretch = self.stretches[self.stretches.partition_point(|stretch| stretch.from <= at) - 1];
        stretch.done + rate::capacity(stretch.rate, stretch.from, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::work::work;

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

    #[test]
    fn a_ramp_does_what_its_mean_rate_does() {
        use bdp_model::link::over_time::Moment;
        let moment = |ms, mbps| Moment { at: Nanos::millis(ms), value: Rate::mbps(mbps) };
        let ramp = Steps::of(&Timeline::Ramp(vec![moment(0, 10), moment(1_000, 30), moment(61_000, 0)]));
        // 20 Mbit/s on average for a second, 15 for a minute; then nothing.
        assert_eq!(ramp.capacity(Nanos::ZERO, Nanos::secs(1)), work(20_000_000));
        assert_eq!(ramp.capacity(Nanos::secs(1), Nanos::secs(61)), work(900_000_000));
        assert_eq!(ramp.capacity(Nanos::secs(61), Nanos(u64::MAX)), 0);
        assert_eq!(ramp.stretches.len(), 1_000 + 10_000 + 1);
        // In its first millisecond the rate of its middle: 10.01 Mbit/s.
        assert_eq!(ramp.capacity(Nanos::ZERO, Nanos::millis(1)), work(10_010));
        assert_eq!(ramp.finish(Nanos::secs(61), 1), None);
    }
}
