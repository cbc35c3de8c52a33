//! One point of a scenario's sweep and one repetition: everything needed to run and repeat it.

pub mod filter;
pub mod network;
pub mod route;
pub mod segment;
pub mod stack;
pub mod tcp_settings;
pub mod traffic;
mod transfers;

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::flow::FlowSpec;
use crate::flow::application::Application;
use crate::flow::payload::Zerocopy;
use crate::flow::socket::SocketNumbers;
use crate::flow::udp::UdpRequest;
use crate::flow::window::WindowBytes;
use crate::link::LinkConfig;
use crate::link::netem::Netem;
use crate::tuning::setting::Setting;
use crate::units::{ByteCount, Nanos, Probability};
use stack::{Clock, Stack};
use tcp_settings::TcpSettings;
use traffic::Traffic;

/// One point of a scenario's sweep and one repetition: everything needed to run it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaseSpec {
    /// The scenario's name.
    pub scenario: String,
    /// The scenario's title.
    pub title: String,
    /// Swept parameters of this case, as written, by dotted path.
    pub params: BTreeMap<String, serde_json::Value>,
    /// Values set on the command line instead of the file's, as written, by dotted path; the clock has its own member.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// Seed of every random stream of the case.
    pub seed: u64,
    /// Clock of the case; absent if it is the real one, so that earlier plans keep their digests.
    #[serde(default, skip_serializing_if = "Clock::is_real")]
    pub clock: Clock,
    /// IP version of the flows.
    pub family: Family,
    /// The hosts.
    pub hosts: Vec<HostSpec>,
    /// The links; links and routers connect the hosts of every flow.
    pub links: Vec<LinkSpec>,
    /// The flows, each started at its time.
    pub flows: Vec<CaseFlow>,
    /// Short transfers that run beside the flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<Traffic>,
    /// How long the idle round trip is measured before the flows start.
    #[serde(rename = "idle_ns", alias = "idle", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub idle: Nanos,
    /// Protocol of the probes.
    #[serde(default)]
    pub probe: ProbeKind,
    /// Expected results.
    pub expect: Expect,
    /// Figure that the source published for this point.
    pub published_bps: Option<Published>,
    /// Rows of a table that the source published, one for each thing that it measured repeatedly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published_rows: Vec<PublishedRow>,
}

impl CaseSpec {
    /// Returns the name of the case within its run: parameters and repetition.
    pub fn key(&self) -> String {
        let mut key = String::new();
        for (path, value) in &self.params {
            key.push_str(path);
            key.push('=');
            match value {
                serde_json::Value::String(s) => key.push_str(s),
                other => key.push_str(&other.to_string()),
            }
            key.push(' ');
        }
        format!("{key}#{}", self.repetition)
    }

    /// Returns the kernel that its hosts run, if one is named, or else the first of their stacks. A case runs at most one kernel; the
    /// scenario's reader checks it.
    pub fn stack(&self) -> Option<&Stack> {
        let stacks = || self.hosts.iter().filter_map(|host| host.stack.as_ref());
        stacks().find(|stack| stack.in_steps().is_none()).or_else(|| stacks().next())
    }

    /// Whether one of its hosts runs a stack that is not a kernel, so that its flows run in steps.
    pub fn runs_in_steps(&self) -> bool {
        self.hosts.iter().any(|host| host.stack.as_ref().is_some_and(|stack| stack.in_steps().is_some()))
    }

    /// Whether it needs a guest: it runs by the virtual clock and at least one host runs a kernel.
    pub fn needs_guest(&self) -> bool {
        !self.clock.is_real() && self.stack().is_none_or(|stack| stack.in_steps().is_none())
    }
}

/// IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// IPv4.
    #[default]
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// A host of the lab.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostSpec {
    /// Name in the scenario.
    pub name: String,
    /// Sysctls by dotted name (`net.ipv4.tcp_window_scaling`), set in the host's network namespace.
    pub sysctls: BTreeMap<String, String>,
    /// Whether it forwards packets of other hosts.
    #[serde(default)]
    pub router: bool,
    /// Whether it is a switch: it forwards and does not count as a hop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub switch: bool,
    /// Static routes; they take precedence over the shortest path.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// Kernel whose stack it runs; `None` for this machine's under the real clock, the default guest kernel under the virtual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<Stack>,
    /// TCP settings.
    #[serde(flatten)]
    pub tcp: TcpSettings,
}

