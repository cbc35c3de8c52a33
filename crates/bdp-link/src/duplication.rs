//! Duplication: sends a packet twice, the copy right behind the original.

use bdp_model::units::Probability;

use crate::end::End;
use crate::random::Draws;

/// A packet or its copy: each has its own draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copy {
    Original,
    Duplicate,
}

impl Copy {
    /// Number of draws per packet if its copy draws too.
    pub(crate) const COUNT: u64 = 2;

    /// Index of this one's draw.
    pub(crate) const fn number(self) -> u64 {
        match self {
            Self::Original => 0,
            Self::Duplicate => 1,
        }
    }
}

/// The duplication of one direction. One draw per packet.
#[derive(Debug, Clone)]
pub(crate) struct Duplication {
    probability: Probability,
    draws: Draws,
}

impl Duplication {
    /// Returns `None` if nothing is ever duplicated.
    pub(crate) fn new(probability: Probability, seed: u64, from: End) -> Option<Self> {
        (probability.fraction() > 0.0)
            .then(|| Self { probability, draws: Draws::new(seed, from, b"dupl", 1) })
    }

    pub(crate) fn duplicates(&mut self, index: u64) -> bool {
        self.draws.falls(index, 0, self.probability)
    }
}
