//! The drop-tail queue in front of the wire: a packet that finds no room is dropped on arrival.

use bdp_model::link::QueueLimit;

use crate::serialiser::WORK_PER_BIT;

/// Drop-tail with a limit in packets or in wire bytes.
#[derive(Debug, Clone)]
pub(crate) struct DropTail {
    limit: QueueLimit,
}

impl DropTail {
    pub(crate) fn new(limit: QueueLimit) -> Self {
        Self { limit }
    }

    /// Whether a packet finds room behind `waiting` packets whose serialisation has not ended.
    ///
    /// `work` is its time from arrival to the end of serialisation in units of 1/rate ns. Divided by
    /// [`WORK_PER_BIT`] that is the queue in bits, this packet included and the one on the wire counted by what
    /// remains of it. The bound in bytes thus bounds the time exactly: at most limit x 8 / rate.
    pub(crate) fn admits(&self, waiting: u64, work: u128) -> bool {
        match self.limit {
            QueueLimit::Packets(limit) => waiting < limit,
            QueueLimit::Bytes(limit) => work <= u128::from(limit.as_bytes()) * 8 * WORK_PER_BIT,
            QueueLimit::Unlimited => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bdp_model::units::ByteCount;

    #[test]
    fn packets_count_the_newcomer() {
        let queue = DropTail::new(QueueLimit::Packets(2));
        assert!(queue.admits(0, u128::MAX));
        assert!(queue.admits(1, u128::MAX));
        assert!(!queue.admits(2, 0));
        assert!(!DropTail::new(QueueLimit::Packets(0)).admits(0, 0));
    }

    #[test]
    fn bytes_bound_the_work_exactly() {
        let queue = DropTail::new(QueueLimit::Bytes(ByteCount::bytes(100)));
        assert!(queue.admits(u64::MAX, 800 * WORK_PER_BIT));
        assert!(!queue.admits(0, 800 * WORK_PER_BIT + 1));
        let largest = DropTail::new(QueueLimit::Bytes(ByteCount::bytes(u64::MAX)));
        assert!(!largest.admits(0, u128::MAX));
    }

    #[test]
    fn unlimited_admits_everything() {
        assert!(DropTail::new(QueueLimit::Unlimited).admits(u64::MAX, u128::MAX));
    }
}
