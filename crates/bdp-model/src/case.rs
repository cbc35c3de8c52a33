//! One point of a scenario's sweep and one repetition: what is needed to run it, and to repeat it.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::application::Application;
use crate::flow::FlowSpec;
use crate::link::LinkConfig;
use crate::netem::Netem;
use crate::payload::Zerocopy;
use crate::stack::{Clock, Stack};
use crate::tcp_settings::TcpSettings;
use crate::traffic::Traffic;
use crate::udp::UdpRequest;
use crate::units::{ByteCount, Nanos, Probability};
use crate::window::WindowBytes;

/// One point of a scenario's sweep and one repetition: everything that is needed to run it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaseSpec {
    /// The scenario's name.
    pub scenario: String,
    /// The scenario's title.
    pub title: String,
    /// Swept parameters of this case, as written, by dotted path.
    pub params: BTreeMap<String, serde_json::Value>,
    /// What the command line set in place of the file's, as written, by dotted path; not the clock, which has its own member.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// Seed of every random stream of the case.
    pub seed: u64,
    /// The clock by which it runs. Left out of the JSON where it is the real one, so that plans of before keep their digests.
    #[serde(default, skip_serializing_if = "Clock::is_real")]
    pub clock: Clock,
    /// IP version of the flows.
    pub family: Family,
    /// The hosts.
    pub hosts: Vec<HostSpec>,
    /// The links; every flow runs between two hosts that links and routers join.
    pub links: Vec<LinkSpec>,
    /// The workloads, each started at its time.
    pub flows: Vec<CaseFlow>,
    /// Transfers that come and go beside them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<Traffic>,
    /// How long the idle round trip is measured before the flows start.
    #[serde(rename = "idle_ns", alias = "idle", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub idle: Nanos,
    /// What the probe flow is made of.
    #[serde(default)]
    pub probe: ProbeKind,
    /// What must come out.
    pub expect: Expect,
    /// What the source printed for this point.
    pub published_bps: Option<Published>,
    /// Rows of a table that the source printed, one for each thing that it measured many times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published_rows: Vec<PublishedRow>,
}

impl CaseSpec {
    /// Names the case within its run: parameters and repetition.
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

    /// The kernel that its hosts run, where one is named, or the first of their stacks. One case runs one kernel or none: the scenario's
    /// reader sees to that.
    pub fn stack(&self) -> Option<&Stack> {
        let stacks = || self.hosts.iter().filter_map(|host| host.stack.as_ref());
        stacks().find(|stack| stack.in_steps().is_none()).or_else(|| stacks().next())
    }

    /// Whether one of its hosts runs a stack that is no kernel: its flows are led in steps then.
    pub fn runs_in_steps(&self) -> bool {
        self.hosts.iter().any(|host| host.stack.as_ref().is_some_and(|stack| stack.in_steps().is_some()))
    }

    /// Whether it needs a guest: by the virtual clock, of which one kernel at least goes by.
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
    /// Its name in the scenario.
    pub name: String,
    /// Sysctls by dotted name (`net.ipv4.tcp_window_scaling`), set in the host's own namespace.
    pub sysctls: BTreeMap<String, String>,
    /// Whether it forwards packets of others.
    #[serde(default)]
    pub router: bool,
    /// Whether it is a switch: it forwards, and counts no hop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub switch: bool,
    /// Static routes, before those that follow from the shortest way.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// The kernel whose stack it runs; `None` this machine's by the real clock, the default guest kernel by the virtual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<Stack>,
    /// Settings of its TCP.
    #[serde(flatten)]
    pub tcp: TcpSettings,
}

impl HostSpec {
    /// Every sysctl that the scenario sets, by its own name or through a setting of TCP.
    pub fn all_sysctls(&self) -> BTreeMap<String, String> {
        let mut all = self.tcp.by_sysctl();
        all.extend(self.sysctls.clone());
        all
    }

    /// Whether the scenario switches a sysctl off.
    pub fn switches_off(&self, sysctl: &str) -> bool {
        self.all_sysctls().get(sysctl).is_some_and(|value| value == "0")
    }
}

/// A static route of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Route {
    /// The host that it leads to.
    pub to: String,
    /// The neighbour that it leads through.
    pub via: String,
    /// From when on, since flows could start; zero from the beginning. It replaces an earlier one to the same host.
    #[serde(rename = "at_ns", default, skip_serializing_if = "is_zero")]
    pub at: Nanos,
}

/// What a case's probe flow is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// Small UDP datagrams, echoed.
    #[default]
    Udp,
    /// TCP connections: the time from SYN to SYN-ACK as `connect` sees it.
    TcpConnect,
}

