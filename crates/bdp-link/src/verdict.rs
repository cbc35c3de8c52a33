//! Fate of a packet on entry, as counters count it and captures write it.

use bdp_model::names;
use std::fmt;

/// Verdict on a packet on entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Fate of the packet itself.
    pub fate: Fate,
    /// Whether one of its bits was inverted, also in its copy.
    pub corrupted: bool,
    /// Fate of its copy, if it was duplicated.
    pub copy: Option<Fate>,
}

/// Fate of a packet or of its copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Inside; departs unless the queue drops it later.
    Queued {
        /// Whether it was marked Congestion Experienced.
        marked: bool,
        /// Whether it is held back, so that later ones overtake it.
        held_back: bool,
    },
    /// Dropped.
    Dropped(DropCause),
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropCause {
    /// It exceeds the link's size limit.
    Size,
    /// The link was down.
    Outage,
    /// The loss model dropped it.
    Loss,
    /// The policer's bucket held too few tokens.
    Policer,
    /// The queue was full, or the wire would not finish it within the 584 years that the clock counts, as on a link of rate zero.
    Queue,
    /// Active queue management (RFC 7567) dropped it, on arrival or later, though there was room.
    Aqm,
}

impl Verdict {
    /// Queued, without any other effect.
    pub const QUEUED: Self =
        Self { fate: Fate::Queued { marked: false, held_back: false }, corrupted: false, copy: None };

    /// Dropped, without any other effect.
    pub const fn dropped(cause: DropCause) -> Self {
        Self { fate: Fate::Dropped(cause), corrupted: false, copy: None }
    }
}

names!(
    DropCause: Size = "size", Outage = "outage", Loss = "loss", Policer = "policer", Queue = "queue",
        Aqm = "aqm"
);

impl DropCause {
    /// All causes, in the order in which a packet meets them.
    pub const ALL: [Self; 6] = [Self::Size, Self::Outage, Self::Loss, Self::Policer, Self::Queue, Self::Aqm];
}

/// `queued`, `queued, marked CE, corrupted`, `dropped: loss`, `queued, duplicated (copy dropped: queue)`.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.fate)?;
        if self.corrupted {
            f.write_str(", corrupted")?;
        }
        match self.copy {
            None => Ok(()),
            Some(Fate::Queued { marked: false, held_back: false }) => f.write_str(", duplicated"),
            Some(fate) => write!(f, ", duplicated (copy {fate})"),
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dropped(cause) => write!(f, "dropped: {}", cause.name()),
            Self::Queued { marked, held_back } => {
                f.write_str("queued")?;
                if *marked {
                    f.write_str(", marked CE")?;
                }
                if *held_back {
                    f.write_str(", held back")?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_says_all_that_happened() {
        let queued = |marked, held_back| Fate::Queued { marked, held_back };
        for (verdict, text) in [
            (Verdict::QUEUED, "queued"),
            (Verdict::dropped(DropCause::Policer), "dropped: policer"),
            (Verdict { fate: queued(true, true), ..Verdict::QUEUED }, "queued, marked CE, held back"),
            (
                Verdict { corrupted: true, copy: Some(queued(false, false)), ..Verdict::QUEUED },
                "queued, corrupted, duplicated",
            ),
            (
                Verdict { copy: Some(Fate::Dropped(DropCause::Queue)), ..Verdict::QUEUED },
                "queued, duplicated (copy dropped: queue)",
            ),
            (
                Verdict { copy: Some(queued(true, false)), ..Verdict::dropped(DropCause::Queue) },
                "dropped: queue, duplicated (copy queued, marked CE)",
            ),
        ] {
            assert_eq!(verdict.to_string(), text);
        }
    }
}
