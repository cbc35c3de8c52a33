//! What a visitor with a browser measured to a server, explained from the server's end.

use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::finding::Finding;
use crate::statistics::percentile;

/// Schema version of the document.
pub const VISIT_SCHEMA: &str = "bdp.visit/1";
/// Begin of a direction that its goodput leaves out: connections speed up in it.
pub const RAMP_NS: u64 = 500_000_000;
/// Difference of the browser's goodput from the server's above which a caveat says so.
pub const DIFFERENT: f64 = 0.03;

/// The direction of a visitor's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VisitDirection {
    /// From the server to the browser.
    Down,
    /// From the browser to the server.
    Up,
}

impl VisitDirection {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
        }
    }
}

/// The result of one visit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Visit {
    /// Schema version.
    pub schema: String,
    /// Version of bdp at the server.
    pub bdp: String,
    /// Key of the link to this result.
    pub key: String,
    /// Time of the result, milliseconds since 1970 (UTC).
    pub at_unix_ms: u64,
    /// Time at which the server deletes this result, milliseconds since 1970 (UTC).
    pub until_unix_ms: u64,
    /// Name of the server.
    pub server: String,
    /// Network of the visitor: a /24 of IPv4 or a /48 of IPv6; an address of loopback in full.
    pub visitor: String,
    /// The browser, as it names itself.
    pub agent: String,
    /// Congestion control of the server's sending sockets.
    pub congestion_control: String,
    /// The directions that were measured.
    pub directions: Vec<VisitedDirection>,
    /// Reasons not to rely on the figures.
    pub caveats: Vec<String>,
    /// Command of the exact test.
    pub command: String,
}

/// One direction of a visit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VisitedDirection {
    /// The direction.
    pub direction: VisitDirection,
    /// Goodput of all connections after the first 0.5 s: of down what was acknowledged, of up what arrived; null if it ended before.
    pub goodput_bps: Option<f64>,
    /// Bytes from its begin to its end, by the server's count.
    pub bytes: u64,
    /// Time from its begin to its end, nanoseconds.
    pub duration_ns: u64,
    /// Connections that carried its data.
    pub connections: u32,
    /// Goodput as the browser counted it; null if it did not say.
    pub browser_goodput_bps: Option<f64>,
    /// Round trips of the browser's pings before the load.
    pub rtt_idle_ns: Option<PingRange>,
    /// Round trips of the browser's pings under load.
    pub rtt_loaded_ns: Option<PingRange>,
    /// Median of the browser's pings under load less that of the kernel's round trip on the same connection: delay in the browser itself.
    pub browser_delay_ns: Option<u64>,
    /// Segments that the server retransmitted; null of up, which the visitor's kernel alone counts.
    pub retransmits: Option<u64>,
    /// Share of the time in which the page waited: of down for data to read, of up for data to be sent; null if it did not say.
    pub waited: Option<f64>,
    /// What limits the direction; null if too little was transferred.
    pub finding: Option<Finding>,
    /// What cannot be told from a browser.
    pub cannot_tell: Vec<String>,
    /// Goodput over time: nanoseconds since its begin, bit/s.
    pub series: Vec<(u64, f64)>,
    /// The facts behind the finding.
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub facts: Option<Box<Facts>>,
}

/// Median and 95th percentile of round trips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PingRange {
    /// Median, nanoseconds.
    pub p50: u64,
    /// 95th percentile, nanoseconds.
    pub p95: u64,
}

impl PingRange {
    /// The range of these round trips; `None` of none.
    pub fn of(trips_ns: &[u64]) -> Option<Self> {
        let mut trips: Vec<f64> = trips_ns.iter().map(|&ns| ns as f64).collect();
        let (p50, p95) = (percentile(&mut trips, 50.0)?, percentile(&mut trips, 95.0)?);
        Some(Self { p50: p50 as u64, p95: p95 as u64 })
    }
}

/// What a browser says of its own side.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct BrowserReport {
    /// The browser, as it names itself.
    pub agent: String,
    /// Its download.
    pub down: Option<BrowserDirection>,
    /// Its upload.
    pub up: Option<BrowserDirection>,
    /// Its pings.
    pub ping: BrowserPings,
}

/// What a browser counted in one direction.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct BrowserDirection {
    /// Its goodput.
    pub goodput_bps: Option<f64>,
    /// Share of the time in which the page waited.
    pub waited: Option<f64>,
}

/// Round trips of a browser's pings.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct BrowserPings {
    /// Without load.
    pub idle_ns: Vec<u64>,
    /// Beside the download.
    pub down_ns: Vec<u64>,
    /// Beside the upload.
    pub up_ns: Vec<u64>,
}
