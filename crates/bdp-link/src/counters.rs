//! What has passed a direction.

use bdp_model::units::Nanos;

use crate::verdict::{DropCause, Fate};

/// One direction's counts since the link was made. Bytes are IP bytes, without the wire's overhead.
///
/// At every moment packets in + duplicated = packets out + dropped by each cause + inside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that entered.
    pub packets_in: u64,
    /// Their IP bytes.
    pub bytes_in: u64,
    /// Packets that departed, copies included.
    pub packets_out: u64,
    /// Their IP bytes.
    pub bytes_out: u64,
    /// Packets longer than what the link lets pass.
    pub size_dropped: u64,
    /// Packets that came while the link was down.
    pub outage_dropped: u64,
    /// Packets dropped by the loss model.
    pub lost: u64,
    /// Packets and copies that the policer dropped.
    pub policer_dropped: u64,
    /// Packets and copies that found the queue full.
    pub queue_dropped: u64,
    /// Packets and copies that a queue dropped which manages itself, when they came or later.
    pub aqm_dropped: u64,
    /// Copies made, whatever became of them: an inflow of their own.
    pub duplicated: u64,
    /// Packets of which a bit was inverted; their copies are not counted again.
    pub corrupted: u64,
    /// Packets and copies that were marked Congestion Experienced.
    pub marked: u64,
    /// Packets and copies that were held back.
    pub held_back: u64,
    /// The longest time from a packet's arrival to the end of its serialisation, of all packets whose serialisation
    /// has begun.
    pub queueing_max: Nanos,
}

impl Counters {
    /// Packets and copies dropped by this cause.
    pub fn dropped(&self, cause: DropCause) -> u64 {
        match cause {
            DropCause::Size => self.size_dropped,
            DropCause::Outage => self.outage_dropped,
            DropCause::Loss => self.lost,
            DropCause::Policer => self.policer_dropped,
            DropCause::Queue => self.queue_dropped,
            DropCause::Aqm => self.aqm_dropped,
        }
    }

    /// Counts what became of a packet or of its copy.
    pub(crate) fn note(&mut self, fate: Fate) {
        match fate {
            Fate::Queued { marked, held_back } => {
                self.marked += u64::from(marked);
                self.held_back += u64::from(held_back);
            }
            Fate::Dropped(DropCause::Size) => self.size_dropped += 1,
            Fate::Dropped(DropCause::Outage) => self.outage_dropped += 1,
            Fate::Dropped(DropCause::Loss) => self.lost += 1,
            Fate::Dropped(DropCause::Policer) => self.policer_dropped += 1,
            Fate::Dropped(DropCause::Queue) => self.queue_dropped += 1,
            Fate::Dropped(DropCause::Aqm) => self.aqm_dropped += 1,
        }
    }
}
