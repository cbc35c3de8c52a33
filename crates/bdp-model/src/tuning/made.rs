//! Settings as they were changed, restored or found, in the protocol, in JSON and in text.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::change::Target;

/// A change made or to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingChange {
    /// The setting.
    pub target: Target,
    /// Its value before; null if it was not set.
    pub before: Option<String>,
    /// Its value after.
    pub after: String,
    /// Whether it has that value already, and is left alone.
    pub already: bool,
}

/// A setting that was restored, or that someone else changed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingBack {
    /// The setting.
    pub target: Target,
    /// Its value before; null if it was not set.
    pub before: Option<String>,
    /// The value that bdp wrote.
    pub wrote: String,
    /// Its value now; null if it is not set or unknown.
    pub now: Option<String>,
}

/// A setting recorded in a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingReport {
    /// The setting.
    pub target: Target,
    /// Its value before; null if it was not set.
    pub before: Option<String>,
    /// The value that bdp wrote.
    pub wrote: String,
    /// Its value now; null if it is not set or unknown.
    pub now: Option<String>,
    /// `in_force`: as bdp wrote it. `as_before`: as it was before. `foreign`: somebody else changed it since. `unknown`: it
    /// cannot be read, or does not apply here.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["in_force", "as_before", "foreign", "unknown"])))]
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
