//! Responsiveness under working conditions (draft-ietf-ippm-responsiveness): round trips per minute while connections are added until
//! both goodput and responsiveness are steady.
//!
//! The load starts with [`CONNECTIONS_AT_ONCE`] connections and adds as many at each interval, up to [`MOST_CONNECTIONS`]; the
//! draft leaves both steps to the implementation. Foreign probes are new TCP connections with one request and its response, without
//! TLS. Connections of bdp that carry load carry nothing else, so the self probes are the round trips estimated by the sender's TCP
//! on them, as the draft specifies for protocols without multiplexing.

use serde::{Deserialize, Serialize};

use crate::names;
use crate::units::Nanos;

/// Intervals of a moving average (the draft's MAD).
pub const AVERAGED: usize = 4;
/// Least length of an interval (ID).
pub const INTERVAL_NS: u64 = 1_000_000_000;
/// Largest deviation of the moving averages, relative to the current one (SDT).
const TOLERANCE: f64 = 0.05;
/// Connections at the start of the load (INP), and added at each interval (INC).
pub const CONNECTIONS_AT_ONCE: u32 = 4;
/// Most connections of the load (MNP).
pub const MOST_CONNECTIONS: u32 = 16;

/// Default for the longest time of a direction.
pub const USUAL_TIME: Nanos = Nanos::secs(20);

/// Returns the mean of the smallest 95 of 100 values: the draft's single-sided trimmed mean. `None` if empty. Sorts `values`.
pub fn trimmed_mean(values: &mut [u64]) -> Option<f64> {
    values.sort_unstable();
    let kept = values.len() - values.len() / 20;
    let sum: f64 = values[..kept].iter().map(|&value| value as f64).sum();
    (kept > 0).then(|| sum / kept as f64)
}

/// Confidence in a figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// The time was too short for a single moving average.
    #[default]
    Low,
    /// There were enough moving averages, but they were not steady.
    Medium,
    /// The moving averages were steady.
    High,
}

names!(Confidence: Low = "low", Medium = "medium", High = "high");

/// Whether the moving averages of a quantity are steady.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stability {
    averages: Vec<f64>,
}

impl Stability {
    /// Adds the moving average of an interval.
    pub fn note(&mut self, average: f64) {
        self.averages.push(average);
    }

    /// Whether the last averages deviate by no more than the tolerance.
    pub fn is_reached(&self) -> bool {
        let Some(last) = self.averages.len().checked_sub(AVERAGED).map(|from| &self.averages[from..]) else {
            return false;
        };
        let mean = last.iter().sum::<f64>() / AVERAGED as f64;
        let variance = last.iter().map(|average| (average - mean).powi(2)).sum::<f64>() / AVERAGED as f64;
        variance.sqrt() < TOLERANCE * last[AVERAGED - 1]
    }

    /// Returns the confidence in the averages.
    pub fn confidence(&self) -> Confidence {
        match self.averages.len() {
            0..AVERAGED => Confidence::Low,
            _ if self.is_reached() => Confidence::High,
            _ => Confidence::Medium,
        }
    }
}

/// A foreign probe: a new connection with one request and its response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForeignProbe {
    /// Start of the probe, from the start of the load; negative before it.
    pub at_ns: i64,
    /// Duration of its TCP handshake; null if it failed.
    pub tcp_ns: Option<u64>,
    /// Time from the request to the response; null if it failed.
    pub exchange_ns: Option<u64>,
}

impl ForeignProbe {
    /// Returns when it ended; `None` if it failed.
    pub fn ended_ns(&self) -> Option<i64> {
        Some(self.at_ns + (self.tcp_ns? + self.exchange_ns?) as i64)
    }
}

