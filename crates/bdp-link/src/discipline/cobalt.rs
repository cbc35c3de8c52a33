//! COBALT, CAKE's AQM of one flow's queue: CoDel whose count falls again as it rose, and BLUE for unresponsive flows.
//!
//! States and rounding follow Linux, so that decisions fall on the same packets as there.

use bdp_model::units::Nanos;

use crate::ecn;
use crate::packet::Packet;

/// Increase of BLUE's probability per overflow, and decrease when the queue is found empty; parts of 2^32.
const MORE: u32 = 1 << 24;
const LESS: u32 = 1 << 20;
/// Counts with an exact root; above, one Newton step is close enough.
const EXACT_ROOTS: u32 = 16;

/// Parameters of one tin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parameters {
    pub target: Nanos,
    pub interval: Nanos,
    /// Time of a full packet at the tin's rate.
    pub packet: Nanos,
}

/// The state of one flow.
#[derive(Debug, Clone, Default)]
pub(super) struct Cobalt {
    count: u32,
    /// 1 / sqrt(count), as a fraction of 2^32; zero before the flow's first signal, so that this comes at once.
    root: u32,
    dropping: bool,
    drop_next: i64,
    drop_probability: u32,
    probability_changed: i64,
}

/// Fate of a packet whose turn has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    None,
    Mark,
    Drop,
}

impl Cobalt {
    /// Notes that a packet was dropped because the buffer was full.
    pub(super) fn note_overflow(&mut self, parameters: &Parameters, now: Nanos) {
        let now = signed(now);
        if now - self.probability_changed > signed(parameters.target) {
            self.drop_probability = self.drop_probability.saturating_add(MORE);
            self.probability_changed = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// Notes that its queue was found empty at its turn.
    pub(super) fn note_empty(&mut self, parameters: &Parameters, now: Nanos) {
        let now = signed(now);
        if self.drop_probability > 0 && now - self.probability_changed > signed(parameters.target) {
            self.drop_probability = self.drop_probability.saturating_sub(LESS);
            self.probability_changed = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.step_down(parameters);
        }
    }

    /// Whether its state has decayed completely.
    pub(super) fn is_at_rest(&self, now: Nanos) -> bool {
        self.drop_probability == 0 && self.count == 0 && signed(now) >= self.drop_next
    }

    /// Decides the fate of a packet that arrived then; `roll` draws from 0 to less than 1 for BLUE.
    pub(super) fn signal(
        &mut self,
        parameters: &Parameters,
        now: Nanos,
        arrived: Nanos,
        packet: &mut Packet,
        roll: impl FnOnce() -> f64,
    ) -> Signal {
        let sojourn = now.saturating_sub(arrived);
        let now = signed(now);
        let mut schedule = now - self.drop_next;
        let over = sojourn > parameters.target && sojourn > Nanos(parameters.packet.as_ns() * 4);
        let mut due = self.count > 0 && schedule >= 0;
        if over {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = now + self.spacing(parameters);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        let (mut drop, mut marked) = (false, false);
        if due && self.dropping {
            marked = ecn::congest(packet);
            drop = !marked;
            self.count = self.count.saturating_add(1);
            self.refine_root();
            self.drop_next += self.spacing(parameters);
            schedule = now - self.drop_next;
        } else {
            while due {
                self.step_down(parameters);
                schedule = now - self.drop_next;
                due = self.count > 0 && schedule >= 0;
            }
        }
        if self.drop_probability > 0 {
            drop |= roll() < f64::from(self.drop_probability) / 4_294_967_296.0;
        }
        if self.count == 0 {
            self.drop_next = now + signed(parameters.interval);
        } else if schedule > 0 && !drop {
            self.drop_next = now;
        }
        match (drop, marked) {
            (true, _) => Signal::Drop,
            (false, true) => Signal::Mark,
            (false, false) => Signal::None,
        }
    }

    fn step_down(&mut self, parameters: &Parameters) {
        self.count -= 1;
        self.refine_root();
        self.drop_next += self.spacing(parameters);
    }

    /// interval / sqrt(count).
    fn spacing(&self, parameters: &Parameters) -> i64 {
        ((u128::from(parameters.interval.as_ns()) * u128::from(self.root)) >> 32) as i64
    }

    fn refine_root(&mut self) {
        if self.count < EXACT_ROOTS {
            self.root = exact_root(self.count);
            return;
        }
        // x (3 - count x^2) / 2, quartered so that the product stays within 64 bits.
        let x = u64::from(self.root);
        let square = (x * x) >> 32;
        let rest = (3u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(square)) >> 2;
        self.root = (rest.wrapping_mul(x) >> 31) as u32;
    }
}

/// floor(2^32 / sqrt(count)), at most 2^32 - 1.
fn exact_root(count: u32) -> u32 {
    if count <= 1 {
        return u32::MAX;
    }
    ((1u128 << 64) / u128::from(count)).isqrt() as u32
}

fn signed(time: Nanos) -> i64 {
    i64::try_from(time.as_ns()).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_exact_and_followed() {
        assert_eq!([0, 1, 4, 9].map(exact_root), [u32::MAX, u32::MAX, 1 << 31, 1_431_655_765]);
        let mut cobalt = Cobalt::default();
        for count in 1..5_000 {
            cobalt.count = count;
            cobalt.refine_root();
            let off = f64::from(cobalt.root) / 4_294_967_296.0 * f64::from(count).sqrt() - 1.0;
            assert!(off.abs() < 0.002, "{count}: {off}");
        }
    }
}
