//! Finds which segments of one direction passed both places.
//!
//! Payload is compared by bytes: if segments at the two places start or end at different bytes, because network cards split and merge them, each is
//! divided at these boundaries. The copies of a part at both places are matched by what distinguishes a retransmission from its
//! original: IP identification and timestamps, if they are preserved between the places; otherwise by order and time.

use super::log::{Passed, SegmentLog};
use super::numbered::{FIN, Numbered, RST, SYN};

/// Share of unambiguous packets with an equal field from which the field counts as preserved.
const CROSSES: f64 = 0.9;
/// Most copies of the same bytes examined for a match.
const NEIGHBOURS: usize = 64;

/// A part of payload, or a packet without payload, that passed both places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Both {
    /// Indices in the two logs.
    pub at: [u32; 2],
    pub bytes: u32,
}

/// A part that passed one place only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Alone {
    pub index: u32,
    /// Its end in the bytes of its direction.
    pub end: i64,
    pub bytes: u32,
    /// Whether it is the last copy here of a part that never passed the other place.
    pub last_unseen: bool,
}

/// A further copy of bytes at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Again {
    pub index: u32,
    pub bytes: u32,
    /// Whether the previous copy passed only this place.
    pub lost_before: bool,
}

/// Parts that passed both places, and those that passed one.
#[derive(Debug, Default)]
pub(super) struct Matched {
    /// In the order of the first log.
    pub both: Vec<Both>,
    pub alone: [Vec<Alone>; 2],
    /// Duplicates: packets that one log has again, by index.
    pub copies: [Vec<u32>; 2],
    pub again: [Vec<Again>; 2],
    pub crosses: Crosses,
}

/// Fields that are preserved between the places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Crosses {
    pub identification: bool,
    pub timestamps: bool,
    /// Whether both places have timestamps, but different ones.
    pub timestamps_differ: bool,
}

/// A copy of a part, or of a packet without payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Copy {
    /// First byte; without payload, also its acknowledgement number and flags.
    from: i64,
    ack: i64,
    bytes: u32,
    flags: u8,
    place: u8,
    index: u32,
}

impl Copy {
    fn group(&self) -> (i64, i64, u32, u8) {
        (self.from, self.ack, self.bytes, self.flags)
    }
}

/// Matches the segments of one direction. `full` is the payload of a full segment; larger packets contain several.
pub(super) fn matched(logs: [&SegmentLog; 2], ways: [&[Numbered]; 2], full: u32) -> Matched {
    let copies = parts(logs, ways);
    let groups: Vec<&[Copy]> = copies.chunk_by(|a, b| a.group() == b.group()).collect();
    let mut matching = Matching { logs, full, found: Matched::default(), delays: Vec::new() };
    let singles = || groups.iter().filter_map(|group| single(group));
    matching.found.crosses = matching.crosses(singles(), ways);
    for [a, b] in singles() {
        if matching.may_be_one(a, b) {
            let at = |copy: &Copy| matching.logs[usize::from(copy.place)].passed[copy.index as usize].at_ns;
            let (first, second) = (at(a), at(b));
            matching.delays.push((first, second as i64 - first as i64));
        }
    }
    matching.delays.sort_unstable();
    groups.iter().for_each(|group| matching.settle(group));
    let mut found = matching.found;
    found.both.sort_unstable_by_key(|both| both.at);
    found.alone.iter_mut().for_each(|all| all.sort_unstable_by_key(|alone| (alone.index, alone.end)));
    found.again.iter_mut().for_each(|all| all.sort_unstable_by_key(|again| again.index));
    found
}

fn single(group: &[Copy]) -> Option<[&Copy; 2]> {
    match group {
        [a, b] if a.place != b.place => Some([a, b]),
        _ => None,
    }
}

/// Returns all copies of all parts, grouped by part and in order of index and log.
fn parts(logs: [&SegmentLog; 2], ways: [&[Numbered]; 2]) -> Vec<Copy> {
    let passed = |place: usize, numbered: &Numbered| &logs[place].passed[numbered.index as usize];
    let mut edges = Vec::new();
    for (place, way) in ways.iter().enumerate() {
        for numbered in *way {
            let payload = i64::from(passed(place, numbered).payload);
            if payload > 0 {
                edges.extend([numbered.from, numbered.from + payload]);
            }
        }
        edges.sort_unstable();
        edges.dedup();
    }
    // Limit for implausible boundaries: a segment has no more parts than bytes, and in total only a few times as many as there are segments.
    let room = 8 * (ways[0].len() + ways[1].len()) + 64;
    let mut all = Vec::with_capacity(ways[0].len() + ways[1].len());
    for (place, way) in ways.iter().enumerate() {
        for numbered in *way {
            let own = passed(place, numbered);
            let (from, index, place) = (numbered.from, numbered.index, place as u8);
            if own.payload == 0 {
                let flags = own.flags & (SYN | FIN | RST);
                all.push(Copy { from, ack: numbered.ack, bytes: 0, flags, place, index });
                continue;
            }
            let end = from + i64::from(own.payload);
            let first = edges.partition_point(|&edge| edge <= from);
            let mut from = from;
            for &edge in edges[first..].iter().take_while(|&&edge| edge <= end) {
                if all.len() < room {
                    all.push(Copy { from, ack: 0, bytes: (edge - from) as u32, flags: 0, place, index });
                }
                from = edge;
            }
        }
    }
    all.sort_unstable();
    all
}

