//! Failed flows, counted together if many have something in common.

use std::collections::HashMap;
use std::net::IpAddr;

use bdp_model::capture::{AttemptOutcome, CapturedAttempts, FlowProtocol, MANY_ATTEMPTS};

use crate::flow::Identity;
use crate::slot::Slot;

/// Most addresses and ports kept of packets that were not followed.
const MOST_TARGETS: usize = 4096;

/// Destination of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub protocol: FlowProtocol,
    pub to: IpAddr,
    pub port: u16,
}

/// Destinations of packets that were not followed, the first few thousand.
#[derive(Debug, Default)]
pub(crate) struct Targets(HashMap<Target, u64>);

impl Targets {
    pub fn add(&mut self, target: Target) {
        self.add_many(target, 1);
    }

    pub fn join(&mut self, others: Self) {
        others.0.into_iter().for_each(|(target, packets)| self.add_many(target, packets));
    }

    fn add_many(&mut self, target: Target, packets: u64) {
        if self.0.len() < MOST_TARGETS || self.0.contains_key(&target) {
            *self.0.entry(target).or_default() += packets;
        }
    }
}

/// What flows have in common, most significant first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Common {
    from: bool,
    to: bool,
    port: bool,
}

const COMMON: [Common; 7] = [
    // Flood of one service.
    Common { from: false, to: true, port: true },
    // Port scan of one host.
    Common { from: true, to: true, port: false },
    // Scan of many hosts for one service.
    Common { from: true, to: false, port: true },
    Common { from: false, to: true, port: false },
    Common { from: true, to: false, port: false },
    Common { from: false, to: false, port: true },
    Common { from: false, to: false, port: false },
];

type Group = (FlowProtocol, AttemptOutcome, Option<IpAddr>, Option<IpAddr>, Option<u16>);

/// Part of an analysis, and index of the flow in it.
type Place = (u32, u32);

impl Common {
    fn group(self, slot: &Slot) -> Option<Group> {
        let Identity { protocol, ends: [(from, _), (to, port)], .. } = *slot.identity();
        let (from, to) = (self.from.then_some(from), self.to.then_some(to));
        Some((protocol, slot.outcome()?, from, to, self.port.then_some(port)))
    }
}

/// Removes flows of kinds with more than [`MANY_ATTEMPTS`] flows, largest kind first, and counts them together.
pub(crate) fn taken_out(parts: &mut [Vec<Slot>], further: &Targets) -> Vec<CapturedAttempts> {
    let mut left: Vec<Place> = Vec::new();
    for (part, slots) in parts.iter().enumerate() {
        let few = slots.iter().enumerate().filter(|(_, slot)| slot.outcome().is_some());
        left.extend(few.map(|(index, _)| (part as u32, index as u32)));
    }
    let mut groups = Vec::new();
    let mut taken: Vec<Place> = Vec::new();
    for common in COMMON {
        if left.len() <= MANY_ATTEMPTS {
            break;
        }
        let slot = |place: &Place| &parts[place.0 as usize][place.1 as usize];
        let mut keyed: Vec<(Group, Place)> =
            left.drain(..).filter_map(|place| Some((common.group(slot(&place))?, place))).collect();
        keyed.sort_unstable();
        for alike in keyed.chunk_by(|(a, _), (b, _)| a == b) {
            let places = alike.iter().map(|(_, place)| *place);
            if alike.len() > MANY_ATTEMPTS {
                groups.push(counted(alike[0].0, &|| places.clone().map(|place| slot(&place))));
                taken.extend(places);
            } else {
                left.extend(places);
            }
        }
    }
    taken.sort_unstable();
    let mut taken = taken.into_iter().peekable();
    for (part, slots) in parts.iter_mut().enumerate() {
        let mut index = 0;
        slots.retain(|_| {
            let is_taken = taken.next_if_eq(&(part as u32, index)).is_some();
            index += 1;
            !is_taken
        });
    }
    groups.sort_by_key(|group| (std::cmp::Reverse(group.flows), group.from_ns, group.outcome));
    for (target, &packets) in &further.0 {
        let fits = |group: &&mut CapturedAttempts| {
            group.protocol == target.protocol
                && group.outcome == AttemptOutcome::Unanswered
                && group.to == Some(target.to)
                && group.port.is_none_or(|port| port == target.port)
        };
        if let Some(group) = groups.iter_mut().find(fits) {
            group.further_packets += packets;
        }
    }
    groups
}

fn counted<'a, I: Iterator<Item = &'a Slot>>(group: Group, all: &dyn Fn() -> I) -> CapturedAttempts {
    let (protocol, outcome, ..) = group;
    let ends = |which: usize| all().map(move |slot| slot.identity().ends[which]);
    let (sources, from) = several(ends(0).map(|(address, _)| address));
    let (destinations, to) = several(ends(1).map(|(address, _)| address));
    let (ports, port) = several(ends(1).map(|(_, port)| port));
    let has_ports = matches!(protocol, FlowProtocol::Tcp | FlowProtocol::Udp);
    let counts = || all().map(Slot::counts);
    CapturedAttempts {
        protocol,
        outcome,
        from,
        to,
        port: port.filter(|_| has_ports),
        flows: counts().count() as u64,
        packets: counts().map(|counts| counts.packets).sum(),
        bytes: counts().map(|counts| counts.bytes).sum(),
        sources,
        destinations,
        ports: if has_ports { ports } else { 0 },
        further_packets: 0,
        from_ns: counts().map(|counts| counts.from_ns).min().unwrap_or(0),
        to_ns: counts().map(|counts| counts.to_ns).max().unwrap_or(0),
    }
}

/// Returns the number of distinct values, and the value if there is only one.
fn several<T: Ord + Copy>(all: impl Iterator<Item = T>) -> (u64, Option<T>) {
    let mut values: Vec<T> = all.collect();
    values.sort_unstable();
    values.dedup();
    (values.len() as u64, values.first().copied().filter(|_| values.len() == 1))
}
