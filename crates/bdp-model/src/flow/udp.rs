//! UDP flows: requests and results. Specified in `docs/measurement.md`.

use serde::{Deserialize, Serialize};

use crate::finding::threshold::SENT_AS_ASKED;
use crate::flow::method::TimestampSource;
use crate::statistics::histogram::Histogram;
use crate::units::Nanos;

/// A UDP flow request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UdpRequest {
    /// Payload rate of each stream, bit/s; null for as fast as the sender can.
    pub rate_bps: Option<u64>,
    /// Search for the highest rate that arrives, used instead of a fixed rate.
    pub search: Option<RateSearch>,
    /// Payload of a datagram, bytes; null for as much as the path MTU allows.
    pub datagram_bytes: Option<u32>,
    /// Whether fragmentation is forbidden (`IP_MTU_DISCOVER`).
    pub dont_fragment: bool,
}

/// Settings of the search for the highest rate without loss (`-u -b auto`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RateSearch {
    /// Largest acceptable share of a trial's datagrams lost.
    pub loss_ratio: f64,
    /// Duration of each trial.
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
    /// Returns the default duration of a trial: one second.
    pub const fn usual_trial() -> Nanos {
        Nanos::secs(1)
    }
}

/// Results of a UDP flow, all its streams together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UdpReport {
    /// Payload rate requested, all streams, bit/s; null for as fast as the sender could.
    pub asked_bps: Option<f64>,
    /// Payload rate that the sender passed to its kernel, bit/s.
    pub sent_bps: f64,
    /// Payload of a datagram, bytes.
    pub datagram_bytes: u64,
    /// Datagrams that the sender passed to its kernel.
    pub sent: u64,
    /// Datagrams skipped because they were more than 20 ms late.
    pub left_out: u64,
    /// Distinct datagrams received.
    pub received: u64,
    /// Datagrams sent but never received, omit included.
    pub lost: u64,
    /// Lost / sent.
    pub loss_ratio: f64,
    /// Lost datagrams that the receiving host dropped because its socket was full; null if its kernel does not report it.
    pub dropped_by_receiver: Option<u64>,
    /// Duplicate datagrams; null if received by a server of another protocol, which does not report them.
    pub duplicated: Option<u64>,
    /// Datagrams received after one with a higher number (RFC 4737, section 3.3); includes duplicates if `duplicated` is null.
    /// Null if the receiver does not report it.
    pub reordered: Option<u64>,
    /// Largest distance of a reordered datagram's number behind the highest received; null if the receiver does not report it.
    pub reorder_displacement_max: Option<u64>,
    /// Interarrival jitter at the end of the flow (RFC 3550, section 6.4.1), the largest of the streams. Datagrams of one call have one
    /// departure time.
    pub jitter_ns: Option<u64>,
    /// Delay above the smallest (RFC 5481, section 4.2).
    pub delay_variation_ns: Option<Distribution>,
    /// Delay from the sender's call to the receiving kernel; in the lab, where both ends have one clock, the clock error is 0.
    pub one_way_delay_ns: Option<OneWayDelay>,
    /// Time from one call of the sender to the next.
    pub send_gap_ns: Option<Distribution>,
    /// Most datagrams passed to the kernel by one call: those due within 100 us, or one.
    pub burst_max: u64,
    /// Source of the receiver's timestamps.
    pub timestamps: TimestampSource,
    /// `SO_RCVBUF` of the receiving socket.
    pub receive_buffer_bytes: Option<u64>,
    /// Trials of a search, in order; empty if none was requested.
    #[serde(default)]
    pub trials: Vec<Trial>,
    /// How the search ended; null if none was requested.
    pub search: Option<SearchEnd>,
}

/// A trial of a rate search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trial {
    /// Payload rate requested, all streams, bit/s; null for as fast as the sender could.
    pub rate_bps: Option<f64>,
    /// Payload rate sent, bit/s.
    pub sent_bps: f64,
    /// Payload rate received, bit/s.
    pub received_bps: f64,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams lost.
    pub lost: u64,
    /// Lost / sent.
    pub loss_ratio: f64,
    /// Lost datagrams that the receiving host dropped; null if its kernel does not report it.
    pub dropped_by_receiver: Option<u64>,
    /// Whether it held the rate found for the whole duration.
    pub held: bool,
    /// Whether no more than the acceptable share was lost, and as much was sent as requested.
    pub passed: bool,
}

impl Trial {
    /// Judges a flow by the search's settings; `received_bps` is by the receiver's clock.
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

    /// Whether the sender did not reach the requested rate.
    pub fn fell_short(&self) -> bool {
        self.rate_bps.is_some_and(|asked| self.sent_bps < SENT_AS_ASKED * asked)
    }
}

/// How a rate search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchEnd {
    /// The rate found was held for the whole duration without more loss than acceptable.
    Held,
    /// Neither the rate found nor several lower ones could be held; the last of them is reported.
    NotHeld,
    /// Loss does not depend on the rate; the lowest rate tried is reported.
    LossAtAnyRate,
    /// It was interrupted; the report is of the rate being held, or else the highest that had passed a trial, or else
    /// the last one tried.
    CutShort,
}

/// A distribution of times, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distribution {
    /// Number of values.
    pub count: u64,
    /// Median.
    pub p50: u64,
    /// 95th percentile; null with fewer than 20 values.
    pub p95: Option<u64>,
    /// 99th percentile; null with fewer than 100 values.
    pub p99: Option<u64>,
    /// Largest.
    pub max: u64,
}

impl Distribution {
    /// Summarises a histogram; `None` if it is empty.
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

/// One-way delays, nanoseconds; may be negative within the clock error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OneWayDelay {
    /// Smallest.
    pub min: i64,
    /// Median.
    pub p50: i64,
    /// 95th percentile; null with fewer than 20 values.
    pub p95: Option<i64>,
    /// 99th percentile; null with fewer than 100 values.
    pub p99: Option<i64>,
    /// Largest.
    pub max: i64,
    /// Largest common error of all of them: half of the round trip by which the clocks were compared, plus the drift
    /// since.
    pub clock_error: u64,
}
