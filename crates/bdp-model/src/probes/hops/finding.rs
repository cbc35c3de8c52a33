//! Findings about the hops of a path, and about the path.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::Marks;

/// A hop of the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hop {
    /// Number of the hop, from 1.
    pub number: u8,
    /// Its role.
    pub kind: HopKind,
    /// The addresses that answered, most answers first.
    pub addresses: Vec<HopAddress>,
    /// Results without load.
    pub idle: Option<Figures>,
    /// Results under load.
    pub loaded: Option<Figures>,
    /// Median round trip (under load if measured, else of all probes) above the hop's minimum: queues in both directions and the router's own delay.
    pub delay_ns: Option<u64>,
    /// The part of this delay that is on the path: no more than that of any later hop.
    pub queue_ns: Option<u64>,
    /// The part of this delay that is the router's own: later hops do not show it.
    pub slow_answers_ns: Option<u64>,
    /// How its losses are interpreted.
    pub loss: HopLoss,
    /// Length of the longest packet that reached the hop, bytes.
    pub mtu_bytes: Option<u32>,
    /// Marks with which most probes arrived at the hop.
    pub marks: Option<Marks>,
    /// Probes with known marks that arrived with Congestion Experienced.
    pub congestion_marked: u64,
}

/// The role of a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HopKind {
    /// It forwards packets.
    Router,
    /// It is the requested host.
    Destination,
    /// It reports that it cannot forward packets.
    Unreachable,
    /// It never answered.
    Silent,
}

/// An address that answered at a hop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HopAddress {
    /// The address.
    pub address: IpAddr,
    /// Its name, if it was looked up and found.
    pub name: Option<String>,
    /// Number of answers from it.
    pub answers: u64,
}

/// Results of a hop's probes in one phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figures {
    /// Probes sent.
    pub sent: u64,
    /// Probes without an answer.
    pub lost: u64,
    /// Share of the probes that were lost.
    pub loss: Share,
    /// Smallest round trip.
    pub rtt_min_ns: Option<u64>,
    /// Median round trip.
    pub rtt_p50_ns: Option<u64>,
    /// 95th percentile of the round trips; null with fewer than 20.
    pub rtt_p95_ns: Option<u64>,
}

/// A share with its 95 % confidence interval (E. B. Wilson, "Probable inference", JASA 22, 1927).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Share {
    /// The observed share.
    pub value: f64,
    /// Lower bound of the interval.
    pub low: f64,
    /// Upper bound of the interval.
    pub high: f64,
}

impl Share {
    /// Returns the share of `count` in `all`; if `all` is 0, the interval is 0..=1.
    pub fn of(count: u64, all: u64) -> Self {
        const Z: f64 = 1.959_964;
        if all == 0 {
            return Self { value: 0.0, low: 0.0, high: 1.0 };
        }
        let (n, p) = (all as f64, count as f64 / all as f64);
        let shrink = 1.0 + Z * Z / n;
        let centre = (p + Z * Z / (2.0 * n)) / shrink;
        let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt() / shrink;
        // At the bounds the arithmetic leaves a rounding error.
        let low = if count == 0 { 0.0 } else { (centre - half).max(0.0) };
        let high = if count == all { 1.0 } else { (centre + half).min(1.0) };
        Self { value: p, low, high }
    }
}

/// How a hop's losses are interpreted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum HopLoss {
    /// No losses, or too few to conclude that they begin at this hop.
    #[default]
    None,
    /// Packets are lost before this hop: all later hops show the loss too.
    Path,
    /// The router limits the rate of its answers: later hops lose less, or it answers everything if probed slowly.
    RateLimit {
        /// Answers per second; null if too few arrived.
        answers_per_s: Option<f64>,
    },
    /// It never answered, but later hops do.
    Silent,
    /// It loses probes for an unknown reason.
    Unknown,
}

/// The load during a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Load {
    /// Goodput of the transfer that generated it, bit/s.
    pub goodput_bps: Option<f64>,
    /// Duration, milliseconds.
    pub ran_ms: u64,
}

