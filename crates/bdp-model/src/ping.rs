//! All that one `bdp ping` produced. Its JSON form is specified in `docs/ping.md` and `docs/ping.schema.json`.

use serde::{Deserialize, Serialize};

use crate::caveat::Caveat;
use crate::histogram::Histogram;
use crate::scenario::Family;
use crate::units::{ByteCount, Nanos};

/// Version of the shape; a reader refuses a larger major number.
pub const PING_SCHEMA: &str = "bdp.ping/1";

/// Round trips to one address, as they went.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ping {
    /// Name and version of this document's shape.
    #[cfg_attr(feature = "schema", schemars(extend("const" = PING_SCHEMA)))]
    pub schema: String,
    /// Version of bdp that measured.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub bdp: String,
    /// What was asked for, complete.
    pub request: PingRequest,
    /// Where the probes went: an address, with its port where there is one.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub address: String,
    /// How a round trip was made; `bdp-report` writes it in a sentence.
    pub method: PingMethod,
    /// Start, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// From the first probe that counts to the last answer or the end of patience, milliseconds.
    pub took_ms: u64,
    /// What became of the probes.
    pub probes: Tally,
    /// Round trips, each from when its probe was sent.
    pub rtt_ns: Option<Distribution>,
    /// Round trips, each from when its probe was due, those that were due while another held the schedule up included
    /// (coordinated omission: G. Tene, "How NOT to Measure Latency"); null in a closed loop, which has no schedule.
    pub from_due_ns: Option<Distribution>,
    /// Mean of the absolute differences between one round trip and the next.
    pub jitter_ns: Option<u64>,
    /// How late probes were sent, by their schedule; null in a closed loop.
    pub lateness_ns: Option<Distribution>,
    /// Where the time went, as far as the kernels' stamps tell.
    pub shares: Option<Shares>,
    /// Round trips, bucket by bucket, smallest first.
    pub histogram: Vec<Bucket>,
    /// What a reader should know before relying on the figures.
    pub caveats: Vec<Caveat>,
    /// Each probe by itself, where that was asked for; not part of the JSON.
    #[serde(skip)]
    pub samples: Vec<Sample>,
}

/// How round trips are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PingMethod {
    /// TCP handshakes, each reset as soon as it stands.
    #[default]
    Handshakes,
    /// ICMP echo requests.
    Icmp {
        /// Payload of each.
        payload_bytes: u64,
        /// Whether by a raw socket, for want of the kind that needs no privilege.
        raw: bool,
    },
    /// Datagrams that `bdp serve` sends back.
    Datagrams,
    /// Messages on one connection that `bdp serve` sends back.
    Messages,
}

/// What was asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PingRequest {
    /// The host as given.
    pub host: String,
    /// Its port; of no meaning to ICMP.
    pub port: u16,
    /// IP version, where only one will do.
    pub family: Option<Family>,
    /// What a probe is.
    pub mode: PingMode,
    /// Probes that count; `None` where time or the user ends it.
    pub count: Option<u64>,
    /// Time after which no probe is sent.
    #[serde(default, rename = "duration_ns", alias = "duration", with = "crate::units::nanoseconds::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub duration: Option<Nanos>,
    /// From one probe to the next; 0 is a closed loop, each as soon as the one before is answered.
    #[serde(rename = "interval_ns", alias = "interval", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub interval: Nanos,
    /// Probes before those that count.
    pub warm_up: u64,
    /// Payload of a probe; null where the mode has none, or its own.
    pub payload: Option<ByteCount>,
    /// How long an answer is waited for.
    #[serde(rename = "patience_ns", alias = "patience", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub patience: Nanos,
    /// Whether kernels are asked for stamps.
    pub stamps: bool,
    /// Address that probes are sent from.
    pub bind_address: Option<String>,
    /// Device that they are sent through.
    pub bind_device: Option<String>,
    /// Differentiated services code point, 0..=63.
    pub dscp: Option<u8>,
}

/// What a probe is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PingMode {
    /// A TCP handshake, which any listener answers.
    #[default]
    Connect,
    /// An ICMP echo request, which any host may answer.
    Icmp,
    /// A message on a TCP connection that `bdp serve` sends back.
    Tcp,
    /// A datagram that `bdp serve` sends back.
    Udp,
}

