//! What advice is worth.

use serde::{Deserialize, Serialize};

use crate::tuning::setting::Release;

/// What advice is worth on a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// In a word.
    pub kind: VerdictKind,
    /// The kernel since which that is so; None where [`Release::OLDEST`] and those before it are no different.
    pub since: Option<Release>,
    /// Why, in a sentence without its full stop.
    pub why: &'static str,
}

/// What advice is worth, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// It does what it is given for.
    Current,
    /// The kernel does so by itself.
    Default,
    /// It does nothing, or less than the kernel does by itself.
    Stale,
    /// It does damage.
    Harmful,
}

impl VerdictKind {
    /// As JSON has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Default => "default",
            Self::Stale => "stale",
            Self::Harmful => "harmful",
        }
    }

    /// Whether who follows it should know.
    pub const fn is_bad(self) -> bool {
        matches!(self, Self::Stale | Self::Harmful)
    }
}
