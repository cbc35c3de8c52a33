//! What advice is worth.

use serde::{Deserialize, Serialize};

use crate::names;
use crate::tuning::setting::Release;

/// What advice is worth on a given kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// The verdict in a word.
    pub kind: VerdictKind,
    /// First kernel to which it applies; None if it applies to [`Release::OLDEST`] and before.
    pub since: Option<Release>,
    /// Why: one sentence without a full stop.
    pub why: &'static str,
}

/// The worth of advice, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// It has the intended effect.
    Current,
    /// The kernel does this by default.
    Default,
    /// It has no effect, or less than the kernel's default.
    Stale,
    /// It does harm.
    Harmful,
}

names!(VerdictKind: Current = "current", Default = "default", Stale = "stale", Harmful = "harmful");

impl VerdictKind {
    /// Whether the user should be warned about it.
    pub const fn is_bad(self) -> bool {
        matches!(self, Self::Stale | Self::Harmful)
    }
}
