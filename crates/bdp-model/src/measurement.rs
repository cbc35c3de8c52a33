//! All that one measurement between two machines produced. Its JSON form is specified in `docs/measurement.md`.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::caveat::Caveat;
use crate::connection::Connection;
use crate::experiment::Experiment;
use crate::finding::Finding;
use crate::flow::FlowSpec;
use crate::host_counters::HostCounters;
use crate::labels::Labels;
use crate::latency_parts::LatencyParts;
use crate::method::{EndReason, ReceiveMethod, SendMethod, TriedWay};
use crate::one_way::EachWayReport;
use crate::payload::{CpuList, PayloadCheck};
use crate::probes::ProbeSeries;
use crate::record::{
    LossEpisode, ReceiverSample, RttReport, RttSummary, SenderSample, StreamReport, WindowReport,
};
use crate::responsiveness::Responsiveness;
use crate::scenario::Family;
use crate::settling::Settled;
use crate::udp::UdpReport;
use crate::units::{Nanos, Rate};

pub use crate::ends::{Direction, PeerProtocol};

/// Version of the shape; a reader refuses a larger major number.
pub const MEASUREMENT_SCHEMA: &str = "bdp.measurement/1";

/// The port of `bdp serve`, TCP and UDP, where no other is given.
pub const PORT: u16 = 5201;

/// One measurement of a path, as it went.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measurement {
    /// Name and version of this document's shape.
    #[cfg_attr(feature = "schema", schemars(extend("const" = MEASUREMENT_SCHEMA)))]
    pub schema: String,
    /// What the user called it.
    pub label: Option<String>,
    /// Labels that the user gave it, by name.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// What was asked for, complete: all that is needed to repeat it.
    pub request: MeasureRequest,
    /// Which of several runs, from 1.
    pub repetition: u32,
    /// Start, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Whole measurement, milliseconds.
    pub took_ms: u64,
    /// The machine that asked.
    pub near: HostFacts,
    /// The machine that served.
    pub far: HostFacts,
    /// What was found out about the path.
    pub path: PathFacts,
    /// The most that the path can carry, as far as is known.
    pub ceiling: Option<Ceiling>,
    /// Round trips before any load.
    pub rtt_idle_ns: Option<RttSummary>,
    /// The same probes one by one, since the first was due; null where none were sent, and of older measurements.
    #[serde(default)]
    pub idle_probes: Option<ProbeSeries>,
    /// Each direction by itself, in the order in which they ran.
    pub directions: Vec<DirectionResult>,
    /// Short flows after the test, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<Experiment>,
    /// What a reader should know before relying on the figures. A real path has caveats, never INVALID.
    pub caveats: Vec<Caveat>,
    /// Why it failed, where it did.
    pub error: Option<String>,
    /// What the server printed of each of its tests, in order, where that was asked for: text, or the document of its JSON.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_output: Vec<serde_json::Value>,
}

impl Measurement {
    /// Of a request of which nothing has been measured yet: the first of its runs, with all figures missing.
    pub fn of(request: &MeasureRequest) -> Self {
        Self {
            schema: MEASUREMENT_SCHEMA.to_owned(),
            request: request.clone(),
            repetition: 1,
            ..Self::default()
        }
    }
}

/// What was asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasureRequest {
    /// The host as given.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What the server speaks, where that is not bdp's own protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<PeerProtocol>,
    /// IP version, where only one will do.
    pub family: Option<Family>,
    /// The directions in turn; both at once where [`MeasureRequest::bidirectional`].
    pub directions: Vec<Direction>,
    /// Whether both directions run at the same time.
    pub bidirectional: bool,
    /// What each direction is to do.
    #[serde(flatten)]
    pub spec: FlowSpec,
    /// How long the idle round trip is measured.
    #[serde(rename = "idle_ns", alias = "idle", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub idle: Nanos,
    /// Address that the near end sends from.
    pub bind_address: Option<String>,
    /// Device that the near end sends through.
    pub bind_device: Option<String>,
    /// First local port of the data connections.
    pub client_port: Option<u16>,
    /// Processors that the near end's threads are kept to.
    pub near_cpus: Option<CpuList>,
    /// The same of the far end.
    pub far_cpus: Option<CpuList>,
    /// What was downloaded, where a server of the web was measured.
    pub url: Option<String>,
    /// How the far end was started there, where that was by `ssh`.
    pub ssh: Option<SshRequest>,
    /// Whether connections are added until goodput and responsiveness are steady (draft-ietf-ippm-responsiveness).
    #[serde(default)]
    pub responsiveness: bool,
    /// Whether a server of iperf3 is asked for what it prints.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub server_output: bool,
    /// How the near end was let in, without what is secret of it, where options said how.
    #[serde(default)]
    pub access: Option<Access>,
    /// The rates that were bought for this path, where the user says which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordered: Option<OrderedRates>,
    /// Whether a direction ends as soon as its goodput has settled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub until_settled: bool,
    /// Whether no short flows may follow the test, however unclear its limit is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_experiments: bool,
    /// Whether the first second of datagrams is watched, since nobody knows the path to carry their rate; found anew for each run.
    #[serde(skip)]
    pub watch_loss: bool,
}