impl HostSpec {
    /// Returns every sysctl that the scenario sets, by name or through a TCP setting.
    pub fn all_sysctls(&self) -> BTreeMap<String, String> {
        let mut all = self.tcp.by_sysctl();
        all.extend(self.sysctls.clone());
        all
    }

    /// Whether the scenario disables a sysctl.
    pub fn switches_off(&self, setting: Setting) -> bool {
        self.all_sysctls().get(setting.name).is_some_and(|value| value == "0")
    }
}

/// A static route of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Route {
    /// Destination host.
    pub to: String,
    /// Neighbour used as next hop.
    pub via: String,
    /// When it takes effect, from the time that flows can start; zero for the beginning. It replaces an earlier route to the same host.
    #[serde(rename = "at_ns", default, skip_serializing_if = "is_zero")]
    pub at: Nanos,
}

/// Protocol of a case's probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// Small UDP datagrams that are echoed.
    #[default]
    Udp,
    /// TCP connections: the time from SYN to SYN-ACK as seen by `connect`.
    TcpConnect,
}

/// A link of the lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkSpec {
    /// The two hosts; `forward` is from the first to the second.
    pub between: [String; 2],
    /// Configuration of the link.
    pub config: LinkConfig,
    /// Whether packets are captured at the end of the first and of the second host.
    #[serde(default)]
    pub capture: [bool; 2],
    /// Largest number of bytes of each packet that a capture keeps.
    #[serde(default = "whole_packets")]
    pub capture_snap: u32,
    /// Profile that supplied the keys that the scenario left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// netem discipline at the end of the first and of the second host; absent unless the emulator is compared with netem.
    #[serde(default, skip_serializing_if = "is_ours_alone")]
    pub netem: [Option<Netem>; 2],
}

fn is_ours_alone(netem: &[Option<Netem>; 2]) -> bool {
    *netem == [None; 2]
}

/// Snap length that keeps every packet whole: the largest IP packet that is not a jumbogram.
pub const WHOLE_PACKETS: u32 = 65_535;

const fn whole_packets() -> u32 {
    WHOLE_PACKETS
}

/// A flow of a case: its hosts, its start and its workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaseFlow {
    /// Sending host.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// How the window is set.
    pub window_method: WindowMethod,
    /// Start, from the time that the first flow could start.
    #[serde(default, rename = "start_ns", alias = "start", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub start: Nanos,
    /// Upper bound of a random delay of the start, drawn uniformly for each repetition; `start` of a planned case includes the draw.
    #[serde(
        default,
        rename = "start_spread_ns",
        with = "crate::units::nanoseconds",
        skip_serializing_if = "is_zero"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub start_spread: Nanos,
    /// Whether it is a background flow: excluded from the case's goodput, and without expectations.
    #[serde(default)]
    pub background: bool,
    /// Traffic entry that a transfer belongs to; transfers are not recorded individually.
    #[serde(skip)]
    pub transfer: Option<u32>,
    /// The workload.
    #[serde(flatten, with = "Recorded")]
    pub spec: FlowSpec,
}

impl CaseFlow {
    /// Returns a flow between hosts of these names, with the scenario defaults.
    pub fn between(from: impl Into<String>, to: impl Into<String>, congestion: impl Into<String>) -> Self {
        Self {
            from: from.into(),
            to: to.into(),
            window_method: WindowMethod::Auto,
            start: Nanos::ZERO,
            start_spread: Nanos::ZERO,
            background: false,
            transfer: None,
            spec: FlowSpec {
                omit: Nanos::secs(2),
                congestion: Some(congestion.into()),
                zerocopy: copied(),
                ..FlowSpec::default()
            },
        }
    }

    /// Returns when it sends, from the time that the first flow could start; it may finish its bytes earlier.
    pub fn span(&self) -> Range<Nanos> {
        self.start..self.start + self.spec.duration
    }
}

fn is_zero(time: &Nanos) -> bool {
    *time == Nanos::ZERO
}

