//! Short flows after a test, each with one thing changed: they decide between limits that the test alone leaves open.

use serde::{Deserialize, Serialize};

use crate::ends::Direction;
use crate::finding::Limit;
use crate::flow::FlowSpec;
use crate::udp::UdpRequest;
use crate::units::{ByteCount, Nanos};

/// Payload of each datagram of a burst: with its headers no longer than a segment of 1500 bytes.
pub const DATAGRAM_BYTES: u32 = 1448;

/// What an experiment changes of the test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// The sender is held below the goodput of the test.
    Paced {
        /// Payload of all streams, bit/s.
        rate_bps: f64,
    },
    /// More connections than the test had.
    Streams {
        /// How many.
        streams: u32,
    },
    /// Datagrams back to back, far above the rate of the path, instead of connections.
    Burst {
        /// How many.
        datagrams: u32,
        /// How fast they are sent, bit/s.
        rate_bps: f64,
    },
}

/// An experiment that is to be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// Of which direction.
    pub direction: Direction,
    /// What it changes.
    pub change: Change,
    /// How long it takes.
    pub duration: Nanos,
    /// Of that, the beginning that does not count.
    pub omit: Nanos,
    /// What it sends at most: as much as the test did.
    pub bytes: ByteCount,
    /// The limits that it decides between.
    pub between: Vec<Limit>,
}

impl Order {
    /// The first two of the limits that it decides between.
    pub fn between(&self) -> [Limit; 2] {
        [0, 1].map(|i| self.between.get(i).copied().unwrap_or(Limit::Unknown))
    }

    /// The flow to run: that of the test, with one thing changed.
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
    /// Of which direction.
    pub direction: Direction,
    /// What it changed.
    #[serde(flatten)]
    pub change: Change,
    /// The limits that it was to decide between.
    pub between: Vec<Limit>,
    /// From the first byte to the last.
    pub duration_ns: u64,
    /// Of that, the beginning that does not count.
    pub omit_ns: u64,
    /// Bytes received, omit included.
    pub bytes: u64,
    /// After omit.
    pub goodput_bps: f64,
    /// Segments retransmitted, all streams, omit included.
    pub retransmits: Option<u64>,
    /// Times that the first stream reduced its window for a loss, omit included.
    pub loss_events: u64,
    /// What the load added to the median round trip of probes.
    pub rtt_added_ns: Option<u64>,
    /// What it added to the connections' own smoothed round trips (median, above the least): if each flow has a queue of its own, no probe is delayed.
    pub own_rtt_added_ns: Option<u64>,
    /// A host paused for so long meanwhile: the result is no evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_paused_ns: Option<u64>,
    /// Of a burst, what became of its datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Burst>,
}

/// What became of the datagrams of a burst.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Burst {
    /// Datagrams sent.
    pub sent: u64,
    /// Of them those that did not arrive.
    pub lost: u64,
    /// The rate that they were sent at, bit/s.
    pub sent_bps: f64,
    /// One-way delay of the slowest, above that of the fastest: the queue that they made.
    pub delay_added_ns: u64,
}

impl Burst {
    /// The rate at which they arrived, at the least, bit/s: that of the narrowest link, if none was lost.
    pub fn arrived_bps(&self) -> f64 {
        let bits = |datagrams: u64| datagrams as f64 * 8.0 * f64::from(DATAGRAM_BYTES);
        let took = bits(self.sent) / self.sent_bps.max(1.0) + self.delay_added_ns as f64 / 1e9;
        bits(self.sent.saturating_sub(self.lost)) / took
    }
}

impl Experiment {
    /// Retransmitted segments / segments sent.
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
        // 100 datagrams of 11584 bit at 115.84 Mbit/s take 10 ms; at a tenth of that the last one is 90 ms late.
        let burst = Burst { sent: 100, lost: 0, sent_bps: 115.84e6, delay_added_ns: 90_000_000 };
        assert!((burst.arrived_bps() - 11.584e6).abs() < 1e3, "{}", burst.arrived_bps());
        assert!(Burst { lost: 50, ..burst }.arrived_bps() < 6e6);
    }
}
