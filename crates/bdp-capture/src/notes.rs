//! Findings about a packet; several may apply at once.

/// Findings about one packet of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Notes(u32);

impl Notes {
    /// Carries bytes that were sent before.
    pub const RETRANSMISSION: Self = Self(1);
    /// Fast retransmission: acknowledgements had shown a loss.
    pub const FAST: Self = Self(1 << 1);
    /// Retransmitted after a timeout.
    pub const TIMEOUT: Self = Self(1 << 2);
    /// Tail loss probe: the last segment again, before the timeout.
    pub const TAIL_LOSS_PROBE: Self = Self(1 << 3);
    /// Needless retransmission: its bytes had already been acknowledged.
    pub const NEEDLESS: Self = Self(1 << 4);
    /// Was overtaken by later segments.
    pub const REORDERED: Self = Self(1 << 5);
    /// Duplicate of the same packet.
    pub const DUPLICATE: Self = Self(1 << 6);
    /// Preceded by bytes not yet seen.
    pub const GAP: Self = Self(1 << 7);
    /// Acknowledges bytes that were never captured.
    pub const ACKED_UNSEEN: Self = Self(1 << 8);
    /// Repeats an acknowledgement.
    pub const DUPLICATE_ACK: Self = Self(1 << 9);
    /// Fills the receive window: no further full segment fits.
    pub const WINDOW_FULL: Self = Self(1 << 10);
    /// Advertises a zero receive window.
    pub const ZERO_WINDOW: Self = Self(1 << 11);
    /// Only changes the window.
    pub const WINDOW_UPDATE: Self = Self(1 << 12);
    /// Window probe: asks whether a closed window is open.
    pub const PROBE: Self = Self(1 << 13);
    /// Keep-alive: asks whether the other end is there.
    pub const KEEP_ALIVE: Self = Self(1 << 14);

    /// Returns the union of both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all notes of `other` apply.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether no note applies.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }
}
