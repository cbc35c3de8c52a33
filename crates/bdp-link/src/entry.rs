//! What a packet passes before the queue, in order: drop by size, outages, loss, corruption, duplication.

use bdp_model::link::DirectionConfig;
use bdp_model::link::over_time::Outage;
use bdp_model::units::Nanos;

use crate::corruption::{BitChoice, Corruption};
use crate::duplication::Duplication;
use crate::end::End;
use crate::loss::{Expected, LossModel};
use crate::verdict::DropCause;

/// The entry of one direction. Decides by a packet's index and length, and by time if that matters; the caller changes the bytes.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    drop_above: Option<u64>,
    /// Outages that drop.
    outages: Vec<Outage>,
    zero: Option<Nanos>,
    loss: LossModel,
    corruption: Option<Corruption>,
    duplication: Option<Duplication>,
    next_index: u64,
}

/// Decisions for a packet that passed the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passage {
    /// Its index in the direction, which also keys later draws.
    pub index: u64,
    /// The bit to invert, if any.
    pub corrupt: Option<BitChoice>,
    /// Whether a copy follows it.
    pub duplicate: bool,
}

impl Passage {
    /// Whether the packet's bytes stay unchanged and no copy is made.
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

    /// Sets time zero.
    pub(crate) fn start_clock(&mut self, at: Nanos) {
        self.zero = Some(at);
        self.loss.start_clock(at);
    }

    /// Expected losses among the packets so far, if the loss depends on time.
    pub(crate) fn loss_expected(&self) -> Option<Expected> {
        self.loss.expected()
    }

    fn is_out(&self, now: Nanos) -> bool {
        let Some(since) = self.zero.filter(|zero| *zero <= now).map(|zero| now - zero) else { return false };
        self.outages.iter().filter_map(|outage| outage.next(since)).any(|(from, _)| from <= since)
    }

    /// Gives the next packet its index and decides its fate.
    pub(crate) fn decide(&mut self, ip_bytes: u64, now: Nanos) -> Result<Passage, DropCause> {
        let index = self.next_index;
        self.next_index += 1;
        // Evaluated for every packet, including those dropped by size: the model's state goes by the index.
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
