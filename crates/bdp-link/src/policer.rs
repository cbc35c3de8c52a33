//! The policer: a token bucket that drops packets without enough tokens, and queues nothing.

use bdp_model::link::Policer as PolicerConfig;
use bdp_model::units::Nanos;

use crate::service::work_of_bytes;

/// A token bucket, full at the start, exact at every rate.
///
/// Its content is counted in units of 1/10^9 bit: a nanosecond adds `rate` of them, and an IP packet of `b` bits
/// takes b x 10^9. A packet that finds less is dropped and takes nothing (RFC 2697, colour-blind, green or gone).
#[derive(Debug, Clone)]
pub(crate) struct Policer {
    rate_bps: u128,
    depth: u128,
    content: u128,
    as_of: Nanos,
}

impl Policer {
    pub(crate) fn new(config: PolicerConfig) -> Self {
        let depth = work_of_bytes(config.burst.as_bytes());
        Self { rate_bps: u128::from(config.rate.as_bps()), depth, content: depth, as_of: Nanos::ZERO }
    }

    /// Whether a packet of this length may pass at `now`; if so, takes its tokens.
    pub(crate) fn passes(&mut self, ip_bytes: u64, now: Nanos) -> bool {
        // Both factors came from a u64, so neither the product nor, below the depth's 2^97, the sum overflows.
        let added = u128::from(now.saturating_sub(self.as_of).as_ns()) * self.rate_bps;
        self.content = self.content.saturating_add(added).min(self.depth);
        self.as_of = self.as_of.max(now);
        match self.content.checked_sub(work_of_bytes(ip_bytes)) {
            Some(rest) => {
                self.content = rest;
                true
            }
            None => false,
        }
    }
}
