//! What the kernel of an end says of a socket that is watched, beside its readings.

use super::Facts;
use crate::stats::percentile;

impl Facts {
    /// Quartiles of the rate at which data came, by fives of the receiver's readings, bit/s: what was said before, as a login, moves none of them. `None` of
    /// fewer than three.
    pub fn arrival_rates(&self) -> Option<[f64; 3]> {
        const EACH: usize = 5;
        const LEAST: usize = 3;
        let ends: Vec<(u64, u64)> = self.received.iter().step_by(EACH).map(|s| (s.at_ns, s.bytes)).collect();
        let mut rates: Vec<f64> = ends
            .windows(2)
            .filter(|pair| pair[1].0 > pair[0].0 && pair[1].1 > 0)
            .map(|pair| pair[1].1.saturating_sub(pair[0].1) as f64 * 8e9 / (pair[1].0 - pair[0].0) as f64)
            .collect();
        if rates.len() < LEAST {
            return None;
        }
        let [low, middle, high] = [25.0, 50.0, 75.0].map(|p| percentile(&mut rates, p));
        Some([low?, middle?, high?])
    }
}

/// What is known of the socket of an end, and of the process that has it open.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SocketFacts {
    /// Whether its program asked for the size of the send buffer (`SO_SNDBUF`), so that it stays; `None` where that can't be asked.
    pub send_buffer_asked: Option<bool>,
    /// The same of the receive buffer (`SO_RCVBUF`).
    pub receive_buffer_asked: Option<bool>,
    /// Readings in which packets in flight took most of the send buffer though both windows had room, and those with something in flight.
    pub buffer_taken: (u64, u64),
    /// It carries the channels of SSH, whose windows the programs at its ends give each other.
    pub has_channels: bool,
    /// How the quota of its process's control group held that back.
    pub quota: Option<Quota>,
    /// The smallest round trip that the kernel remembers, nanoseconds: at a receiver that of what it sent, as its handshake.
    pub least_rtt_ns: Option<u64>,
    /// Whether packets came from the other end after the data was sent that it never acknowledged: small ones pass.
    pub small_ones_pass: bool,
    /// Whether what waits to be acknowledged fills a segment.
    pub full_segment_waits: bool,
}

/// What the quota of a control group did.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Quota {
    /// Periods in which it was used up.
    pub throttled: u64,
    /// All periods in which something ran.
    pub periods: u64,
    /// The part of the time in which a processor of the group stood still for it.
    pub share: f64,
}