/// A link of the lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkSpec {
    /// The two hosts; `forward` is from the first to the second.
    pub between: [String; 2],
    /// What it does.
    pub config: LinkConfig,
    /// At which of its ends packets are captured, first and second host.
    #[serde(default)]
    pub capture: [bool; 2],
    /// Bytes of each packet that a capture keeps, at most.
    #[serde(default = "whole_packets")]
    pub capture_snap: u32,
    /// The profile from which its keys came that the scenario did not state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// What the kernel does at each end to what its host sends, first and second host: nothing, but where the emulator is compared with it.
    #[serde(default, skip_serializing_if = "is_ours_alone")]
    pub netem: [Option<Netem>; 2],
}

fn is_ours_alone(netem: &[Option<Netem>; 2]) -> bool {
    *netem == [None; 2]
}

/// The snap length that keeps every packet whole: the largest IP packet without jumbograms.
pub const WHOLE_PACKETS: u32 = 65_535;

const fn whole_packets() -> u32 {
    WHOLE_PACKETS
}

/// A flow of a case: what is to go from which host to which, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaseFlow {
    /// Sending host.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// How the window is set.
    pub window_method: WindowMethod,
    /// When it starts, since the first flow could start.
    #[serde(default, rename = "start_ns", alias = "start", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub start: Nanos,
    /// So much later at most, drawn evenly for each repetition; `start` of a planned case has the draw in it.
    #[serde(
        default,
        rename = "start_spread_ns",
        with = "crate::units::nanoseconds",
        skip_serializing_if = "is_zero"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub start_spread: Nanos,
    /// Whether it is there for the others' sake: it is not in the case's goodput, and nothing is expected of it.
    #[serde(default)]
    pub background: bool,
    /// Of a transfer, which entry of the traffic it is of; it is not recorded by itself.
    #[serde(skip)]
    pub transfer: Option<u32>,
    /// The workload.
    #[serde(flatten, with = "Recorded")]
    pub spec: FlowSpec,
}

impl CaseFlow {
    /// Of hosts by these names, with what a scenario has where it says nothing.
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

    /// When it sends, unless its bytes are through before, since the first flow could start.
    pub fn span(&self) -> Range<Nanos> {
        self.start..self.start + self.spec.duration
    }
}

fn is_zero(time: &Nanos) -> bool {
    *time == Nanos::ZERO
}

/// The workload in a record's JSON: what a scenario can set.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(remote = "FlowSpec")]
struct Recorded {
    window: Option<WindowBytes>,
    streams: u32,
    length: ByteCount,
    mss: Option<u32>,
    congestion: Option<String>,
    nodelay: bool,
    #[serde(rename = "duration_ns", alias = "duration", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    duration: Nanos,
    bytes: Option<ByteCount>,
    #[serde(rename = "omit_ns", alias = "omit", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    omit: Nanos,
    #[serde(default, with = "datagrams")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<datagrams::Written>"))]
    udp: Option<UdpRequest>,
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
    #[serde(skip)]
    unsent_limit: Option<ByteCount>,
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

/// What a record leaves out, so that plans of before keep their digests.
fn is_usual(interval: &Nanos) -> bool {
    *interval == sample_interval()
}

fn is_copied(zerocopy: &Zerocopy) -> bool {
    *zerocopy == copied()
}

/// Bytes are copied: that keeps what a case costs the same on every kernel.
const fn copied() -> Zerocopy {
    Zerocopy::Off
}

/// Datagrams in a record's JSON: `rate` and `datagram_bytes`, or null.
mod datagrams {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::udp::UdpRequest;

    #[derive(Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub(super) struct Written {
        rate: Option<u64>,
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

/// How a window is brought about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WindowMethod {
    /// `receiver` from one segment on, `path` below it.
    #[default]
    Auto,
    /// The receiver's buffer, calibrated (`tcp_rmem` in the host's namespace).
    Receiver,
    /// A clamp on the path: scaling stripped, the window field bounded after the handshake.
    Path,
}

/// What must come out of a case. Nothing set: nothing is judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Expect {
    /// Largest relative distance of the goodput from the model.
    pub model_within: Option<Probability>,
    /// Least goodput, bit/s.
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

/// A published row: what came of many runs, bit/s. What the source does not state is `None`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublishedRow {
    /// What was measured, such as `Linux 2.6.10`.
    pub name: String,
    /// The smallest.
    pub min_bps: Option<f64>,
    /// Their mean.
    pub mean_bps: Option<f64>,
    /// The largest.
    pub max_bps: Option<f64>,
    /// Their standard deviation.
    pub sd_bps: Option<f64>,
}
