//! Everything that one `bdp ping` produced. `docs/ping.md` and `docs/ping.schema.json` specify the JSON form.

use serde::{Deserialize, Serialize};

use crate::case::Family;
use crate::finding::caveat::Caveat;
use crate::names;
use crate::statistics::histogram::Histogram;
use crate::units::{ByteCount, Nanos};

/// Schema version; a reader refuses a larger major number.
pub const PING_SCHEMA: &str = "bdp.ping/1";

/// Round trips to one address.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ping {
    /// Schema name and version.
    #[cfg_attr(feature = "schema", schemars(extend("const" = PING_SCHEMA)))]
    pub schema: String,
    /// Version of bdp that measured.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub bdp: String,
    /// The complete request.
    pub request: PingRequest,
    /// Target of the probes: an address, with its port if there is one.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub address: String,
    /// How round trips were made; `bdp-report` words it.
    pub method: PingMethod,
    /// Start, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Time from the first counted probe to the last answer or timeout, milliseconds.
    pub took_ms: u64,
    /// Outcomes of the probes.
    pub probes: Tally,
    /// Round trips, measured from when each probe was sent.
    pub rtt_ns: Option<Distribution>,
    /// Round trips, measured from when each probe was due, including probes that were due while another blocked the schedule
    /// (coordinated omission: G. Tene, "How NOT to Measure Latency"); null in a closed loop, which has no schedule.
    pub from_due_ns: Option<Distribution>,
    /// Mean of the absolute differences between one round trip and the next.
    pub jitter_ns: Option<u64>,
    /// How late probes were sent relative to their schedule; null in a closed loop.
    pub lateness_ns: Option<Distribution>,
    /// Where the time was spent, as far as kernel timestamps show.
    pub shares: Option<Shares>,
    /// Histogram of the round trips, smallest first.
    pub histogram: Vec<Bucket>,
    /// What a reader should know before relying on the figures.
    pub caveats: Vec<Caveat>,
    /// Individual probes, if requested; not part of the JSON.
    #[serde(skip)]
    pub samples: Vec<Sample>,
}

/// How round trips are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PingMethod {
    /// TCP handshakes, each connection reset as soon as it is established.
    #[default]
    Handshakes,
    /// ICMP echo requests.
    Icmp {
        /// Payload of each, bytes.
        payload_bytes: u64,
        /// Whether a raw socket is used because the unprivileged kind is not available.
        raw: bool,
    },
    /// Datagrams echoed by `bdp serve`.
    Datagrams,
    /// Messages on one connection, echoed by `bdp serve`.
    Messages,
}

/// A ping request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PingRequest {
    /// The host as given.
    pub host: String,
    /// Port; unused by ICMP.
    pub port: u16,
    /// IP version, if only one is acceptable.
    pub family: Option<Family>,
    /// Kind of probe.
    pub mode: PingMode,
    /// Probes to count; `None` if limited by time or by the user.
    pub count: Option<u64>,
    /// Time after which no more probes are sent.
    #[serde(default, rename = "duration_ns", alias = "duration", with = "crate::units::nanoseconds::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub duration: Option<Nanos>,
    /// Interval between probes; 0 for a closed loop, where each is sent as soon as the one before is answered.
    #[serde(rename = "interval_ns", alias = "interval", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub interval: Nanos,
    /// Uncounted probes at the start.
    pub warm_up: u64,
    /// Payload of a probe; null for the mode's default, or if it has none.
    pub payload: Option<ByteCount>,
    /// How long to wait for an answer.
    #[serde(rename = "patience_ns", alias = "patience", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub patience: Nanos,
    /// Whether kernel timestamps are requested.
    pub stamps: bool,
    /// Address that probes are sent from.
    pub bind_address: Option<String>,
    /// Device that probes are sent through.
    pub bind_device: Option<String>,
    /// Differentiated services code point, 0 to 63.
    pub dscp: Option<u8>,
}

/// Kind of probe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PingMode {
    /// A TCP handshake, answered by any listener.
    #[default]
    Connect,
    /// An ICMP echo request, answered by most hosts.
    Icmp,
    /// A message on a TCP connection, echoed by `bdp serve`.
    Tcp,
    /// A datagram, echoed by `bdp serve`.
    Udp,
}

names!(PingMode: Connect = "TCP connect", Icmp = "ICMP echo", Tcp = "TCP echo", Udp = "UDP echo");

/// Outcomes of the counted probes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tally {
    /// Sent.
    pub sent: u64,
    /// Answered in time.
    pub received: u64,
    /// Not answered in time.
    pub lost: u64,
    /// Refused: the host is reachable, but nothing listens on the port.
    pub refused: u64,
    /// Reported unreachable, by this machine or by a router.
    pub unreachable: u64,
    /// Duplicate answers.
    pub duplicates: u64,
    /// Connections whose SYN was retransmitted: their round trip includes Linux's timeout of a second or more.
    pub retransmitted: u64,
    /// Scheduled probes that were not sent because another was in progress, this machine paused, or it was late with answers
    /// outstanding.
    pub left_out: u64,
    /// Lost answers that this machine dropped because its socket was full; null for connections, and if its kernel does not report it.
    pub dropped_by_receiver: Option<u64>,
}

/// A distribution of times, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distribution {
    /// Number of values.
    pub count: u64,
    /// Smallest, exact.
    pub min: u64,
    /// Mean, exact.
    pub mean: u64,
    /// Median; all percentiles are accurate to 1 in 64 and never too small.
    pub p50: u64,
    /// 90th percentile; null with fewer than 10 values, and the next ones with fewer than 20, 100 and 1,000: one value must lie beyond.
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
    /// Summarises a histogram; `None` if it is empty.
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

/// Where the time of round trips was spent, for the probes with timestamps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shares {
    /// Source of the timestamps at this end: `kernel`, `hardware`.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["hardware", "kernel", "user"])))]
    pub near_stamps: String,
    /// Source of the arrival timestamp at the far end: `kernel`, `user`; null if none was taken.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["kernel", "user", null])))]
    pub far_stamps: Option<String>,
    /// Time in this machine between bdp and the point of the timestamps: calls, queues, wake-ups.
    pub near_ns: Option<Distribution>,
    /// Time at the far end from arrival to sending back.
    pub far_ns: Option<Distribution>,
    /// The remainder: the path, and the parts of both stacks below the timestamps.
    pub path_ns: Option<Distribution>,
}

/// A bucket of the histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bucket {
    /// Smallest time.
    pub from_ns: u64,
    /// Largest time.
    pub to_ns: u64,
    /// Number of probes.
    pub count: u64,
}

impl Bucket {
    /// Returns the buckets of a histogram.
    pub fn of(histogram: &Histogram) -> Vec<Self> {
        histogram.buckets().map(|b| Self { from_ns: b.from, to_ns: b.to, count: b.count }).collect()
    }
}

/// One probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// Number, from 0.
    pub number: u64,
    /// When it was due, from when the first was due; when it was sent, in a closed loop.
    pub due_ns: u64,
    /// When it was sent, from when the first was due.
    pub sent_ns: u64,
    /// Its outcome.
    pub outcome: Fate,
}

/// Outcome of one probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It was answered after this many nanoseconds.
    #[serde(rename = "answered_ns")]
    Answered(u64),
    /// It was not answered in time.
    Lost,
    /// It was refused.
    Refused,
    /// Its target was unreachable.
    Unreachable,
}

impl Fate {
    /// Returns it as one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answered(_) => "answered",
            Self::Lost => "lost",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
        }
    }
}
