//! Counts of one direction's segments lost, reordered and duplicated between the two places.

use std::collections::BTreeMap;

use bdp_model::capture::pair::{BetweenDirection, LostAt};

use super::direction::Direction;
use super::matching::Alone;

/// Most points of losses over time.
const POINTS: u64 = 1_000;

/// Last packets used to determine their spacing.
const LAST: usize = 32;

/// Start and end of each capture since 1970 by its own clock; `None` if it has no times.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ran {
    pub from_ns: u64,
    pub to_ns: u64,
}

/// Returns the counts of a direction. `ran` has the near and the far capture; `acked` is the end of the data that the receiver acknowledged.
pub(super) fn of(
    way: &Direction<'_>,
    has_begin: bool,
    ran: [Option<Ran>; 2],
    acked: Option<i64>,
) -> BetweenDirection {
    let (near, far) = (way.near, 1 - way.near);
    let packets = way.packets();
    let bounds = Bounds::of(way, &packets, has_begin, ran);
    let is_outside = |index: u32| bounds.is_outside(index, way.near(index).at_ns);
    let mut found = BetweenDirection::default();
    let mut copies = way.matched.copies[near].clone();
    copies.sort_unstable();
    for numbered in way.numbered[near] {
        if copies.binary_search(&numbered.index).is_ok() {
            continue;
        }
        if is_outside(numbered.index) {
            found.outside += 1;
            continue;
        }
        match u64::from(way.near(numbered.index).payload) {
            0 => found.acks += 1,
            bytes => {
                found.segments += way.segments_of(bytes);
                found.bytes += bytes;
            }
        }
    }
    let mut lost: BTreeMap<u32, u64> = BTreeMap::new();
    for packet in way.matched.alone[near].chunk_by(|a, b| a.index == b.index) {
        let index = packet[0].index;
        if is_outside(index) {
            continue;
        }
        if way.near(index).payload == 0 {
            found.lost_acks += 1;
            lost.insert(index, 1);
            continue;
        }
        let is_missed = |part: &Alone| part.last_unseen && acked.is_some_and(|acked| part.end <= acked);
        let (mut segments, mut missed) = (0, 0);
        // Adjacent segments share their fate.
        for run in packet.chunk_by(|a, b| a.end + i64::from(b.bytes) == b.end && is_missed(a) == is_missed(b))
        {
            let bytes: u64 = run.iter().map(|part| u64::from(part.bytes)).sum();
            if is_missed(&run[0]) {
                missed += way.segments_of(bytes);
            } else {
                segments += way.segments_of(bytes);
                found.lost_bytes += bytes;
            }
        }
        if !way.is_super(way.near(index)) {
            segments = segments.min(1);
        }
        found.missed_by_capture += missed;
        found.lost_segments += segments;
        if segments > 0 {
            lost.insert(index, segments);
        }
    }
    for again in way.matched.again[near].chunk_by(|a, b| a.index == b.index) {
        let segments = way.segments_of(again.iter().map(|part| u64::from(part.bytes)).sum());
        if again.iter().any(|part| part.lost_before) {
            found.retransmitted_after_loss += segments;
        } else {
            found.retransmitted_otherwise += segments;
        }
    }
    let mut doubled = way.matched.copies[far].clone();
    doubled.dedup();
    found.duplicated = doubled.len() as u64;
    order(way, &mut found);
    found.losses = over_time(way, &bounds, &lost);
    found
}

/// A packet that passed both places: its index in the near log, and its time at each, by the clock of each capture.
#[derive(Debug, Clone, Copy)]
struct Met {
    index: u32,
    near_ns: u64,
    far_ns: u64,
}

impl Met {
    /// Returns when a packet passing the near place at `near_ns` is due at the far one, with the delay of this packet.
    fn due(self, near_ns: u64) -> i128 {
        i128::from(near_ns) + self.took()
    }

    fn took(self) -> i128 {
        i128::from(self.far_ns) - i128::from(self.near_ns)
    }
}

/// Which packets of the near place could be captured at the far one.
struct Bounds {
    /// Packets captured at both, in the order of the near place.
    met: Vec<Met>,
    /// Duration of the far capture; `None` if captures have no times.
    end_ns: Option<u64>,
    /// Whether the far capture has the start of this direction.
    has_begin: bool,
    /// Longest delay after the last packet at which another may arrive: the largest delay of any.
    later_ns: i128,
    /// Delay of an overtaken packet; `None` if none was overtaken.
    overtaken_ns: Option<u64>,
    /// Time of the first packet to compare.
    began_ns: u64,
}

