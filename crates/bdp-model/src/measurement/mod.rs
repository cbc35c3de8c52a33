//! Everything that one measurement between two machines produced. `docs/measurement.md` specifies the JSON form.

pub mod ends;
pub mod expectation;
pub mod experiment;
pub mod figure;
pub mod host_counters;
pub mod instrument;
pub mod labels;
pub mod options;
pub mod rate_search;
pub mod responsiveness;
pub mod settling;

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::case::Family;
use crate::finding::caveat::Caveat;
use crate::flow::FlowSpec;
use crate::flow::method::{EndReason, ReceiveMethod, SendMethod, TriedWay};
use crate::flow::payload::{CpuList, PayloadCheck};
use crate::probes::ProbeSeries;
use crate::probes::latency_parts::LatencyParts;
use crate::probes::one_way::EachWayReport;
use crate::record::{RttSummary, Transfer, holds_transfer, written_in_order};
use crate::units::{Nanos, Rate};
use experiment::Experiment;
use host_counters::HostCounters;
use labels::Labels;
use responsiveness::Responsiveness;
use settling::Settled;

pub use ends::{Direction, PeerProtocol};

/// Schema version; a reader refuses a larger major number.
pub const MEASUREMENT_SCHEMA: &str = "bdp.measurement/1";

/// Default port of `bdp serve`, TCP and UDP.
pub const PORT: u16 = 5201;

/// One measurement of a path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measurement {
    /// Schema name and version.
    #[cfg_attr(feature = "schema", schemars(extend("const" = MEASUREMENT_SCHEMA)))]
    pub schema: String,
    /// Name given by the user.
    pub label: Option<String>,
    /// Labels given by the user, by name.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// The complete request, enough to repeat the measurement.
    pub request: MeasureRequest,
    /// Number of the run, from 1.
    pub repetition: u32,
    /// Start, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Duration of the whole measurement, milliseconds.
    pub took_ms: u64,
    /// The client's machine.
    pub near: HostFacts,
    /// The server's machine.
    pub far: HostFacts,
    /// What is known about the path.
    pub path: PathFacts,
    /// The most that the path can carry, as far as known.
    pub ceiling: Option<Ceiling>,
    /// Round trips before any load.
    pub rtt_idle_ns: Option<RttSummary>,
    /// Individual idle probes, timed from when the first was due; null if none were sent, and in older measurements.
    #[serde(default)]
    pub idle_probes: Option<ProbeSeries>,
    /// Results of each direction, in the order in which they ran.
    pub directions: Vec<DirectionResult>,
    /// Results of the experiments after the test, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<Experiment>,
    /// Reasons for caution before relying on the figures. A real path has caveats, never INVALID.
    pub caveats: Vec<Caveat>,
    /// Why the measurement failed; null if it did not.
    pub error: Option<String>,
    /// Output of an iperf3 server for each of its tests, in order, if requested: text, or its JSON document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_output: Vec<serde_json::Value>,
}

impl Measurement {
    /// Returns the measurement of a request before anything is measured: the first run, without figures.
    pub fn of(request: &MeasureRequest) -> Self {
        Self {
            schema: MEASUREMENT_SCHEMA.to_owned(),
            request: request.clone(),
            repetition: 1,
            ..Self::default()
        }
    }
}

/// A measurement request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasureRequest {
    /// The host as given.
    pub host: String,
    /// Port of the server.
    pub port: u16,
    /// The server's protocol, if it is not bdp's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<PeerProtocol>,
    /// IP version, if only one is acceptable.
    pub family: Option<Family>,
    /// The directions, in order; both at once if `bidirectional` is set.
    pub directions: Vec<Direction>,
    /// Whether both directions run at the same time.
    pub bidirectional: bool,
    /// The flow of each direction.
    #[serde(flatten)]
    pub spec: FlowSpec,
    /// How long the idle round trip is measured before the load.
    #[serde(rename = "idle_ns", alias = "idle", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub idle: Nanos,
    /// Address that the near end sends from.
    pub bind_address: Option<String>,
    /// Device that the near end sends through.
    pub bind_device: Option<String>,
    /// First local port of the data connections.
    pub client_port: Option<u16>,
    /// Processors that the near end's threads are pinned to.
    pub near_cpus: Option<CpuList>,
    /// Processors that the far end's threads are pinned to.
    pub far_cpus: Option<CpuList>,
    /// URL that was downloaded, if a web server was measured.
    pub url: Option<String>,
    /// How the far end was started, if over `ssh`.
    pub ssh: Option<SshRequest>,
    /// Whether connections are added until goodput and responsiveness are steady (draft-ietf-ippm-responsiveness).
    #[serde(default)]
    pub responsiveness: bool,
    /// Whether an iperf3 server is asked for its output.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub server_output: bool,
    /// How the near end authenticated, without secrets, if options specified it.
    #[serde(default)]
    pub access: Option<Access>,
    /// The contracted rates of this path, if the user states them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordered: Option<OrderedRates>,
    /// Whether a direction ends as soon as its goodput is steady.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub until_settled: bool,
    /// Whether experiments after the test are disabled, even if its limit is unclear.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_experiments: bool,
    /// Whether the first second of datagrams is monitored because their rate is not known to fit the path; decided anew for each run.
    #[serde(skip)]
    pub watch_loss: bool,
}

