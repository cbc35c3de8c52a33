//! No packet and no byte appears or disappears, and none overtakes another unless it may.

use bdp_link::{Departure, DropCause, End, Fate, Link};
use bdp_model::units::Nanos;
use proptest::prelude::*;

use crate::arbitrary::{self, Arrival};
use crate::{assert_conserved, drain, number, numbered};

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
    copies: u64,
    held_back: u64,
    popped: Vec<(u64, usize)>,
    bytes_in: u64,
    last_due: Nanos,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn in_is_out_and_dropped_and_queued(
        config in arbitrary::link(),
        seed: u64,
        steps in prop::collection::vec(step(), 1..400),
    ) {
        let mut link = Link::new(&config, seed);
        let mut seen = [Seen::default(), Seen::default()];
        let mut now = Nanos::ZERO;
        for (n, step) in (0u64..).zip(steps) {
            match step {
                Step::Arrive(Arrival { from, bytes, gap }) => {
                    now += gap;
                    let side = &mut seen[usize::from(from == End::B)];
                    side.bytes_in += bytes as u64;
                    let verdict = link.enqueue(from, numbered(n, bytes), now);
                    side.copies += u64::from(verdict.copy.is_some());
                    for fate in std::iter::once(verdict.fate).chain(verdict.copy) {
                        match fate {
                            Fate::Queued { held_back, .. } => {
                                side.admitted.push((n, bytes));
                                side.held_back += u64::from(held_back);
                            }
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
        for ((from, direction), mut side) in
            [(End::A, &config.forward), (End::B, &config.reverse)].into_iter().zip(seen)
        {
            let counters = link.counters(from);
            prop_assert_eq!(link.queued(from), 0);
            prop_assert_eq!(DropCause::ALL.map(|cause| counters.dropped(cause)).iter().sum::<u64>(), side.dropped);
            prop_assert_eq!(counters.packets_in + counters.duplicated, side.admitted.len() as u64 + side.dropped);
            prop_assert_eq!(counters.duplicated, side.copies);
            prop_assert_eq!((counters.held_back, counters.marked), (side.held_back, 0));
            prop_assert_eq!(counters.bytes_in, side.bytes_in);
            prop_assert_eq!(counters.bytes_out, side.popped.iter().map(|(_, b)| *b as u64).sum::<u64>());
            // All that were admitted, whole, and in the order of entry where nothing may overtake.
            if direction.reorder.is_some() || direction.jitter.as_ref().is_some_and(|j| j.reorder) {
                side.popped.sort_unstable();
                side.admitted.sort_unstable();
            }
            prop_assert_eq!(side.popped, side.admitted);
        }
    }

    /// When it is asked for, and how often, changes nothing but when it is noticed.
    #[test]
    fn departures_follow_from_arrivals_alone(
        config in arbitrary::link(),
        seed: u64,
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let mut punctual = Link::new(&config, seed);
        let mut idle = punctual.clone();
        let mut asked = punctual.clone();
        let (mut early, mut later) = (Vec::new(), Vec::new());
        let mut now = Nanos::ZERO;
        for (n, step) in (0u64..).zip(steps) {
            match step {
                Step::Arrive(Arrival { from, bytes, gap }) => {
                    now += gap;
                    while let Some(at) = punctual.next_event().filter(|at| *at <= now) {
                        early.extend(punctual.pop(at));
                    }
                    let verdict = punctual.enqueue(from, numbered(n, bytes), now);
                    prop_assert_eq!(idle.enqueue(from, numbered(n, bytes), now), verdict);
                    prop_assert_eq!(asked.enqueue(from, numbered(n, bytes), now), verdict);
                }
                Step::Pop(wait, most) => {
                    now += wait;
                    later.extend((0..most).filter_map(|_| asked.pop(now)));
                }
            }
        }
        early.extend(drain(&mut punctual));
        later.extend(drain(&mut asked));
        let unasked = drain(&mut idle);
        for to in [End::A, End::B] {
            let of = |all: &[Departure]| all.iter().filter(|d| d.to == to).cloned().collect::<Vec<_>>();
            prop_assert_eq!(of(&early), of(&unasked));
            prop_assert_eq!(of(&later), of(&unasked));
        }
    }
}

fn pop(link: &mut Link, seen: &mut [Seen; 2], now: Nanos) -> Result<(), TestCaseError> {
    let next = link.next_event();
    let Some(departure) = link.pop(now) else {
        // What was to happen by now has happened, be it only that who sends was decided.
        let after = link.next_event();
        prop_assert!(after.is_none_or(|due| due > now), "due at {:?} and not popped at {:?}", after, now);
        return Ok(());
    };
    prop_assert!(next.is_some_and(|next| next <= departure.due));
    prop_assert!(departure.due <= now);
    let side = &mut seen[usize::from(departure.to == End::A)];
    prop_assert!(departure.due >= side.last_due);
    side.last_due = departure.due;
    side.popped.push((number(&departure.packet), departure.packet.data.len()));
    Ok(())
}
