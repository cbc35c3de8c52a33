//! Settings as they were changed, restored or found, in the protocol, in JSON and in text.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::change::Target;

/// A change made or to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingChange {
    /// Setting.
    pub target: Target,
    /// Value before; null if it was not set.
    pub before: Option<String>,
    /// Value after.
    pub after: String,
    /// Whether the setting already has that value.
    pub already: bool,
}

/// A setting that was restored, or that someone else changed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingBack {
    /// Setting.
    pub target: Target,
    /// Value before.
    pub before: Option<String>,
    /// Value written.
    pub wrote: String,
    /// Current value.
    pub now: Option<String>,
}

/// A setting recorded in a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingReport {
    /// Setting.
    pub target: Target,
    /// Value before; null if it was not set.
    pub before: Option<String>,
    /// Value written.
    pub wrote: String,
    /// Current value.
    pub now: Option<String>,
    /// State of the setting: `in_force`, `as_before`, `foreign`, `unknown`.
    pub standing: String,
}

/// A journal of changed settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalReport {
    /// Journal number.
    pub id: u32,
    /// Client that applied it; null if it was applied on the host itself.
    pub client: Option<IpAddr>,
    /// State of the journal: `in_force`, `pending`, ... as in `bdp tune journal --json`.
    pub standing: String,
    /// Start time by the host's clock, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Time of the automatic revert by the host's clock, milliseconds since 1970; null if there is none.
    pub until_unix_ms: Option<u64>,
    /// Whether a guard process will revert it.
    pub guarded: bool,
    /// Settings in the journal.
    pub settings: Vec<SettingReport>,
}
