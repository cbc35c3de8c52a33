//! Yields the processor between two writes, as long as others give it back.
//!
//! A receiver on the same processor reads the bytes while they are still in the cache, and is done within
//! microseconds. A neighbour that computes keeps the processor for its whole slice: next to several of these, a
//! thread that yields after each of a thousand streams would not write for seconds, nor read its own figures.

use bdp_sys::clock;

/// Longer than a receiver needs for the data of one turn.
const LONG_NS: u64 = 2_000_000;
/// How long a thread keeps the processor after it got it back late; doubled each further time.
const SHORTEST_PAUSE_NS: u64 = 20_000_000;
/// And at most.
const LONGEST_PAUSE_NS: u64 = 1_000_000_000;

/// Decides whether to yield, by past results.
#[derive(Debug, Default)]
pub struct Yielding {
    pause_ns: u64,
    until_ns: u64,
}

impl Yielding {
    /// Yields to other threads now, if that pays off.
    pub fn yield_now(&mut self) {
        let before_ns = clock::monotonic_ns();
        if self.pays(before_ns) {
            std::thread::yield_now();
            self.note(before_ns, clock::monotonic_ns());
        }
    }

    const fn pays(&self, now_ns: u64) -> bool {
        now_ns >= self.until_ns
    }

    fn note(&mut self, before_ns: u64, now_ns: u64) {
        if now_ns - before_ns < LONG_NS {
            self.pause_ns = 0;
            return;
        }
        self.pause_ns = (self.pause_ns * 2).clamp(SHORTEST_PAUSE_NS, LONGEST_PAUSE_NS);
        self.until_ns = now_ns + self.pause_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_receiver_that_takes_its_turn_is_always_let_run() {
        let mut yielding = Yielding::default();
        for at_ns in (0..100 * MS).step_by(MS as usize) {
            assert!(yielding.pays(at_ns));
            yielding.note(at_ns, at_ns + MS / 2);
        }
    }

    /// Ten turns of 64 streams, 100 us each, next to neighbours that keep the processor for this long each time they
    /// get it.
    fn turns_ns(kept_ns: u64) -> u64 {
        let (mut yielding, mut now_ns) = (Yielding::default(), 7);
        for _ in 0..640 {
            now_ns += MS / 10;
            if yielding.pays(now_ns) {
                yielding.note(now_ns, now_ns + kept_ns);
                now_ns += kept_ns;
            }
        }
        now_ns
    }

    #[test]
    fn neighbours_that_compute_get_what_the_scheduler_gives_them_and_no_more() {
        // Without a pause it is 640 times as long as they keep it: 64 s.
        assert!(turns_ns(100 * MS) < 500 * MS, "{}", turns_ns(100 * MS));
        assert!(turns_ns(MS) < 800 * MS, "{}", turns_ns(MS));
    }

    #[test]
    fn pauses_grow_as_long_as_yields_are_long_and_end_with_the_first_short_one() {
        let mut yielding = Yielding::default();
        let mut now_ns = 0;
        let mut pauses = Vec::new();
        for _ in 0..8 {
            yielding.note(now_ns, now_ns + 3 * MS);
            now_ns += 3 * MS;
            pauses.push(yielding.pause_ns / MS);
            assert!(!yielding.pays(now_ns + yielding.pause_ns - 1));
            now_ns += yielding.pause_ns;
            assert!(yielding.pays(now_ns));
        }
        assert_eq!(pauses, [20, 40, 80, 160, 320, 640, 1000, 1000]);
        yielding.note(now_ns, now_ns + MS);
        yielding.note(now_ns, now_ns + 3 * MS);
        assert_eq!(yielding.pause_ns, 20 * MS);
    }
}
