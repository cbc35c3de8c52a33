//! Visitors who are turned away.

/// Why a visitor is turned away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turned {
    /// No place is free.
    Busy(String),
    /// The address has used its data of the day.
    TooMuch(String),
    /// The address is not allowed.
    Denied(String),
    /// There is no such session.
    Gone(String),
}

impl Turned {
    /// No place is free.
    pub(super) const fn busy(why: String) -> Self {
        Self::Busy(why)
    }

    /// There is no such session.
    pub fn gone() -> Self {
        Self::Gone("there is no such visit: it has ended; start again".to_owned())
    }
}
