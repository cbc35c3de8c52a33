//! One-way delays, from messages that the far end echoed with its own times.
//!
//! The offset of two clocks can only be estimated from such messages (RFC 5905, section 8): the fastest gives the best estimate, with an
//! error of half its round trip; afterwards the clocks may drift.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::flow::udp::OneWayDelay;
use crate::probes::ProbePoint;
use crate::statistics::resolves;

/// Largest drift between two clocks: crystals are specified to 50 ppm each.
const DRIFT_PER_NS: f64 = 100e-6;

/// The four timestamps of a message, nanoseconds: its own by the near clock, the far end's by the far clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// When it was sent, by the near clock.
    pub sent_ns: u64,
    /// When it reached the far end, by the far clock.
    pub arrived_ns: u64,
    /// When it was sent back, by the far clock.
    pub returned_ns: u64,
    /// When it was received, by the near clock.
    pub received_ns: u64,
}

impl Exchange {
    /// Returns its round trip without the time spent at the far end; `None` if the timestamps contradict each other.
    pub fn round_trip_ns(&self) -> Option<u64> {
        let away = self.received_ns.checked_sub(self.sent_ns)?;
        away.checked_sub(self.returned_ns.checked_sub(self.arrived_ns)?)
    }

    /// Returns its delays there and back, with this clock offset and skew.
    pub fn delays_ns(&self, clocks: ClockOffset, skew: Option<ClockSkew>) -> (i64, i64) {
        let ahead = |at_ns: u64| {
            let since = at_ns.wrapping_sub(clocks.at_ns) as i64;
            let drifted = skew.map_or(0.0, |skew| skew.ppm * 1e-6 * since as f64);
            clocks.far_ahead_ns.wrapping_add(drifted.round() as i64)
        };
        (
            (self.arrived_ns.wrapping_sub(self.sent_ns) as i64).wrapping_sub(ahead(self.sent_ns)),
            (self.received_ns.wrapping_sub(self.returned_ns) as i64).wrapping_add(ahead(self.received_ns)),
        )
    }
}

/// Offset of the far clock from the near one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockOffset {
    /// Far clock minus near clock, nanoseconds.
    pub far_ahead_ns: i64,
    /// Error of the offset when the clocks were compared: half of that round trip. [`ClockOffset::error_within`] adds the drift since.
    pub error_ns: u64,
    /// When the clocks were compared, by the near clock.
    pub at_ns: u64,
}

impl ClockOffset {
    /// Returns the largest error of the offset within a time of the near clock: the error of the comparison plus the drift
    /// from then to the more distant end of that time.
    pub fn error_within(&self, span_ns: &Range<u64>) -> u64 {
        let away = span_ns.start.abs_diff(self.at_ns).max(span_ns.end.abs_diff(self.at_ns));
        self.error_ns.saturating_add((away as f64 * DRIFT_PER_NS).ceil() as u64)
    }

    /// Estimates the offset from the fastest exchange.
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

/// How much faster the far clock runs than the near one.
///
/// Slope of the line below all one-way delays of a direction that minimises the sum of distances: delay above the smallest is never
/// negative, so the line follows the clocks and not the queue (Moon, Skelly and Towsley, "Estimation and removal of clock skew
/// from network delay measurements", INFOCOM 1999, the linear program of section IV). Both directions see the same skew with
/// opposite signs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockSkew {
    /// Far clock minus near clock, parts per million.
    pub ppm: f64,
    /// Half of the difference between the two directions: a steadily growing queue looks like a skew in its own direction.
    pub error_ppm: f64,
}

/// Fewest exchanges that a skew is estimated from.
const LEAST_EXCHANGES: usize = 20;
/// Largest skew of working clocks: NTP corrects by at most 500 ppm each (RFC 5905, section 11.3).
const MOST_PPM: f64 = 1_000.0;

/// Error that is accepted for any skew: clocks whose skew is known this well count as not drifting.
const LEAST_ERROR_PPM: f64 = 2.0;

impl ClockSkew {
    /// Estimates the skew from exchanges in sending order; `None` if there are too few, or if the two directions do not agree on
    /// one.
    pub fn of(exchanges: &[Exchange]) -> Option<Self> {
        let (first, last) = (exchanges.first()?, exchanges.len());
        if last < LEAST_EXCHANGES {
            return None;
        }
        let (clock, ahead) = (first.sent_ns, first.arrived_ns.wrapping_sub(first.sent_ns));
        let since = |at_ns: u64| at_ns.wrapping_sub(clock) as i64;
        let there = exchanges
            .iter()
            .map(|e| (since(e.sent_ns), e.arrived_ns.wrapping_sub(e.sent_ns).wrapping_sub(ahead) as i64));
        let back = exchanges.iter().map(|e| {
            (since(e.received_ns), e.received_ns.wrapping_sub(e.returned_ns).wrapping_add(ahead) as i64)
        });
        let (there, back) = (envelope_slope(there.collect())?, -envelope_slope(back.collect())?);
        let (ppm, error_ppm) = ((there + back) / 2.0 * 1e6, (there - back).abs() / 2.0 * 1e6);
        (ppm.abs() <= MOST_PPM && error_ppm <= (ppm.abs() / 2.0).max(LEAST_ERROR_PPM))
            .then_some(Self { ppm, error_ppm })
    }
}

