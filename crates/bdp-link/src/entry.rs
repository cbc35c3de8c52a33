//! What a packet meets before the queue, in order: drop by size, outages, loss, corruption, duplication.

use bdp_model::link::DirectionConfig;
use bdp_model::over_time::Outage;
use bdp_model::units::Nanos;

use crate::corruption::{BitChoice, Corruption};
use crate::duplication::Duplication;
use crate::end::End;
use crate::loss::{Expected, LossModel};
use crate::verdict::DropCause;

/// The entry of one direction. Decides by a packet's index and length, and by the time where that
/// matters: bytes are changed by who holds them.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    drop_above: Option<u64>,
    /// Those that drop.
    outages: Vec<Outage>,
    zero: Option<Nanos>,
    loss: LossModel,
    corruption: Option<Corruption>,
    duplication: Option<Duplication>,
    next_index: u64,
}

/// A packet that passed the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passage {
    /// Its index in the direction, by which later draws go too.
    pub index: u64,
    /// Which bit is to be inverted, if one is.
    pub corrupt: Option<BitChoice>,
    /// Whether a copy follows it.
    pub duplicate: bool,
}

impl Passage {
    /// Whether the packet's bytes stay as they are and no copy is made.
    pub(crate) fn is_plain(&self) -> bool {
        self.corrupt.is_none() && !self.duplicate
    }
}

impl Entry {
    pub(crate) fn new(config: &DirectionConfig, seed: u64, from: End) -> Self {
        Self {
            drop_above: config.drop_above.map(u64::from),
            outages: config.outages.iter().filter(|outage| outage.drop).copied().collect(),
            zero: None,
            loss: LossModel::new(&config.loss, seed, from),
            corruption: Corruption::new(config.corrupt, seed, from),
            duplication: Duplication::new(config.duplicate, seed, from),
            next_index: 0,
        }
    }

    /// Says when time zero is.
    pub(crate) fn start_clock(&mut self, at: Nanos) {
        self.zero = Some(at);
        self.loss.start_clock(at);
    }

    /// How many of the packets so far were to be lost, where that depends on when they came.
    pub(crate) fn loss_expected(&self) -> Option<Expected> {
        self.loss.expected()
    }

    fn is_out(&self, now: Nanos) -> bool {
        let Some(since) = self.zero.filter(|zero| *zero <= now).map(|zero| now - zero) else { return false };
        self.outages.iter().filter_map(|outage| outage.next(since)).any(|(from, _)| from <= since)
    }

    /// Gives the next packet its index and decides what becomes of it.
    pub(crate) fn decide(&mut self, ip_bytes: u64, now: Nanos) -> Result<Passage, DropCause> {
        let index = self.next_index;
        self.next_index += 1;
        // Asked of every packet, the one that is dropped by its size too: the model's state goes by the index.
        let lost = self.loss.loses(index, now);
        if self.drop_above.is_some_and(|most| ip_bytes > most) {
            return Err(DropCause::Size);
        }
        if !self.outages.is_empty() && self.is_out(now) {
            return Err(DropCause::Outage);
        }
        if lost {
            return Err(DropCause::Loss);
        }
        Ok(Passage {
            index,
            corrupt: self.corruption.as_mut().and_then(|c| c.decide(index)),
            duplicate: self.duplication.as_mut().is_some_and(|d| d.duplicates(index)),
        })
    }
}
