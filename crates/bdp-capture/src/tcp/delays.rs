//! How much longer than the least each segment of the other end was on its way, by the timestamps that it carries: what a path whose delay varies takes of a turn.

/// A clock of timestamps that ticks each millisecond, as most do; others are not known.
const TICK_NS: u64 = 1_000_000;
/// What the least is of: two clocks drift apart.
const SPAN_NS: u64 = 10_000_000_000;
/// From so long on it is known whether the clock ticks so.
const KNOWN_NS: u64 = 300_000_000;
/// The latest of them weighs so much in the mean.
const LATEST: u64 = 8;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Delays {
    first: Option<(u32, u64)>,
    /// When the span began, the least of it, and that of the span before; as the time of arrival before that of the timestamp.
    span: (u64, i64, i64),
    mean: u64,
    latest: u64,
    is_known: bool,
}

impl Delays {
    /// A segment with this timestamp arrives.
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

    /// What the way there and back took beyond the least, where the latest segment came back: that way is known, and the other one is as the way back usually is.
    pub(super) const fn of_turn(&self) -> u64 {
        if self.is_known { self.latest + self.mean } else { 0 }
    }
}
