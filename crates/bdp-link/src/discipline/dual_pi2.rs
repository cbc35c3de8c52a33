//! DualPI2 (RFC 9332): a low-latency queue for scalable traffic beside a classic one, coupled by one PI controller.
//!
//! As in Linux the low-latency queue takes ECT(1) and CE, and is marked by the coupled probability and by a step in its sojourn time.

use bdp_model::link::queue::DualPi2 as DualPi2Config;
use bdp_model::units::Nanos;

use super::fifo::Fifo;
use super::managed::{Effects, Managed, OnWire, Rolls, Ticker};
use super::waiting::Waiting;
use crate::ecn;
use crate::verdict::DropCause;

/// Two full packets: with less waiting nothing is signalled.
const LEAST_BACKLOG: u64 = 2 * 1500;
const FULL_PACKET: i64 = 1500;

/// Two queues with one controller.
#[derive(Debug, Clone)]
pub(crate) struct DualPi2 {
    config: DualPi2Config,
    limit: u64,
    rolls: Rolls,
    updates: Ticker,
    classic: Fifo,
    low_latency: Fifo,
    /// Base probability: squared for the classic queue, times the coupling factor for the other.
    probability: f64,
    delay_before: Nanos,
    /// Decides which queue is next if both have packets: the low-latency one while it is at most zero.
    credit: i64,
}

impl DualPi2 {
    pub(super) fn new(config: DualPi2Config, limit: u64, rolls: Rolls) -> Self {
        let mut queue = Self {
            config,
            limit,
            rolls,
            updates: Ticker::new(config.tupdate),
            classic: Fifo::default(),
            low_latency: Fifo::default(),
            probability: 0.0,
            delay_before: Nanos::ZERO,
            credit: 0,
        };
        queue.reset_credit();
        queue
    }

    fn signal(&mut self, waiting: &mut Waiting, low_latency: bool, now: Nanos) -> Signal {
        let coupled = self.probability * f64::from(self.config.coupling_factor);
        let overload = coupled > 1.0;
        let backlog = self.classic.bytes() + self.low_latency.bytes();
        let ticket = waiting.ticket;
        let mut marked = false;
        if backlog >= LEAST_BACKLOG {
            let p = self.probability;
            let mut squared = || self.rolls.roll(&ticket, 0) < p && self.rolls.roll(&ticket, 1) < p;
            if !low_latency {
                if squared() {
                    if overload || !ecn::congest(&mut waiting.packet) {
                        return Signal::Drop;
                    }
                    marked = true;
                }
            } else if overload {
                if self.config.drop_on_overload && squared() {
                    return Signal::Drop;
                }
                marked = ecn::congest(&mut waiting.packet);
            } else if self.rolls.roll(&ticket, 0) < coupled {
                marked = ecn::congest(&mut waiting.packet);
            }
        }
        if low_latency && now.saturating_sub(ticket.arrived) > self.config.step_thresh {
            marked |= ecn::congest(&mut waiting.packet);
        }
        if marked { Signal::Mark } else { Signal::None }
    }

    /// Catches up with the updates due by now (RFC 9332, appendix A).
    fn update(&mut self, now: Nanos) {
        if self.probability == 0.0
            && self.delay_before == Nanos::ZERO
            && self.classic.len() + self.low_latency.len() == 0
        {
            self.updates.skip(now);
            return;
        }
        while let Some(at) = self.updates.next_at(now) {
            let delay = waited(&self.classic, at).max(waited(&self.low_latency, at));
            let seconds = |time: Nanos| time.as_ns() as f64 / 1e9;
            // tc's alpha and beta are 256ths.
            let [alpha, beta] = [self.config.alpha, self.config.beta].map(|gain| f64::from(gain) / 256.0);
            let step = alpha * (seconds(delay) - seconds(self.config.target))
                + beta * (seconds(delay) - seconds(self.delay_before));
            self.delay_before = delay;
            let most = match self.config.drop_on_overload {
                true => 1.0,
                false => 1.0 / f64::from(self.config.coupling_factor.max(1)),
            };
            self.probability = (self.probability + step).clamp(0.0, most);
            // It stays at its bound while the same packets wait.
            if self.probability == most && delay > self.config.target && self.updates.skip(now) {
                let last = self.updates.last();
                self.delay_before = waited(&self.classic, last).max(waited(&self.low_latency, last));
            }
        }
    }

    fn reset_credit(&mut self) {
        let share = i64::from(self.config.c_protection_percent);
        self.credit = FULL_PACKET * (share - (100 - share));
    }
}

impl Managed for DualPi2 {
    fn offer(&mut self, waiting: Waiting, on_wire: OnWire, _: &mut Effects) -> Result<bool, DropCause> {
        self.update(waiting.ticket.arrived);
        if self.classic.len() + self.low_latency.len() + on_wire.packets >= self.limit {
            return Err(DropCause::Queue);
        }
        match ecn::is_low_latency(&waiting.packet) {
            true => self.low_latency.push(waiting),
            false => self.classic.push(waiting),
        }
        Ok(false)
    }

    fn take(&mut self, now: Nanos, effects: &mut Effects) -> Option<Waiting> {
        self.update(now);
        loop {
            let both = self.low_latency.len() > 0 && self.classic.len() > 0;
            let low_latency = self.low_latency.len() > 0 && (!both || self.credit <= 0);
            let queue = if low_latency { &mut self.low_latency } else { &mut self.classic };
            let Some(mut waiting) = queue.pop() else {
                self.reset_credit();
                return None;
            };
            let marked = match self.signal(&mut waiting, low_latency, now) {
                Signal::None => false,
                Signal::Mark => true,
                Signal::Drop => {
                    effects.drop(waiting, now, DropCause::Aqm);
                    continue;
                }
            };
            if both {
                let share = i64::from(self.config.c_protection_percent);
                let share = if low_latency { share } else { share - 100 };
                self.credit += share * waiting.packet.len_bytes() as i64;
            }
            effects.marked += u64::from(marked);
            return Some(waiting);
        }
    }

    fn went_idle(&mut self, at: Nanos) {
        self.update(at);
        self.reset_credit();
    }
}

/// Waiting time of the queue's head at that moment.
fn waited(queue: &Fifo, at: Nanos) -> Nanos {
    queue.head().map_or(Nanos::ZERO, |head| at.saturating_sub(head.ticket.arrived))
}

/// Fate of a packet whose turn has come.
enum Signal {
    None,
    Mark,
    Drop,
}
