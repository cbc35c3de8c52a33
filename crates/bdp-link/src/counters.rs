//! Counters of a direction.

use bdp_model::units::Nanos;

use crate::verdict::{DropCause, Fate};

/// Counters of one direction since the link was made. Bytes are IP bytes, without the wire's overhead.
///
/// At every moment packets in + duplicated = packets out + dropped by each cause + inside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that entered.
    pub packets_in: u64,
    /// IP bytes that entered.
    pub bytes_in: u64,
    /// Packets that departed, copies included.
    pub packets_out: u64,
    /// IP bytes that departed, copies included.
    pub bytes_out: u64,
    /// Packets dropped because they exceed the link's size limit.
    pub size_dropped: u64,
    /// Packets that arrived while the link was down.
    pub outage_dropped: u64,
    /// Packets dropped by the loss model.
    pub lost: u64,
    /// Packets and copies that the policer dropped.
    pub policer_dropped: u64,
    /// Packets and copies that found the queue full.
    pub queue_dropped: u64,
    /// Packets and copies dropped by the active queue management, on arrival or later.
    pub aqm_dropped: u64,
    /// Copies made, whatever happened to them; they count as additional inflow.
    pub duplicated: u64,
    /// Packets with an inverted bit; their copies are not counted again.
    pub corrupted: u64,
    /// Packets and copies marked Congestion Experienced.
    pub marked: u64,
    /// Packets and copies held back for reordering.
    pub held_back: u64,
    /// Longest time from a packet's arrival to the end of its serialisation, of all packets whose serialisation has begun.
    pub queueing_max: Nanos,
}

impl Counters {
    /// Returns the packets and copies dropped for this cause.
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

    /// Counts the fate of a packet or its copy.
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