impl MeasureRequest {
    /// What is measured towards a host where nothing else is said.
    pub fn to(host: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            port: PORT,
            directions: vec![Direction::To, Direction::From],
            idle: Nanos::secs(2),
            ..Self::default()
        }
    }
}

/// The rates of a line as they were bought, bit/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OrderedRates {
    /// From the near end to the far one: the line's upload.
    pub to_bps: u64,
    /// From the far end to the near one: its download.
    pub from_bps: u64,
}

impl OrderedRates {
    /// That of a direction.
    pub const fn of(self, way: Direction) -> u64 {
        match way {
            Direction::To => self.to_bps,
            Direction::From => self.from_bps,
        }
    }
}

/// As providers sell lines: `500M` both ways, `500M/100M` down and up.
impl FromStr for OrderedRates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rate = |text: &str| match text.parse::<Rate>() {
            Ok(rate) if rate.as_bps() > 0 => Ok(rate.as_bps()),
            Ok(_) => {
                Err("the line rate must be above 0; give the subscribed rate, for example 500M or 500M/100M"
                    .to_owned())
            }
            Err(error) => Err(error.to_string()),
        };
        let (down, up) = text.split_once('/').unwrap_or((text, text));
        Ok(Self { to_bps: rate(up)?, from_bps: rate(down)? })
    }
}

/// What lets the near end in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Access {
    /// A token that was typed.
    Token,
    /// The token in a file.
    TokenFile {
        /// As given.
        path: String,
    },
    /// A login at a server of iperf3; its password is typed or in the environment.
    Login {
        /// Its name.
        user: String,
        /// File of the server's public key, as given.
        public_key: String,
        /// Whether it is encrypted as servers before 3.17 want it.
        pkcs1: bool,
    },
}

/// A far end that is started by `ssh`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SshRequest {
    /// As `ssh` takes it: `user@host`, or a name of its configuration.
    pub destination: String,
    /// Whether data went through its connection, and not directly to the host.
    pub through: bool,
    /// Options as of its `-o`.
    #[serde(default)]
    pub options: Vec<String>,
    /// Host for the data, where that was given.
    #[serde(default)]
    pub data_host: Option<String>,
    /// Port for the data, where that was given.
    #[serde(default)]
    pub data_port: Option<u16>,
}

/// What a machine says of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostFacts {
    /// Its host name.
    pub name: String,
    /// Its address on this path.
    pub address: String,
    /// bdp's version.
    pub bdp: String,
    /// Operating system, `Linux`.
    pub system: String,
    /// `uname -r`.
    pub kernel: String,
    /// Machine architecture.
    pub arch: String,
    /// Online processors.
    pub cpus: u32,
    /// The device that carries the path.
    pub device: Option<DeviceFacts>,
    /// Default congestion control.
    pub congestion_control: Option<String>,
    /// Settings that matter to TCP, by dotted name.
    pub sysctls: std::collections::BTreeMap<String, String>,
    /// Processors busy during the measurement, all of them, 0..=1.
    pub cpu_busy: Option<f64>,
    /// Fraction stolen by a hypervisor.
    pub cpu_steal: Option<f64>,
    /// What it counted during the measurement; null from a bdp that did not look.
    pub counters: Option<HostCounters>,
}

/// A network device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceFacts {
    /// Its name.
    pub name: String,
    /// Its speed as the driver tells it; null where it does not, as for virtual devices.
    pub speed_bps: Option<u64>,
    /// Its MTU.
    pub mtu: Option<u32>,
    /// Packets that it dropped during the measurement, both ways.
    pub drops: Option<u64>,
    /// Whether both directions can be used at once, as the driver tells it.
    pub full_duplex: Option<bool>,
    /// Its queueing discipline, as `fq`; of one with many queues that of the queues.
    pub qdisc: Option<String>,
}

