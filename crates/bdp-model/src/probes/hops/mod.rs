//! The results of `bdp path` about the hops of a path. The JSON form is specified in `docs/path.md` and `docs/path.schema.json`.

mod finding;
mod multipath;
mod probe;

use serde::{Deserialize, Serialize};

use crate::case::Family;
use crate::names;
use crate::units::Nanos;

pub use finding::{
    BlackHole, Branching, Figures, Hop, HopAddress, HopKind, HopLoss, Load, LossStep, LossVerdict,
    MarkChange, MarkVerdict, MtuVerdict, QueueStep, QueueVerdict, Share, ToldMtu, Unjudged,
};
pub use multipath::{CONFIDENCE, missed, probes_needed};
pub use probe::{Answer, AnswerKind, HopProbe, Marks, Phase};

/// Version of the format; readers refuse a larger major number.
pub const PATH_SCHEMA: &str = "bdp.path/1";

/// The hops of a path, with the findings about each and about the whole path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathReport {
    /// Name and version of this document's format.
    #[cfg_attr(feature = "schema", schemars(extend("const" = PATH_SCHEMA)))]
    pub schema: String,
    /// Version of bdp that measured.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub bdp: String,
    /// The complete request, with defaults.
    pub request: PathRequest,
    /// Destination address of the probes, with the port if they have one.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub address: String,
    /// How the hops' round trips and losses were measured.
    pub method: ProbeMethod,
    /// How branches and sizes were measured, if differently.
    pub flows_method: Option<ProbeMethod>,
    /// Whether the IP headers quoted by routers could be read.
    pub quotes: bool,
    /// Start of the run, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Duration of the run, milliseconds.
    pub took_ms: u64,
    /// The load of the loaded phase.
    pub load: Option<Load>,
    /// Whether the destination answered.
    pub reached: bool,
    /// The hops, nearest first.
    pub hops: Vec<Hop>,
    /// Where a queue stands.
    pub queue: QueueVerdict,
    /// Where packets are lost.
    pub loss: LossVerdict,
    /// Packet sizes that the path carries.
    pub mtu: MtuVerdict,
    /// What happened to the code point and the ECN bits.
    pub marks: MarkVerdict,
    /// Hops at which the path has branches.
    pub branches: Vec<Branching>,
    /// Number of probes in the run.
    pub probes: u64,
    /// Every probe, if requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<HopProbe>,
}

/// A request to measure a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathRequest {
    /// The host as given by the user.
    pub host: String,
    /// The port for TCP probes and for the load.
    pub port: u16,
    /// The IP version to use; null for any.
    pub family: Option<Family>,
    /// The kind of probe; null is ICMP echo if permitted, else UDP.
    pub protocol: Option<ProbeProtocol>,
    /// Whether each hop is also probed under load.
    pub load: bool,
    /// Maximum number of hops.
    pub hops: u8,
    /// Probes per hop in each phase.
    pub probes: u32,
    /// Interval between probes of a hop.
    #[serde(rename = "interval_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub interval: Nanos,
    /// How long to wait for an answer.
    #[serde(rename = "patience_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub patience: Nanos,
    /// Maximum number of flows per hop to find branches; 1 looks for none.
    pub flows: u16,
    /// Whether packet sizes are tried.
    pub sizes: bool,
    /// Whether names of addresses are looked up.
    pub names: bool,
    /// Differentiated services code point of the probes, 0 to 63.
    pub dscp: Option<u8>,
    /// Whether the probes are ECN-capable (ECT(0)).
    pub ecn: bool,
    /// Source address of the probes.
    pub bind_address: Option<String>,
    /// Device that the probes leave through.
    pub bind_device: Option<String>,
}

/// The defaults of a request.
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
    /// Returns the probes' type of service or traffic class octet.
    pub fn octet(&self) -> u8 {
        const ECT_0: u8 = 0b10;
        self.dscp.unwrap_or(0) << 2 | if self.ecn { ECT_0 } else { 0 }
    }
}

/// The kind of probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProbeProtocol {
    /// A UDP datagram to a port where nothing is expected to listen.
    Udp,
    /// A TCP SYN to the port of the host.
    Tcp,
    /// An ICMP echo request.
    Icmp,
}

names!(ProbeProtocol: Udp = "UDP", Tcp = "TCP", Icmp = "ICMP");

/// How the probes were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeMethod {
    /// The kind of probe.
    pub protocol: ProbeProtocol,
    /// Length of a probe's IP packet, bytes.
    pub bytes: u32,
    /// Whether a raw socket was used because an unprivileged one is not available.
    pub raw: bool,
    /// Whether UDP was used because ICMP echo was refused and no kind was requested.
    pub fallback: bool,
}

impl Default for ProbeMethod {
    fn default() -> Self {
        Self { protocol: ProbeProtocol::Udp, bytes: 0, raw: false, fallback: false }
    }
}