impl Bounds {
    fn of(way: &Direction<'_>, packets: &[(u32, u32)], has_begin: bool, ran: [Option<Ran>; 2]) -> Self {
        let met = packets.iter().map(|&(index, far)| {
            let (near_ns, far_ns) = (way.near(index).at_ns, way.far(far).at_ns);
            Met { index, near_ns, far_ns }
        });
        let met: Vec<Met> = met.collect();
        let most = met.iter().map(|met| met.took()).max().unwrap_or(0);
        let later_ns = met.last().map_or(0, |last| most - last.took()) + i128::from(apart(&met));
        let end_ns = match ran {
            [Some(_), Some(far)] => Some(far.to_ns - far.from_ns),
            _ => None,
        };
        let overtaken_ns = latest(way);
        let mut bounds = Self { met, end_ns, has_begin, later_ns, overtaken_ns, began_ns: 0 };
        let mut own = way.numbered[way.near].iter().map(|numbered| numbered.index);
        let began = own.find(|&index| !bounds.is_outside(index, way.near(index).at_ns));
        bounds.began_ns = began.map_or(0, |index| way.near(index).at_ns);
        bounds
    }

    fn is_outside(&self, index: u32, at_ns: u64) -> bool {
        // If nothing of a direction reached the other place, it may take another route.
        let (Some(first), Some(last)) = (self.met.first(), self.met.last()) else { return true };
        let Some(end) = self.end_ns.map(i128::from) else { return false };
        if index < first.index {
            return !self.has_begin && first.due(at_ns) < 0;
        }
        if index > last.index {
            return last.due(at_ns) + self.later_ns > end;
        }
        let place = self.met.partition_point(|met| met.index < index);
        match (self.overtaken_ns, place.checked_sub(1)) {
            // With the largest delay of others, it would have arrived after the end.
            (Some(late), Some(before)) if self.met[place].index != index => {
                self.met[before].due(at_ns) + i128::from(late) > end
            }
            _ => false,
        }
    }
}

/// Returns twice the spacing of the last packets: the time after which the next one is due on the wire.
fn apart(met: &[Met]) -> u64 {
    let last = &met[met.len().saturating_sub(LAST)..];
    let mut gaps: Vec<u64> =
        last.windows(2).map(|pair| pair[1].far_ns.saturating_sub(pair[0].far_ns)).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len() / 2).map_or(0, |gap| 2 * gap)
}

/// Returns the longest time by which a packet arrived after the first one that overtook it; `None` if none was overtaken.
fn latest(way: &Direction<'_>) -> Option<u64> {
    // Highest position reached, and since when.
    let mut reached: Vec<(u32, u64)> = Vec::new();
    let mut late = None;
    for (arrival, index) in way.arrivals() {
        let now = way.far(arrival).at_ns;
        match reached.last() {
            Some(&(furthest, _)) if index < furthest => {
                let overtaken = reached.partition_point(|&(furthest, _)| furthest <= index);
                let since = reached.get(overtaken).map_or(now, |&(_, at)| at);
                late = late.max(Some(now.saturating_sub(since)));
            }
            _ => reached.push((index, now)),
        }
    }
    late
}

/// Counts packets that were overtaken, and those that only the far place has.
fn order(way: &Direction<'_>, found: &mut BetweenDirection) {
    let arrivals = way.arrivals();
    let (Some(&(from, _)), Some(&(to, _))) = (arrivals.first(), arrivals.last()) else { return };
    let mut others: Vec<u32> = way.matched.alone[1 - way.near].iter().map(|alone| alone.index).collect();
    others.dedup();
    found.only_second = others.iter().filter(|&&index| (from..to).contains(&index)).count() as u64;
    let place = |index: u32| way.numbered[way.near].partition_point(|numbered| numbered.index < index) as u64;
    let mut latest: Option<u32> = None;
    for &(_, index) in &arrivals {
        match latest {
            Some(latest) if index < latest => {
                found.reordered += 1;
                found.reordered_most = found.reordered_most.max(place(latest) - place(index));
            }
            _ => latest = Some(index),
        }
    }
}

fn over_time(way: &Direction<'_>, bounds: &Bounds, lost: &BTreeMap<u32, u64>) -> Vec<LostAt> {
    let at = |index: &u32| way.near(*index).at_ns.saturating_sub(bounds.began_ns);
    let span = lost.keys().map(at).max().unwrap_or(0) / POINTS + 1;
    let span = if lost.len() as u64 <= POINTS { 1 } else { span };
    let mut points: Vec<LostAt> = Vec::new();
    for (index, packets) in lost {
        let at_ns = at(index);
        match points.last_mut() {
            Some(last) if at_ns / span == last.at_ns / span => last.packets += packets,
            _ => points.push(LostAt { at_ns, packets: *packets }),
        }
    }
    points
}