/// Why something is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unjudged {
    /// It was not requested.
    #[default]
    NotAsked,
    /// Too few answers arrived.
    TooFewAnswers,
    /// Every hop rate-limits its answers.
    RateLimited,
    /// It requires a privilege that this process lacks.
    Privilege,
}

/// Where a queue stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueVerdict {
    /// Rises of the round trip between neighbouring hops, largest first; empty if there are none.
    pub steps: Vec<QueueStep>,
    /// Why it is unknown.
    pub unknown: Option<Unjudged>,
}

/// A rise of the round trip between neighbouring hops.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueStep {
    /// The first hop that shows it: the queue stands before it, at the egress of the previous hop, or on the reverse path.
    pub hop: u8,
    /// The last hop before it that answered; 0 is this host.
    pub after: u8,
    /// The rise.
    pub added_ns: u64,
    /// Lower bound of the rise (95 %).
    pub low_ns: u64,
    /// Upper bound of the rise (95 %).
    pub high_ns: u64,
}

/// Where packets are lost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LossVerdict {
    /// Hops at which losses begin or grow, nearest first.
    pub steps: Vec<LossStep>,
    /// Loss on the whole path, excluding routers' rate limits on answers.
    pub whole: Option<Share>,
    /// Number of probes that this is based on.
    pub probes: u64,
    /// Why it is unknown.
    pub unknown: Option<Unjudged>,
}

/// Losses that begin at a hop and appear at all later ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LossStep {
    /// The first hop that shows them.
    pub hop: u8,
    /// The last hop before it that allows a conclusion; 0 is this host.
    pub after: u8,
    /// Whether they occur only under load.
    pub loaded: bool,
    /// Loss at that hop and all later ones.
    pub loss: Share,
    /// Loss before it.
    pub before: Share,
}

/// Packet sizes that the path carries.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MtuVerdict {
    /// Length of the longest packet that reached the farthest answering hop, bytes.
    pub bytes: Option<u32>,
    /// Whether that hop is the destination.
    pub whole: bool,
    /// Path MTU messages from routers, in the order of hops.
    pub told: Vec<ToldMtu>,
    /// Where longer packets vanish silently.
    pub black_hole: Option<BlackHole>,
    /// Why it is unknown.
    pub unknown: Option<Unjudged>,
}

/// A "fragmentation needed" or "packet too big" message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToldMtu {
    /// The hop that sent it; null if it did not answer other probes.
    pub hop: Option<u8>,
    /// Its sender's address.
    pub address: IpAddr,
    /// MTU of its next link.
    pub mtu_bytes: u32,
}

/// Where packets above a size vanish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlackHole {
    /// The last hop that they reach; 0 is this host.
    pub after: u8,
    /// The first hop that they do not reach.
    pub before: u8,
    /// Length of the longest packet that passes, bytes.
    pub passes_bytes: u32,
    /// Length of the shortest packet tried that vanishes, bytes.
    pub vanishes_bytes: u32,
}

/// What happened to the marks of the probes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MarkVerdict {
    /// The marks that the probes were sent with.
    pub sent: Marks,
    /// Where the marks change, in the order of hops.
    pub changes: Vec<MarkChange>,
    /// The last hop whose quote shows the marks.
    pub seen_until: Option<u8>,
    /// Why it is unknown.
    pub unknown: Option<Unjudged>,
}

/// A change of the marks at a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MarkChange {
    /// The last hop that saw the earlier marks; 0 is this host.
    pub after: u8,
    /// The first hop that saw the later ones.
    pub hop: u8,
    /// The marks before.
    pub from: Marks,
    /// The marks after.
    pub to: Marks,
}

/// The branches of a hop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Branching {
    /// Number of the hop.
    pub hop: u8,
    /// Addresses that flows reached.
    pub branches: u32,
    /// Flows that were answered.
    pub flows: u32,
    /// Confidence that there are no further branches.
    pub confidence: f64,
    /// Whether packets of one flow reached several addresses: the previous hop balances per packet.
    pub per_packet: bool,
}
