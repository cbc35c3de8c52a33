//! Probes crossing one direction of a link.

use std::collections::VecDeque;

use bdp_wire::probe::Probe;

/// Maximum number of remembered probes inside: more than any probe order has in flight.
const MOST_INSIDE: usize = 4096;

/// A probe that crossed, timed by the machine's monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crossing {
    /// The probe.
    pub probe: Probe,
    /// When the driver read it.
    pub read_ns: u64,
    /// When it was due by the link's arithmetic.
    pub due_ns: u64,
    /// When the driver delivered it.
    pub released_ns: u64,
}

/// Probes of one direction, inside and crossed.
#[derive(Debug, Default)]
pub(crate) struct Crossings {
    inside: VecDeque<(Probe, u64)>,
    through: Vec<Crossing>,
}

impl Crossings {
    pub(crate) fn enter(&mut self, probe: Probe, now_ns: u64) {
        if self.inside.len() == MOST_INSIDE {
            // The oldest was lost long ago.
            self.inside.pop_front();
        }
        self.inside.push_back((probe, now_ns));
    }

    /// Records the release of a probe; copies of crossed probes, and those that never entered, are ignored.
    pub(crate) fn release(&mut self, probe: Probe, due_ns: u64, released_ns: u64) {
        let Some(i) = self.inside.iter().position(|(inside, _)| *inside == probe) else { return };
        if let Some((probe, read_ns)) = self.inside.remove(i) {
            self.through.push(Crossing { probe, read_ns, due_ns, released_ns });
        }
    }

    pub(crate) fn into_through(self) -> Vec<Crossing> {
        self.through
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_matched_though_some_are_lost_overtaken_or_copied() {
        let probe = |number| Probe { number, sent_at_ns: 1000 + number };
        let mut crossings = Crossings::default();
        (0..4).for_each(|n| crossings.enter(probe(n), 10 * n));
        // Probe 1 is lost; 3 overtakes 2; 0 is copied; 9 never entered.
        for n in [0, 0, 3, 2, 9] {
            crossings.release(probe(n), 100 + n, 200 + n);
        }
        let through = crossings.into_through();
        assert_eq!(through.iter().map(|c| c.probe.number).collect::<Vec<_>>(), [0, 3, 2]);
        assert_eq!(through[1], Crossing { probe: probe(3), read_ns: 30, due_ns: 103, released_ns: 203 });
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut crossings = Crossings::default();
        for number in 0..3 * MOST_INSIDE as u64 {
            crossings.enter(Probe { number, sent_at_ns: 0 }, 0);
        }
        assert_eq!(crossings.inside.len(), MOST_INSIDE);
    }
}
