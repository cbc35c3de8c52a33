//! What a selftest says: promises, and whether they were held.

/// One promise and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was promised.
    pub what: String,
    /// With its unit.
    pub measured: String,
    /// With its unit; `-` where there is none.
    pub bound: String,
    /// Whether it was held.
    pub held: bool,
}

/// What a guest may make of a moment: its kernel's timers are at least a microsecond apart, and each reading of its clock moves it on.
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

    /// Of moments that are off by so much at most.
    pub(super) fn off(what: impl Into<String>, off_ns: Option<u64>, bound_ns: u64) -> Self {
        let measured = off_ns.map_or_else(|| "nothing came".to_owned(), |off| format!("{off} ns off"));
        Self::new(what, measured, format!("<= {bound_ns} ns"), off_ns.is_some_and(|off| off <= bound_ns))
    }

    /// Of things that are to be alike one by one.
    pub(super) fn alike(what: impl Into<String>, all: usize, unlike: usize) -> Self {
        Self::new(what, format!("{all}, {unlike} unlike"), "the same ones", unlike == 0 && all > 0)
    }
}
