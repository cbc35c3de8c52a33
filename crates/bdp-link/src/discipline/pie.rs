//! PIE (RFC 8033): drops or marks on arrival, with a probability that follows the queueing delay.
//!
//! Delays are measured on served packets (RFC 8033, section 5.2, and Linux's default), not derived from a departure rate.

use bdp_model::link::queue::Pie as PieConfig;
use bdp_model::units::Nanos;

use super::fifo::Fifo;
use super::managed::{Effects, Managed, OnWire, Rolls, Ticker};
use super::waiting::Waiting;
use crate::ecn;
use crate::verdict::DropCause;

/// Two full packets: with less waiting nothing is dropped early (RFC 8033, section 4.1).
const LEAST_BACKLOG: u64 = 2 * 1500;
/// How long a queue may grow before anything is dropped early (RFC 8033, section 4.4).
const BURST_ALLOWANCE: Nanos = Nanos::millis(150);
/// Delay above which the probability grows by a further step (RFC 8033, section 5.1).
const HIGH_DELAY: Nanos = Nanos::millis(250);
/// Largest single increase of the probability, if it is a tenth or more.
const LARGEST_STEP: f64 = 0.02;
/// Probability above which ECN-capable packets are dropped too (RFC 8033, section 5.1).
const MARKED_UP_TO: f64 = 0.1;
/// Below the first, the sum of probabilities since the last drop drops nothing; from the second on it always does (RFC 8033, section 5.4).
const NOT_BEFORE: f64 = 0.85;
const FOR_SURE: f64 = 8.5;

/// One queue with PIE.
#[derive(Debug, Clone)]
pub(crate) struct Pie {
    config: PieConfig,
    limit: u64,
    queue: Fifo,
    /// One draw per offered packet.
    rolls: Rolls,
    updates: Ticker,
    probability: f64,
    /// Sum of the probabilities since the last drop.
    accumulated: f64,
    burst_allowance: Nanos,
    /// Delay of the last served packet, and at the update before.
    delay: Nanos,
    delay_before: Nanos,
    served_at: Option<Nanos>,
    on_wire: OnWire,
}

impl Pie {
    pub(super) fn new(config: PieConfig, limit: u64, rolls: Rolls) -> Self {
        Self {
            config,
            limit,
            queue: Fifo::default(),
            rolls,
            updates: Ticker::new(config.tupdate),
            probability: 0.0,
            accumulated: 0.0,
            burst_allowance: BURST_ALLOWANCE,
            delay: Nanos::ZERO,
            delay_before: Nanos::ZERO,
            served_at: None,
            on_wire: OnWire::default(),
        }
    }

    /// Whether the packet is to be dropped or marked (RFC 8033, sections 4.1 and 5.4).
    fn signals(&mut self, waiting: &Waiting, backlog: u64) -> bool {
        let low = self.delay < half(self.config.target) && self.probability < 0.2;
        if self.burst_allowance > Nanos::ZERO || low || backlog < LEAST_BACKLOG {
            return false;
        }
        self.accumulated = if self.probability == 0.0 { 0.0 } else { self.accumulated + self.probability };
        if self.accumulated < NOT_BEFORE {
            return false;
        }
        if self.accumulated >= FOR_SURE {
            return true;
        }
        let falls = self.rolls.roll(&waiting.ticket, 0) < self.probability;
        if falls {
            self.accumulated = 0.0;
        }
        falls
    }

    /// Catches up with the updates due by now (RFC 8033, section 4.2).
    fn update(&mut self, now: Nanos) {
        // Nothing changes at rest.
        let rests = self.probability == 0.0 && self.delay == Nanos::ZERO && self.delay_before == Nanos::ZERO;
        if rests && self.queue.len() == 0 {
            if self.updates.skip(now) {
                self.reset();
            }
            return;
        }
        while self.updates.next(now) {
            let before = (self.probability, self.delay_before);
            self.update_probability();
            // Nothing was served since, so the others change nothing either.
            if before == (self.probability, self.delay_before) {
                self.updates.skip(now);
            }
        }
    }

    fn update_probability(&mut self) {
        let backlog = self.queue.bytes() + self.on_wire.bytes;
        let (delay, before) = (self.delay, self.delay_before);
        let seconds = |time: Nanos| time.as_ns() as f64 / 1e9;
        let scale = match self.probability {
            p if p < 0.000_001 => 2048.0,
            p if p < 0.000_01 => 512.0,
            p if p < 0.000_1 => 128.0,
            p if p < 0.001 => 32.0,
            p if p < 0.01 => 8.0,
            p if p < 0.1 => 2.0,
            _ => 1.0,
        };
        // tc's alpha and beta are sixteenths.
        let [alpha, beta] = [self.config.alpha, self.config.beta].map(|gain| f64::from(gain) / 16.0 / scale);
        let mut step = alpha * (seconds(delay) - seconds(self.config.target))
            + beta * (seconds(delay) - seconds(before));
        if step > LARGEST_STEP && self.probability >= 0.1 {
            step = LARGEST_STEP;
        }
        if delay > HIGH_DELAY {
            step += LARGEST_STEP;
        }
        let sum = self.probability + step;
        self.probability = sum.clamp(0.0, 1.0);
        if delay == Nanos::ZERO && before == Nanos::ZERO && sum <= 1.0 && backlog == 0 {
            self.probability *= 1.0 - 1.0 / 64.0;
            if self.probability < 1e-9 {
                self.probability = 0.0;
            }
        }
        let low = half(self.config.target);
        if delay < low && before < low && self.probability == 0.0 {
            self.reset();
        }
        self.delay_before = delay;
    }

    /// Starts again, with a burst allowance (RFC 8033, section 4.4).
    fn reset(&mut self) {
        self.burst_allowance = BURST_ALLOWANCE;
        self.accumulated = 0.0;
        self.served_at = None;
    }
}

impl Managed for Pie {
    fn offer(&mut self, mut waiting: Waiting, on_wire: OnWire, _: &mut Effects) -> Result<bool, DropCause> {
        self.update(waiting.ticket.arrived);
        self.on_wire = on_wire;
        if self.queue.len() + on_wire.packets >= self.limit {
            self.accumulated = 0.0;
            return Err(DropCause::Queue);
        }
        let backlog = self.queue.bytes() + on_wire.bytes;
        let mut marked = false;
        if self.signals(&waiting, backlog) {
            marked = self.config.ecn && self.probability <= MARKED_UP_TO && ecn::congest(&mut waiting.packet);
            if !marked {
                self.accumulated = 0.0;
                return Err(DropCause::Aqm);
            }
        }
        self.queue.push(waiting);
        Ok(marked)
    }

    fn take(&mut self, now: Nanos, _: &mut Effects) -> Option<Waiting> {
        self.update(now);
        let waiting = self.queue.pop()?;
        let behind = self.queue.bytes() > 0;
        self.delay = if behind { now.saturating_sub(waiting.ticket.arrived) } else { Nanos::ZERO };
        if let Some(before) = self.served_at.replace(now) {
            self.burst_allowance = self.burst_allowance.saturating_sub(now.saturating_sub(before));
        }
        self.on_wire = OnWire { packets: 1, bytes: waiting.packet.len_bytes() };
        Some(waiting)
    }

    /// Notes that the wire has been free since then.
    fn went_idle(&mut self, at: Nanos) {
        self.update(at);
        self.on_wire = OnWire::default();
    }
}

fn half(time: Nanos) -> Nanos {
    Nanos(time.as_ns() / 2)
}