impl MeasureRequest {
    /// Returns the default request for a host.
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

/// Contracted rates of a line, bit/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OrderedRates {
    /// From the near end to the far one: the line's upload.
    pub to_bps: u64,
    /// From the far end to the near one: its download.
    pub from_bps: u64,
}

impl OrderedRates {
    /// Returns the rate of a direction.
    pub const fn of(self, way: Direction) -> u64 {
        match way {
            Direction::To => self.to_bps,
            Direction::From => self.from_bps,
        }
    }
}

/// Parses rates as providers state them: `500M` both ways, `500M/100M` down and up.
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

/// How the near end authenticates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Access {
    /// A token that was typed in.
    Token,
    /// A token from a file.
    TokenFile {
        /// Path of the file, as given.
        path: String,
    },
    /// A login to an iperf3 server; its password is typed in or in the environment.
    Login {
        /// User name.
        user: String,
        /// File of the server's public key, as given.
        public_key: String,
        /// Whether it uses the padding of servers before 3.17.
        pkcs1: bool,
    },
}

/// A far end that was started over `ssh`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SshRequest {
    /// Destination as `ssh` takes it: `user@host`, or a name from its configuration.
    pub destination: String,
    /// Whether data went through the `ssh` connection instead of directly to the host.
    pub through: bool,
    /// Options for `ssh -o`.
    #[serde(default)]
    pub options: Vec<String>,
    /// Host for the data, if given.
    #[serde(default)]
    pub data_host: Option<String>,
    /// Port for the data, if given.
    #[serde(default)]
    pub data_port: Option<u16>,
}

/// Facts that a machine reports about itself.
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
    /// Device that carries the path.
    pub device: Option<DeviceFacts>,
    /// Default congestion control.
    pub congestion_control: Option<String>,
    /// Sysctls that affect TCP, by dotted name.
    pub sysctls: std::collections::BTreeMap<String, String>,
    /// Fraction of all its processors that was busy during the measurement.
    pub cpu_busy: Option<f64>,
    /// Fraction of processor time stolen by a hypervisor.
    pub cpu_steal: Option<f64>,
    /// Counters during the measurement; null if its bdp did not read them.
    pub counters: Option<HostCounters>,
}

/// A network device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceFacts {
    /// Its name.
    pub name: String,
    /// Speed reported by the driver; null if it reports none, as for virtual devices.
    pub speed_bps: Option<u64>,
    /// Its MTU.
    pub mtu: Option<u32>,
    /// Packets that it dropped during the measurement, both ways.
    pub drops: Option<u64>,
    /// Whether it is full duplex, as reported by the driver.
    pub full_duplex: Option<bool>,
    /// Queueing discipline, for example `fq`; on a device with several queues, that of the queues.
    pub qdisc: Option<String>,
}

/// How a sender was paced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pacing {
    /// Rate at which each stream is paced, counting payload only, bit/s.
    pub rate_bps: u64,
    /// What spaced the packets.
    pub by: Pacer,
}

/// What spaces the packets of a paced sender (`SO_MAX_PACING_RATE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pacer {
    /// The queueing discipline `fq` of the sender's device.
    Fq,
    /// TCP in the sender's kernel with its own timers, because the device has no `fq`; up to 1 Gbit/s bdp also writes no sooner than
    /// due.
    Tcp,
    /// bdp alone, by the times of its calls: without `fq` the kernel does not space datagrams.
    Bdp,
    /// bdp by the times of its calls, and `fq` within a call.
    BdpAndFq,
}

/// What is known about the path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathFacts {
    /// Smallest round trip.
    pub rtt_min_ns: Option<u64>,
    /// Path MTU from near to far according to the near kernel, or the smaller one that was found.
    pub mtu_to: Option<u32>,
    /// Path MTU from far to near according to the far kernel, or the smaller one that was found.
    pub mtu_from: Option<u32>,
    /// Payload bytes of a full segment.
    pub mss_bytes: Option<u64>,
    /// An MTU black hole on the path; null if none was found.
    pub mtu_black_hole: Option<MtuBlackHole>,
}

