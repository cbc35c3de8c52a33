//! Comparison of two captures of one path, connection by connection.

use std::collections::HashSet;

use bdp_model::capture::pair::{
    BetweenDirection, CapturePair, Change, Changed, ChangedValue, ClockBetween, OrderBy, PairedConnection,
};
use bdp_model::capture::{CaptureSummary, FlowProtocol};
use bdp_model::statistics::median;

use super::changes;
use super::clock::{self, Delays};
use super::counts::{self, Ran};
use super::direction::Direction;
use super::identify::{self, LoggedFlow, Same};
use super::log::SegmentLog;
use super::matching::{Matched, matched};
use super::numbered::{Numbered, acks, bases, numbered, offsets};

/// Difference below which two microsecond clocks differ by chance.
const ORDER_MIN_NS: f64 = 2_000.0;
/// Ratio of round trips to an end below which a place is nearer.
const NEARER: f64 = 0.8;
/// Fewest packets without payload that show whether they are forwarded.
const ACKS_MIN: usize = 20;
/// Share of forwarded ones below which something in between acknowledges.
const PASSED_ON: f64 = 0.5;
/// Most delays examined to find the order.
const COMPARED: usize = 1_000;

/// A capture to compare.
#[derive(Debug)]
pub struct Place<'a> {
    /// Summary of the capture.
    pub summary: &'a CaptureSummary,
    /// Flows, in the order of its table.
    pub flows: Vec<LoggedFlow<'a>>,
}

