//! Documents that belong to a run: conclusions drawn from it later.

use serde_json::Value;

use crate::named::named;

/// The kind of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DocumentKind {
    /// Emulated twin of the run's path, `bdp.twin`.
    Twin,
    /// A plan of settings, `bdp.plan`.
    Plan,
    /// Predicted effect of a plan on the twin, `bdp.rehearsal`.
    Rehearsal,
    /// Measured effect of a plan, `bdp.verification`.
    Verification,
}

named!(DocumentKind: Twin = "twin", Plan = "plan", Rehearsal = "rehearsal", Verification = "verification");

/// A document that belongs to a run.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDocument {
    /// The kind of document.
    pub kind: DocumentKind,
    /// Creation time, milliseconds since 1970.
    pub at_unix_ms: u64,
    /// The document; its member `schema` states the version.
    pub document: Value,
}
