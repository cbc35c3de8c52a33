//! What a UDP flow was asked to do and what came of it. Specified in `docs/measurement.md`.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::method::TimestampSource;
use crate::threshold::SENT_AS_ASKED;
use crate::units::Nanos;

/// A UDP flow as it was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UdpRequest {
    /// Payload of each stream, bit/s; null is as fast as the sender can.
    pub rate_bps: Option<u64>,
    /// Search the highest rate that arrives, instead.
    pub search: Option<RateSearch>,
    /// Payload of a datagram; null is what the path's MTU holds.
    pub datagram_bytes: Option<u32>,
    /// Whether datagrams may not be fragmented (`IP_MTU_DISCOVER`).
    pub dont_fragment: bool,
}

/// How the highest rate without loss is searched, [`crate::rate_search`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RateSearch {
    /// Largest share of a trial's datagrams that may be lost.
    pub loss_ratio: f64,
    /// How long each trial sends.
    #[serde(
        default = "RateSearch::usual_trial",
        rename = "trial_ns",
        alias = "trial",
        with = "crate::units::nanoseconds"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub trial: Nanos,
}

impl RateSearch {
    /// A second.
    pub const fn usual_trial() -> Nanos {
        Nanos::secs(1)
    }
}

/// What came of a UDP flow, all its streams together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UdpReport {
    /// Payload that was asked for, all streams, bit/s; null where the sender was to go as fast as it could.
    pub asked_bps: Option<f64>,
    /// Payload that the sender gave to its kernel, bit/s.
    pub sent_bps: f64,
    /// Payload of a datagram.
    pub datagram_bytes: u64,
    /// Datagrams that the sender gave to its kernel.
    pub sent: u64,
    /// Datagrams that it was too late to send at their time, and left out.
    pub left_out: u64,
    /// Different datagrams that the receiver read.
    pub received: u64,
    /// Sent and never read.
    pub lost: u64,
    /// Lost / sent.
    pub loss_ratio: f64,
    /// Of those lost, such as the receiving host dropped because its socket was full; null where its kernel does not tell.
    pub dropped_by_receiver: Option<u64>,
    /// Copies of datagrams that had come; null where a server of another protocol received them, which does not tell.
    pub duplicated: Option<u64>,
    /// Datagrams that came after one with a higher number (RFC 4737, section 3.3); copies among them where `duplicated` is null.
    /// Null where the receiver does not tell.
    pub reordered: Option<u64>,
    /// Most numbers that one was behind the highest when it came; null where the receiver does not tell.
    pub reorder_displacement_max: Option<u64>,
    /// Interarrival jitter at the end (RFC 3550, section 6.4.1), the largest of the streams.
    pub jitter_ns: Option<u64>,
    /// Delay above the smallest (RFC 5481, section 4.2).
    pub delay_variation_ns: Option<Distribution>,
    /// From the sender's call to the receiving kernel, as far as the two clocks could be compared.
    pub one_way_delay_ns: Option<OneWayDelay>,
    /// From one call of the sender to the next.
    pub send_gap_ns: Option<Distribution>,
    /// Most datagrams given to the kernel by one call.
    pub burst_max: u64,
    /// Where the receiver's times come from.
    pub timestamps: TimestampSource,
    /// `SO_RCVBUF` of the receiving socket.
    pub receive_buffer_bytes: Option<u64>,
    /// The trials of a search, in order; empty where none was asked for.
    #[serde(default)]
    pub trials: Vec<Trial>,
    /// How the search ended; null where none was asked for.
    pub search: Option<SearchEnd>,
}

/// A trial of a search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trial {
    /// Payload asked for, all streams, bit/s; null where the sender was to go as fast as it could.
    pub rate_bps: Option<f64>,
    /// Payload sent, bit/s.
    pub sent_bps: f64,
    /// Payload received, bit/s.
    pub received_bps: f64,
    /// Datagrams sent.
    pub sent: u64,
    /// Of those, lost.
    pub lost: u64,
    /// Lost / sent.
    pub loss_ratio: f64,
    /// Of those lost, such as the receiving host dropped; null where its kernel does not tell.
    pub dropped_by_receiver: Option<u64>,
    /// Whether the rate that was found was held for the whole duration.
    pub held: bool,
    /// Whether no more was lost than allowed, and as much sent as asked for.
    pub passed: bool,
}

impl Trial {
    /// What came of sending as `udp` tells, by the search's measure; `received_bps` by the receiver's clock.
    pub fn of(search: &RateSearch, udp: &UdpReport, received_bps: f64, held: bool) -> Self {
        let trial = Self {
            rate_bps: udp.asked_bps,
            sent_bps: udp.sent_bps,
            received_bps,
            sent: udp.sent,
            lost: udp.lost,
            loss_ratio: udp.loss_ratio,
            dropped_by_receiver: udp.dropped_by_receiver,
            held,
            passed: false,
        };
        Self { passed: trial.loss_ratio <= search.loss_ratio && !trial.fell_short(), ..trial }
    }

    /// Whether the sender did not reach what was asked of it.
    pub fn fell_short(&self) -> bool {
        self.rate_bps.is_some_and(|asked| self.sent_bps < SENT_AS_ASKED * asked)
    }
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchEnd {
    /// The rate that was found was held for the whole duration, with no more loss than allowed.
    Held,
    /// It was not, nor were some below it: what is reported is the last of them.
    NotHeld,
    /// What is lost does not depend on the rate: what is reported is the lowest that was tried.
    LossAtAnyRate,
    /// It was interrupted: what is reported is the rate that was being held, or else the highest that had passed a trial, or else
    /// the last that was tried.
    CutShort,
}

/// A distribution of times, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distribution {
    /// How many.
    pub count: u64,
    /// Median.
    pub p50: u64,
    /// 95th percentile; null of fewer than 20.
    pub p95: Option<u64>,
    /// 99th percentile; null of fewer than 100.
    pub p99: Option<u64>,
    /// Largest.
    pub max: u64,
}

impl Distribution {
    /// Of a histogram; nothing of an empty one.
    pub fn of(histogram: &Histogram) -> Option<Self> {
        (histogram.count() > 0).then(|| Self {
            count: histogram.count(),
            p50: histogram.percentile(50.0),
            p95: histogram.resolved(95.0),
            p99: histogram.resolved(99.0),
            max: histogram.max(),
        })
    }
}

/// Delays one way, nanoseconds; negative where they are below the clocks' error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OneWayDelay {
    /// Smallest.
    pub min: i64,
    /// Median.
    pub p50: i64,
    /// 95th percentile; null of fewer than 20.
    pub p95: Option<i64>,
    /// 99th percentile; null of fewer than 100.
    pub p99: Option<i64>,
    /// Largest.
    pub max: i64,
    /// All of them may be off by so much, the same way: half of the round trip by which the clocks were compared, and what
    /// they may have drifted apart since.
    pub clock_error: u64,
}
