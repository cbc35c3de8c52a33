//! Short flows after a test, each with one thing changed, that decide between limits that the test alone cannot distinguish.

use serde::{Deserialize, Serialize};

use crate::finding::Limit;
use crate::flow::FlowSpec;
use crate::flow::udp::UdpRequest;
use crate::measurement::ends::Direction;
use crate::units::{ByteCount, Nanos};

/// Payload of each datagram of a burst: with its headers it fits into 1500 bytes.
pub const DATAGRAM_BYTES: u32 = 1448;

/// What an experiment changes about the test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// The sender is paced below the goodput of the test.
    Paced {
        /// Payload rate of all streams, bit/s.
        rate_bps: f64,
    },
    /// More connections than in the test.
    Streams {
        /// Number of connections.
        streams: u32,
    },
    /// A burst of datagrams far above the rate of the path, instead of connections.
    Burst {
        /// Number of datagrams.
        datagrams: u32,
        /// Rate of the burst, bit/s.
        rate_bps: f64,
    },
}

/// A planned experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// Direction it tests.
    pub direction: Direction,
    /// What it changes.
    pub change: Change,
    /// Duration.
    pub duration: Nanos,
    /// Initial part that is not counted.
    pub omit: Nanos,
    /// Most bytes that it sends: as many as the test did.
    pub bytes: ByteCount,
    /// Limits that it decides between.
    pub between: Vec<Limit>,
}

impl Order {
    /// Returns the first two of the limits that it decides between.
    pub fn between(&self) -> [Limit; 2] {
        [0, 1].map(|i| self.between.get(i).copied().unwrap_or(Limit::Unknown))
    }

    /// Returns the flow to run: the test's, with one thing changed.
    pub fn spec(&self, test: &FlowSpec) -> FlowSpec {
        let mut spec = FlowSpec {
            duration: self.duration,
            omit: self.omit,
            bytes: Some(self.bytes),
            check_payload: false,
            ..test.clone()
        };
        match self.change {
            Change::Paced { rate_bps } => {
                spec.pacing_bps = Some(((rate_bps / f64::from(test.streams)) as u64).max(1));
            }
            Change::Streams { streams } => spec.streams = streams,
            Change::Burst { rate_bps, .. } => {
                let udp = UdpRequest {
                    rate_bps: Some((rate_bps as u64).max(1)),
                    datagram_bytes: Some(DATAGRAM_BYTES),
                    search: None,
                    dont_fragment: false,
                };
                (spec.streams, spec.window, spec.pacing_bps, spec.udp) = (1, None, None, Some(udp));
            }
        }
        spec
    }
}

/// The result of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Experiment {
    /// Direction it tested.
    pub direction: Direction,
    /// What it changed.
    #[serde(flatten)]
    pub change: Change,
    /// Limits that it was meant to decide between.
    pub between: Vec<Limit>,
    /// From the first byte to the last.
    pub duration_ns: u64,
    /// Initial part of the duration that is not counted.
    pub omit_ns: u64,
    /// Bytes received, omit included.
    pub bytes: u64,
    /// Goodput after omit, bit/s.
    pub goodput_bps: f64,
    /// Segments retransmitted, all streams, omit included.
    pub retransmits: Option<u64>,
    /// Window reductions of the first stream after a loss, omit included.
    pub loss_events: u64,
    /// Increase of the median round trip of probes under load.
    pub rtt_added_ns: Option<u64>,
    /// Increase of the connections' own smoothed round trips (median minus minimum): probes are not delayed if each flow has its own queue.
    pub own_rtt_added_ns: Option<u64>,
    /// Length of a host's pause during the experiment, which makes the result no evidence; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_paused_ns: Option<u64>,
    /// Datagram statistics of a burst; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Burst>,
}

/// Datagram statistics of a burst.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Burst {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that did not arrive.
    pub lost: u64,
    /// Rate at which they were sent, bit/s.
    pub sent_bps: f64,
    /// One-way delay of the slowest datagram minus that of the fastest: the queue that the burst built.
    pub delay_added_ns: u64,
}

impl Burst {
    /// Returns a lower bound of the rate at which they arrived, bit/s: the rate of the narrowest link if none was lost.
    pub fn arrived_bps(&self) -> f64 {
        let bits = |datagrams: u64| datagrams as f64 * 8.0 * f64::from(DATAGRAM_BYTES);
        let took = bits(self.sent) / self.sent_bps.max(1.0) + self.delay_added_ns as f64 / 1e9;
        bits(self.sent.saturating_sub(self.lost)) / took
    }
}

impl Experiment {
    /// Returns retransmitted segments / segments sent.
    pub fn retransmitted_share(&self, mss_bytes: u64) -> Option<f64> {
        let segments = self.bytes as f64 / mss_bytes.max(1) as f64;
        Some(self.retransmits? as f64 / segments.max(1.0)).map(|share| share.min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(change: Change) -> Order {
        let (duration, omit) = (Nanos::secs(2), Nanos::millis(500));
        Order {
            direction: Direction::To,
            change,
            duration,
            omit,
            bytes: ByteCount::bytes(1000),
            between: vec![],
        }
    }

    #[test]
    fn one_thing_is_changed_and_no_more_sent_than_the_test_did() {
        let test = FlowSpec { streams: 2, window: None, ..FlowSpec::default() };
        let paced = order(Change::Paced { rate_bps: 10e6 }).spec(&test);
        assert_eq!((paced.pacing_bps, paced.streams, paced.duration), (Some(5_000_000), 2, Nanos::secs(2)));
        assert_eq!(paced.bytes, Some(ByteCount::bytes(1000)));
        assert_eq!(paced.udp, None);
        let more = order(Change::Streams { streams: 8 }).spec(&test);
        assert_eq!((more.pacing_bps, more.streams, more.omit), (None, 8, Nanos::millis(500)));
        let burst = order(Change::Burst { datagrams: 40, rate_bps: 8e7 }).spec(&test);
        let udp = burst.udp.unwrap();
        assert_eq!((udp.rate_bps, udp.datagram_bytes, burst.streams), (Some(80_000_000), Some(1448), 1));
    }

    #[test]
    fn a_burst_arrives_at_the_rate_of_the_narrowest_link() {
        // 100 datagrams of 11584 bit at 115.84 Mbit/s take 10 ms; at a tenth of that rate the last one is 90 ms late.
        let burst = Burst { sent: 100, lost: 0, sent_bps: 115.84e6, delay_added_ns: 90_000_000 };
        assert!((burst.arrived_bps() - 11.584e6).abs() < 1e3, "{}", burst.arrived_bps());
        assert!(Burst { lost: 50, ..burst }.arrived_bps() < 6e6);
    }
}
