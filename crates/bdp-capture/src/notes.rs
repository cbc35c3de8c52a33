//! What a packet was found to be, of which several may hold at once.

/// Findings about one packet of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Notes(u32);

impl Notes {
    /// Carries bytes that were sent before.
    pub const RETRANSMISSION: Self = Self(1);
    /// After acknowledgements had shown a loss.
    pub const FAST: Self = Self(1 << 1);
    /// After a retransmission timeout.
    pub const TIMEOUT: Self = Self(1 << 2);
    /// The last segment once more, before that timeout.
    pub const TAIL_LOSS_PROBE: Self = Self(1 << 3);
    /// The receiver had acknowledged its bytes before.
    pub const NEEDLESS: Self = Self(1 << 4);
    /// Others overtook it.
    pub const REORDERED: Self = Self(1 << 5);
    /// The same packet once more.
    pub const DUPLICATE: Self = Self(1 << 6);
    /// Bytes before it were not seen yet.
    pub const GAP: Self = Self(1 << 7);
    /// Acknowledges bytes that were never seen.
    pub const ACKED_UNSEEN: Self = Self(1 << 8);
    /// Repeats an acknowledgement.
    pub const DUPLICATE_ACK: Self = Self(1 << 9);
    /// After it no further segment fits the receive window.
    pub const WINDOW_FULL: Self = Self(1 << 10);
    /// Its receive window is closed.
    pub const ZERO_WINDOW: Self = Self(1 << 11);
    /// Does nothing but change the window.
    pub const WINDOW_UPDATE: Self = Self(1 << 12);
    /// Asks whether a closed window is open.
    pub const PROBE: Self = Self(1 << 13);
    /// Asks whether the other end is there.
    pub const KEEP_ALIVE: Self = Self(1 << 14);

    /// Both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of these hold.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether none holds.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }
}
