//! One queue of a discipline, first in, first out.

use std::collections::VecDeque;

use super::waiting::Waiting;

/// Packets in order of arrival, and their IP bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct Fifo {
    packets: VecDeque<Waiting>,
    bytes: u64,
}

impl Fifo {
    pub(super) fn len(&self) -> u64 {
        self.packets.len() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn head(&self) -> Option<&Waiting> {
        self.packets.front()
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        self.bytes += waiting.packet.len_bytes();
        self.packets.push_back(waiting);
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.packets.pop_front()?;
        self.bytes -= waiting.packet.len_bytes();
        Some(waiting)
    }
}
