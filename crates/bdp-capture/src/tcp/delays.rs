//! Additional delay of the other end's segments beyond the minimum, from their timestamps: what a path of varying delay adds to a turn.

/// Tick of the timestamp clock: one millisecond, as most have; others are not recognised.
const TICK_NS: u64 = 1_000_000;
/// Time over which the minimum is taken, because the clocks drift apart.
const SPAN_NS: u64 = 10_000_000_000;
/// Time after which the tick of the clock is known.
const KNOWN_NS: u64 = 300_000_000;
/// Weight of the latest value in the mean.
const LATEST: u64 = 8;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Delays {
    first: Option<(u32, u64)>,
    /// Start of the current span, its minimum, and that of the previous span; each is arrival time minus timestamp.
    span: (u64, i64, i64),
    mean: u64,
    latest: u64,
    is_known: bool,
}

impl Delays {
    /// Adds a segment with this timestamp.
    pub(super) fn add(&mut self, now: u64, stamp: u32) {
        let Some((first, from)) = self.first else {
            self.first = Some((stamp, now));
            self.span = (now, 0, 0);
            return;
        };
        let ticks = stamp.wrapping_sub(first) as i32;
        let (since, clock) = (now.saturating_sub(from), i64::from(ticks) * TICK_NS as i64);
        let delay = since as i64 - clock;
        if now.saturating_sub(self.span.0) >= SPAN_NS {
            self.span = (now, delay, self.span.1);
        }
        self.span.1 = self.span.1.min(delay);
        if since >= KNOWN_NS {
            self.is_known = delay.unsigned_abs() < since / 4;
        }
        let above = (delay - self.span.1.min(self.span.2)) as u64;
        self.latest = above.saturating_sub(TICK_NS);
        self.mean = self.mean - self.mean / LATEST + self.latest / LATEST;
    }

    /// Returns the round trip's delay beyond the minimum for the latest segment: measured on the way back, and taken as usual for the way there.
    pub(super) const fn of_turn(&self) -> u64 {
        if self.is_known { self.latest + self.mean } else { 0 }
    }
}
