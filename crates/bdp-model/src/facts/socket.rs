//! What the kernel reports about a watched socket in addition to its samples.

use super::Facts;
use crate::statistics::percentile;

impl Facts {
    /// Quartiles of the arrival rate, over groups of five samples of the receiver, bit/s: earlier exchanges such as a login do not move them. `None`
    /// of fewer than three groups.
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

/// Facts about an end's socket, and about the process that has it open.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SocketFacts {
    /// Whether its program set the size of the send buffer (`SO_SNDBUF`), which fixes it; `None` if the kernel cannot be asked.
    pub send_buffer_asked: Option<bool>,
    /// Whether its program set the size of the receive buffer (`SO_RCVBUF`); `None` if the kernel cannot be asked.
    pub receive_buffer_asked: Option<bool>,
    /// Samples in which packets in flight filled most of the send buffer though both windows had room, and all samples with data in flight.
    pub buffer_taken: (u64, u64),
    /// Whether it carries SSH channels, which have windows of their own.
    pub has_channels: bool,
    /// How its quota throttled the process's control group.
    pub quota: Option<Quota>,
    /// The smallest round trip in the kernel's memory, nanoseconds; at a receiver, of the segments that it sent itself, such as the handshake.
    pub least_rtt_ns: Option<u64>,
    /// Whether packets from the other end arrived after the data that was never acknowledged had been sent: small packets get through.
    pub small_ones_pass: bool,
    /// Whether the unacknowledged data fills a segment.
    pub full_segment_waits: bool,
}

/// The effect of a control group's quota.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Quota {
    /// Periods in which the quota was exhausted.
    pub throttled: u64,
    /// All periods in which the group was running.
    pub periods: u64,
    /// Share of the time in which one of the group's processors was stopped by the quota.
    pub share: f64,
}