/// How a sender kept to a rate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pacing {
    /// Payload of each stream, bit/s.
    pub rate_bps: u64,
    /// Who spaced the packets.
    pub by: Pacer,
}

/// Who spaces the packets of a sender that keeps to a rate (`SO_MAX_PACING_RATE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pacer {
    /// The queueing discipline `fq` of the sender's device.
    Fq,
    /// TCP in the sender's kernel, by timers of its own, as the device has no `fq`.
    Tcp,
    /// bdp alone, by the times of its calls: of datagrams the kernel spaces none without `fq`.
    Bdp,
    /// bdp by the times of its calls, and `fq` what one call holds.
    BdpAndFq,
}

/// What was found out about the path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathFacts {
    /// Smallest round trip seen.
    pub rtt_min_ns: Option<u64>,
    /// Path MTU from near to far, as the near kernel knows it, or as it was found to be less.
    pub mtu_to: Option<u32>,
    /// Path MTU from far to near, as the far kernel knows it, or as it was found to be less.
    pub mtu_from: Option<u32>,
    /// Payload bytes of a full segment.
    pub mss_bytes: Option<u64>,
    /// Where packets vanish that a kernel takes for short enough.
    pub mtu_black_hole: Option<MtuBlackHole>,
}

/// A path that drops what is too long for it without a word to who sent it (RFC 2923, section 2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MtuBlackHole {
    /// Largest IP packet that went there and came back, bytes (RFC 8899).
    pub mtu: u32,
    /// Path MTU as the near kernel knows it, bytes.
    pub known_mtu: u32,
    /// Whether one byte more is known to be lost.
    pub exact: bool,
}

/// The most that the path can carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ceiling {
    /// As TCP goodput.
    pub goodput_bps: f64,
    /// Where the figure comes from: `the near NIC, eth0, 1 Gbit/s`.
    pub by: String,
}

/// One direction's outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectionResult {
    /// Which.
    pub direction: Direction,
    /// Bytes read by the receiver x 8 / time, after omit.
    pub goodput_bps: f64,
    /// Bytes read by the receiver, omit included.
    pub bytes: u64,
    /// From the first byte read to the last sample.
    pub duration_ns: u64,
    /// Of that, the beginning that was left out of the goodput.
    pub omit_ns: u64,
    /// What the whole test would have come to, if it ended since its goodput had settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
    /// Goodput of the intervals after omit.
    pub spread: Option<IntervalSpread>,
    /// Goodput after omit of each stream, in order of connection.
    pub stream_goodput_bps: Vec<f64>,
    /// The window of the first stream: asked, granted, on the wire.
    pub window: WindowReport,
    /// Round trips of the probe flow, before the load and under it.
    pub rtt_ns: RttReport,
    /// Round trips a minute under load, [`crate::stats::responsiveness_rpm`] of the probe flow: the foreign probes of
    /// draft-ietf-ippm-responsiveness, here datagrams, without its handshakes of TCP and TLS and its probes on loaded
    /// connections.
    pub responsiveness_rpm: Option<f64>,
    /// Responsiveness under working conditions; null where that was not asked for.
    #[serde(default)]
    pub responsiveness: Option<Responsiveness>,
    /// Delays each way of the same probes, there being from the client to the server; null where the server told no times.
    pub each_way_ns: Option<EachWayReport>,
    /// Where the round trips of those probes under load were spent; null where no kernel stamped them.
    #[serde(default)]
    pub latency_parts_ns: Option<LatencyParts>,
    /// The probes of the flow one by one, since its first byte, those of its omit included; null where none were sent, and of
    /// older measurements.
    #[serde(default)]
    pub probes: Option<ProbeSeries>,
    /// Segments sent again, all streams; null where the sender's kernel does not tell.
    pub retransmits: Option<u64>,
    /// Segments that the receiver had already, as it told the sender (DSACK, RFC 2883), all streams: what was sent again
    /// though it was not lost, on a path that reorders. Null where the sender's kernel does not tell.
    pub needless_retransmits: Option<u64>,
    /// Congestion control as read back from the sending socket.
    pub congestion_control: String,
    /// Payload bytes of a full segment.
    pub mss_bytes: Option<u64>,
    /// `SO_SNDBUF` of the first stream at the sender.
    pub send_buffer_bytes: Option<u64>,
    /// CPU time of the sending process / wall clock.
    pub sender_cpu: f64,
    /// CPU time of the receiving process / wall clock.
    pub receiver_cpu: f64,
    /// CPU time of the busiest sending thread / wall clock; null where the sender does not report it.
    pub sender_thread_cpu: Option<f64>,
    /// CPU time of the busiest receiving thread / wall clock; null where the receiver does not report it.
    pub receiver_thread_cpu: Option<f64>,
    /// Whether the first connection uses window scaling (RFC 7323) as the sender's kernel has it; null where it does not say.
    pub sender_window_scaling: Option<bool>,
    /// The same as the receiver's kernel has it.
    pub receiver_window_scaling: Option<bool>,
    /// What the first connection uses, as the sender's kernel has it, or else the receiver's; absent where neither says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<Connection>,
    /// How the sender gave bytes to its kernel.
    #[serde(default)]
    pub send_method: SendMethod,
    /// Ways that the sender tried in its first moments, of which it kept the quickest; absent where there was one, or where the path was
    /// slower than all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub send_methods_tried: Vec<TriedWay>,
    /// How the receiver read.
    #[serde(default)]
    pub receive_method: ReceiveMethod,
    /// Threads that sent.
    pub sender_threads: Option<u32>,
    /// Threads that received.
    pub receiver_threads: Option<u32>,
    /// What came of checking every byte; null where that was not asked for.
    pub payload_check: Option<PayloadCheck>,
    /// Why it ended.
    pub ended: EndReason,
    /// Readings at the receiver.
    pub received: Vec<ReceiverSample>,
    /// Readings at the sender; of the first stream where it is not a sum.
    pub sent: Vec<SenderSample>,
    /// Congestion events of the first stream at the sender: losses and marks, each with what was known just before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loss_episodes: Vec<LossEpisode>,
    /// Of several streams, what the sender's kernel counted of each, in order of connection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamReport>,
    /// What limits this direction, and how that is known.
    #[serde(deserialize_with = "crate::finding::read")]
    pub findings: Vec<Finding>,
    /// How the sender kept to the rate that was asked for; null where none was.
    pub pacing: Option<Pacing>,
    /// Of a flow of datagrams, what became of them; null of TCP, whose members are null, empty or 0 then.
    pub udp: Option<UdpReport>,
}

