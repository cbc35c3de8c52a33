//! Documents that belong to a run: what was concluded from it later.

use serde_json::Value;

use crate::named::named;

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DocumentKind {
    /// The emulated twin of its path, `bdp.twin`.
    Twin,
    /// A plan of settings, `bdp.plan`.
    Plan,
    /// What a plan would give, by the twin: `bdp.rehearsal`.
    Rehearsal,
    /// What a plan gave, measured: `bdp.verification`.
    Verification,
}

named!(DocumentKind: Twin = "twin", Plan = "plan", Rehearsal = "rehearsal", Verification = "verification");

/// A document that belongs to a run.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDocument {
    /// What it is.
    pub kind: DocumentKind,
    /// When it was made, milliseconds since 1970.
    pub at_unix_ms: u64,
    /// The document; its own member `schema` says which version.
    pub document: Value,
}
