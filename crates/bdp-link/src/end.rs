//! The two ends of a link.

/// One of a link's two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// The first host that the link names.
    A,
    /// The second.
    B,
}

impl End {
    /// The opposite end.
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}
