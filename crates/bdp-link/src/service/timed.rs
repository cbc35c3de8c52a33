//! A wire that changes over time: one rate before time zero, then steps, ramps or a trace, with outages in which it holds everything back.

use bdp_model::link::DirectionConfig;
use bdp_model::link::over_time::{Outage, RateOverTime};
use bdp_model::units::{Nanos, Rate};

use super::rate::{self, Finish};
use super::steps::Steps;
use super::trace::Trace;

/// Maximum number of outages that one packet may meet. One that meets more never leaves.
const OUTAGES_MET: u32 = 100_000;

/// A wire that changes over time.
#[derive(Debug, Clone)]
pub struct Timed {
    /// Time zero, once known.
    zero: Option<Nanos>,
    before: Wire,
    after: Wire,
    /// Outages in which packets wait.
    outages: Vec<Outage>,
}

#[derive(Debug, Clone)]
enum Wire {
    Unlimited,
    Rate(Rate),
    Steps(Steps),
    Trace(Trace),
}

impl Timed {
    /// The wire of a direction; `None` if nothing changes.
    pub(super) fn of(config: &DirectionConfig) -> Option<Self> {
        let outages: Vec<Outage> = config.outages.iter().filter(|outage| !outage.drop).copied().collect();
        if config.rate_over_time.is_none() && outages.is_empty() {
            return None;
        }
        let before = config.rate.map_or(Wire::Unlimited, Wire::Rate);
        let after = match &config.rate_over_time {
            None => before.clone(),
            Some(RateOverTime::Timeline(timeline)) => Wire::Steps(Steps::of(timeline)),
            Some(RateOverTime::Trace(trace)) => Wire::Trace(Trace::new(trace)),
        };
        Some(Self { zero: None, before, after, outages })
    }

    /// Sets time zero.
    pub(super) fn start_clock(&mut self, at: Nanos) {
        self.zero = Some(at);
    }

    pub(super) fn finish(&self, start: Nanos, work: u128) -> Option<Finish> {
        let Some(zero) = self.zero else { return self.before.finish(start, work) };
        let whole = self.before.capacity(start, zero);
        if start < zero && work <= whole {
            return self.before.finish(start, work);
        }
        let (start, work) = (start.saturating_sub(zero), work - whole);
        let Finish { at, left } = self.finish_after(start, work)?;
        Some(Finish { at: Nanos(zero.as_ns().checked_add(at.as_ns())?), left })
    }

    pub(super) fn capacity(&self, from: Nanos, to: Nanos) -> u128 {
        let Some(zero) = self.zero else { return self.before.capacity(from, to) };
        let before = self.before.capacity(from, to.min(zero));
        let (from, to) = (from.saturating_sub(zero), to.saturating_sub(zero));
        before.saturating_add(
            self.up(from, to).fold(0, |sum, (from, to)| sum.saturating_add(self.after.capacity(from, to))),
        )
    }

    /// Upper bound of the work that is ever finished; above the true one if there are outages.
    pub(super) fn room(&self, from: Nanos) -> u128 {
        match self.zero {
            Some(zero) => self.after.capacity(from.saturating_sub(zero), Nanos(u64::MAX) - zero),
            None => self.before.capacity(from, Nanos(u64::MAX)),
        }
    }

    /// Shortest duration of work, whenever it starts.
    pub(super) fn least(&self, work: u128) -> Nanos {
        self.before.least(work).min(self.after.least(work))
    }

    fn finish_after(&self, mut start: Nanos, mut work: u128) -> Option<Finish> {
        // If it takes for ever without outages, it does with them.
        self.after.finish(start, work)?;
        for _ in 0..OUTAGES_MET {
            let Some((from, until)) = self.outage(start) else { return self.after.finish(start, work) };
            let whole = self.after.capacity(start, from);
            if start < from && work <= whole {
                return self.after.finish(start, work);
            }
            work -= whole;
            start = until;
        }
        None
    }

    /// The first outage not yet over at an instant.
    fn outage(&self, at: Nanos) -> Option<(Nanos, Nanos)> {
        self.outages.iter().filter_map(|outage| outage.next(at)).min()
    }

    /// The parts of a span without an outage.
    fn up(&self, mut from: Nanos, to: Nanos) -> impl Iterator<Item = (Nanos, Nanos)> {
        std::iter::from_fn(move || {
            loop {
                if from >= to {
                    return None;
                }
                let (out, until) = self.outage(from).unwrap_or((to, to));
                let stretch = (from, out.min(to));
                from = until.max(from);
                if stretch.0 < stretch.1 {
                    return Some(stretch);
                }
            }
        })
    }
}

impl Wire {
    fn finish(&self, start: Nanos, work: u128) -> Option<Finish> {
        match self {
            Self::Unlimited => Some(Finish { at: start, left: 0 }),
            Self::Rate(rate) => rate::finish(*rate, start, work),
            Self::Steps(steps) => steps.finish(start, work),
            Self::Trace(trace) => trace.finish(start, work),
        }
    }

    fn capacity(&self, from: Nanos, to: Nanos) -> u128 {
        match self {
            Self::Unlimited if from < to => u128::MAX,
            Self::Unlimited => 0,
            Self::Rate(rate) => rate::capacity(*rate, from, to),
            Self::Steps(steps) => steps.capacity(from, to),
            Self::Trace(trace) => trace.capacity(from, to),
        }
    }

    fn least(&self, work: u128) -> Nanos {
        let rate = match self {
            Self::Unlimited | Self::Trace(_) => return Nanos::ZERO,
            Self::Rate(rate) => *rate,
            Self::Steps(steps) => steps.most(),
        };
        rate::finish(rate, Nanos::ZERO, work).map_or(Nanos(u64::MAX), |finish| finish.at)
    }
}
