//! Delays each way, from messages that were sent back with the times of the other end.
//!
//! Nobody knows how far two clocks are apart but by such messages (RFC 5905, section 8): the quickest of them tells best, with an
//! error of half its round trip, and from then on the clocks may drift.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::stats::resolves;
use crate::udp::OneWayDelay;

/// What two clocks may drift apart by: 50 millionths each way is what crystals are sold with.
const DRIFT_PER_NS: f64 = 100e-6;

/// A message's four times, nanoseconds: its own by the near clock, the far end's by the far one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// When it was sent, near clock.
    pub sent_ns: u64,
    /// When it came to the far end, far clock.
    pub arrived_ns: u64,
    /// When it left there, far clock.
    pub returned_ns: u64,
    /// When it was back, near clock.
    pub received_ns: u64,
}

impl Exchange {
    /// Its round trip without the time that the far end kept it; `None` where the clocks contradict themselves.
    pub fn round_trip_ns(&self) -> Option<u64> {
        let away = self.received_ns.checked_sub(self.sent_ns)?;
        away.checked_sub(self.returned_ns.checked_sub(self.arrived_ns)?)
    }
}

/// The far clock against the near one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockOffset {
    /// Far less near, nanoseconds.
    pub far_ahead_ns: i64,
    /// It may be off by so much when they were compared: half of that round trip. [`ClockOffset::error_within`] tells it of later.
    pub error_ns: u64,
    /// When they were compared, near clock.
    pub at_ns: u64,
}

impl ClockOffset {
    /// How far it may be off anywhere within a time of the near clock: the error of the comparison, and what the clocks may
    /// drift apart from then to the end of that time that is further away.
    pub fn error_within(&self, span_ns: &Range<u64>) -> u64 {
        let away = span_ns.start.abs_diff(self.at_ns).max(span_ns.end.abs_diff(self.at_ns));
        self.error_ns.saturating_add((away as f64 * DRIFT_PER_NS).ceil() as u64)
    }

    /// By the quickest exchange.
    pub fn of<'a>(exchanges: impl IntoIterator<Item = &'a Exchange>) -> Option<Self> {
        let timed = exchanges.into_iter().filter_map(|e| Some((e.round_trip_ns()?, e)));
        let (round_trip_ns, best) = timed.min_by_key(|&(round_trip_ns, _)| round_trip_ns)?;
        let there = best.arrived_ns.wrapping_sub(best.sent_ns) as i64;
        Some(Self {
            far_ahead_ns: there.wrapping_sub((round_trip_ns / 2) as i64),
            error_ns: round_trip_ns.div_ceil(2),
            at_ns: best.sent_ns,
        })
    }
}

/// Delays of the same messages there and back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EachWay {
    /// From the near end to the far one.
    pub there: OneWayDelay,
    /// From the far end to the near one.
    pub back: OneWayDelay,
}

impl EachWay {
    /// Of these exchanges; `None` of none.
    pub fn of<'a>(exchanges: impl IntoIterator<Item = &'a Exchange>, clocks: ClockOffset) -> Option<Self> {
        let (mut there, mut back, mut first_ns, mut last_ns) = (Vec::new(), Vec::new(), u64::MAX, 0);
        for e in exchanges {
            there.push((e.arrived_ns.wrapping_sub(e.sent_ns) as i64).wrapping_sub(clocks.far_ahead_ns));
            back.push((e.received_ns.wrapping_sub(e.returned_ns) as i64).wrapping_add(clocks.far_ahead_ns));
            (first_ns, last_ns) = (first_ns.min(e.sent_ns), last_ns.max(e.received_ns));
        }
        let clock_error = clocks.error_within(&(first_ns..last_ns));
        Some(Self { there: distribution(there, clock_error)?, back: distribution(back, clock_error)? })
    }
}

/// The same delays before the load and under it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EachWayReport {
    /// Before the load.
    pub idle: Option<EachWay>,
    /// Under it.
    pub loaded: Option<EachWay>,
}

