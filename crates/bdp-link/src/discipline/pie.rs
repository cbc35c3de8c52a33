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
const LEAST_BACKLOG: u64 = 2 * FULL_PACKET;
const FULL_PACKET: u64 = 1500;
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
    limit: u64,
    queue: Fifo,
    /// One draw per offered packet.
    rolls: Rolls,
    controller: Controller,
    on_wire: OnWire,
}

impl Pie {
    pub(super) fn new(config: PieConfig, limit: u64, rolls: Rolls) -> Self {
        let controller = Controller::new(config, MARKED_UP_TO, false);
        Self { limit, queue: Fifo::default(), rolls, controller, on_wire: OnWire::default() }
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.queue.len(), bytes: self.queue.bytes() + self.on_wire.bytes }
    }
}

/// The content of a controlled queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Backlog {
    /// Packets waiting.
    pub packets: u64,
    /// IP bytes, of the packet on the wire too if it counts.
    pub bytes: u64,
}

/// The controller of one queue.
#[derive(Debug, Clone)]
pub(super) struct Controller {
    config: PieConfig,
    /// Probability above which ECN-capable packets are dropped too.
    marked_up_to: f64,
    /// Whether smaller packets are dropped more rarely.
    by_size: bool,
    updates: Ticker,
    probability: f64,
    /// Sum of the probabilities since the last drop.
    accumulated: f64,
    burst_allowance: Nanos,
    /// Delay of the last served packet, and at the update before.
    delay: Nanos,
    delay_before: Nanos,
    served_at: Option<Nanos>,
}

impl Controller {
    pub(super) fn new(config: PieConfig, marked_up_to: f64, by_size: bool) -> Self {
        Self {
            config,
            marked_up_to,
            by_size,
            updates: Ticker::new(config.tupdate),
            probability: 0.0,
            accumulated: 0.0,
            burst_allowance: BURST_ALLOWANCE,
            delay: Nanos::ZERO,
            delay_before: Nanos::ZERO,
            served_at: None,
        }
    }

    /// Admits a packet behind this many IP bytes; returns whether it was marked.
    pub(super) fn admit(
        &mut self,
        waiting: &mut Waiting,
        bytes: u64,
        rolls: &mut Rolls,
    ) -> Result<bool, DropCause> {
        if !self.signals(waiting, bytes, rolls) {
            return Ok(false);
        }
        let marks = self.config.ecn && self.probability <= self.marked_up_to;
        match marks && ecn::congest(&mut waiting.packet) {
            true => Ok(true),
            false => Err(self.refuse(DropCause::Aqm)),
        }
    }

    /// Notes that a packet was dropped on arrival.
    pub(super) fn refuse(&mut self, cause: DropCause) -> DropCause {
        self.accumulated = 0.0;
        cause
    }

    /// Notes that a packet is served, and whether others wait behind it.
    pub(super) fn serve(&mut self, waiting: &Waiting, behind: bool, now: Nanos) {
        self.delay = if behind { now.saturating_sub(waiting.ticket.arrived) } else { Nanos::ZERO };
        if let Some(before) = self.served_at.replace(now) {
            self.burst_allowance = self.burst_allowance.saturating_sub(now.saturating_sub(before));
        }
    }

    /// Whether the packet is to be dropped or marked (RFC 8033, sections 4.1 and 5.4).
    fn signals(&mut self, waiting: &Waiting, backlog: u64, rolls: &mut Rolls) -> bool {
        let low = self.delay < half(self.config.target) && self.probability < 0.2;
        if self.burst_allowance > Nanos::ZERO || low || backlog < LEAST_BACKLOG {
            return false;
        }
        let probability = match waiting.packet.len_bytes() {
            bytes if self.by_size && bytes < FULL_PACKET => {
                self.probability * bytes as f64 / FULL_PACKET as f64
            }
            _ => self.probability,
        };
        self.accumulated = if probability == 0.0 { 0.0 } else { self.accumulated + probability };
        if self.accumulated < NOT_BEFORE {
            return false;
        }
        if self.accumulated >= FOR_SURE {
            return true;
        }
        let falls = rolls.roll(&waiting.ticket, 0) < probability;
        if falls {
            self.accumulated = 0.0;
        }
        falls
    }

    /// Catches up with the updates due by now (RFC 8033, section 4.2).
    pub(super) fn update(&mut self, now: Nanos, backlog: Backlog) {
        // Nothing changes at rest.
        let rests = self.probability == 0.0 && self.delay == Nanos::ZERO && self.delay_before == Nanos::ZERO;
        if rests && backlog.packets == 0 {
            if self.updates.skip(now) {
                self.reset();
            }
            return;
        }
        while self.updates.next(now) {
            let before = (self.probability, self.delay_before);
            self.update_probability(backlog.bytes);
            // Nothing was served since, so the others change nothing either.
            if before == (self.probability, self.delay_before) {
                self.updates.skip(now);
            }
        }
    }

    fn update_probability(&mut self, backlog: u64) {
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
        self.controller.update(waiting.ticket.arrived, self.backlog());
        self.on_wire = on_wire;
        if self.queue.len() + on_wire.packets >= self.limit {
            return Err(self.controller.refuse(DropCause::Queue));
        }
        let bytes = self.backlog().bytes;
        let marked = self.controller.admit(&mut waiting, bytes, &mut self.rolls)?;
        self.queue.push(waiting);
        Ok(marked)
    }

    fn take(&mut self, now: Nanos, _: &mut Effects) -> Option<Waiting> {
        self.controller.update(now, self.backlog());
        let waiting = self.queue.pop()?;
        self.controller.serve(&waiting, self.queue.bytes() > 0, now);
        self.on_wire = OnWire { packets: 1, bytes: waiting.packet.len_bytes() };
        Some(waiting)
    }

    /// Notes that the wire has been free since then.
    fn went_idle(&mut self, at: Nanos) {
        self.controller.update(at, self.backlog());
        self.on_wire = OnWire::default();
    }
}

fn half(time: Nanos) -> Nanos {
    Nanos(time.as_ns() / 2)
}
