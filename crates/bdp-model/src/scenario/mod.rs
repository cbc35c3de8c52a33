//! Scenarios: what a TOML file states, and the cases that follow from it.
//!
//! [`Scenario::parse`] reads a file into a tree that knows its lines; [`Scenario::plan`] puts each point of the
//! sweep into that tree and decodes a [`CaseSpec`] from it. The format is described in `docs/scenario.md`.

mod decode;
mod error;
mod file;
mod measure;
mod path;
mod plan;
mod range;
mod read;
pub mod route;
mod rule;
mod shipped;
mod sweep;
mod tree;

pub use error::{Problem, ScenarioError};
pub use file::Scenario;
pub use plan::{PlanOptions, shuffle};
pub use shipped::{find, shipped};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::link::LinkConfig;
use crate::record::Published;
use crate::units::{ByteCount, Nanos, Probability, Rate};

/// One point of a scenario's sweep and one repetition: everything that is needed to run it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseSpec {
    /// The scenario's name.
    pub scenario: String,
    /// The scenario's title.
    pub title: String,
    /// Swept parameters of this case, as written, by dotted path.
    pub params: BTreeMap<String, serde_json::Value>,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// Seed of every random stream of the case.
    pub seed: u64,
    /// IP version of the flows.
    pub family: Family,
    /// The hosts.
    pub hosts: Vec<HostSpec>,
    /// The links; every flow runs between two hosts that links and routers join.
    pub links: Vec<LinkSpec>,
    /// The workloads, each started at its time.
    pub flows: Vec<FlowSpec>,
    /// How long the idle round trip is measured before the flows start.
    pub idle: Nanos,
    /// What the probe flow is made of.
    #[serde(default)]
    pub probe: ProbeKind,
    /// What must come out.
    pub expect: Expect,
    /// What the source printed for this point.
    pub published_bps: Option<Published>,
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

    /// Whether a filter chooses the case: its whole key, or words that must all match, each `param=value`,
    /// `#repetition` or a part of the key. `param` may be the last part of a swept path.
    pub fn matches(&self, filter: &str) -> bool {
        plan::matches(&self.params, &self.key(), filter)
    }
}

/// IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
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
pub struct HostSpec {
    /// Its name in the scenario.
    pub name: String,
    /// Sysctls by dotted name (`net.ipv4.tcp_window_scaling`), set in the host's own namespace.
    pub sysctls: BTreeMap<String, String>,
    /// Whether it forwards packets of others.
    #[serde(default)]
    pub router: bool,
    /// Static routes, before those that follow from the shortest way.
    #[serde(default)]
    pub routes: Vec<Route>,
}

/// A static route of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The host that it leads to.
    pub to: String,
    /// The neighbour that it leads through.
    pub via: String,
}

/// What a case's probe flow is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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
}

/// The snap length that keeps every packet whole: the largest IP packet without jumbograms.
pub const WHOLE_PACKETS: u32 = 65_535;

const fn whole_packets() -> u32 {
    WHOLE_PACKETS
}

/// Datagrams at a rate, instead of TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpFlow {
    /// Payload of each stream, bit/s.
    pub rate: Rate,
    /// Payload of a datagram.
    pub datagram_bytes: u32,
}

/// A workload: bulk TCP, or datagrams at a rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowSpec {
    /// Sending host.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// Window asked for, on the wire, each stream; `None` leaves the kernel's autotuning alone.
    pub window: Option<ByteCount>,
    /// How the window is brought about.
    pub window_method: WindowMethod,
    /// Parallel connections.
    pub streams: u32,
    /// Bytes of one write.
    pub length: ByteCount,
    /// `TCP_MAXSEG` at both ends.
    pub mss: Option<u32>,
    /// Congestion control of the sender.
    pub congestion: String,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// When it starts, since the first flow could start.
    #[serde(default)]
    pub start: Nanos,
    /// How long to send, omit included.
    pub duration: Nanos,
    /// Stop after so many bytes in total, if sooner.
    pub bytes: Option<ByteCount>,
    /// Beginning that does not count.
    pub omit: Nanos,
    /// Whether it is there for the others' sake: it is not in the case's goodput, and nothing is expected of it.
    #[serde(default)]
    pub background: bool,
    /// Datagrams at a rate; null is bulk TCP. What is of TCP alone does not count then.
    #[serde(default)]
    pub udp: Option<UdpFlow>,
}

/// How a window is brought about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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
pub struct Expect {
    /// Largest relative distance of the goodput from the model.
    pub model_within: Option<Probability>,
    /// Least goodput, bit/s.
    pub goodput_min_bps: Option<u64>,
    /// Largest goodput, bit/s.
    pub goodput_max_bps: Option<u64>,
}
