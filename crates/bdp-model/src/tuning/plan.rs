//! The smallest change of settings for a path, what else would do, and what was left alone.

use serde::{Deserialize, Serialize};

use super::change::{Change, Target};
use crate::ends::{Direction, End};
use crate::finding::Limit;

/// Version of a plan's shape; a reader refuses a larger number.
pub const PLAN_SCHEMA: &str = "bdp.plan/1";

/// The smallest change for a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// Name and version of this document's shape.
    #[cfg_attr(feature = "schema", schemars(extend("const" = PLAN_SCHEMA)))]
    pub schema: String,
    /// The run that it is made from; null of a path that was described by figures.
    pub run: Option<String>,
    /// The path.
    pub path: PlanPath,
    /// The machine that measured.
    pub near: PlanHost,
    /// The machine that served; null of a path that was described by figures.
    pub far: Option<PlanHost>,
    /// What to change, in this order. Empty where nothing is to be changed.
    pub changes: Vec<Change>,
    /// Other ways to the same end.
    pub alternatives: Vec<Alternative>,
    /// What a program can do for its own connections alone.
    pub programs: Vec<Advice>,
    /// What was considered and left alone, and why.
    pub refused: Vec<Refused>,
}

impl Plan {
    /// The changes at one end.
    pub fn changes_at(&self, end: End) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(move |change| change.end == end)
    }

    /// The machine at this end.
    pub fn host(&self, end: End) -> Option<&PlanHost> {
        match end {
            End::Near => Some(&self.near),
            End::Far => self.far.as_ref(),
        }
    }
}

/// The path of a plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanPath {
    /// Its idle round trip.
    pub rtt_ns: u64,
    /// Bytes of a full segment; null where that is not known.
    pub mss_bytes: Option<u64>,
    /// Connections that share the rate.
    pub streams: u32,
    /// Each direction that was measured, or that was described.
    pub directions: Vec<PlanDirection>,
}

/// A direction of the path.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanDirection {
    /// Which.
    pub direction: Direction,
    /// What limits it; null where it was not measured.
    pub limit: Option<Limit>,
    /// Goodput as it was measured, bit/s; null where it was not.
    pub goodput_bps: Option<f64>,
    /// Goodput that it is to carry, bit/s; null where nobody knows what the path can.
    pub rate_bps: Option<f64>,
}

/// A machine of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanHost {
    /// Its host name.
    pub name: String,
    /// Its address on the path; empty where there is none.
    pub address: String,
    /// `uname -r`.
    pub kernel: String,
    /// The device that carries the path.
    pub device: Option<String>,
}

/// Other changes in place of the plan's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Alternative {
    /// A short name, unique in its plan: `pace`.
    pub name: String,
    /// What to change.
    pub changes: Vec<Change>,
}

/// What a program can do for its own connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// At which end.
    pub end: End,
    /// The call, as `setsockopt(TCP_CONGESTION, "bbr")`.
    pub call: String,
    /// The change that it stands in place of.
    pub instead_of: Target,
}

/// Something that was considered and left alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refused {
    /// At which end; null where it is of neither.
    pub end: Option<End>,
    /// What would have been set; null where it is no setting.
    pub target: Option<Target>,
    /// Why it is left alone.
    pub why: Why,
}

/// Why something is left alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Why {
    /// Its value is enough already; a smaller one would be a loss.
    Enough {
        /// As it is.
        value: String,
        /// What the path needs.
        needed: String,
    },
    /// This kernel does not read it.
    NotRead,
    /// The host has not the memory.
    Memory {
        /// What it would take, bytes.
        needed_bytes: u64,
        /// What the host may give TCP, bytes.
        available_bytes: u64,
    },
    /// The kernel has no congestion control, or no queueing discipline, of this name.
    NotAvailable {
        /// The name.
        name: String,
    },
    /// Its value at that end is not known.
    Unknown,
    /// Somebody set it, and bdp could not put it back.
    NotOurs {
        /// What is there.
        value: String,
    },
    /// The limit is no setting of a host.
    NotOfHosts {
        /// The direction.
        direction: Direction,
        /// The limit.
        limit: Limit,
    },
    /// What was asked for at the command line binds, and no setting of a host.
    Asked {
        /// The option.
        option: String,
    },
}
