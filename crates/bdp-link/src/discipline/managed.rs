//! Interface of queues with active management: their backlog, and effects on other packets.

use std::fmt;

use bdp_model::units::Nanos;

use super::waiting::{Ticket, Waiting};
use crate::duplication::Copy;
use crate::end::End;
use crate::random::{Draws, unit_interval};
use crate::verdict::DropCause;

/// An actively managed queue: it is offered segments one by one, may drop and mark waiting packets, and may serve flows out of order.
pub(crate) trait Managed: fmt::Debug + Send + BoxedClone {
    /// Takes a segment; returns whether it was marked, or why it was dropped.
    fn offer(&mut self, waiting: Waiting, on_wire: OnWire, effects: &mut Effects) -> Result<bool, DropCause>;

    /// Takes the next segment to be served at `now`, after dropping those before it.
    fn take(&mut self, now: Nanos, effects: &mut Effects) -> Option<Waiting>;

    /// Notes that the wire was free from then on, and nothing waited.
    fn went_idle(&mut self, _at: Nanos) {}
}

/// Clones a queue of unknown type.
pub(crate) trait BoxedClone {
    fn boxed_clone(&self) -> Box<dyn Managed>;
}

impl<Q: Managed + Clone + 'static> BoxedClone for Q {
    fn boxed_clone(&self) -> Box<dyn Managed> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Managed> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

/// The segment on the wire, which counts towards the queue's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OnWire {
    /// One, or none if the wire is free.
    pub packets: u64,
    /// IP bytes of the segment.
    pub bytes: u64,
}

/// An admitted packet that was dropped.
#[derive(Debug, Clone)]
pub(crate) struct Removed {
    pub waiting: Waiting,
    pub at: Nanos,
    pub cause: DropCause,
}

/// Effects on packets admitted earlier.
#[derive(Debug, Clone, Default)]
pub(crate) struct Effects {
    pub removed: Vec<Removed>,
    /// Packets marked when their turn came.
    pub marked: u64,
}

impl Effects {
    pub(super) fn drop(&mut self, waiting: Waiting, at: Nanos, cause: DropCause) {
        self.removed.push(Removed { waiting, at, cause });
    }

    pub(super) fn dropped(&mut self, waiting: Option<Waiting>, at: Nanos, cause: DropCause) {
        if let Some(waiting) = waiting {
            self.drop(waiting, at, cause);
        }
    }
}

/// A queue's random draws, keyed by the packet.
#[derive(Debug, Clone)]
pub(crate) struct Rolls(Draws);

impl Rolls {
    /// Random draws per packet copy.
    const EACH: u64 = 2;

    pub(super) fn new(seed: u64, from: End) -> Self {
        Self(Draws::new(seed, from, b"aqm ", Self::EACH * Copy::COUNT))
    }

    /// Draw `n` of a packet, below [`Self::EACH`]: from 0 to less than 1.
    pub(super) fn roll(&mut self, ticket: &Ticket, n: u64) -> f64 {
        unit_interval(self.0.draw(ticket.index, ticket.copy.number() * Self::EACH + n))
    }
}

/// A periodic event at whole multiples of a period, caught up with when time has passed.
#[derive(Debug, Clone)]
pub(crate) struct Ticker {
    period: Nanos,
    next: Nanos,
}

impl Ticker {
    pub(super) fn new(period: Nanos) -> Self {
        let period = period.max(Nanos(1));
        Self { period, next: period }
    }

    /// Whether an event due by now is still to be handled.
    pub(super) fn next(&mut self, now: Nanos) -> bool {
        self.next_at(now).is_some()
    }

    /// Takes the next event due by now; returns its time.
    pub(super) fn next_at(&mut self, now: Nanos) -> Option<Nanos> {
        let at = self.next;
        (at <= now && at < Nanos(u64::MAX)).then(|| {
            self.next = at + self.period;
            at
        })
    }

    /// Time of the last event handled or skipped.
    pub(super) fn last(&self) -> Nanos {
        self.next.saturating_sub(self.period)
    }

    /// Skips all events due by now; returns whether there were any.
    pub(super) fn skip(&mut self, now: Nanos) -> bool {
        if self.next > now {
            return false;
        }
        let periods = now.as_ns() / self.period.as_ns();
        self.next = Nanos(self.period.as_ns().saturating_mul(periods)) + self.period;
        true
    }
}