/// The workload in a record's JSON: the settings of a scenario.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(remote = "FlowSpec")]
struct Recorded {
    /// Requested window on the wire of each stream, bytes; null leaves it to autotuning.
    window: Option<WindowBytes>,
    /// Parallel connections, or datagram senders.
    streams: u32,
    /// Bytes per write.
    length: ByteCount,
    /// `TCP_MAXSEG` at both ends.
    mss: Option<u32>,
    /// Congestion control of the sender; null for the host's.
    congestion: Option<String>,
    /// `TCP_NODELAY`.
    nodelay: bool,
    /// How long to send, omit included.
    #[serde(rename = "duration_ns", alias = "duration", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    duration: Nanos,
    /// Stop after this many bytes in total, if sooner.
    bytes: Option<ByteCount>,
    /// Initial part that is not counted.
    #[serde(rename = "omit_ns", alias = "omit", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    omit: Nanos,
    /// Datagrams instead of connections.
    #[serde(default, with = "datagrams")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<datagrams::Written>"))]
    udp: Option<UdpRequest>,
    /// Time between readings; absent if it is 100 ms.
    #[serde(
        default = "sample_interval",
        rename = "interval_ns",
        skip_serializing_if = "is_usual",
        with = "crate::units::nanoseconds"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    interval: Nanos,
    #[serde(skip)]
    socket_buffer: Option<ByteCount>,
    #[serde(skip)]
    dscp: Option<u8>,
    /// Socket options that are one number.
    #[serde(flatten)]
    socket: SocketNumbers,
    /// How the sender passes its bytes to the kernel; absent if it copies them.
    #[serde(default = "copied", skip_serializing_if = "is_copied")]
    zerocopy: Zerocopy,
    #[serde(skip)]
    check_payload: bool,
    #[serde(skip)]
    pacing_bps: Option<u64>,
    #[serde(default, skip_serializing_if = "Application::is_greedy")]
    application: Application,
}

const fn sample_interval() -> Nanos {
    Nanos::millis(100)
}

/// Whether the interval is the default, which a record omits so that earlier plans keep their digests.
fn is_usual(interval: &Nanos) -> bool {
    *interval == sample_interval()
}

fn is_copied(zerocopy: &Zerocopy) -> bool {
    *zerocopy == copied()
}

/// Bytes are copied, so that a case costs the same on every kernel.
const fn copied() -> Zerocopy {
    Zerocopy::Off
}

/// JSON form of datagrams in a record: `rate` and `datagram_bytes`, or null.
mod datagrams {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::flow::udp::UdpRequest;

    #[derive(Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub(super) struct Written {
        /// Payload rate of each stream, bit/s; null for as fast as the sender can.
        rate: Option<u64>,
        /// Payload of a datagram; null for as much as the path MTU allows.
        datagram_bytes: Option<u32>,
    }

    pub(super) fn serialize<S: Serializer>(
        udp: &Option<UdpRequest>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let written = |udp: &UdpRequest| Written { rate: udp.rate_bps, datagram_bytes: udp.datagram_bytes };
        udp.as_ref().map(written).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<UdpRequest>, D::Error> {
        let read = |Written { rate, datagram_bytes }| UdpRequest {
            rate_bps: rate,
            search: None,
            datagram_bytes,
            dont_fragment: false,
        };
        Ok(Option::<Written>::deserialize(deserializer)?.map(read))
    }
}

/// How a window is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WindowMethod {
    /// `receiver` for windows of at least one segment, `path` below that.
    #[default]
    Auto,
    /// The receiver's calibrated buffer (`tcp_rmem` in the host's network namespace).
    Receiver,
    /// A clamp on the path: window scaling stripped, the window field limited after the handshake.
    Path,
}

/// Expected results of a case; nothing is checked if none is set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Expect {
    /// Largest relative deviation of the goodput from the model.
    pub model_within: Option<Probability>,
    /// Smallest goodput, bit/s.
    pub goodput_min_bps: Option<u64>,
    /// Largest goodput, bit/s.
    pub goodput_max_bps: Option<u64>,
}

/// A published figure: one number or a range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Published {
    /// One figure, bit/s.
    Number(f64),
    /// Lowest and highest, bit/s.
    Range([f64; 2]),
}

/// A published row: statistics of many runs, bit/s. `None` for what the source does not state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublishedRow {
    /// What was measured, for example `Linux 2.6.10`.
    pub name: String,
    /// Minimum.
    pub min_bps: Option<f64>,
    /// Mean.
    pub mean_bps: Option<f64>,
    /// Maximum.
    pub max_bps: Option<f64>,
    /// Standard deviation.
    pub sd_bps: Option<f64>,
}