/// Returns the slope of the line below all points that minimises the sum of distances: the edge of their lower convex hull that spans
/// the mean time. `None` if all points are at the same moment.
pub fn envelope_slope(mut points: Vec<(i64, i64)>) -> Option<f64> {
    points.sort_unstable();
    let mean = points.iter().map(|&(at, _)| i128::from(at)).sum::<i128>() / (points.len() as i128).max(1);
    let mut hull: Vec<(i64, i64)> = Vec::new();
    for point in points {
        // Of points at the same moment only the lowest, which sorts first.
        if hull.last().is_some_and(|last| last.0 == point.0) {
            continue;
        }
        while let [.., a, b] = hull.as_slice()
            && is_above(*a, *b, point)
        {
            hull.pop();
        }
        hull.push(point);
    }
    let edge =
        hull.windows(2).find(|edge| i128::from(edge[1].0) > mean).or_else(|| hull.windows(2).last())?;
    Some((edge[1].1 as f64 - edge[0].1 as f64) / (edge[1].0 as f64 - edge[0].0 as f64))
}

/// Whether the middle one of three points is on or above the line between the others.
fn is_above(a: (i64, i64), b: (i64, i64), c: (i64, i64)) -> bool {
    let [x, y] = [|p: (i64, i64)| i128::from(p.0), |p: (i64, i64)| i128::from(p.1)];
    (y(b) - y(a)) * (x(c) - x(a)) >= (y(c) - y(a)) * (x(b) - x(a))
}

/// One-way delays of the same messages, there and back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EachWay {
    /// From the near end to the far one.
    pub there: OneWayDelay,
    /// From the far end to the near one.
    pub back: OneWayDelay,
}

impl EachWay {
    /// Summarises these exchanges, corrected for the clock skew if known; `None` if there are none.
    pub fn of<'a>(
        exchanges: impl IntoIterator<Item = &'a Exchange>,
        clocks: ClockOffset,
        skew: Option<ClockSkew>,
    ) -> Option<Self> {
        let (mut there, mut back, mut first_ns, mut last_ns) = (Vec::new(), Vec::new(), u64::MAX, 0);
        for e in exchanges {
            let (there_ns, back_ns) = e.delays_ns(clocks, skew);
            there.push(there_ns);
            back.push(back_ns);
            (first_ns, last_ns) = (first_ns.min(e.sent_ns), last_ns.max(e.received_ns));
        }
        let clock_error = clocks.error_within(&(first_ns..last_ns));
        Some(Self { there: OneWayDelay::of(there, clock_error)?, back: OneWayDelay::of(back, clock_error)? })
    }
}

/// One-way delays before the load and under it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EachWayReport {
    /// Delays before the load.
    pub idle: Option<EachWay>,
    /// Delays under load.
    pub loaded: Option<EachWay>,
    /// Skew of the two clocks, which the delays are corrected for; null if unknown.
    #[serde(default)]
    pub skew: Option<ClockSkew>,
}

impl EachWay {
    /// Summarises the probes with both delays known, for hosts that share one clock; `None` if there are none.
    pub fn of_probes<'a>(points: impl IntoIterator<Item = &'a ProbePoint>) -> Option<Self> {
        let (there, back) = points.into_iter().filter_map(|p| Some((p.there_ns?, p.back_ns?))).unzip();
        Some(Self { there: OneWayDelay::of(there, 0)?, back: OneWayDelay::of(back, 0)? })
    }
}

