//! Reordering: a packet is held back behind the wire, so that later ones overtake it.

use bdp_model::link::Reorder;
use bdp_model::units::Nanos;

use crate::duplication::Copy;
use crate::end::End;
use crate::random::Draws;

/// The reordering of one direction. Two draws per packet: its own and its copy's.
#[derive(Debug, Clone)]
pub(crate) struct Reordering {
    config: Reorder,
    draws: Draws,
}

impl Reordering {
    /// Returns `None` if nothing is ever held back.
    pub(crate) fn new(config: Reorder, seed: u64, from: End) -> Option<Self> {
        (config.probability.fraction() > 0.0)
            .then(|| Self { config, draws: Draws::new(seed, from, b"reor", Copy::COUNT) })
    }

    pub(crate) fn holds_back(&mut self, index: u64, copy: Copy) -> bool {
        self.draws.falls(index, copy.number(), self.config.probability)
    }

    /// Additional delay of a packet that is held back.
    pub(crate) fn by(&self) -> Nanos {
        self.config.by
    }
}