/// Trimmed means of probes, and the responsiveness computed from them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkingLatency {
    /// Handshakes of foreign probes (`tcp_f`).
    pub tcp_ns: Option<f64>,
    /// Requests of foreign probes (`http_f`).
    pub exchange_ns: Option<f64>,
    /// TCP's round trips on loaded connections (`http_l`).
    pub self_ns: Option<f64>,
    /// Round trips per minute of new connections.
    pub foreign_rpm: Option<f64>,
    /// Round trips per minute of loaded connections.
    pub self_rpm: Option<f64>,
    /// Responsiveness, the mean of both; null if one is unknown.
    pub rpm: Option<f64>,
}

impl WorkingLatency {
    /// Computes it from foreign probes and the round trips on loaded connections; without TLS (section "TCP-Only Case" of the draft).
    pub fn of<'a>(foreign: impl IntoIterator<Item = &'a ForeignProbe>, of_load_ns: &mut [u64]) -> Self {
        let (mut handshakes, mut exchanges) = (Vec::new(), Vec::new());
        for probe in foreign {
            handshakes.extend(probe.tcp_ns);
            exchanges.extend(probe.exchange_ns);
        }
        let (tcp_ns, exchange_ns) = (trimmed_mean(&mut handshakes), trimmed_mean(&mut exchanges));
        let self_ns = trimmed_mean(of_load_ns);
        let rpm = |ns: f64| (ns > 0.0).then(|| 60e9 / ns);
        let foreign_rpm = tcp_ns.zip(exchange_ns).and_then(|(tcp, exchange)| rpm((tcp + exchange) / 2.0));
        let self_rpm = self_ns.and_then(rpm);
        Self {
            tcp_ns,
            exchange_ns,
            self_ns,
            foreign_rpm,
            self_rpm,
            rpm: foreign_rpm.zip(self_rpm).map(|(foreign, own)| (foreign + own) / 2.0),
        }
    }
}

/// One interval of the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadInterval {
    /// End of the interval, from the start of the load.
    pub at_ns: u64,
    /// Length of the interval.
    pub length_ns: u64,
    /// Connections in the interval.
    pub connections: u32,
    /// Bytes transferred.
    pub bytes: u64,
    /// Goodput averaged over this interval and those before it.
    pub average_bps: f64,
    /// Responsiveness over the same intervals, as far as known under load; null before goodput was steady.
    pub rpm: Option<f64>,
}

/// Results of one direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Responsiveness {
    /// Latency over the last intervals of the load.
    pub working: WorkingLatency,
    /// Confidence in the responsiveness.
    pub confidence: Confidence,
    /// Latency of foreign probes before the load.
    pub idle: WorkingLatency,
    /// Goodput over the last intervals, bit/s.
    pub goodput_bps: f64,
    /// Confidence in the goodput.
    pub goodput_confidence: Confidence,
    /// Connections at the end of the load.
    pub connections: u32,
    /// Samples of TCP's round trip that were used.
    pub self_readings: u64,
    /// The intervals.
    pub intervals: Vec<LoadInterval>,
    /// The foreign probes.
    pub foreign: Vec<ForeignProbe>,
}

/// The state of a direction's load.
#[derive(Debug, Clone, Default)]
pub struct WorkingLoad {
    intervals: Vec<LoadInterval>,
    goodput: Stability,
    rpm: Stability,
    is_saturated: bool,
}

impl WorkingLoad {
    /// Adds a completed interval, with all foreign probes that have ended and the round trips of loaded connections in the
    /// averaged intervals, if already known.
    pub fn note(
        &mut self,
        (at_ns, length_ns): (u64, u64),
        bytes: u64,
        connections: u32,
        foreign: &[ForeignProbe],
        of_load_ns: &mut [u64],
    ) {
        self.intervals.push(LoadInterval {
            at_ns,
            length_ns,
            connections,
            bytes,
            average_bps: 0.0,
            rpm: None,
        });
        let average_bps = self.goodput_bps();
        let was_saturated = self.is_saturated;
        self.goodput.note(average_bps);
        self.is_saturated |= self.goodput.is_reached();
        let rpm = was_saturated.then(|| {
            let within = self.averaged_ns();
            let ended = |probe: &&ForeignProbe| probe.ended_ns().is_some_and(|at| within.contains(&at));
            let latency = WorkingLatency::of(foreign.iter().filter(ended), of_load_ns);
            // If the far end sends, its TCP's round trips arrive only at the end.
            latency.rpm.or(latency.foreign_rpm)
        });
        let rpm = rpm.flatten();
        if let Some(rpm) = rpm {
            self.rpm.note(rpm);
        }
        if let Some(last) = self.intervals.last_mut() {
            (last.average_bps, last.rpm) = (average_bps, rpm);
        }
    }