struct Matching<'a> {
    logs: [&'a SegmentLog; 2],
    full: u32,
    found: Matched,
    /// When unambiguous parts passed the first place, and how much later the second, by its clock.
    delays: Vec<(u64, i64)>,
}

impl Matching<'_> {
    fn passed(&self, copy: &Copy) -> &Passed {
        &self.logs[usize::from(copy.place)].passed[copy.index as usize]
    }

    fn is_super(&self, copy: &Copy) -> bool {
        self.passed(copy).payload > self.full
    }

    /// Determines which fields of unambiguous packets are equal at both places.
    fn crosses<'a>(&self, singles: impl Iterator<Item = [&'a Copy; 2]>, ways: [&[Numbered]; 2]) -> Crosses {
        let (mut ids, mut stamps) = ([0_u64; 2], [0_u64; 2]);
        for [a, b] in singles {
            let (one, other) = (self.passed(a), self.passed(b));
            if let (Some(one), Some(other)) = (one.stamps(), other.stamps()) {
                stamps[0] += u64::from(one == other);
                stamps[1] += 1;
            }
            if let (Some(one), Some(other)) = (own_identification(one), own_identification(other))
                && !self.is_super(a)
                && !self.is_super(b)
            {
                ids[0] += u64::from(one == other);
                ids[1] += 1;
            }
        }
        let most = |[equal, of]: [u64; 2]| of > 0 && equal as f64 >= CROSSES * of as f64;
        // A sender may write the same identification into all packets.
        let varies = (0..2).all(|place| {
            let all =
                ways[place].iter().filter_map(|n| self.logs[place].passed[n.index as usize].identification());
            let mut known = all.filter(|&id| id != 0).take(1000).collect::<Vec<_>>();
            let count = known.len();
            known.sort_unstable();
            known.dedup();
            known.len() * 2 > count
        });
        Crosses {
            identification: most(ids) && varies,
            timestamps: most(stamps),
            timestamps_differ: stamps[1] > 0 && (stamps[0] as f64) < (1.0 - CROSSES) * stamps[1] as f64,
        }
    }

    /// Whether two copies may be the same packet.
    fn may_be_one(&self, a: &Copy, b: &Copy) -> bool {
        let crosses = self.found.crosses;
        let (one, other) = (self.passed(a), self.passed(b));
        let differ = |known: Option<bool>| known == Some(false);
        let stamps = one.stamps().zip(other.stamps()).map(|(one, other)| one == other);
        let ids = own_identification(one).zip(own_identification(other)).map(|(one, other)| one == other);
        !(crosses.timestamps && differ(stamps)
            || crosses.identification && differ(ids) && !self.is_super(a) && !self.is_super(b))
    }

    /// Divides the copies of a part into those that passed both places and those that passed one.
    fn settle(&mut self, group: &[Copy]) {
        let split = group.partition_point(|copy| copy.place == 0);
        let lists = group.split_at(split);
        let lists = [lists.0, lists.1];
        let mut fates = lists.map(|list| vec![Fate::Alone; list.len()]);
        if let Some([a, b]) = single(group) {
            if self.may_be_one(a, b) {
                (fates[0][0], fates[1][0]) = (Fate::Both, Fate::Both);
                self.found.both.push(Both { at: [a.index, b.index], bytes: a.bytes });
            }
        } else if !lists[0].is_empty() && !lists[1].is_empty() {
            self.by_identification(lists, &mut fates);
            self.by_time(lists, &mut fates);
        } else if self.found.crosses.identification {
            // Packets that one place has twice and the other not at all.
            for (place, list) in lists.iter().enumerate() {
                for i in 1..list.len() {
                    let same = |j: usize| {
                        self.exact(&list[j]).is_some() && self.exact(&list[j]) == self.exact(&list[i])
                    };
                    if (i.saturating_sub(NEIGHBOURS)..i).any(same) {
                        fates[place][i] = Fate::Copy;
                    }
                }
            }
        }
        let is_unseen = |place: usize| lists[1 - place].is_empty();
        for place in 0..2 {
            let last = fates[place].iter().rposition(|fate| *fate == Fate::Alone);
            let mut before: Option<Fate> = None;
            for (i, (copy, fate)) in lists[place].iter().zip(&fates[place]).enumerate() {
                match fate {
                    Fate::Copy => {
                        self.found.copies[place].push(copy.index);
                        continue;
                    }
                    Fate::Alone => self.found.alone[place].push(Alone {
                        index: copy.index,
                        end: copy.from + i64::from(copy.bytes),
                        bytes: copy.bytes,
                        last_unseen: is_unseen(place) && last == Some(i),
                    }),
                    Fate::Both => {}
                }
                if let Some(before) = before.filter(|_| copy.bytes > 0) {
                    let lost_before = before == Fate::Alone;
                    self.found.again[place].push(Again { index: copy.index, bytes: copy.bytes, lost_before });
                }
                before = Some(*fate);
            }
        }
    }

    /// Returns the identity of a packet if its IP identification is preserved; `None` for packets merged or to be split by a network card.
    fn exact(&self, copy: &Copy) -> Option<(u16, Option<(u32, u32)>)> {
        let passed = self.passed(copy);
        let stamps = passed.stamps().filter(|_| self.found.crosses.timestamps);
        own_identification(passed).filter(|_| !self.is_super(copy)).map(|id| (id, stamps))
    }

    fn by_identification(&mut self, lists: [&[Copy]; 2], fates: &mut [Vec<Fate>; 2]) {
        if !self.found.crosses.identification {
            return;
        }
        let mut known: Vec<_> = Vec::new();
        for (place, list) in lists.iter().enumerate() {
            known.extend(list.iter().enumerate().filter_map(|(i, copy)| Some((self.exact(copy)?, place, i))));
        }
        known.sort_unstable();
        for class in known.chunk_by(|a, b| a.0 == b.0) {
            let (ours, theirs) = class.split_at(class.partition_point(|known| known.1 == 0));
            for (a, b) in ours.iter().zip(theirs) {
                self.pair(lists, fates, [a.2, b.2]);
            }
            // The same packet again, duplicated on the way or by a capture.
            let both = ours.len().min(theirs.len());
            for further in ours.iter().chain(theirs).filter(|_| both > 0) {
                if fates[further.1][further.2] == Fate::Alone {
                    fates[further.1][further.2] = Fate::Copy;
                }
            }
            if both == 0 {
                class[1..].iter().for_each(|further| fates[further.1][further.2] = Fate::Copy);
            }
        }
    }

    /// Matches the rest, each with the copy whose delay fits best, in order.
    fn by_time(&mut self, lists: [&[Copy]; 2], fates: &mut [Vec<Fate>; 2]) {
        let crosses = self.found.crosses;
        let left = |fates: &[Vec<Fate>; 2], place: usize| -> Vec<usize> {
            (0..lists[place].len()).filter(|&i| fates[place][i] == Fate::Alone).collect()
        };
        let left = [left(fates, 0), left(fates, 1)];
        if left.iter().any(Vec::is_empty) {
            return;
        }
        // Starts from the place with fewer copies.
        let fewer = usize::from(left[1].len() < left[0].len());
        let more = 1 - fewer;
        let mut next = 0;
        for (n, &i) in left[fewer].iter().enumerate() {
            let a = &lists[fewer][i];
            // If copies can't be distinguished, as many remain as are still to be matched.
            let remain = left[fewer].len() - n - 1;
            let until = if crosses.timestamps { left[more].len() } else { left[more].len() - remain };
            let fits = |&k: &usize| self.may_be_one(a, &lists[more][left[more][k]]);
            let cost = |k: usize| {
                let b = &lists[more][left[more][k]];
                let (first, second) = if fewer == 0 { (a, b) } else { (b, a) };
                let (at, then) = (self.passed(first).at_ns, self.passed(second).at_ns);
                self.usual_delay(at).map_or(0, |usual| (then as i64 - at as i64 - usual).unsigned_abs())
            };
            let candidates = (next..until).filter(fits).take(NEIGHBOURS);
            let Some(k) = candidates.min_by_key(|&k| (cost(k), k)) else { continue };
            let (one, other) = (i, left[more][k]);
            self.pair(lists, fates, if fewer == 0 { [one, other] } else { [other, one] });
            next = k + 1;
        }
    }

    fn pair(&mut self, lists: [&[Copy]; 2], fates: &mut [Vec<Fate>; 2], [i, j]: [usize; 2]) {
        (fates[0][i], fates[1][j]) = (Fate::Both, Fate::Both);
        let (a, b) = (&lists[0][i], &lists[1][j]);
        self.found.both.push(Both { at: [a.index, b.index], bytes: a.bytes });
    }

    /// Returns the usual delay of other packets to the second place around this time.
    fn usual_delay(&self, at_ns: u64) -> Option<i64> {
        let next = self.delays.partition_point(|&(at, _)| at < at_ns);
        let near = [next.checked_sub(1), Some(next)];
        let near = near.into_iter().flatten().filter_map(|i| self.delays.get(i));
        near.min_by_key(|(at, _)| at.abs_diff(at_ns)).map(|&(_, delay)| delay)
    }
}

/// Fate of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Alone,
    Both,
    /// A duplicate of another packet at this place.
    Copy,
}

/// Returns the IP identification, if it is meaningful; Linux writes 0 if fragmentation is forbidden and there is no connection.
fn own_identification(passed: &Passed) -> Option<u16> {
    passed.identification().filter(|&id| id != 0)
}