fn distribution(mut delays: Vec<i64>, clock_error: u64) -> Option<OneWayDelay> {
    delays.sort_unstable();
    // The smallest value that so many percent do not exceed.
    let at = |percent: usize| delays.get((delays.len() * percent).div_ceil(100).saturating_sub(1)).copied();
    let resolved =
        |percent: usize| resolves(delays.len() as u64, percent as f64).then(|| at(percent)).flatten();
    Some(OneWayDelay {
        min: at(0)?,
        p50: at(50)?,
        p95: resolved(95),
        p99: resolved(99),
        max: at(100)?,
        clock_error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR_AHEAD: i64 = 1_790_000_000_000_000_000;

    /// A message that takes so long there and back, and is kept for 30 us.
    fn exchange(sent_ns: u64, there_ns: u64, back_ns: u64) -> Exchange {
        let arrived_ns = (sent_ns + there_ns).wrapping_add_signed(FAR_AHEAD);
        let returned_ns = arrived_ns + 30_000;
        Exchange { sent_ns, arrived_ns, returned_ns, received_ns: sent_ns + there_ns + 30_000 + back_ns }
    }

    #[test]
    fn an_even_path_tells_the_clocks_apart_and_a_queue_shows_on_its_own_way() {
        let idle = [exchange(0, 5_000_000, 5_000_000), exchange(50_000_000, 5_200_000, 5_100_000)];
        let loaded: Vec<_> =
            (2..102).map(|i| exchange(i * 50_000_000, 5_000_000 + i * 100_000, 5_000_000)).collect();
        let clocks = ClockOffset::of(idle.iter().chain(&loaded)).unwrap();
        assert_eq!(clocks, ClockOffset { far_ahead_ns: FAR_AHEAD, error_ns: 5_000_000, at_ns: 0 });
        let quiet = EachWay::of(&idle, clocks).unwrap();
        assert_eq!((quiet.there.min, quiet.there.max, quiet.back.max), (5_000_000, 5_200_000, 5_100_000));
        let full = EachWay::of(&loaded, clocks).unwrap();
        assert_eq!(
            (full.there.min, full.there.p50, full.there.p99),
            (5_200_000, 10_100_000, Some(15_000_000))
        );
        assert_eq!((full.back.min, full.back.max), (5_000_000, 5_000_000));
        // When the last one is back, 5.07 s later, the clocks may be another half millisecond apart.
        assert_eq!(full.there.clock_error, 5_000_000 + 507_013);
    }

    #[test]
    fn the_error_grows_with_the_time_since_the_comparison() {
        let clocks = ClockOffset { far_ahead_ns: FAR_AHEAD, error_ns: 50_000, at_ns: 2_000_000_000 };
        // 100 ppm: 1 ms after 10 s. The end of the span that is further away rules, before the comparison too.
        assert_eq!(clocks.error_within(&(2_000_000_000..12_000_000_000)), 50_000 + 1_000_000);
        assert_eq!(clocks.error_within(&(0..2_000_000_000)), 50_000 + 200_000);
        assert_eq!(clocks.error_within(&(2_000_000_000..2_000_000_000)), 50_000);
    }

    #[test]
    fn an_uneven_path_is_off_by_no_more_than_the_error() {
        for (there_ns, back_ns) in [(9_000_000, 1_000_000), (1_000_000, 9_000_000), (10_000_001, 0)] {
            let exchanges = [exchange(7, there_ns, back_ns), exchange(9, there_ns + 3, back_ns)];
            let ways = EachWay::of(&exchanges, ClockOffset::of(&exchanges).unwrap()).unwrap();
            for (told, true_ns) in [(ways.there, there_ns), (ways.back, back_ns)] {
                assert!(told.min.abs_diff(true_ns as i64) <= told.clock_error, "{told:?} of {true_ns}");
            }
        }
    }

    #[test]
    fn clocks_that_contradict_themselves_tell_nothing() {
        let sound = exchange(0, 10, 10);
        let stepped = Exchange { returned_ns: sound.arrived_ns + 100_000_000, ..sound };
        let back_in_time = Exchange { returned_ns: sound.arrived_ns - 1, ..sound };
        assert_eq!(ClockOffset::of(&[stepped, back_in_time]), None);
        assert_eq!(ClockOffset::of(&[]), None);
        let clocks = ClockOffset::of(&[sound]).unwrap();
        assert_eq!(EachWay::of(&[], clocks), None);
    }
}
