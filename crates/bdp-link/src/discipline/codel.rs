//! CoDel (RFC 8289): one queue, controlled by its packets' sojourn time.
//!
//! Time is counted in units of 1,024 ns and the inverse square root in 16 bits, refined by one Newton step per
//! drop, as in the appendix of the paper and in Linux; so decisions fall on the same packets as there.

use bdp_model::link::queue::Codel as CodelConfig;
use bdp_model::units::Nanos;

use super::fifo::Fifo;
use super::managed::{Effects, Managed, OnWire};
use super::waiting::Waiting;
use crate::ecn;
use crate::verdict::DropCause;

/// Shift from nanoseconds to CoDel's unit of time.
const TICK_SHIFT: u32 = 10;
/// Bits of the inverse square root that are kept.
const ROOT_BITS: u32 = 16;
/// If no more bytes wait behind a packet, it is not dropped (RFC 8289, section 4.4): one full packet.
const FULL_PACKET: u64 = 1500;

/// One queue with CoDel.
#[derive(Debug, Clone)]
pub(crate) struct Codel {
    config: CodelConfig,
    limit: u64,
    control: Control,
    queue: Fifo,
}

/// The control law's state of one queue.
#[derive(Debug, Clone, Default)]
pub(super) struct Control {
    count: u32,
    last_count: u32,
    dropping: bool,
    /// 1 / sqrt(count), as a fraction of 2^16.
    root: u16,
    /// When the sojourn time will have been above the target for an interval.
    first_above: Option<i64>,
    drop_next: i64,
}

impl Codel {
    pub(super) fn new(config: CodelConfig, limit: u64) -> Self {
        Self { config, limit, control: Control::default(), queue: Fifo::default() }
    }
}

impl Managed for Codel {
    fn offer(&mut self, waiting: Waiting, on_wire: OnWire, _: &mut Effects) -> Result<bool, DropCause> {
        if self.queue.len() + on_wire.packets >= self.limit {
            return Err(DropCause::Queue);
        }
        self.queue.push(waiting);
        Ok(false)
    }

    fn take(&mut self, now: Nanos, effects: &mut Effects) -> Option<Waiting> {
        let mut left = self.queue.bytes();
        self.control.take(&self.config, now, &mut left, &mut self.queue, effects)
    }

    fn went_idle(&mut self, _: Nanos) {
        self.control.went_idle();
    }
}

impl Control {
    /// Takes the next packet of a queue, after those dropped before it. `backlog` decides whether the queue is too
    /// short for drops, in IP bytes: of this queue, or of all that share a wire.
    pub(super) fn take(
        &mut self,
        config: &CodelConfig,
        now: Nanos,
        backlog: &mut u64,
        queue: &mut Fifo,
        effects: &mut Effects,
    ) -> Option<Waiting> {
        let tick = ticks(now);
        let interval = ticks(config.interval);
        let Some(mut packet) = pull(queue, backlog) else {
            self.went_idle();
            return None;
        };
        let mut drop = self.should_drop(config, tick, &packet, *backlog);
        let mut marked = false;
        if self.dropping {
            if !drop {
                self.dropping = false;
            }
            while drop && self.dropping && tick >= self.drop_next {
                self.count = self.count.wrapping_add(1);
                self.refine_root();
                if config.ecn && ecn::congest(&mut packet.packet) {
                    marked = true;
                    self.drop_next += self.spacing(interval);
                    break;
                }
                effects.drop(packet, now, DropCause::Aqm);
                let Some(next) = pull(queue, backlog) else {
                    self.went_idle();
                    return None;
                };
                packet = next;
                drop = self.should_drop(config, tick, &packet, *backlog);
                if drop {
                    self.drop_next += self.spacing(interval);
                } else {
                    self.dropping = false;
                }
            }
        } else if drop {
            let mut next = Some(packet);
            if config.ecn && next.as_mut().is_some_and(|packet| ecn::congest(&mut packet.packet)) {
                marked = true;
            } else {
                effects.dropped(next.take(), now, DropCause::Aqm);
                next = pull(queue, backlog);
                match &next {
                    Some(packet) => {
                        self.should_drop(config, tick, packet, *backlog);
                    }
                    None => self.first_above = None,
                }
            }
            self.begin_dropping(tick, interval);
            packet = next?;
        }
        let above = |threshold: Nanos| tick - ticks(packet.ticket.arrived) > ticks(threshold);
        if config.ce_threshold.is_some_and(above) && ecn::congest(&mut packet.packet) {
            marked = true;
        }
        effects.marked += u64::from(marked);
        Some(packet)
    }

    /// Notes that a packet was dropped because too many waited: a reason to drop sooner.
    pub(super) fn note_overflow(&mut self) {
        self.count = self.count.wrapping_add(1);
    }

    /// Notes that the wire was free and nothing waited.
    pub(super) fn went_idle(&mut self) {
        self.first_above = None;
        self.dropping = false;
    }

    /// Whether the sojourn time has been above the target for an interval (RFC 8289, section 5.6).
    fn should_drop(&mut self, config: &CodelConfig, tick: i64, packet: &Waiting, backlog: u64) -> bool {
        let sojourn = tick - ticks(packet.ticket.arrived);
        if sojourn < ticks(config.target) || backlog <= FULL_PACKET {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(tick + ticks(config.interval));
                false
            }
            Some(at) => tick > at,
        }
    }

    /// A new dropping state continues with the rate of the last one, if that ended recently (RFC 8289, section 5.6).
    fn begin_dropping(&mut self, tick: i64, interval: i64) {
        self.dropping = true;
        let delta = self.count.wrapping_sub(self.last_count);
        if delta > 1 && tick - self.drop_next < 16 * interval {
            self.count = delta;
            self.refine_root();
        } else {
            self.count = 1;
            self.root = u16::MAX;
        }
        self.last_count = self.count;
        self.drop_next = tick + self.spacing(interval);
    }

    /// interval / sqrt(count), at least a tick.
    fn spacing(&self, interval: i64) -> i64 {
        ((interval * i64::from(self.root)) >> ROOT_BITS).max(1)
    }

    /// One step of Newton's method towards 1 / sqrt(count): x (3 - count x^2) / 2.
    fn refine_root(&mut self) {
        let x = u64::from(self.root) << ROOT_BITS;
        let square = (x * x) >> 32;
        // Quartered, so that the product stays within 64 bits.
        let rest = (3u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(square)) >> 2;
        self.root = ((rest.wrapping_mul(x) >> 31) as u32 >> ROOT_BITS) as u16;
    }
}

fn pull(queue: &mut Fifo, backlog: &mut u64) -> Option<Waiting> {
    let packet = queue.pop()?;
    *backlog = backlog.saturating_sub(packet.packet.len_bytes());
    Some(packet)
}

fn ticks(time: Nanos) -> i64 {
    // Less than 2^54.
    (time.as_ns() >> TICK_SHIFT) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8289, section 3.3: drops come interval / sqrt(count) apart.
    #[test]
    fn drops_come_closer_with_the_square_root_of_their_count() {
        let mut control = Control { count: 1, root: u16::MAX, ..Control::default() };
        let interval = ticks(Nanos::millis(100));
        for count in 2..2_000u32 {
            control.count = count;
            control.refine_root();
            let exact = interval as f64 / f64::from(count).sqrt();
            let off = (control.spacing(interval) as f64 / exact - 1.0).abs();
            // One step from 1 to 1 / sqrt(2) is a coarse one; they converge.
            assert!(off < if count < 16 { 0.3 } else { 0.03 }, "{count}: {off}");
        }
    }
}
