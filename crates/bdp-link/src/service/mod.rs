//! Service: when a packet is finished that starts at a given time.
//!
//! Work is counted in nanobits, 10^9 to the bit: a wire of `r` bit/s does exactly `r` of them in a nanosecond, so no time
//! and no amount of work is ever rounded. Finishing times are cut to whole nanoseconds; what was cut off is work that the
//! next packet begins with, for as long as the wire stays busy.

mod rate;
mod steps;

use bdp_model::units::{Nanos, Rate};

pub(crate) use self::rate::Finish;
pub use self::steps::Steps;

/// Work of one bit.
const WORK_PER_BIT: u128 = 1_000_000_000;

/// How a direction's wire serves packets.
#[derive(Debug, Clone)]
pub enum Service {
    /// In no time.
    Unlimited,
    /// At one rate.
    Rate(Rate),
    /// At a rate that changes.
    Steps(Steps),
}

impl Service {
    /// When work is finished that starts at `start`; `None` where that is beyond the clock's range.
    pub(crate) fn finish(&self, start: Nanos, work: u128) -> Option<Finish> {
        match self {
            Self::Unlimited => Some(Finish { at: start, left: 0 }),
            Self::Rate(rate) => rate::finish(*rate, start, work),
            Self::Steps(steps) => steps.finish(start, work),
        }
    }

    /// Work that can be done from one instant to a later one.
    pub(crate) fn capacity(&self, from: Nanos, to: Nanos) -> u128 {
        match self {
            Self::Unlimited => u128::MAX,
            Self::Rate(rate) => rate::capacity(*rate, from, to),
            Self::Steps(steps) => steps.capacity(from, to),
        }
    }
}

/// The work of so many bits.
pub(crate) fn work(bits: u64) -> u128 {
    u128::from(bits) * WORK_PER_BIT
}

/// The work of so many bytes.
pub(crate) fn work_of_bytes(bytes: u64) -> u128 {
    u128::from(bytes) * 8 * WORK_PER_BIT
}
