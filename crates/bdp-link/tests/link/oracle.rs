//! The whole link against a slow and obvious one: absolute rational instants in u128, every packet kept for ever.

use bdp_link::{DropCause, End, Link, Verdict};
use bdp_model::link::{DirectionConfig, Loss, QueueLimit};
use bdp_model::units::{ByteCount, Nanos};
use proptest::prelude::*;

use crate::arbitrary::{self, Arrival};
use crate::{drain, number, numbered, symmetric};

/// One direction, written from the definitions. Instants are numerators over the rate.
#[derive(Default)]
struct Oracle {
    index: u64,
    /// What the policer let pass and when, in units of 10^-9 bit.
    policed: Vec<(u128, u128)>,
    /// End of serialisation of every admitted packet.
    finished: Vec<u128>,
    due: Vec<(u64, Nanos)>,
    queueing_max: u128,
}

impl Oracle {
    fn enqueue(&mut self, config: &DirectionConfig, number: u64, bytes: usize, now: Nanos) -> Verdict {
        let index = self.index;
        self.index += 1;
        if config.drop_above.is_some_and(|most| bytes > most as usize) {
            return Verdict::dropped(DropCause::Size);
        }
        let lost = match &config.loss {
            Loss::Periodic(n) => *n > 0 && (index + 1).is_multiple_of(*n),
            Loss::List(indices) => indices.contains(&index),
            _ => false,
        };
        if lost {
            return Verdict::dropped(DropCause::Loss);
        }
        let now = u128::from(now.as_ns());
        if let Some(policer) = config.policer {
            // The arrival curve: over no span may more pass than the burst and what the rate allows.
            self.policed.push((now, 0));
            let own = bytes as u128 * 8_000_000_000;
            let mut passed = 0;
            for (since, bits) in self.policed.iter().rev() {
                passed += bits;
                let allowed = u128::from(policer.burst.as_bytes()) * 8_000_000_000
                    + u128::from(policer.rate.as_bps()) * (now - since);
                if passed + own > allowed {
                    return Verdict::dropped(DropCause::Policer);
                }
            }
            self.policed.push((now, own));
        }
        let Some(rate) = config.rate.map(|r| u128::from(r.as_bps())) else {
            self.due.push((number, Nanos(now as u64) + config.delay));
            return Verdict::QUEUED;
        };
        let bits = (bytes as u128 + u128::from(config.overhead_bytes)) * 8;
        let free = self.finished.last().copied().unwrap_or(0);
        let finish = free.max(now * rate) + bits * 1_000_000_000;
        let room = match config.limit {
            QueueLimit::Packets(limit) => {
                let waiting = self.finished.iter().filter(|f| **f / rate > now).count();
                (waiting as u64) < limit
            }
            QueueLimit::Bytes(limit) => {
                finish - now * rate <= u128::from(limit.as_bytes()) * 8 * 1_000_000_000
            }
            QueueLimit::Unlimited => true,
        };
        if !room {
            return Verdict::dropped(DropCause::Queue);
        }
        self.finished.push(finish);
        self.queueing_max = self.queueing_max.max(finish / rate - now);
        self.due.push((number, Nanos((finish / rate) as u64) + config.delay));
        Verdict::QUEUED
    }
}

fn check(config: &DirectionConfig, arrivals: &[Arrival]) -> Result<(), TestCaseError> {
    let mut link = Link::new(&symmetric(config.clone()), 1);
    let mut oracles = [Oracle::default(), Oracle::default()];
    let mut now = Nanos::ZERO;
    for (n, arrival) in (0u64..).zip(arrivals) {
        now += arrival.gap;
        let expected = oracles[usize::from(arrival.from == End::B)].enqueue(config, n, arrival.bytes, now);
        let verdict = link.enqueue(arrival.from, numbered(n, arrival.bytes), now);
        prop_assert_eq!(verdict, expected, "packet {} at {:?}", n, now);
    }
    let departures = drain(&mut link);
    for (from, oracle) in [End::A, End::B].into_iter().zip(&oracles) {
        prop_assert_eq!(u128::from(link.counters(from).queueing_max.as_ns()), oracle.queueing_max);
    }
    for (to, oracle) in [End::B, End::A].into_iter().zip(oracles) {
        let due: Vec<_> =
            departures.iter().filter(|d| d.to == to).map(|d| (number(&d.packet), d.due)).collect();
        prop_assert_eq!(due, oracle.due);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_definitions(
        config in arbitrary::certain(),
        arrivals in prop::collection::vec(arbitrary::arrival(), 1..300),
    ) {
        // The oracle knows no random draws; they have their own tests.
        check(&config, &arrivals)?;
    }
}

/// Arrivals at the very ends of serialisations, where a remainder and a nanosecond meet.
#[test]
fn agrees_where_arrivals_touch_departures() {
    for rate_bps in [3, 7, 1_000_003, 99_999_989] {
        for limit in [QueueLimit::Packets(1), QueueLimit::Packets(2), QueueLimit::Bytes(ByteCount::bytes(19))]
        {
            let config = DirectionConfig { limit, ..crate::wire(rate_bps) };
            for offset in [-1i64, 0, 1] {
                let arrivals: Vec<_> = (1..200u64)
                    .scan(0, |last, n| {
                        let end = n as i64 * (80_000_000_000 / rate_bps) as i64 + offset * (n % 2) as i64;
                        let gap = Nanos((end - *last) as u64);
                        *last = end;
                        Some(Arrival { from: End::A, bytes: 10, gap })
                    })
                    .collect();
                check(&config, &arrivals).expect("agreement");
            }
        }
    }
}