/// Compares two captures; `None` if they have no connection in common.
pub fn compare(places: [&Place<'_>; 2]) -> Option<CapturePair> {
    let pairs = identify::same(&places[0].flows, &places[1].flows);
    let all: Vec<Compared<'_>> = pairs.into_iter().filter_map(|same| Compared::of(same, places)).collect();
    if all.is_empty() {
        return None;
    }
    let times = [0, 1].map(|i| places[i].summary.began_at_ns);
    let has_times = times.iter().all(Option::is_some);
    let delays: Vec<[Delays; 2]> = match times {
        [Some(first), Some(second)] => all.iter().map(|one| one.delays([first, second])).collect(),
        _ => all.iter().map(|_| [Delays::default(), Delays::default()]).collect(),
    };
    // The longest observation determines the clocks best.
    let by_length = |ways: &&[Delays; 2]| ways.iter().map(|way| way.samples.len()).min().unwrap_or(0);
    let best = all
        .iter()
        .zip(&delays)
        .filter(|(one, _)| !one.terminated)
        .map(|(_, ways)| ways)
        .max_by_key(by_length);
    let drift = best.and_then(|ways| clock::drift([&ways[0], &ways[1]]));
    let clock: Option<ClockBetween> =
        best.and_then(|ways| clock::between([&ways[0], &ways[1]], drift)).map(|found| found.0);
    let connections: Vec<PairedConnection> = all
        .iter()
        .zip(&delays)
        .map(|(one, ways)| one.finish(places, ways, drift.unwrap_or(0.0), has_times))
        .collect();
    let unpaired = [0, 1].map(|i| {
        let tcp = places[i].flows.iter().filter(|one| one.flow.protocol == FlowProtocol::Tcp).count();
        tcp - connections.len()
    });
    let left_out =
        |place: &Place<'_>| place.flows.iter().filter_map(|one| one.log).map(|log| log.left_out).sum();
    let not_compared = [left_out(places[0]), left_out(places[1])];
    Some(CapturePair { captures: [0, 1], clock, connections, unpaired, not_compared })
}

/// A connection at both places.
struct Compared<'a> {
    same: Same,
    logs: [&'a SegmentLog; 2],
    /// Segments of each direction in each log.
    numbered: [[Vec<Numbered>; 2]; 2],
    matched: [Matched; 2],
    full: [u32; 2],
    nearer_a: usize,
    order_by: OrderBy,
    terminated: bool,
}

impl<'a> Compared<'a> {
    fn of(same: Same, places: [&Place<'a>; 2]) -> Option<Self> {
        let flows = [0, 1].map(|i| &places[i].flows[same.flows[i]]);
        let logs = [flows[0].log?, flows[1].log?];
        let side = |place: usize, direction: usize| direction ^ usize::from(same.swapped && place == 1);
        let offset = offsets(logs, same.swapped);
        let own = bases(logs[0]);
        let theirs = bases(logs[1]);
        // Data that only the second capture has is counted by its own numbers.
        let base = [0, 1].map(|d| own[d].or_else(|| Some(theirs[side(1, d)]?.wrapping_sub(offset[d]))));
        let numbered = [0, 1].map(|d| {
            [0, 1].map(|place| {
                let shifted = |d: usize| {
                    base[d].map(|base| if place == 1 { base.wrapping_add(offset[d]) } else { base })
                };
                shifted(d)
                    .map_or_else(Vec::new, |own| numbered(logs[place], side(place, d), own, shifted(1 - d)))
            })
        });
        let full = [0, 1].map(|d| {
            let data = |place: usize| flows[place].flow.directions[side(place, d)].tcp.as_ref();
            let all = [data(0), data(1)].into_iter().flatten().map(|data| data.mss_bytes);
            all.filter(|&mss| mss > 0).min().map_or(1460, |mss| u32::try_from(mss).unwrap_or(u32::MAX))
        });
        let matched = [0, 1].map(|d| matched(logs, [&numbered[d][0], &numbered[d][1]], full[d]));
        if matched.iter().all(|way| way.both.is_empty()) {
            return None;
        }
        let mut compared = Self {
            same,
            logs,
            numbered,
            matched,
            full,
            nearer_a: 0,
            order_by: OrderBy::Named,
            terminated: false,
        };
        compared.terminated = compared.is_terminated();
        (compared.nearer_a, compared.order_by) = compared.order(places);
        Some(compared)
    }

    fn way(&self, direction: usize) -> Direction<'_> {
        Direction {
            logs: self.logs,
            numbered: [&self.numbered[direction][0], &self.numbered[direction][1]],
            matched: &self.matched[direction],
            near: if direction == 0 { self.nearer_a } else { 1 - self.nearer_a },
            full: self.full[direction],
        }
    }

    /// Whether something in between answers for the other end: each side has packets of its own, though they carry the same bytes.
    fn is_terminated(&self) -> bool {
        let are_others = |way: &Matched| !way.crosses.identification && !way.crosses.timestamps;
        // Without timestamps or identifications, packets can't be distinguished as different.
        let are_marked = self.matched.iter().any(|way| way.crosses.timestamps_differ);
        let bare = |direction: usize, place: usize| {
            let log = self.logs[place];
            self.numbered[direction][place]
                .iter()
                .filter(|n| log.passed[n.index as usize].payload == 0)
                .count()
        };
        let passed_on = |direction: usize| {
            let most = bare(direction, 0).max(bare(direction, 1));
            let both = self.matched[direction].both.iter().filter(|both| both.bytes == 0).count();
            most < ACKS_MIN || both as f64 >= PASSED_ON * most as f64
        };
        let offset = self.logs[0].syn(0).zip(self.logs[1].syn(0)).is_some_and(|(a, b)| a.0.seq != b.0.seq);
        self.matched.iter().all(are_others) && (are_marked || offset) && (!passed_on(0) || !passed_on(1))
    }

    /// Returns which place is nearer to the end that began, and the evidence.
    fn order(&self, places: [&Place<'_>; 2]) -> (usize, OrderBy) {
        let named = |is_first: bool, by| (usize::from(!is_first), by);
        if let [Some(first), Some(second)] = [0, 1].map(|i| places[i].summary.began_at_ns) {
            let raw = |direction: usize| -> Vec<(u64, i64)> {
                self.matched[direction].both.iter().map(|both| self.delay(both.at, [first, second])).collect()
            };
            let (there, back) = (raw(0), raw(1));
            let step = back.len() / COMPARED + 1;
            let mut differences: Vec<f64> = back
                .iter()
                .step_by(step)
                .filter_map(|&(at, delay)| {
                    let next = there.partition_point(|sample| sample.0 < at);
                    let near = [next.checked_sub(1), Some(next)].into_iter().flatten();
                    let near =
                        near.filter_map(|i| there.get(i)).min_by_key(|sample| sample.0.abs_diff(at))?;
                    Some(near.1.saturating_sub(delay) as f64)
                })
                .collect();
            if let Some(middle) = median(&mut differences).filter(|ns| ns.abs() > ORDER_MIN_NS) {
                return named(middle > 0.0, OrderBy::Times);
            }
        }
        let hops = |direction: usize| {
            let both = self.matched[direction].both.first()?;
            let limit = |place: usize| i32::from(self.logs[place].passed[both.at[place] as usize].hop_limit);
            Some(limit(0) - limit(1)).filter(|&hops| hops != 0)
        };
        if let Some(hops) = hops(0).or_else(|| hops(1).map(|hops| -hops)) {
            return named(hops > 0, OrderBy::HopLimit);
        }
        let to_a = [0, 1].map(|place| {
            let flow = places[place].flows[self.same.flows[place]].flow;
            let ends = flow.tcp.as_ref()?.to_ends_ns;
            ends[usize::from(self.same.swapped && place == 1)].map(|ns| ns as f64)
        });
        if let [Some(first), Some(second)] = to_a
            && first.min(second) < NEARER * first.max(second)
        {
            return named(first < second, OrderBy::RoundTrip);
        }
        let alone = |direction: usize, place: usize| self.matched[direction].alone[place].len();
        let (first, second) = (alone(0, 0) + alone(1, 1), alone(0, 1) + alone(1, 0));
        match first.cmp(&second) {
            std::cmp::Ordering::Greater => named(true, OrderBy::Losses),
            std::cmp::Ordering::Less => named(false, OrderBy::Losses),
            std::cmp::Ordering::Equal => named(true, OrderBy::Named),
        }
    }

    /// Returns when a packet passed the first place, and how much later the second.
    fn delay(&self, at: [u32; 2], began: [u64; 2]) -> (u64, i64) {
        let [first, second] = [0, 1].map(|place| self.logs[place].passed[at[place] as usize].at_ns);
        let later = i128::from(began[1]) + i128::from(second) - i128::from(began[0]) - i128::from(first);
        (first, later.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
    }

    /// Returns the delays of both directions, from the place that each passes first.
    fn delays(&self, began: [u64; 2]) -> [Delays; 2] {
        [0, 1].map(|direction| {
            let way = self.way(direction);
            let to_second = way.near == 0;
            let sample = |(near, far): (u32, u32)| {
                let (at, later) = self.delay(if to_second { [near, far] } else { [far, near] }, began);
                (at, if to_second { later } else { later.saturating_neg() })
            };
            Delays { samples: way.packets().into_iter().map(sample).collect(), to_second }
        })
    }

    fn finish(
        &self,
        places: [&Place<'_>; 2],
        delays: &[Delays; 2],
        drift: f64,
        has_times: bool,
    ) -> PairedConnection {
        let flow = places[0].flows[self.same.flows[0]].flow;
        let main = usize::from(flow.directions[1].payload_bytes > flow.directions[0].payload_bytes);
        let directions = [0, 1].map(|d| self.direction(d, places, &delays[d], drift, has_times));
        let mut changes = self.translated(places);
        for direction in 0..2 {
            changes.extend(changes::of(&self.way(direction), direction, self.terminated));
        }
        changes.sort_by_key(|change| (change.what, change.direction));
        let round_trip = clock::between([&delays[0], &delays[1]], Some(drift)).map(|found| found.1);
        let is_super = |direction: usize| {
            let way = self.way(direction);
            let holds = |place: usize| {
                way.numbered[place].iter().any(|n| way.is_super(&self.logs[place].passed[n.index as usize]))
            };
            holds(0) || holds(1)
        };
        PairedConnection {
            flows: self.same.flows.map(|index| index + 1),
            recognised: self.same.recognised,
            nearer_a: self.nearer_a,
            order_by: self.order_by,
            explained_by: if main == 0 { self.nearer_a } else { 1 - self.nearer_a },
            terminated: self.terminated,
            super_packets: is_super(0) || is_super(1),
            rtt_between_ns: round_trip.filter(|_| has_times && !self.terminated),
            changes,
            directions,
        }
    }

    fn direction(
        &self,
        direction: usize,
        places: [&Place<'_>; 2],
        delays: &Delays,
        drift: f64,
        has_times: bool,
    ) -> BetweenDirection {
        let way = self.way(direction);
        let (near, far) = (way.near, 1 - way.near);
        if self.terminated {
            return BetweenDirection::default();
        }
        let ran = |place: usize| {
            let summary = places[place].summary;
            let from_ns = summary.began_at_ns?;
            let log = self.logs[place];
            // A full log ends before its capture.
            let last = log.passed.last().filter(|_| log.left_out > 0).map(|passed| passed.at_ns);
            Some(Ran { from_ns, to_ns: from_ns.saturating_add(last.unwrap_or(summary.duration_ns)) })
        };
        let side = direction ^ usize::from(self.same.swapped && far == 1);
        let has_syn = self.logs[far].syn(side).is_some();
        // Data acknowledged by the other end at the far place has arrived there.
        let back = &self.numbered[1 - direction][far];
        let acknowledged = |n: &&Numbered| acks(&self.logs[far].passed[n.index as usize]);
        let acked = back.iter().filter(acknowledged).map(|n| n.ack).max();
        let mut found = counts::of(&way, has_syn, [ran(near), ran(far)], acked);
        if has_times {
            let at = |(index, _): &(u32, u32)| way.near(*index).at_ns;
            let packets = way.packets();
            let first = packets.iter().map(at).min().unwrap_or(0);
            let times: Vec<u64> = packets.iter().map(|pair| at(pair) - first).collect();
            (found.queueing, found.delays) = clock::queueing(delays, drift, &times);
        }
        found
    }

    /// Returns addresses, ports and sequence numbers that differ at the second place.
    fn translated(&self, places: [&Place<'_>; 2]) -> Vec<Change> {
        let ends = [0, 1].map(|place| {
            let flow = places[place].flows[self.same.flows[place]].flow;
            if self.same.swapped && place == 1 { [flow.b, flow.a] } else { [flow.a, flow.b] }
        });
        let offset = offsets(self.logs, self.same.swapped);
        let own = bases(self.logs[0]);
        let mut changes = Vec::new();
        for direction in 0..2 {
            let way = self.way(direction);
            let (near, far) = (way.near, 1 - way.near);
            let met: HashSet<u32> = self.matched[direction].both.iter().map(|both| both.at[near]).collect();
            let packets = met.len() as u64;
            let mut change = |what, sent, arrived| {
                changes.push(Change {
                    what,
                    direction,
                    sent: Some(sent),
                    arrived: Some(arrived),
                    packets,
                    of: packets,
                });
            };
            for (what, end) in [(Changed::Source, direction), (Changed::Destination, 1 - direction)] {
                if ends[near][end] != ends[far][end] {
                    change(what, ChangedValue::End(ends[near][end]), ChangedValue::End(ends[far][end]));
                }
            }
            if let Some(base) = own[direction].filter(|_| offset[direction] != 0) {
                let shifted =
                    [base, base.wrapping_add(offset[direction])].map(|n| ChangedValue::Number(u64::from(n)));
                change(Changed::SequenceNumbers, shifted[near], shifted[far]);
            }
        }
        changes
    }
}