    /// Whether the load can end.
    pub fn is_done(&self) -> bool {
        self.is_saturated && self.rpm.is_reached()
    }

    /// Returns the time of the averaged intervals, from the start of the load.
    pub fn averaged_ns(&self) -> std::ops::Range<i64> {
        let last = self.last();
        let until = last.last().map_or(0, |interval| interval.at_ns);
        let length: u64 = last.iter().map(|interval| interval.length_ns).sum();
        until.saturating_sub(length) as i64..until as i64
    }

    /// Returns the moving average of the goodput, bit/s.
    pub fn goodput_bps(&self) -> f64 {
        let last = self.last();
        let bytes: u64 = last.iter().map(|interval| interval.bytes).sum();
        let length: u64 = last.iter().map(|interval| interval.length_ns).sum();
        bytes as f64 * 8e9 / length.max(1) as f64
    }

    /// Returns the results; `of_load_ns` are the round trips of loaded connections in the averaged intervals.
    pub fn conclude(self, foreign: Vec<ForeignProbe>, mut of_load_ns: Vec<u64>) -> Responsiveness {
        let within = self.averaged_ns();
        let ended = |probe: &&ForeignProbe| probe.ended_ns().is_some_and(|at| within.contains(&at));
        let goodput_confidence = match self.is_saturated {
            true => Confidence::High,
            false => self.goodput.confidence(),
        };
        Responsiveness {
            working: WorkingLatency::of(foreign.iter().filter(ended), &mut of_load_ns),
            confidence: self.rpm.confidence(),
            idle: WorkingLatency::of(foreign.iter().filter(|probe| probe.at_ns < 0), &mut []),
            goodput_bps: self.goodput_bps(),
            goodput_confidence,
            connections: self.intervals.last().map_or(0, |interval| interval.connections),
            self_readings: of_load_ns.len() as u64,
            intervals: self.intervals,
            foreign,
        }
    }

