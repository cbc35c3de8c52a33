//! What is known of a hop, and what is concluded of the path.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::Marks;

/// One hop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hop {
    /// Which, from 1.
    pub number: u8,
    /// What it is.
    pub kind: HopKind,
    /// Who answers there, most answers first.
    pub addresses: Vec<HopAddress>,
    /// Without load of our own.
    pub idle: Option<Figures>,
    /// Under load.
    pub loaded: Option<Figures>,
    /// Median of the round trips under load, or of all without, above the smallest of the hop: the queues on the way there and back,
    /// and what the router adds by itself.
    pub delay_ns: Option<u64>,
    /// Of that, what is on the path: no more than any later hop has.
    pub queue_ns: Option<u64>,
    /// Of that, what is the router's own: later hops have it not.
    pub slow_answers_ns: Option<u64>,
    /// How its losses are understood.
    pub loss: HopLoss,
    /// Bytes of the longest packet that got there.
    pub mtu_bytes: Option<u32>,
    /// Marks with which probes came there, most often seen.
    pub marks: Option<Marks>,
    /// Of the probes whose marks are known, those that came with congestion experienced.
    pub congestion_marked: u64,
}

/// What a hop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HopKind {
    /// It passes packets on.
    Router,
    /// It is the host that was asked for.
    Destination,
    /// It reports that it can't pass packets on.
    Unreachable,
    /// It never answered.
    Silent,
}

/// An address that answered at a hop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HopAddress {
    /// It.
    pub address: IpAddr,
    /// Its name, where that was looked up and found.
    pub name: Option<String>,
    /// How many of its answers came.
    pub answers: u64,
}

/// What became of the probes of a hop in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figures {
    /// Sent.
    pub sent: u64,
    /// Without an answer.
    pub lost: u64,
    /// The lost among the sent.
    pub loss: Share,
    /// Smallest round trip.
    pub rtt_min_ns: Option<u64>,
    /// Median.
    pub rtt_p50_ns: Option<u64>,
    /// 95th percentile; null of fewer than 20.
    pub rtt_p95_ns: Option<u64>,
}

/// A share with its interval of 95 % (E. B. Wilson, "Probable inference", JASA 22, 1927).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Share {
    /// What was seen, 0..=1.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Share {
    /// Of so many among all; of nothing it may be anything.
    pub fn of(count: u64, all: u64) -> Self {
        const Z: f64 = 1.959_964;
        if all == 0 {
            return Self { value: 0.0, low: 0.0, high: 1.0 };
        }
        let (n, p) = (all as f64, count as f64 / all as f64);
        let shrink = 1.0 + Z * Z / n;
        let centre = (p + Z * Z / (2.0 * n)) / shrink;
        let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt() / shrink;
        // At the ends the arithmetic leaves a rounding error.
        let low = if count == 0 { 0.0 } else { (centre - half).max(0.0) };
        let high = if count == all { 1.0 } else { (centre + half).min(1.0) };
        Self { value: p, low, high }
    }
}

/// How the losses of a hop are understood.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum HopLoss {
    /// There are none, or too few to say that they begin here.
    #[default]
    None,
    /// Packets are lost before this hop: they are missing at all later ones.
    Path,
    /// The router answers no more often: later hops lose less, or it answers all when it is asked slowly.
    RateLimit {
        /// How many it gives a second; null where too few came.
        answers_per_s: Option<f64>,
    },
    /// It never answered, and later ones do.
    Silent,
    /// It loses probes, and nothing tells why.
    Unknown,
}

/// The load of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Load {
    /// Goodput of the transfer that made it, bit/s.
    pub goodput_bps: Option<f64>,
    /// How long it ran, milliseconds.
    pub ran_ms: u64,
}

/// Why something is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unjudged {
    /// It was not asked for.
    #[default]
    NotAsked,
    /// Too few answers came.
    TooFewAnswers,
    /// Every hop limits its answers.
    RateLimited,
    /// It takes a privilege that this process lacks.
    Privilege,
}

/// Where a queue stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueVerdict {
    /// Where round trips rise from one hop to the next, the largest rise first; empty where none does.
    pub steps: Vec<QueueStep>,
    /// Why nothing is said.
    pub unknown: Option<Unjudged>,
}

/// A rise of the round trip from one hop to the next.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueStep {
    /// The first hop that has it: the queue stands before it, at the exit of the hop before, or on the way back.
    pub hop: u8,
    /// The last hop before it that answered; 0 is this machine.
    pub after: u8,
    /// By how much.
    pub added_ns: u64,
    /// At least by so much (95 %).
    pub low_ns: u64,
    /// At most by so much.
    pub high_ns: u64,
}

/// Where packets are lost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LossVerdict {
    /// Each hop at which losses begin or grow, the first one first.
    pub steps: Vec<LossStep>,
    /// Losses of the whole path, as far as they are not a router's limit on its answers.
    pub whole: Option<Share>,
    /// Probes on which that is based.
    pub probes: u64,
    /// Why nothing is said.
    pub unknown: Option<Unjudged>,
}

/// Losses that begin at a hop, and are at all later ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LossStep {
    /// The first hop that has them.
    pub hop: u8,
    /// The last hop before it that tells; 0 is this machine.
    pub after: u8,
    /// Whether they were seen under load alone.
    pub loaded: bool,
    /// Losses at that hop and all later ones.
    pub loss: Share,
    /// Losses before it.
    pub before: Share,
}

/// What sizes the path carries.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MtuVerdict {
    /// Bytes of the longest packet that came to the farthest hop that answers.
    pub bytes: Option<u32>,
    /// Whether that hop is the destination.
    pub whole: bool,
    /// What routers said, in the order of hops.
    pub told: Vec<ToldMtu>,
    /// Where longer packets vanish without a word.
    pub black_hole: Option<BlackHole>,
    /// Why nothing is said.
    pub unknown: Option<Unjudged>,
}

/// "Fragmentation needed", or "packet too big".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToldMtu {
    /// The hop that said it; null where it did not answer otherwise.
    pub hop: Option<u8>,
    /// Its address.
    pub address: IpAddr,
    /// What its next link carries.
    pub mtu_bytes: u32,
}

/// Where packets vanish for their size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlackHole {
    /// The last hop that they come to; 0 is this machine.
    pub after: u8,
    /// The first hop that they don't.
    pub before: u8,
    /// Bytes of the longest packet that passes.
    pub passes_bytes: u32,
    /// Bytes of the shortest that vanishes, as far as was tried.
    pub vanishes_bytes: u32,
}

/// What became of the marks that probes were sent with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MarkVerdict {
    /// What they were sent with.
    pub sent: Marks,
    /// Where they are others than before, in the order of hops.
    pub changes: Vec<MarkChange>,
    /// The last hop whose quote shows them.
    pub seen_until: Option<u8>,
    /// Why nothing is said.
    pub unknown: Option<Unjudged>,
}

/// Marks that are others from a hop on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MarkChange {
    /// The last hop that saw them as they were; 0 is this machine.
    pub after: u8,
    /// The first that saw others.
    pub hop: u8,
    /// As they were.
    pub from: Marks,
    /// As they are.
    pub to: Marks,
}

/// What is known of the branches of a hop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Branching {
    /// Which.
    pub hop: u8,
    /// Addresses that flows came to.
    pub branches: u32,
    /// Flows that were answered.
    pub flows: u32,
    /// How sure it is that there is none more, 0..=1.
    pub confidence: f64,
    /// Whether packets of one flow came to several: the hop before sends packet by packet.
    pub per_packet: bool,
}