/// A path that silently drops packets that are too long for it (RFC 2923, section 2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MtuBlackHole {
    /// Largest IP packet that made the round trip, bytes (RFC 8899).
    pub mtu: u32,
    /// Path MTU according to the near kernel, bytes.
    pub known_mtu: u32,
    /// Whether a packet one byte longer is known to be lost.
    pub exact: bool,
}

/// The most that the path can carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ceiling {
    /// As TCP goodput, bit/s.
    pub goodput_bps: f64,
    /// Source of the figure: `the near NIC, eth0, 1 Gbit/s`.
    pub by: String,
}

/// Results of one direction.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectionResult {
    /// The direction.
    pub direction: Direction,
    /// Bytes read by the receiver, omit included.
    pub bytes: u64,
    /// Estimate for the whole test, if it ended early because its goodput was steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
    /// Distribution of the goodput of intervals after omit.
    pub spread: Option<IntervalSpread>,
    /// Round trips per minute under load: 60 s / mean of the probes without the slowest 5 %. The probes are datagrams, without the
    /// handshakes of draft-ietf-ippm-responsiveness and without its probes on loaded connections.
    pub responsiveness_rpm: Option<f64>,
    /// Responsiveness under working conditions; null if not requested.
    #[serde(default)]
    pub responsiveness: Option<Responsiveness>,
    /// One-way delays of the same probes, `there` from the client to the server; null if the server reported no times.
    pub each_way_ns: Option<EachWayReport>,
    /// Host and path shares of the round trips of those probes under load; null if no kernel stamped them.
    #[serde(default)]
    pub latency_parts_ns: Option<LatencyParts>,
    /// Individual probes, timed from the first byte of the flow, those during omit included; null if none were sent, and in
    /// older measurements.
    #[serde(default)]
    pub probes: Option<ProbeSeries>,
    /// How the sender passed bytes to its kernel: `write` (copies them), `splice`, `sendfile`, `MSG_ZEROCOPY` (`MSG_ZEROCOPY, copied by
    /// the kernel`, as over loopback); of datagrams `sendmmsg`, with `+gso` if the kernel cuts them from larger buffers. Empty if
    /// unknown.
    #[serde(default)]
    pub send_method: SendMethod,
    /// Methods that the sender tried at the start, of which it kept the fastest; absent if there was only one, or if the path was
    /// slower than all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub send_methods_tried: Vec<TriedWay>,
    /// How the receiver read.
    #[serde(default)]
    pub receive_method: ReceiveMethod,
    /// Sending threads: one for each stream, at most one for each processor.
    pub sender_threads: Option<u32>,
    /// Receiving threads: one for each stream, at most one for each processor.
    pub receiver_threads: Option<u32>,
    /// Result of verifying every byte; null if not requested.
    pub payload_check: Option<PayloadCheck>,
    /// Why the direction ended.
    pub ended: EndReason,
    /// How the sender was paced; null if no rate was requested.
    pub pacing: Option<Pacing>,
    /// What both ends reported.
    #[serde(flatten)]
    pub transfer: Transfer,
}

holds_transfer!(DirectionResult);
written_in_order! { DirectionResult:
    direction, goodput_bps, bytes, duration_ns, omit_ns, settled unless is_none, spread, stream_goodput_bps,
    window, rtt_ns, responsiveness_rpm, responsiveness, each_way_ns, latency_parts_ns, probes, retransmits,
    needless_retransmits, congestion_control, mss_bytes, send_buffer_bytes, sender_cpu, receiver_cpu,
    sender_thread_cpu, receiver_thread_cpu, sender_window_scaling, receiver_window_scaling,
    connection unless is_none, send_method, send_methods_tried unless is_empty, receive_method, sender_threads,
    receiver_threads, payload_check, ended, received, sent, loss_episodes unless is_empty, streams unless is_empty,
    findings, pacing, udp
}

/// Distribution of the goodput of intervals, bit/s.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IntervalSpread {
    /// Number of intervals.
    pub intervals: u64,
    /// Smallest; null if it was not kept.
    pub min: Option<f64>,
    /// 5th percentile; null with fewer than 20 intervals.
    pub p5: Option<f64>,
    /// Median.
    pub p50: f64,
    /// 95th percentile; null with fewer than 20 intervals.
    pub p95: Option<f64>,
    /// Largest; null if it was not kept.
    pub max: Option<f64>,
}

impl IntervalSpread {
    /// Returns the range from the 5th to the 95th percentile, if known, or else from the smallest to the largest; and its name.
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
