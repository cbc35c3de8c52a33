//! Interarrival jitter of RFC 3550, section 6.4.1 and A.8, for clocks with a known or inferred rate.

use bdp_model::capture::ClockRateSource;

/// Possible clock rates: those of RFC 3551, and other common ones.
const RATES: [u32; 8] = [8000, 16_000, 32_000, 44_100, 48_000, 90_000, 11_025, 22_050];
/// Number of rates that can be inferred from timestamps: no two are close to each other.
const INFERRED: usize = 6;
/// Largest deviation of timestamps from a rate.
const OFF: f64 = 0.02;
/// Fewest datagrams, and shortest time, from which a rate is inferred.
const LEAST_PACKETS: u64 = 50;
const LEAST_NS: u64 = 1_000_000_000;

/// Jitter `J += (|D| - J)
/// 16`, with its mean and maximum.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Jitter {
    ns: f64,
    sum: f64,
    max: f64,
    count: u64,
}

/// Jitter in nanoseconds: final, mean and maximum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct JitterReport {
    pub last: f64,
    pub mean: f64,
    pub max: f64,
}

impl Jitter {
    /// Adds the difference between two datagrams' arrival and sending intervals.
    pub(super) fn note(&mut self, difference_ns: f64) {
        self.ns += (difference_ns.abs() - self.ns) / 16.0;
        self.sum += self.ns;
        self.max = self.max.max(self.ns);
        self.count += 1;
    }

    pub(super) fn report(&self) -> Option<JitterReport> {
        let mean = self.sum / self.count as f64;
        (self.count > 0).then_some(JitterReport { last: self.ns, mean, max: self.max })
    }
}

/// RTP timestamps, evaluated at every possible rate; the rate is determined at the end.
#[derive(Debug)]
pub(super) struct Timestamps {
    first_at: u64,
    last: (u64, u32),
    /// Ticks since the first, across wraps.
    ticks: i64,
    packets: u64,
    by_rate: [Jitter; RATES.len()],
}

impl Timestamps {
    pub(super) fn starting(at: u64, timestamp: u32) -> Self {
        Self {
            first_at: at,
            last: (at, timestamp),
            ticks: 0,
            packets: 1,
            by_rate: [Jitter::default(); RATES.len()],
        }
    }

    pub(super) fn note(&mut self, at: u64, timestamp: u32) {
        let (last_at, last_timestamp) = self.last;
        let ticks = timestamp.wrapping_sub(last_timestamp) as i32;
        let apart = at.saturating_sub(last_at) as f64;
        for (jitter, &rate) in self.by_rate.iter_mut().zip(&RATES) {
            jitter.note(apart - f64::from(ticks) * 1e9 / f64::from(rate));
        }
        self.ticks += i64::from(ticks);
        self.packets += 1;
        self.last = (at, timestamp);
    }

    /// Restarts after the numbers began anew, usually with new timestamps.
    pub(super) fn anew(&mut self, at: u64, timestamp: u32) {
        *self = Self { by_rate: self.by_rate, ..Self::starting(at, timestamp) };
    }

    /// Returns the rate, how it is known, and the jitter.
    pub(super) fn report(&self, payload_types: u128) -> Option<(u32, ClockRateSource, Option<JitterReport>)> {
        let (rate, source) = match by_payload_types(payload_types) {
            Known::Rate(rate) => (rate, ClockRateSource::PayloadType),
            Known::Contradiction => return None,
            Known::Nothing => (self.inferred()?, ClockRateSource::Timestamps),
        };
        let place = RATES.iter().position(|&known| known == rate)?;
        Some((rate, source, self.by_rate[place].report()))
    }

    /// Returns the rate inferred from the times of the capture.
    fn inferred(&self) -> Option<u32> {
        let took = self.last.0.saturating_sub(self.first_at);
        if took < LEAST_NS || self.packets < LEAST_PACKETS {
            return None;
        }
        let seen = self.ticks as f64 * 1e9 / took as f64;
        RATES[..INFERRED].iter().copied().find(|&rate| (seen / f64::from(rate) - 1.0).abs() < OFF)
    }
}

