//! No packet and no byte appears or disappears, and none overtakes another.

use bdp_link::{End, Fate, Link};
use bdp_model::link::LinkConfig;
use bdp_model::units::Nanos;
use proptest::prelude::*;

use crate::arbitrary::{self, Arrival};
use crate::{assert_conserved, number, numbered};

#[derive(Debug, Clone)]
enum Step {
    Arrive(Arrival),
    /// Time passes and up to so many packets are popped, due or not.
    Pop(Nanos, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => arbitrary::arrival().prop_map(Step::Arrive),
        2 => (0..5_000_000u64, 0..20usize).prop_map(|(wait, n)| Step::Pop(Nanos(wait), n)),
    ]
}

/// What the test itself saw of one direction.
#[derive(Default)]
struct Seen {
    admitted: Vec<(u64, usize)>,
    dropped: u64,
    popped: Vec<(u64, usize)>,
    bytes_in: u64,
    last_due: Nanos,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn in_is_out_and_dropped_and_queued(
        forward in arbitrary::direction(),
        reverse in arbitrary::direction(),
        seed: u64,
        steps in prop::collection::vec(step(), 1..400),
    ) {
        let mut link = Link::new(&LinkConfig { forward, reverse, ..LinkConfig::default() }, seed);
        let mut seen = [Seen::default(), Seen::default()];
        let mut now = Nanos::ZERO;
        for (n, step) in (0u64..).zip(steps) {
            match step {
                Step::Arrive(Arrival { from, bytes, gap }) => {
                    now += gap;
                    let side = &mut seen[usize::from(from == End::B)];
                    side.bytes_in += bytes as u64;
                    let verdict = link.enqueue(from, numbered(n, bytes), now);
                    for fate in std::iter::once(verdict.fate).chain(verdict.copy) {
                        match fate {
                            Fate::Queued { .. } => side.admitted.push((n, bytes)),
                            Fate::Dropped(_) => side.dropped += 1,
                        }
                    }
                }
                Step::Pop(wait, most) => {
                    now += wait;
                    for _ in 0..most {
                        pop(&mut link, &mut seen, now)?;
                    }
                }
            }
            assert_conserved(&link);
        }
        while let Some(due) = link.next_event() {
            now = now.max(due);
            pop(&mut link, &mut seen, now)?;
            assert_conserved(&link);
        }
        for (from, side) in [End::A, End::B].into_iter().zip(seen) {
            let counters = link.counters(from);
            prop_assert_eq!(link.queued(from), 0);
            prop_assert_eq!(counters.lost + counters.queue_dropped, side.dropped);
            prop_assert_eq!(counters.packets_in, side.admitted.len() as u64 + side.dropped);
            prop_assert_eq!(counters.bytes_in, side.bytes_in);
            prop_assert_eq!(counters.bytes_out, side.popped.iter().map(|(_, b)| *b as u64).sum::<u64>());
            // All that were admitted, whole, in the order of entry.
            prop_assert_eq!(side.popped, side.admitted);
        }
    }
}

fn pop(link: &mut Link, seen: &mut [Seen; 2], now: Nanos) -> Result<(), TestCaseError> {
    let next = link.next_event();
    let Some(departure) = link.pop(now) else {
        prop_assert!(next.is_none_or(|due| due > now), "due at {:?} and not popped at {:?}", next, now);
        return Ok(());
    };
    prop_assert_eq!(Some(departure.due), next);
    prop_assert!(departure.due <= now);
    let side = &mut seen[usize::from(departure.to == End::A)];
    prop_assert!(departure.due >= side.last_due);
    side.last_due = departure.due;
    side.popped.push((number(&departure.packet), departure.packet.data.len()));
    Ok(())
}
