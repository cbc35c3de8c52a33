//! The smallest change of settings for a path, the alternatives, and what was left unchanged.

use serde::{Deserialize, Serialize};

use super::change::{Change, Target};
use crate::finding::Limit;
use crate::measurement::ends::{Direction, End};

/// Version of the plan schema; a reader refuses a larger number.
pub const PLAN_SCHEMA: &str = "bdp.plan/1";

/// The smallest change for a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// Name and version of this document's schema.
    #[cfg_attr(feature = "schema", schemars(extend("const" = PLAN_SCHEMA)))]
    pub schema: String,
    /// Id of the run that the plan is based on; null if the path was given as figures.
    pub run: Option<String>,
    /// The path.
    pub path: PlanPath,
    /// The measuring host.
    pub near: PlanHost,
    /// The serving host; null if the path was given as figures.
    pub far: Option<PlanHost>,
    /// The changes, in order; empty if none is needed.
    pub changes: Vec<Change>,
    /// Alternative sets of changes with the same goal.
    pub alternatives: Vec<Alternative>,
    /// What a program can do for its own connections.
    pub programs: Vec<Advice>,
    /// Changes that were considered and rejected, with the reason.
    pub refused: Vec<Refused>,
}

impl Plan {
    /// Returns the changes at one end.
    pub fn changes_at(&self, end: End) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(move |change| change.end == end)
    }

    /// Returns the host at this end.
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
    /// Idle round trip, nanoseconds.
    pub rtt_ns: u64,
    /// Maximum segment size, bytes; null if unknown.
    pub mss_bytes: Option<u64>,
    /// Number of connections that share the rate.
    pub streams: u32,
    /// Each direction that was measured or described.
    pub directions: Vec<PlanDirection>,
}

/// A direction of a plan's path.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanDirection {
    /// The direction.
    pub direction: Direction,
    /// What limits its goodput; null if it was not measured.
    pub limit: Option<Limit>,
    /// Measured goodput, bit/s; null if it was not measured.
    pub goodput_bps: Option<f64>,
    /// Goodput to reach, bit/s; null if the capacity of the path is unknown.
    pub rate_bps: Option<f64>,
}

/// A host of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanHost {
    /// Host name.
    pub name: String,
    /// Address on the path; empty if there is none.
    pub address: String,
    /// Output of `uname -r`.
    pub kernel: String,
    /// The device that carries the path.
    pub device: Option<String>,
}

/// A set of changes in place of the plan's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Alternative {
    /// Short name, unique in the plan: `pace`.
    pub name: String,
    /// The changes.
    pub changes: Vec<Change>,
}

/// What a program can do for its own connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// The end that it applies to.
    pub end: End,
    /// The call, such as `setsockopt(TCP_CONGESTION, "bbr")`.
    pub call: String,
    /// The change that it replaces.
    pub instead_of: Target,
}

/// A change that was considered and rejected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refused {
    /// The end that it applies to; null if neither.
    pub end: Option<End>,
    /// The setting that was considered; null if it is not a setting.
    pub target: Option<Target>,
    /// Why it was rejected.
    pub why: Why,
}

/// Why a change was rejected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Why {
    /// The value is sufficient; a smaller one would be worse.
    Enough {
        /// Present value.
        value: String,
        /// Value that the path needs.
        needed: String,
    },
    /// This kernel does not read the setting.
    NotRead,
    /// The host has too little memory.
    Memory {
        /// Memory needed, bytes.
        needed_bytes: u64,
        /// Memory available to TCP, bytes.
        available_bytes: u64,
    },
    /// The kernel has no congestion control or queueing discipline of this name.
    NotAvailable {
        /// Name of the congestion control or queueing discipline.
        name: String,
    },
    /// The value at that end is unknown.
    Unknown,
    /// It was configured by someone else, and bdp could not restore it.
    NotOurs {
        /// Present value.
        value: String,
    },
    /// The limit is not a setting of a host.
    NotOfHosts {
        /// The direction.
        direction: Direction,
        /// The limit.
        limit: Limit,
    },
    /// The limit is an option on the command line, not a setting of a host.
    Asked {
        /// The option.
        option: String,
    },
}
