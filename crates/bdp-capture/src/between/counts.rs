//! What of one way was lost, overtaken and doubled between the two places.

use std::collections::BTreeMap;

use bdp_model::capture_pair::{BetweenDirection, LostAt};

use super::matching::Alone;
use super::way::Way;

/// Points of losses over time.
const POINTS: u64 = 1_000;

/// When each capture ran, since 1970 by its own clock; `None` where it has no times.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ran {
    pub from_ns: u64,
    pub to_ns: u64,
}

/// Counts of a way. `ran` are the near and the far capture; `acked` is the end of what the receiver was seen to acknowledge.
pub(super) fn of(
    way: &Way<'_>,
    side_has_syn: bool,
    ran: [Option<Ran>; 2],
    acked: Option<i64>,
) -> BetweenDirection {
    let (near, far) = (way.near, 1 - way.near);
    let packets = way.packets();
    let bounds = Bounds::of(way, &packets, side_has_syn, ran);
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
        // Neighbours fared together.
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

/// Which packets of the near place can have been seen at the far one.
struct Bounds {
    /// The first one that was, and the last.
    matched: Option<[u32; 2]>,
    /// What precedes the first can't have been seen before this time, by the near capture's own; what follows the last not after it.
    seen: [Option<u64>; 2],
    /// When the first one to compare passed.
    began_ns: u64,
}

impl Bounds {
    fn of(way: &Way<'_>, packets: &[(u32, u32)], side_has_syn: bool, ran: [Option<Ran>; 2]) -> Self {
        let (Some(&first), Some(&last)) = (packets.first(), packets.last()) else {
            return Self { matched: None, seen: [None; 2], began_ns: 0 };
        };
        let mut seen = [None, None];
        if let [Some(near), Some(far)] = ran {
            // When what passes the near place now comes to the far one, by the delay of these two.
            let moment = |(at, then): (u32, u32), bound: u64| {
                let (at, then) = (way.near(at).at_ns, way.far(then).at_ns);
                let to_far =
                    i128::from(far.from_ns) + i128::from(then) - i128::from(near.from_ns) - i128::from(at);
                u64::try_from(i128::from(bound) - to_far - i128::from(near.from_ns)).ok()
            };
            seen = [moment(first, far.from_ns).filter(|_| !side_has_syn), moment(last, far.to_ns)];
        }
        let from = way.numbered[way.near].iter().map(|numbered| way.near(numbered.index).at_ns);
        let began_ns = from.filter(|&at| seen[0].is_none_or(|from| at >= from)).min().unwrap_or(0);
        Self { matched: Some([first.0, last.0]), seen, began_ns }
    }

    fn is_outside(&self, index: u32, at_ns: u64) -> bool {
        // Where nothing of a way came to the other place it may go another way.
        let Some([first, last]) = self.matched else { return true };
        index < first && self.seen[0].is_some_and(|from| at_ns < from)
            || index > last && self.seen[1].is_some_and(|to| at_ns > to)
    }
}

/// Packets that were overtaken, and those that only the far place has.
fn order(way: &Way<'_>, found: &mut BetweenDirection) {
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

fn over_time(way: &Way<'_>, bounds: &Bounds, lost: &BTreeMap<u32, u64>) -> Vec<LostAt> {
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
