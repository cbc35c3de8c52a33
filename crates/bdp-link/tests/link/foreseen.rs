//! What a link says of what is to come: nothing comes out before.

use bdp_link::{End, Link};
use bdp_model::units::Nanos;
use proptest::prelude::*;

use crate::arbitrary::{self, Arrival};
use crate::{drain, numbered};

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_comes_out_before_it_is_foreseen(
        config in arbitrary::link(),
        seed: u64,
        arrivals in prop::collection::vec(arbitrary::arrival(), 1..60),
    ) {
        let mut link = Link::new(&config, seed);
        let mut now = Nanos::ZERO;
        for (n, Arrival { from, bytes, gap }) in (0u64..).zip(arrivals) {
            now += gap;
            while link.next_event().is_some_and(|at| at <= now) {
                link.pop(now);
            }
            let packet = numbered(n, bytes);
            let soonest = link.soonest(from, &packet, now);
            link.enqueue(from, packet.clone(), now);
            let departures = drain(&mut link.clone());
            for to in [End::A, End::B] {
                let foreseen: Vec<_> = link.upcoming(to).collect();
                prop_assert!(foreseen.is_sorted_by_key(|(at, _)| *at), "{foreseen:?}");
                let come: Vec<_> = departures.iter().filter(|d| d.to == to).collect();
                prop_assert!(!foreseen.is_empty() || come.is_empty());
                // One by one where packets are known, else none before the one moment.
                for (i, departure) in come.iter().enumerate() {
                    let (at, packet) = foreseen[i.min(foreseen.len() - 1)];
                    prop_assert!(departure.due >= at, "{departure:?} before {at:?}");
                    prop_assert!(packet.is_none_or(|packet| packet.data == departure.packet.data));
                }
            }
            let same = departures.iter().filter(|d| d.to == from.other() && d.packet.data[..8] == packet.data[..8]);
            prop_assert!(same.map(|d| d.due).min().is_none_or(|due| due >= soonest));
        }
    }
}

#[test]
fn on_a_free_wire_what_is_foreseen_is_what_comes() {
    use bdp_model::link::DirectionConfig;
    let delay = Nanos::millis(3);
    let mut link = Link::new(&crate::symmetric(DirectionConfig { delay, ..crate::wire(8_000_000) }), 1);
    let packet = numbered(0, 1000);
    assert_eq!(link.soonest(End::A, &packet, Nanos::micros(5)), Nanos::micros(4005));
    for n in 0..3 {
        link.enqueue(End::A, numbered(n, 1000), Nanos::micros(5));
    }
    let at: Vec<_> = link.upcoming(End::B).map(|(at, packet)| (at, packet.map(crate::number))).collect();
    let ms = |n: u64| Nanos::micros(5 + 1000 * n);
    assert_eq!(at, [(ms(4), Some(0)), (ms(5), Some(1)), (ms(6), Some(2))]);
    assert_eq!(link.upcoming(End::A).count(), 0);
    // Behind what is on the wire; what waits is not foreseen for it.
    assert_eq!(link.soonest(End::A, &packet, Nanos::micros(5)), ms(5));
}
