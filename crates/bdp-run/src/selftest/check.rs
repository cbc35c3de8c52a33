//! The results of a selftest: promises, and whether they were kept.

/// A promise and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The promise.
    pub what: String,
    /// The measured value, with its unit.
    pub measured: String,
    /// The bound, with its unit; `-` if there is none.
    pub bound: String,
    /// Whether the promise was kept.
    pub held: bool,
}

/// Precision of a moment in a guest: its kernel's timers are at least a microsecond apart, and each reading of its
/// clock advances it.
pub(super) const CLOCK_STEPS_NS: u64 = 2_000;

impl Check {
    pub(super) fn new(
        what: impl Into<String>,
        measured: impl Into<String>,
        bound: impl Into<String>,
        held: bool,
    ) -> Self {
        Self { what: what.into(), measured: measured.into(), bound: bound.into(), held }
    }

    /// Checks moments that may be off by at most the bound.
    pub(super) fn off(what: impl Into<String>, off_ns: Option<u64>, bound_ns: u64) -> Self {
        let measured = off_ns.map_or_else(|| "nothing came".to_owned(), |off| format!("{off} ns off"));
        Self::new(what, measured, format!("<= {bound_ns} ns"), off_ns.is_some_and(|off| off <= bound_ns))
    }

    /// Checks items that must agree one by one.
    pub(super) fn alike(what: impl Into<String>, all: usize, unlike: usize) -> Self {
        Self::new(what, format!("{all}, {unlike} unlike"), "the same ones", unlike == 0 && all > 0)
    }
}
