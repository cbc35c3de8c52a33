//! What has passed a direction.

use bdp_model::units::Nanos;

/// One direction's counts since the link was made. Bytes are IP bytes, without the wire's overhead.
///
/// At every moment packets in = packets out + lost + dropped at the queue + inside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that entered.
    pub packets_in: u64,
    /// Their IP bytes.
    pub bytes_in: u64,
    /// Packets that departed.
    pub packets_out: u64,
    /// Their IP bytes.
    pub bytes_out: u64,
    /// Packets dropped by the loss model.
    pub lost: u64,
    /// Packets that found the queue full.
    pub queue_dropped: u64,
    /// The longest time from a packet's arrival to the end of its serialisation, of all packets admitted.
    pub queueing_max: Nanos,
}
