//! A connection with its two ends.

use std::net::SocketAddr;

use super::direction::Direction;
use crate::decode::{Packet, Segment};

/// A connection; the first end is the one that sent first.
#[derive(Debug, Clone)]
pub struct Connection {
    pub(super) ends: [SocketAddr; 2],
    pub(super) from_us: u64,
    pub(super) to_us: u64,
    /// Numbers of the letters that name its ends.
    pub(super) letters: [u64; 2],
    pub(super) directions: [Direction; 2],
}

impl Connection {
    pub(super) fn new(ends: [SocketAddr; 2], letters: [u64; 2], now_us: u64) -> Self {
        Self { ends, from_us: now_us, to_us: now_us, letters, directions: Default::default() }
    }

    /// Returns addresses and ports.
    pub fn ends(&self) -> [SocketAddr; 2] {
        self.ends
    }

    pub(super) fn side_of(&self, from: SocketAddr) -> usize {
        usize::from(self.ends[0] != from)
    }

    /// Whether this SYN begins another connection between the same ports.
    pub(super) fn is_another(&self, side: usize, segment: &Segment) -> bool {
        let own = &self.directions[side];
        segment.flags.syn() && !segment.flags.ack() && own.packets > 0 && own.syn_number != Some(segment.seq)
    }

    pub(super) fn segment(&mut self, now_us: u64, side: usize, packet: &Packet, segment: &Segment) {
        self.to_us = now_us;
        let [a, b] = &mut self.directions;
        let (own, other) = if side == 0 { (a, b) } else { (b, a) };
        own.segment(now_us, other, packet, segment);
    }

    pub(super) fn is_reset(&self) -> bool {
        self.directions.iter().any(|direction| direction.resets > 0)
    }

    pub(super) fn count(&self, has: impl Fn(&Direction) -> bool) -> usize {
        self.directions.iter().filter(|direction| has(direction)).count()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_reset() || self.count(|direction| direction.fins > 0) == 2
    }

    /// Returns the time from the first packet to the last, microseconds.
    pub(super) fn elapsed_us(&self) -> u64 {
        self.to_us.saturating_sub(self.from_us)
    }
}