impl OneWayDelay {
    /// Summarises these delays with this clock error; `None` if there are none.
    pub fn of(mut delays: Vec<i64>, clock_error: u64) -> Option<Self> {
        delays.sort_unstable();
        // The smallest value that at least this percentage does not exceed.
        let at =
            |percent: usize| delays.get((delays.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        let resolved =
            |percent: usize| resolves(delays.len() as u64, percent as f64).then(|| at(percent)).flatten();
        Some(Self {
            min: at(0)?,
            p50: at(50)?,
            p95: resolved(95),
            p99: resolved(99),
            max: at(100)?,
            clock_error,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FAR_AHEAD: i64 = 1_790_000_000_000_000_000;

    /// A message with these one-way delays that the far end keeps for 30 us.
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
        let quiet = EachWay::of(&idle, clocks, None).unwrap();
        assert_eq!((quiet.there.min, quiet.there.max, quiet.back.max), (5_000_000, 5_200_000, 5_100_000));
        let full = EachWay::of(&loaded, clocks, None).unwrap();
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
            let ways = EachWay::of(&exchanges, ClockOffset::of(&exchanges).unwrap(), None).unwrap();
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
        assert_eq!(EachWay::of(&[], clocks, None), None);
    }

    /// Exchanges every 50 ms with a far clock that runs faster by `ppm`, with these additions to the smallest delay of each direction.
    fn drifting(ppm: f64, added: &[(u64, u64)]) -> Vec<Exchange> {
        let one = |(i, &(there, back)): (usize, &(u64, u64))| {
            let sent_ns = i as u64 * 50_000_000;
            let drifted = |at: u64| at.wrapping_add_signed((at as f64 * ppm * 1e-6).round() as i64);
            let arrived = sent_ns + 5_000_000 + there;
            let (returned, received_ns) = (arrived + 30_000, arrived + 30_000 + 5_000_000 + back);
            let far = |at: u64| drifted(at).wrapping_add_signed(FAR_AHEAD);
            Exchange { sent_ns, arrived_ns: far(arrived), returned_ns: far(returned), received_ns }
        };
        added.iter().enumerate().map(one).collect()
    }

    proptest! {
        /// Whatever is added to either delay: if the addition is small at one moment on each side of the middle, the error of the skew is
        /// at most that addition over the time from there to the middle.
        #[test]
        fn a_skew_is_recovered_below_noise_that_only_adds(
            ppm in -300.0..300.0f64,
            mut added in prop::collection::vec((0u64..40_000_000, 0u64..40_000_000), 60..200),
            little in 0u64..2_000,
        ) {
            let n = added.len();
            for i in [n / 8, n - 1 - n / 8] {
                added[i] = (little, little);
            }
            let exchanges = drifting(ppm, &added);
            let slope = envelope_slope(
                exchanges.iter().map(|e| (e.sent_ns as i64, (e.arrived_ns - e.sent_ns) as i64 - FAR_AHEAD)).collect(),
            ).unwrap() * 1e6;
            // Both are at least a quarter of the time from the middle; rounding and the drifting clock add a little.
            let quarter_ns = n as f64 / 4.0 * 50e6;
            let bound = (little as f64 + 40e6 * ppm.abs() * 1e-6 + 2.0) / quarter_ns * 1e6 + 1e-3;
            prop_assert!((slope - ppm).abs() <= bound, "{} of {}, bound {}", slope, ppm, bound);
            if let Some(skew) = ClockSkew::of(&exchanges) {
                prop_assert!((skew.ppm - ppm).abs() <= bound + skew.error_ppm, "{:?} of {}", skew, ppm);
            }
        }
    }

    #[test]
    fn a_skew_leaves_the_variation_of_one_way_delays_alone() {
        let added: Vec<_> =
            (0..200).map(|i| if i % 10 == 0 { (0, 0) } else { (i * 7_919 % 3_000_000, 0) }).collect();
        let exchanges = drifting(80.0, &added);
        let skew = ClockSkew::of(&exchanges).unwrap();
        assert!((skew.ppm - 80.0).abs() < 0.1 && skew.error_ppm < 0.1, "{skew:?}");
        let clocks = ClockOffset::of(&exchanges).unwrap();
        let [raw, corrected] = [None, Some(skew)].map(|skew| EachWay::of(&exchanges, clocks, skew).unwrap());
        // In ten seconds the clocks drift apart by 0.8 ms, which looked like a falling delay.
        assert!(raw.back.max - raw.back.min > 700_000, "{raw:?}");
        assert!(corrected.back.max - corrected.back.min < 2_000, "{corrected:?}");
        assert!((corrected.there.max - corrected.there.min).abs_diff(1_575_881) < 2_000, "{corrected:?}");
    }

    #[test]
    fn a_queue_that_grows_all_the_time_in_one_direction_is_no_skew() {
        // The error is as large as the apparent skew.
        let growing: Vec<_> = (0..200).map(|i| (i * 50_000, i % 3)).collect();
        assert_eq!(ClockSkew::of(&drifting(0.0, &growing)), None);
        let steady: Vec<_> = (0..200).map(|i| (i % 3, i % 5)).collect();
        assert!(ClockSkew::of(&drifting(0.0, &steady)).unwrap().ppm.abs() < 0.01);
        assert_eq!(ClockSkew::of(&drifting(100.0, &growing[..10])), None);
        assert_eq!(ClockSkew::of(&[]), None);
        assert_eq!(envelope_slope(vec![(5, 1), (5, 9)]), None);
        assert_eq!(envelope_slope(Vec::new()), None);
    }
}