    fn last(&self) -> &[LoadInterval] {
        &self.intervals[self.intervals.len().saturating_sub(AVERAGED)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn probe(at_ms: i64, tcp_ms: u64, exchange_ms: u64) -> ForeignProbe {
        ForeignProbe {
            at_ns: at_ms * MS as i64,
            tcp_ns: Some(tcp_ms * MS),
            exchange_ns: Some(exchange_ms * MS),
        }
    }

    #[test]
    fn the_trimmed_mean_leaves_the_largest_twentieth_out() {
        assert_eq!(trimmed_mean(&mut []), None);
        assert_eq!(trimmed_mean(&mut [7]), Some(7.0));
        let mut values: Vec<u64> = vec![10; 38];
        values.extend([1_000_000, 2_000_000]);
        assert_eq!(trimmed_mean(&mut values), Some(10.0));
        assert_eq!(trimmed_mean(&mut [10, 20, 30]), Some(20.0));
    }

    /// By hand: 60000 / ((40 + 60) / 2) = 1200, 60000 / 100 = 600, and their mean.
    #[test]
    fn responsiveness_is_the_mean_of_foreign_and_self() {
        let foreign = [probe(0, 40, 60); 5];
        let latency = WorkingLatency::of(&foreign, &mut [100 * MS; 3]);
        assert_eq!((latency.foreign_rpm, latency.self_rpm), (Some(1200.0), Some(600.0)));
        assert_eq!(latency.rpm, Some(900.0));
        // One of the two does not replace the other.
        let foreign_alone = WorkingLatency::of(&foreign, &mut []);
        assert_eq!(
            (foreign_alone.foreign_rpm, foreign_alone.self_rpm, foreign_alone.rpm),
            (Some(1200.0), None, None)
        );
        let no_answer = ForeignProbe { exchange_ns: None, ..probe(0, 40, 0) };
        assert_eq!(WorkingLatency::of(&[no_answer], &mut [MS]).foreign_rpm, None);
    }

    /// Of 95, 100, 105, 100 the mean is 100 and the deviation the root of 12.5, 3.5 %; of 80, 100, 120, 100 it is 14.1 %.
    #[test]
    fn averages_are_steady_within_a_twentieth() {
        let noted = |values: &[f64]| {
            let mut stability = Stability::default();
            values.iter().for_each(|&value| stability.note(value));
            stability
        };
        assert_eq!(noted(&[100.0; 3]).confidence(), Confidence::Low);
        assert_eq!(noted(&[95.0, 100.0, 105.0, 100.0]).confidence(), Confidence::High);
        assert_eq!(noted(&[80.0, 100.0, 120.0, 100.0]).confidence(), Confidence::Medium);
        // Only the last four count.
        assert!(noted(&[1.0, 2.0, 100.0, 100.0, 100.0, 100.0]).is_reached());
        assert!(!noted(&[0.0; 4]).is_reached(), "nothing moves");
    }

    #[test]
    fn a_load_is_done_when_goodput_and_then_responsiveness_are_steady() {
        let mut load = WorkingLoad::default();
        let foreign: Vec<ForeignProbe> =
            (0..200).map(|i| probe(i * 100, if i < 40 { 20 } else { 200 }, 200)).collect();
        let second = 1_000 * MS;
        let mut steps = Vec::new();
        for i in 1..=20u64 {
            // 1, 2, 4 and from then on 12.5 MB a second.
            let bytes = [1_000_000, 2_000_000, 4_000_000].get(i as usize - 1).copied().unwrap_or(12_500_000);
            load.note((i * second, second), bytes, (4 * i as u32).min(16), &foreign, &mut [300 * MS; 9]);
            steps.push((load.is_saturated, load.is_done()));
            if load.is_done() {
                break;
            }
        }
        // Averages of four are 12.5 MB/s from the seventh interval on, so four of them agree at the tenth, or shortly before.
        let saturated = steps.iter().position(|step| step.0).unwrap() + 1;
        assert!((8..=10).contains(&saturated), "{steps:?}");
        assert_eq!(steps.len(), saturated + AVERAGED, "four averages of responsiveness follow");
        let last = load.averaged_ns();
        assert_eq!(last.end - last.start, 4 * second as i64);
        let came = load.conclude(foreign, vec![300 * MS; 9]);
        assert_eq!((came.confidence, came.goodput_confidence), (Confidence::High, Confidence::High));
        assert_eq!((came.working.rpm, came.goodput_bps), (Some(250.0), 100e6));
        assert_eq!((came.connections, came.self_readings), (16, 9));
        assert_eq!(came.idle, WorkingLatency::default());
    }

    #[test]
    fn a_short_load_is_not_to_be_relied_on_and_probes_before_it_are_idle() {
        let mut load = WorkingLoad::default();
        load.note((1_000 * MS, 1_000 * MS), 1_000, 4, &[], &mut []);
        let came = load.conclude(vec![probe(-500, 10, 10), probe(300, 100, 100)], vec![100 * MS]);
        assert_eq!((came.confidence, came.goodput_confidence), (Confidence::Low, Confidence::Low));
        assert_eq!((came.idle.foreign_rpm, came.working.rpm), (Some(6000.0), Some(600.0)));
    }
}
