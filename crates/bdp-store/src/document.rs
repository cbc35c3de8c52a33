//! Documents that belong to a run: what was concluded from it later.

use serde_json::Value;

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

impl DocumentKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Twin, Self::Plan, Self::Rehearsal, Self::Verification];

    /// `twin`, `plan`, `rehearsal`, `verification`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Twin => "twin",
            Self::Plan => "plan",
            Self::Rehearsal => "rehearsal",
            Self::Verification => "verification",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

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
