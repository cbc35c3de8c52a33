//! Host and path shares of the round trips of probes, from the timestamps of both kernels.

use serde::{Deserialize, Serialize};

use crate::finding::threshold::{HOST_NOISE, HOST_SHARE};
use crate::probes::{ProbePoint, ProbeSeries};
use crate::record::RttSummary;

/// Host and path shares of the round trips of probes, from the timestamps of both kernels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyParts {
    /// Time in the two hosts: between program and kernel, and in the echo.
    pub host: RttSummary,
    /// Time between the two kernels.
    pub path: RttSummary,
}

impl LatencyParts {
    /// Summarises the counted probes; `None` if none was stamped.
    pub fn of(series: &ProbeSeries) -> Option<Self> {
        let parts = series.counted().filter_map(|point| {
            let host_ns = point.host_ns?;
            Some((host_ns, point.rtt_ns()?.saturating_sub(host_ns)))
        });
        let (host, path): (Vec<u64>, Vec<u64>) = parts.unzip();
        Some(Self { host: RttSummary::of(host)?, path: RttSummary::of(path)? })
    }

    /// Returns the time in the hosts at the 95th percentile, or the median of few probes, and the whole round trips of the same probes at
    /// that percentile; the part never exceeds the whole.
    pub fn of_usual_round_trips(series: &ProbeSeries) -> Option<(u64, u64)> {
        let stamped = || series.counted().filter(|point| point.host_ns.is_some());
        let host = RttSummary::of(stamped().filter_map(|p| p.rtt_ns().and(p.host_ns)))?;
        let whole = RttSummary::of(stamped().filter_map(ProbePoint::rtt_ns))?;
        let usual = |all: RttSummary| all.p95.unwrap_or(all.p50);
        Some((usual(host), usual(whole).max(usual(host))))
    }

    /// Whether the hosts took so much that the round trips do not reflect the path.
    pub fn hosts_matter(&self) -> bool {
        let usual = self.host.p95.unwrap_or(self.host.p50);
        let whole = self.host.p50 + self.path.p50;
        usual > HOST_NOISE.as_ns() && usual as f64 > HOST_SHARE * whole as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::ProbeOutcome;

    #[test]
    fn hosts_matter_where_they_take_a_tenth_of_a_round_trip_and_a_timers_noise() {
        let parts = |host_us: u64, path_us: u64| {
            let host_ns = Some(host_us * 1_000);
            let outcome = ProbeOutcome::Answered((host_us + path_us) * 1_000);
            let points = vec![ProbePoint { host_ns, ..ProbePoint::plain(0, 0, outcome) }; 30];
            LatencyParts::of(&ProbeSeries { counted_ns: None, points }).unwrap()
        };
        let some = parts(1_000, 5_000);
        assert_eq!((some.host.min, some.path.min), (1_000_000, 5_000_000));
        assert!(
            some.hosts_matter() && !parts(1_000, 50_000).hosts_matter() && !parts(300, 100).hosts_matter()
        );
        assert_eq!(LatencyParts::of(&ProbeSeries::default()), None);
    }

    #[test]
    fn what_the_hosts_took_is_beside_the_whole_of_the_same_probes() {
        // A tenth of the probes met a pause of 281 ms; the median round trip is 30 ms.
        let point = |i: u64| {
            let host_ns = if i.is_multiple_of(10) { 281_000_000 } else { 300_000 };
            let outcome = ProbeOutcome::Answered(30_000_000 + host_ns);
            ProbePoint { host_ns: Some(host_ns), ..ProbePoint::plain(0, 0, outcome) }
        };
        let series = ProbeSeries { counted_ns: None, points: (0..200).map(point).collect() };
        assert_eq!(LatencyParts::of_usual_round_trips(&series), Some((281_000_000, 311_000_000)));
    }
}
