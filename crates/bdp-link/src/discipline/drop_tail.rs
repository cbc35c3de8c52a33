//! Drop-tail: first in, first out; drops on arrival if the queue is full, marks above a threshold.

use std::collections::VecDeque;

use bdp_model::link::QueueLimit;

use super::waiting::{Backlog, Waiting};
use crate::service::work_of_bytes;

/// Drop-tail with a limit and a marking threshold, in packets or in wire bytes.
#[derive(Debug, Clone)]
pub(crate) struct DropTail {
    limit: QueueLimit,
    threshold: Option<QueueLimit>,
    queue: VecDeque<Waiting>,
}

impl DropTail {
    pub(super) fn new(limit: QueueLimit, threshold: Option<QueueLimit>) -> Self {
        Self { limit, threshold, queue: VecDeque::new() }
    }

    /// A limit in bytes bounds a new packet's time exactly: at a rate, at most limit x 8 / rate.
    pub(super) fn admits(&self, backlog: &Backlog, work: u128) -> Option<bool> {
        let room = match self.limit {
            QueueLimit::Packets(limit) => backlog.packets < limit,
            QueueLimit::Bytes(limit) => backlog.work.saturating_add(work) <= work_of_bytes(limit.as_bytes()),
            QueueLimit::Unlimited => true,
        };
        room.then(|| match self.threshold {
            Some(QueueLimit::Packets(packets)) => backlog.packets >= packets,
            Some(QueueLimit::Bytes(bytes)) => backlog.work >= work_of_bytes(bytes.as_bytes()),
            Some(QueueLimit::Unlimited) | None => false,
        })
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        self.queue.push_back(waiting);
    }

    pub(super) fn head(&self) -> Option<&Waiting> {
        self.queue.front()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.queue.iter()
    }

    pub(super) fn dequeue(&mut self) -> Option<Waiting> {
        self.queue.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bdp_model::units::ByteCount;

    fn admits(limit: QueueLimit, packets: u64, work: u128) -> bool {
        DropTail::new(limit, None).admits(&Backlog { packets, work }, 1) == Some(false)
    }

    #[test]
    fn packets_count_the_newcomer() {
        let two = QueueLimit::Packets(2);
        assert!(admits(two, 0, u128::MAX));
        assert!(admits(two, 1, u128::MAX));
        assert!(!admits(two, 2, 0));
        assert!(!admits(QueueLimit::Packets(0), 0, 0));
    }

    #[test]
    fn bytes_bound_the_work_exactly() {
        let hundred = QueueLimit::Bytes(ByteCount::bytes(100));
        assert!(admits(hundred, u64::MAX, work_of_bytes(100) - 1));
        assert!(!admits(hundred, 0, work_of_bytes(100)));
        assert!(!admits(QueueLimit::Bytes(ByteCount::bytes(u64::MAX)), 0, u128::MAX));
    }

    #[test]
    fn unlimited_admits_everything() {
        assert!(admits(QueueLimit::Unlimited, u64::MAX, u128::MAX));
    }
}
