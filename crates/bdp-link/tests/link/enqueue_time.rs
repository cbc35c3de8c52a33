//! Drop-tail computed on arrival, as an oracle: first in, first out at one rate, so a packet's departure is known when it
//! comes. The link decides when the wire is free, and must agree to the nanosecond under every impairment.
//!
//! What is drawn does not depend on the queue, so a twin of the link without rate, limit and mark says what each packet
//! meets before the queue and behind the wire.

use std::collections::{BTreeMap, VecDeque};

use bdp_link::{Counters, Departure, End, Fate, Link, Packet, Verdict};
use bdp_model::link::{DirectionConfig, Jitter, LinkConfig, QueueLimit};
use bdp_model::units::{Nanos, Probability};
use proptest::prelude::*;

use crate::arbitrary::{self, Arrival};
use crate::{drain, symmetric};

const WORK_PER_BIT: u128 = 1_000_000_000;

/// One direction's queue and wire, and what follows from them.
#[derive(Default)]
struct Oracle {
    /// When the wire is free, cut to whole nanoseconds, and what was cut off, in units of 1/rate ns.
    free: (Nanos, u128),
    /// Ends of serialisation not yet past.
    finishes: VecDeque<Nanos>,
    queue_dropped: u64,
    queueing_max: Nanos,
    last_due: Nanos,
    /// Due time and number, in the order of the wire.
    due: Vec<(Nanos, u16)>,
}

impl Oracle {
    /// End of serialisation and whether the packet is marked; `None` where it finds no room.
    fn admit(&mut self, config: &DirectionConfig, ip_bytes: usize, now: Nanos) -> Option<(Nanos, bool)> {
        let (start, carried) = if now <= self.free.0 { self.free } else { (now, 0) };
        let Some(rate) = config.rate.map(|rate| u128::from(rate.as_bps())) else {
            self.free = (start, 0);
            return Some((start, false));
        };
        while self.finishes.front().is_some_and(|finish| *finish <= now) {
            self.finishes.pop_front();
        }
        let waiting = self.finishes.len() as u64;
        let own = (ip_bytes as u128 + u128::from(config.overhead_bytes)) * 8 * WORK_PER_BIT;
        let finish = start + Nanos(((own + carried) / rate) as u64);
        let remainder = (own + carried) % rate;
        let work = u128::from((finish - now).as_ns()) * rate + remainder;
        let bytes = |limit: bdp_model::ByteCount| u128::from(limit.as_bytes()) * 8 * WORK_PER_BIT;
        let room = match config.limit {
            QueueLimit::Packets(limit) => waiting < limit,
            QueueLimit::Bytes(limit) => work <= bytes(limit),
            QueueLimit::Unlimited => true,
        };
        if !room {
            return None;
        }
        (self.free, self.queueing_max) = ((finish, remainder), self.queueing_max.max(finish - now));
        self.finishes.push_back(finish);
        let congested = match config.ecn_threshold {
            Some(QueueLimit::Packets(packets)) => waiting >= packets,
            Some(QueueLimit::Bytes(limit)) => work - own >= bytes(limit),
            _ => false,
        };
        Some((finish, congested))
    }

    /// What becomes of a packet that the twin let pass with this fate, and that took so long there.
    fn fate(
        &mut self,
        config: &DirectionConfig,
        packet: &Packet,
        now: Nanos,
        twin: Fate,
        transit: Nanos,
    ) -> Fate {
        let Fate::Queued { held_back, .. } = twin else { return twin };
        let Some((finish, marked)) = self.admit(config, packet.data.len(), now) else {
            self.queue_dropped += 1;
            return Fate::Dropped(bdp_link::DropCause::Queue);
        };
        let overtaking = config.jitter.as_ref().is_some_and(|jitter| jitter.reorder);
        let mut due = finish + transit;
        if !overtaking && !held_back {
            due = due.max(self.last_due);
            self.last_due = due;
        }
        self.due.push((due, number(packet)));
        Fate::Queued { marked, held_back }
    }
}

/// An ECN-capable IPv4 packet with its number where nothing changes it.
fn packet(number: u16, bytes: usize) -> Packet {
    let mut data = vec![0; bytes.max(28)];
    (data[0], data[1]) = (0x45, 0b10);
    let length = data.len() as u16;
    data[2..4].copy_from_slice(&length.to_be_bytes());
    data[4..6].copy_from_slice(&number.to_be_bytes());
    Packet::from(data)
}