enum Known {
    Rate(u32),
    /// Payload types with different rates share the timestamps.
    Contradiction,
    Nothing,
}

/// Returns the clock rate of a stream's payload types (RFC 3551, tables 4 and 5).
fn by_payload_types(types: u128) -> Known {
    let mut known = Known::Nothing;
    for (kind, rate) in (0..35).filter(|kind| types >> kind & 1 == 1).filter_map(|k| Some((k, rate_of(k)?))) {
        // Comfort noise uses the clock of the other payload types.
        if kind == 13 && types != 1 << 13 {
            continue;
        }
        match known {
            Known::Rate(other) if other != rate => return Known::Contradiction,
            _ => known = Known::Rate(rate),
        }
    }
    known
}

/// Returns the clock rate of a static payload type, Hz.
pub(super) fn rate_of(payload_type: u8) -> Option<u32> {
    Some(match payload_type {
        0 | 3..=5 | 7..=9 | 12 | 13 | 15 | 18 => 8000,
        6 => 16_000,
        10 | 11 => 44_100,
        14 | 25 | 26 | 28 | 31..=34 => 90_000,
        16 => 11_025,
        17 => 22_050,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_that_of_the_rfc() {
        // A.8 in 8000 Hz ticks: transits 0, 8, 8, 0 give differences 8, 0, 8.
        let mut all = Timestamps::starting(0, u32::MAX - 100);
        for (i, late_ms) in [(1_u32, 1_u64), (2, 1), (3, 0)] {
            all.note(u64::from(i) * 20_000_000 + late_ms * 1_000_000, (u32::MAX - 100).wrapping_add(i * 160));
        }
        let (rate, source, jitter) = all.report(1).unwrap();
        assert_eq!((rate, source), (8000, ClockRateSource::PayloadType));
        let (mut expected, mut sum, mut max) = (0.0_f64, 0.0, 0.0_f64);
        for difference in [8.0, 0.0, 8.0] {
            expected += (difference - expected) / 16.0;
            sum += expected;
            max = max.max(expected);
        }
        let ns = |ticks: f64| ticks * 125_000.0;
        let jitter = jitter.unwrap();
        assert!((jitter.last - ns(expected)).abs() < 1.0, "{jitter:?}");
        assert!(
            (jitter.mean - ns(sum / 3.0)).abs() < 1.0 && (jitter.max - ns(max)).abs() < 1.0,
            "{jitter:?}"
        );
    }

    #[test]
    fn a_rate_is_inferred_from_timestamps_only_where_it_is_a_usual_one() {
        let inferred = |rate: f64, packets: u32| {
            let mut all = Timestamps::starting(0, 7);
            for i in 1..packets {
                let seconds = f64::from(i) * 0.02;
                all.note(
                    (seconds * 1e9) as u64 + u64::from(i * 7919 % 5000) * 1000,
                    (7.0 + seconds * rate) as u32,
                );
            }
            all.report(1 << 96).map(|(rate, _, _)| rate)
        };
        for rate in [8000, 16_000, 32_000, 44_100, 48_000, 90_000] {
            assert_eq!(inferred(f64::from(rate), 200), Some(rate));
            assert_eq!(inferred(f64::from(rate), 40), None, "too short");
        }
        for rate in [24_000.0, 46_000.0, 1000.0, 0.0, 90_000.0 * 1.05] {
            assert_eq!(inferred(rate, 200), None, "{rate}");
        }
    }

    #[test]
    fn types_of_several_rates_give_none() {
        let rate = |types: &[u8]| {
            let types = types.iter().fold(0_u128, |all, kind| all | 1 << kind);
            Timestamps::starting(0, 0).report(types).map(|(rate, _, _)| rate)
        };
        assert_eq!(rate(&[0, 101]), Some(8000));
        assert_eq!(rate(&[14, 13]), Some(90_000));
        assert_eq!(rate(&[13]), Some(8000));
        assert_eq!(rate(&[0, 14]), None);
        assert_eq!(rate(&[96]), None);
    }
}
