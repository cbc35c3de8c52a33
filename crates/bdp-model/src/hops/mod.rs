//! What `bdp path` finds out about the hops of a path. The JSON form is specified in `docs/path.md` and `docs/path.schema.json`.

mod finding;
mod multipath;
mod probe;

use serde::{Deserialize, Serialize};

use crate::scenario::Family;
use crate::units::Nanos;

pub use finding::{
    BlackHole, Branching, Figures, Hop, HopAddress, HopKind, HopLoss, Load, LossStep, LossVerdict,
    MarkChange, MarkVerdict, MtuVerdict, QueueStep, QueueVerdict, Share, ToldMtu, Unjudged,
};
pub use multipath::{CONFIDENCE, missed, probes_needed};
pub use probe::{Answer, AnswerKind, HopProbe, Marks, Phase};

/// Version of the shape; a reader refuses a larger major number.
pub const PATH_SCHEMA: &str = "bdp.path/1";

/// The hops of one path, and what each does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathReport {
    /// Name and version of this document's shape.
    #[cfg_attr(feature = "schema", schemars(extend("const" = PATH_SCHEMA)))]
    pub schema: String,
    /// Version of bdp that measured.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub bdp: String,
    /// What was asked for, complete.
    pub request: PathRequest,
    /// The address that probes went to, with its port where they have one.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub address: String,
    /// How round trips and losses of hops were measured.
    pub method: ProbeMethod,
    /// How branches and sizes were, where that was in another way.
    pub flows_method: Option<ProbeMethod>,
    /// Whether the IP headers that routers quote could be read.
    pub quotes: bool,
    /// Start, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// The whole run, milliseconds.
    pub took_ms: u64,
    /// The load of the loaded phase.
    pub load: Option<Load>,
    /// Whether the destination answered.
    pub reached: bool,
    /// Each hop, the first one first.
    pub hops: Vec<Hop>,
    /// Where a queue stands.
    pub queue: QueueVerdict,
    /// Where packets are lost.
    pub loss: LossVerdict,
    /// What sizes the path carries.
    pub mtu: MtuVerdict,
    /// What became of the code point and of ECN.
    pub marks: MarkVerdict,
    /// Where the path has branches.
    pub branches: Vec<Branching>,
    /// Probes of the run, all together.
    pub probes: u64,
    /// Each of them, where that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<HopProbe>,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathRequest {
    /// The host as given.
    pub host: String,
    /// Its port, of probes by TCP and of the load.
    pub port: u16,
    /// IP version, where only one will do.
    pub family: Option<Family>,
    /// What a probe is; `None` is ICMP echo where that is allowed, and UDP elsewhere.
    pub protocol: Option<ProbeProtocol>,
    /// Whether each hop is probed under load too.
    pub load: bool,
    /// Hops at most.
    pub hops: u8,
    /// Probes of each hop in each phase.
    pub probes: u32,
    /// From one probe of a hop to the next.
    #[serde(rename = "interval_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub interval: Nanos,
    /// How long an answer is waited for.
    #[serde(rename = "patience_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub patience: Nanos,
    /// Flows that are tried at most at each hop to find branches; 1 looks for none.
    pub flows: u16,
    /// Whether sizes are tried.
    pub sizes: bool,
    /// Whether addresses are looked up for names.
    pub names: bool,
    /// Differentiated services code point of probes, 0..=63.
    pub dscp: Option<u8>,
    /// Whether probes are ECN-capable: ECT(0).
    pub ecn: bool,
    /// Address that probes are sent from.
    pub bind_address: Option<String>,
    /// Device that they are sent through.
    pub bind_device: Option<String>,
}

/// What is sent where nothing else is said.
impl Default for PathRequest {
    fn default() -> Self {
        Self {
            host: String::new(),
            port: crate::measurement::PORT,
            family: None,
            protocol: None,
            load: false,
            hops: 30,
            probes: 20,
            interval: Nanos::millis(250),
            patience: Nanos::secs(1),
            flows: 16,
            sizes: true,
            names: false,
            dscp: None,
            ecn: false,
            bind_address: None,
            bind_device: None,
        }
    }
}

impl PathRequest {
    /// The octet of type of service, or traffic class, that probes are sent with.
    pub fn octet(&self) -> u8 {
        const ECT_0: u8 = 0b10;
        self.dscp.unwrap_or(0) << 2 | if self.ecn { ECT_0 } else { 0 }
    }
}

/// What a probe is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProbeProtocol {
    /// A datagram to a port where nothing is expected to listen.
    Udp,
    /// A SYN to the port of the host.
    Tcp,
    /// An ICMP echo request.
    Icmp,
}

impl ProbeProtocol {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
            Self::Icmp => "ICMP",
        }
    }
}

/// How probes were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeMethod {
    /// What a probe was.
    pub protocol: ProbeProtocol,
    /// Bytes of the IP packet of a probe.
    pub bytes: u32,
    /// Whether by a raw socket, for want of the kind that needs no privilege.
    pub raw: bool,
    /// Whether it is UDP because ICMP echo was refused, where nothing was asked for.
    pub fallback: bool,
}

impl Default for ProbeMethod {
    fn default() -> Self {
        Self { protocol: ProbeProtocol::Udp, bytes: 0, raw: false, fallback: false }
    }
}