fn number(packet: &Packet) -> u16 {
    u16::from_be_bytes([packet.data[4], packet.data[5]])
}

/// The same without anything that depends on the queue.
fn without_queue(config: &DirectionConfig, duplicate: Probability) -> LinkConfig {
    let jitter = config.jitter.clone().map(|jitter| Jitter { reorder: true, ..jitter });
    let limit = QueueLimit::Unlimited;
    symmetric(DirectionConfig { rate: None, limit, ecn_threshold: None, jitter, duplicate, ..config.clone() })
}

/// From arrival to departure of every packet that passes, by number and end.
fn transits(link: &mut Link, arrived: &[Nanos]) -> BTreeMap<(u16, bool), Vec<Nanos>> {
    let mut all = BTreeMap::<_, Vec<_>>::new();
    for Departure { to, due, packet, .. } in drain(link) {
        let n = number(&packet);
        all.entry((n, to == End::A)).or_default().push(due - arrived[usize::from(n)]);
    }
    all
}

fn check(config: &DirectionConfig, seed: u64, arrivals: &[Arrival]) -> Result<(), TestCaseError> {
    let mut link = Link::new(&symmetric(config.clone()), seed);
    let mut twin = Link::new(&without_queue(config, config.duplicate), seed);
    let mut originals = Link::new(&without_queue(config, Probability::default()), seed);
    let (mut now, mut arrived, mut verdicts) = (Nanos::ZERO, Vec::new(), Vec::new());
    for (n, arrival) in (0..).zip(arrivals) {
        now += arrival.gap;
        arrived.push(now);
        let [verdict, expected] =
            [&mut link, &mut twin].map(|link| link.enqueue(arrival.from, packet(n, arrival.bytes), now));
        originals.enqueue(arrival.from, packet(n, arrival.bytes), now);
        verdicts.push((verdict, expected));
    }
    let [both, alone] = [&mut twin, &mut originals].map(|link| transits(link, &arrived));
    let mut oracles = [Oracle::default(), Oracle::default()];
    for (n, ((verdict, twin), arrival)) in (0u16..).zip(verdicts.into_iter().zip(arrivals)) {
        let key = (n, arrival.from == End::B);
        let original = alone.get(&key).map_or(Nanos::ZERO, |all| all[0]);
        // Of the two that the twin let out, the one that is not the original's; where the policer took one, what is left.
        let mut others = both.get(&key).cloned().unwrap_or_default();
        if matches!(twin.fate, Fate::Queued { .. })
            && let Some(at) = others.iter().position(|transit| *transit == original)
        {
            others.remove(at);
        }
        let oracle = &mut oracles[usize::from(key.1)];
        let packet = packet(n, arrival.bytes);
        let expected = Verdict {
            fate: oracle.fate(config, &packet, arrived[usize::from(n)], twin.fate, original),
            corrupted: twin.corrupted,
            copy: twin.copy.map(|fate| {
                let transit = others.first().copied().unwrap_or(Nanos::ZERO);
                oracle.fate(config, &packet, arrived[usize::from(n)], fate, transit)
            }),
        };
        prop_assert_eq!(verdict, expected, "packet {}", n);
    }
    let departures = drain(&mut link);
    for (from, mut oracle) in [End::A, End::B].into_iter().zip(oracles) {
        let all: Vec<_> =
            departures.iter().filter(|d| d.to != from).map(|d| (d.due, number(&d.packet))).collect();
        oracle.due.sort_by_key(|(due, _)| *due);
        prop_assert_eq!(all, oracle.due);
        let &Counters { queue_dropped, queueing_max, .. } = link.counters(from);
        prop_assert_eq!((queue_dropped, queueing_max), (oracle.queue_dropped, oracle.queueing_max));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_dequeue(
        // Where the policer takes the original, the copy's draws are not those of a packet alone.
        config in arbitrary::direction().prop_map(|d| DirectionConfig { policer: None, ..d }),
        seed: u64,
        arrivals in prop::collection::vec(arbitrary::arrival(), 1..250),
    ) {
        check(&config, seed, &arrivals)?;
    }
}
