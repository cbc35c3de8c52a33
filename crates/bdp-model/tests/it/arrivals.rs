//! The sliding bitmap and the transits against models that remember everything.

use std::collections::BTreeSet;

use bdp_model::statistics::arrivals::{Arrival, ArrivalCounts, Arrivals, Jitter, Transits};
use proptest::prelude::*;

/// Remembers every number for ever.
#[derive(Default)]
struct Naive {
    seen: BTreeSet<u64>,
    counts: ArrivalCounts,
}

impl Naive {
    fn note(&mut self, number: u64) -> Arrival {
        let highest = self.seen.last().copied();
        let next = highest.map_or(0, |h| h + 1);
        let behind = highest.map_or(0, |h| h.saturating_sub(number));
        if number < next && behind >= 1 << 20 {
            self.counts.stale += 1;
            return Arrival::Stale;
        }
        if !self.seen.insert(number) {
            self.counts.duplicated += 1;
            return Arrival::Duplicate;
        }
        self.counts.received += 1;
        self.counts.highest = self.seen.last().copied();
        if number >= next {
            return Arrival::New { gap: number - next };
        }
        self.counts.reordered += 1;
        self.counts.displacement_max = self.counts.displacement_max.max(behind);
        Arrival::Reordered
    }
}

/// Numbers as a bad path delivers them: mostly onwards, with steps back, copies, and leaps as wide as the window.
fn numbers() -> impl Strategy<Value = Vec<u64>> {
    let step = prop_oneof![
        8 => Just(1i64),
        3 => 2i64..200,
        2 => -200i64..=0,
        1 => (1i64 << 20) - 70..(1 << 20) + 70,
        1 => -(1i64 << 20) - 70..-(1 << 20) + 70,
    ];
    (0u64..100, prop::collection::vec(step, 1..400)).prop_map(|(start, steps)| {
        let mut at = start;
        let walk = steps.into_iter().map(|step| {
            at = at.saturating_add_signed(step);
            at
        });
        std::iter::once(start).chain(walk).collect()
    })
}

proptest! {
    #[test]
    fn the_bitmap_says_what_a_full_memory_says(numbers in numbers()) {
        let (mut map, mut naive) = (Arrivals::default(), Naive::default());
        for number in numbers {
            prop_assert_eq!(map.note(number), naive.note(number), "{}", number);
        }
        prop_assert_eq!(map.counts(), naive.counts);
    }

    #[test]
    fn quantiles_of_transits_are_those_of_the_sorted_values(
        offset in -(1i64 << 60)..1i64 << 60,
        near in prop::collection::vec(0i64..1_000_000, 1..500),
    ) {
        let mut transits = Transits::default();
        near.iter().for_each(|&n| transits.note(offset + n));
        let found = transits.summary().unwrap();
        let mut sorted = near.clone();
        sorted.sort_unstable();
        let exact = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1];
        // The origin is the smallest of the first 64.
        let origin = near.iter().take(64).copied().min().unwrap();
        prop_assert_eq!((found.p95.is_some(), found.p99.is_some()), (near.len() >= 20, near.len() >= 100));
        let resolved = [(Some(found.p50), 50), (found.p95, 95), (found.p99, 99)];
        for (got, percent) in resolved.into_iter().filter_map(|(got, percent)| Some((got?, percent))) {
            let (got, want) = (got - offset, exact(percent));
            prop_assert!((got - want).abs() <= (want - origin).abs() / 32 + 1, "{got} {want} {origin}");
        }
        prop_assert_eq!((found.count, found.min - offset), (near.len() as u64, sorted[0]));
        prop_assert_eq!(found.max - offset, *sorted.last().unwrap());
    }

    #[test]
    fn streams_merged_are_as_one(
        one in prop::collection::vec(-500_000i64..500_000, 0..200),
        other in prop::collection::vec(-500_000i64..500_000, 0..200),
    ) {
        let of = |values: &[i64]| {
            let mut transits = Transits::default();
            values.iter().for_each(|&v| transits.note(v));
            transits
        };
        let mut merged = of(&one);
        merged.merge(of(&other));
        let all = [one, other].concat();
        match (merged.summary(), of(&all).summary()) {
            (None, None) => prop_assert!(all.is_empty()),
            (Some(a), Some(b)) => {
                prop_assert_eq!((a.count, a.min, a.max), (b.count, b.min, b.max));
                prop_assert_eq!((a.p95.is_some(), a.p99.is_some()), (b.p95.is_some(), b.p99.is_some()));
                let percentiles = |s: &bdp_model::statistics::arrivals::TransitSummary| [Some(s.p50), s.p95, s.p99];
                for (a, b) in percentiles(&a).into_iter().flatten().zip(percentiles(&b).into_iter().flatten()) {
                    // A value goes through two histograms, each with an origin somewhere in the range.
                    prop_assert!((a - b).abs() <= 1_000_000 / 16, "{a} {b}");
                }
            }
            other => prop_assert!(false, "{other:?}"),
        }
    }
}

#[test]
fn a_number_that_nobody_sends_does_no_harm() {
    let mut map = Arrivals::default();
    assert_eq!(map.note(u64::MAX), Arrival::Stale);
    assert_eq!(map.note(5), Arrival::New { gap: 5 });
    assert_eq!(map.note(1 << 60), Arrival::New { gap: (1 << 60) - 6 });
    assert_eq!(map.note(5), Arrival::Stale);
    assert_eq!(map.note((1 << 60) - 1), Arrival::Reordered);
}

#[test]
fn jitter_is_that_of_the_rfc() {
    // Transits 10, 12, 9: D 2, then 3: J = 2/16, then J + (3 - J)/16.
    let mut jitter = Jitter::default();
    [10, 12, 9].into_iter().for_each(|t| jitter.note(t));
    let first = 2.0 / 16.0;
    assert!((jitter.ns() - (first + (3.0 - first) / 16.0)).abs() < 1e-12, "{}", jitter.ns());
}
