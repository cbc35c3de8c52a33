//! The wire: one packet at a time, exact to the fraction of a nanosecond.
//!
//! At `rate` bit/s a packet of `b` bits takes b x 10^9 / rate ns, which is seldom whole. Time on the wire is
//! therefore counted in units of 1/rate ns, in which a bit takes exactly 10^9. Finishing times are cut to whole
//! nanoseconds; what was cut off is carried to the next packet for as long as the wire stays busy.

use bdp_model::units::{Nanos, Rate};

/// Units of 1/rate ns that one bit takes.
pub(crate) const WORK_PER_BIT: u128 = 1_000_000_000;

/// The wire's state: when it is free, as `free + remainder / rate` ns.
#[derive(Debug, Clone)]
pub(crate) struct Serialiser {
    rate: Option<Rate>,
    free: Nanos,
    /// In units of 1/rate ns; below the rate.
    remainder: u64,
}

/// A packet's time on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    /// End of serialisation, cut to whole nanoseconds.
    pub finish: Nanos,
    /// What was cut off, in units of 1/rate ns.
    remainder: u64,
    /// From arrival to the end of serialisation, in units of 1/rate ns; zero without a rate.
    pub work: u128,
}

impl Serialiser {
    pub(crate) fn new(rate: Option<Rate>) -> Self {
        Self { rate, free: Nanos::ZERO, remainder: 0 }
    }

    /// Whether serialisation takes no time.
    pub(crate) fn is_instant(&self) -> bool {
        self.rate.is_none()
    }

    /// The slot that a packet arriving at `now` would get; `None` where it would not end within the clock's range.
    pub(crate) fn plan(&self, wire_bits: u64, now: Nanos) -> Option<Slot> {
        // At now == free the wire is busy for the remainder of that nanosecond, so the remainder is kept.
        let (start, carried) = if now <= self.free { (self.free, self.remainder) } else { (now, 0) };
        let Some(rate) = self.rate else {
            return Some(Slot { finish: start, remainder: 0, work: 0 });
        };
        let rate = u128::from(rate.as_bps());
        let work = u128::from(wire_bits) * WORK_PER_BIT + u128::from(carried);
        let took = u64::try_from(work.checked_div(rate)?).ok()?;
        let finish = Nanos(start.as_ns().checked_add(took)?);
        // Less than the rate, which came from a u64.
        let remainder = (work % rate) as u64;
        let whole = u128::from(finish.saturating_sub(now).as_ns()) * rate;
        Some(Slot { finish, remainder, work: whole.saturating_add(u128::from(remainder)) })
    }

    /// Gives the wire to the packet of this slot.
    pub(crate) fn occupy(&mut self, slot: &Slot) {
        self.free = slot.finish;
        self.remainder = slot.remainder;
    }

    /// Sends a packet whose turn has come at `start`, which is no sooner than the wire is free; gives the end of its
    /// serialisation, at the end of the clock where it would be beyond.
    pub(crate) fn send(&mut self, wire_bits: u64, start: Nanos) -> Nanos {
        let never = Slot { finish: Nanos(u64::MAX), remainder: 0, work: 0 };
        let slot = self.plan(wire_bits, start).unwrap_or(never);
        self.occupy(&slot);
        slot.finish
    }

    /// Whether what was sent has left the wire.
    pub(crate) fn is_free(&self, now: Nanos) -> bool {
        self.free <= now
    }

    /// The first whole nanosecond at which the wire is free to the last fraction.
    pub(crate) fn ready(&self) -> Nanos {
        self.free + Nanos(u64::from(self.remainder > 0))
    }

    /// What is left on the wire, in units of 1/rate ns.
    pub(crate) fn remaining(&self, now: Nanos) -> u128 {
        let Some(rate) = self.rate.filter(|_| self.free > now) else { return 0 };
        let whole = u128::from(self.free.saturating_sub(now).as_ns()) * u128::from(rate.as_bps());
        whole.saturating_add(u128::from(self.remainder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(wire: &mut Serialiser, bits: u64, now: Nanos) -> Nanos {
        let slot = wire.plan(bits, now).expect("ends within the clock's range");
        wire.occupy(&slot);
        slot.finish
    }

    #[test]
    fn no_drift_at_awkward_rates() {
        for (rate, bits) in
            [(3, 8), (7, 1), (999_999_937, 12_304), (33_333_333, 12_304), (2_147_483_659, 320)]
        {
            let mut wire = Serialiser::new(Some(Rate::bps(rate)));
            for n in 1..=10_000u64 {
                let exact = u128::from(n) * u128::from(bits) * 1_000_000_000 / u128::from(rate);
                assert_eq!(
                    u128::from(send(&mut wire, bits, Nanos::ZERO).as_ns()),
                    exact,
                    "packet {n} at {rate} bit/s"
                );
            }
        }
    }

    #[test]
    fn remainder_is_carried_by_an_arrival_at_the_very_end_and_forgotten_after_it() {
        // 1 bit at 3 bit/s takes 333,333,333 + 1/3 ns.
        let third = Nanos(333_333_333);
        let mut touching = Serialiser::new(Some(Rate::bps(3)));
        assert_eq!(send(&mut touching, 1, Nanos::ZERO), third);
        assert_eq!(send(&mut touching, 1, third), Nanos(666_666_666));
        assert_eq!(send(&mut touching, 1, Nanos(666_666_666)), Nanos(1_000_000_000));

        let mut idle = Serialiser::new(Some(Rate::bps(3)));
        assert_eq!(send(&mut idle, 1, Nanos::ZERO), third);
        assert_eq!(send(&mut idle, 1, third + Nanos(1)), Nanos(666_666_667));
        assert_eq!(send(&mut idle, 1, Nanos(666_666_668)), Nanos(1_000_000_001));
    }

    #[test]
    fn without_a_rate_it_takes_no_time() {
        let mut wire = Serialiser::new(None);
        assert_eq!(send(&mut wire, u64::MAX, Nanos(5)), Nanos(5));
        assert_eq!(send(&mut wire, 1, Nanos(5)), Nanos(5));
    }

    #[test]
    fn what_never_ends_is_refused() {
        assert_eq!(Serialiser::new(Some(Rate::bps(0))).plan(8, Nanos::ZERO), None);
        assert_eq!(Serialiser::new(Some(Rate::bps(1))).plan(u64::MAX, Nanos::ZERO), None);
        assert_eq!(Serialiser::new(Some(Rate::bps(1))).plan(1, Nanos(u64::MAX)), None);
        assert!(Serialiser::new(Some(Rate::bps(u64::MAX))).plan(u64::MAX, Nanos::ZERO).is_some());
    }
}