/// Goodput of intervals, bit/s.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IntervalSpread {
    /// How many intervals.
    pub intervals: u64,
    /// Smallest; null where it was not kept.
    pub min: Option<f64>,
    /// 5th percentile; null of fewer than 20 intervals.
    pub p5: Option<f64>,
    /// Median.
    pub p50: f64,
    /// 95th percentile; null of fewer than 20 intervals.
    pub p95: Option<f64>,
    /// Largest; null where it was not kept.
    pub max: Option<f64>,
}

impl IntervalSpread {
    /// From the 5th to the 95th percentile, where that is known, or else from the smallest to the largest; and which.
    pub fn range(&self) -> Option<(f64, f64, &'static str)> {
        let percentiles = self.p5.zip(self.p95).map(|(low, high)| (low, high, "p5..p95"));
        percentiles.or_else(|| self.min.zip(self.max).map(|(low, high)| (low, high, "smallest..largest")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_object_and_that_of_an_older_run_is_read() {
        let mut request = MeasureRequest::to("ams1");
        (request.spec.streams, request.spec.dscp) = (4, Some(46));
        let mut json = serde_json::to_value(&request).unwrap();
        assert_eq!(serde_json::from_value::<MeasureRequest>(json.clone()).unwrap(), request);
        let members = json.as_object_mut().unwrap();
        assert_eq!((&members["streams"], &members["duration_ns"]), (&4.into(), &10_000_000_000u64.into()));
        for (member, older, text) in [
            ("duration_ns", "duration", "10s"),
            ("omit_ns", "omit", "0ns"),
            ("interval_ns", "interval", "100ms"),
            ("idle_ns", "idle", "2000000000ns"),
        ] {
            assert!(members.remove(member).is_some(), "{member}");
            members.insert(older.to_owned(), text.into());
        }
        for later in ["zerocopy", "check_payload", "pacing_bps", "udp", "near_cpus", "far_cpus", "url", "ssh"]
        {
            assert!(members.remove(later).is_some(), "{later}");
        }
        assert_eq!(serde_json::from_value::<MeasureRequest>(json).unwrap(), request);
    }
}