impl PingMode {
    /// As it is called in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "TCP connect",
            Self::Icmp => "ICMP echo",
            Self::Tcp => "TCP echo",
            Self::Udp => "UDP echo",
        }
    }
}

/// What became of the probes that count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tally {
    /// Sent.
    pub sent: u64,
    /// Answered within patience.
    pub received: u64,
    /// Not answered within patience.
    pub lost: u64,
    /// Refused: the host is there, and nothing listens on the port.
    pub refused: u64,
    /// Told to be unreachable, by this machine or by one on the way.
    pub unreachable: u64,
    /// Answers that came again.
    pub duplicates: u64,
    /// Connections whose SYN was sent again: their round trip holds a second or more of Linux's waiting.
    pub retransmitted: u64,
    /// Turns of the schedule at which nothing was sent, because another probe was under way, this machine stalled, or it was late
    /// and answers were still to come.
    pub left_out: u64,
    /// Of the lost, such as this machine dropped as its socket was full; null where its kernel does not tell, and of connections.
    pub dropped_by_receiver: Option<u64>,
}

/// A distribution of times, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distribution {
    /// How many.
    pub count: u64,
    /// Smallest, exact.
    pub min: u64,
    /// Mean, exact.
    pub mean: u64,
    /// Median, as all percentiles to 1 in 64 and not too small.
    pub p50: u64,
    /// 90th percentile; null of fewer than 10, as the next of fewer than 20, 100 and 1,000: one has to lie beyond.
    pub p90: Option<u64>,
    /// 95th percentile.
    pub p95: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// 99.9th percentile.
    pub p999: Option<u64>,
    /// Largest, exact.
    pub max: u64,
}

impl Distribution {
    /// Of what was counted; `None` of nothing.
    pub fn of(histogram: &Histogram) -> Option<Self> {
        (histogram.count() > 0).then(|| Self {
            count: histogram.count(),
            min: histogram.min(),
            mean: histogram.mean(),
            p50: histogram.percentile(50.0),
            p90: histogram.resolved(90.0),
            p95: histogram.resolved(95.0),
            p99: histogram.resolved(99.0),
            p999: histogram.resolved(99.9),
            max: histogram.max(),
        })
    }
}

/// Where the time of a round trip went; each known for the probes whose stamps are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shares {
    /// Who took the stamps at this end: `kernel`, `hardware`.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["hardware", "kernel", "user"])))]
    pub near_stamps: String,
    /// Who took the stamp of arrival at the far end: `kernel`, `user`; null where none was taken.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["kernel", "user", null])))]
    pub far_stamps: Option<String>,
    /// In this machine between bdp and the place of the stamps: calls, queues, waking up.
    pub near_ns: Option<Distribution>,
    /// At the far end, from the arrival there to the sending back.
    pub far_ns: Option<Distribution>,
    /// What is left: the path, and the parts of both stacks below the stamps.
    pub path_ns: Option<Distribution>,
}

/// Times that the histogram does not tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bucket {
    /// Smallest.
    pub from_ns: u64,
    /// Largest.
    pub to_ns: u64,
    /// How many.
    pub count: u64,
}

impl Bucket {
    /// Those of a histogram.
    pub fn of(histogram: &Histogram) -> Vec<Self> {
        histogram.buckets().map(|b| Self { from_ns: b.from, to_ns: b.to, count: b.count }).collect()
    }
}

/// One probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// Which, from 0.
    pub number: u64,
    /// When it was due, since the first; when it was sent, in a closed loop.
    pub due_ns: u64,
    /// When it was sent, since the first was due.
    pub sent_ns: u64,
    /// Its round trip.
    pub outcome: Fate,
}

/// What became of one probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It was answered after so many nanoseconds.
    #[serde(rename = "answered_ns")]
    Answered(u64),
    /// It was not answered within patience.
    Lost,
    /// It was refused.
    Refused,
    /// It could not get there.
    Unreachable,
}

impl Fate {
    /// One word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answered(_) => "answered",
            Self::Lost => "lost",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
        }
    }
}
