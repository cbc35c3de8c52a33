//! Service: when a packet that starts at a given time is finished.
//!
//! Work is counted in nanobits, 10^9 to the bit: a wire of `r` bit/s does exactly `r` of them in a nanosecond, so
//! no time and no amount of work is ever rounded. Finishing times are rounded down to whole nanoseconds; the
//! remainder is work that the next packet begins with, as long as the wire stays busy.

mod rate;
mod steps;
mod timed;
mod trace;
mod work;

use bdp_model::link::DirectionConfig;
use bdp_model::units::{Nanos, Rate};

pub(crate) use self::rate::Finish;
pub use self::steps::Steps;
pub use self::timed::Timed;
pub(crate) use self::work::{work, work_of_bytes};

/// How a direction's wire serves packets.
#[derive(Debug, Clone)]
pub enum Service {
    /// Takes no time.
    Unlimited,
    /// At a constant rate.
    Rate(Rate),
    /// At a rate that changes.
    Steps(Steps),
    /// As a scenario states it, from time zero on.
    Timed(Box<Timed>),
}

impl Service {
    /// The service of a direction.
    pub(crate) fn of(config: &DirectionConfig) -> Self {
        match Timed::of(config) {
            Some(timed) => Self::Timed(Box::new(timed)),
            None => config.rate.map_or(Self::Unlimited, Self::Rate),
        }
    }

    /// Sets time zero.
    pub(crate) fn start_clock(&mut self, at: Nanos) {
        if let Self::Timed(timed) = self {
            timed.start_clock(at);
        }
    }

    /// When work that starts at `start` is finished; `None` if that is beyond the clock's range.
    pub(crate) fn finish(&self, start: Nanos, work: u128) -> Option<Finish> {
        match self {
            Self::Unlimited => Some(Finish { at: start, left: 0 }),
            Self::Rate(rate) => rate::finish(*rate, start, work),
            Self::Steps(steps) => steps.finish(start, work),
            Self::Timed(timed) => timed.finish(start, work),
        }
    }

    /// Work that can be done from one instant to a later one.
    pub(crate) fn capacity(&self, from: Nanos, to: Nanos) -> u128 {
        match self {
            Self::Unlimited => u128::MAX,
            Self::Rate(rate) => rate::capacity(*rate, from, to),
            Self::Steps(steps) => steps.capacity(from, to),
            Self::Timed(timed) => timed.capacity(from, to),
        }
    }

    /// Upper bound of the work that can be finished within the clock's range.
    pub(crate) fn room(&self, from: Nanos) -> u128 {
        match self {
            Self::Timed(timed) => timed.room(from),
            _ => self.capacity(from, Nanos(u64::MAX)),
        }
    }

    /// Shortest duration of work, whenever it starts.
    pub(crate) fn least(&self, work: u128) -> Nanos {
        match self {
            Self::Unlimited => Nanos::ZERO,
            Self::Rate(rate) => {
                rate::finish(*rate, Nanos::ZERO, work).map_or(Nanos(u64::MAX), |finish| finish.at)
            }
            Self::Steps(steps) => {
                rate::finish(steps.most(), Nanos::ZERO, work).map_or(Nanos(u64::MAX), |finish| finish.at)
            }
            Self::Timed(timed) => timed.least(work),
        }
    }
}
