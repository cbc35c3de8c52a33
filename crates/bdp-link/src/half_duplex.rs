//! One medium for both directions: each end waits for its turn, and every change of the sending end costs silence.
//!
//! The next sender is chosen whenever the medium becomes free, by what had arrived *before* that instant, and at
//! once when a packet arrives at an idle medium. So everything follows from the arrival times, never from when
//! the link is polled.

use bdp_model::link::Turns;
use bdp_model::units::Nanos;

use crate::direction::Direction;
use crate::end::End;

/// The shared medium. Waiting packets are in the directions.
#[derive(Debug, Clone)]
pub(crate) struct Channel {
    turns: Turns,
    /// The last sender, and since when it has had the medium.
    holder: Option<(End, Nanos)>,
    /// When the last started transmission ends, rounded down to whole nanoseconds.
    free: Nanos,
    /// When the last started transmission ends, rounded up: the other end may not start sooner.
    clear: Nanos,
}

impl Channel {
    pub(crate) fn new(turns: Turns) -> Self {
        Self { turns, holder: None, free: Nanos::ZERO, clear: Nanos::ZERO }
    }

    /// When the next sender is chosen; `None` while nothing waits.
    pub(crate) fn next_decision(&self, a: &Direction, b: &Direction) -> Option<Nanos> {
        let first = match (head(a), head(b)) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        Some(first.max(self.free))
    }

    /// Starts all transmissions decided by `now`.
    pub(crate) fn transmit(&mut self, a: &mut Direction, b: &mut Direction, now: Nanos) {
        while let Some(at) = self.next_decision(a, b).filter(|at| *at <= now) {
            let Some(from) = self.next_sender(at, head(a), head(b)) else { return };
            let mut start = at;
            match self.holder {
                Some((holder, _)) if holder == from => {}
                Some(_) => {
                    start = start.max(self.clear + self.turns.guard);
                    self.holder = Some((from, start));
                }
                None => self.holder = Some((from, start)),
            }
            let direction = if from == End::A { &mut *a } else { &mut *b };
            direction.serve_next(start);
            (self.free, self.clear) = (direction.transmitter.free(), direction.transmitter.clear());
        }
    }

    /// Chooses between two ends with something to send since then: the holder keeps the medium until the other has waited for a turn.
    fn next_sender(&self, at: Nanos, a: Option<Nanos>, b: Option<Nanos>) -> Option<End> {
        let Some((holder, since)) = self.holder else {
            return match (a, b) {
                (Some(a), Some(b)) if b < a => Some(End::B),
                (Some(_), _) => Some(End::A),
                (None, _) => b.map(|_| End::B),
            };
        };
        let (own, others) = if holder == End::A { (a, b) } else { (b, a) };
        match (own, others) {
            (None, None) => None,
            (Some(_), None) => Some(holder),
            (None, Some(_)) => Some(holder.other()),
            (Some(_), Some(arrived)) if at < since.max(arrived) + self.turns.turn => Some(holder),
            (Some(_), Some(_)) => Some(holder.other()),
        }
    }
}

/// Arrival time of the packet that a direction sends next.
fn head(direction: &Direction) -> Option<Nanos> {
    direction.transmitter.head().map(|waiting| waiting.ticket.arrived)
}
