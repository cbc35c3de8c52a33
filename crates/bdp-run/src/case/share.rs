//! Computes the goodput of concurrent flows: flows that share a link share its capacity.

use std::collections::BTreeMap;
use std::ops::Range;

use bdp_model::case::network::Hop;
use bdp_model::case::route::Route;
use bdp_model::case::{CaseFlow, CaseSpec};
use bdp_model::link::Medium;
use bdp_model::path::udp;
use bdp_model::units::Nanos;

/// One flow: the goodput that it would reach alone, when, and how much of it each link on its route could carry.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Load {
    /// Goodput alone, bit/s.
    bps: f64,
    /// Its span of time, from the start to the end.
    span: Range<Nanos>,
    /// Whether it is in the sum, or in the background.
    counted: bool,
    /// The wires of its route, each with its available goodput and whether it is used in the forward direction: a
    /// half-duplex medium is one wire for both directions.
    wires: Vec<(Hop, f64, bool)>,
}

impl Load {
    /// Creates the load of a flow whose full segments have this many bytes of payload and of headers.
    pub(crate) fn new(
        case: &CaseSpec,
        flow: &CaseFlow,
        route: &Route<'_>,
        (mss, headers): (u64, u64),
        bps: f64,
    ) -> Self {
        let rooms: Vec<(Hop, f64)> = if flow.spec.udp.is_some() {
            let hops = datagram_hops(flow, route, (mss, headers));
            let rooms = udp::rooms_pps(&hops).map(|pps| pps * (8 * mss) as f64);
            route.there.iter().copied().zip(rooms).filter(|(_, room)| room.is_finite()).collect()
        } else {
            route.rooms(mss, headers).map(|(hop, room, _)| (hop, room)).collect()
        };
        let wires = rooms.into_iter().map(|(hop, room)| {
            let shared = case.links[hop.link].config.medium != Medium::FullDuplex;
            (if shared { Hop { forward: true, ..hop } } else { hop }, room, hop.forward)
        });
        Self { bps, span: flow.span(), counted: !flow.background, wires: wires.collect() }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.span.start < other.span.end && other.span.start < self.span.end
    }
}

/// Flows whose combined goodput is known.
struct Group {
    flows: Vec<usize>,
    bps: f64,
}

/// One wire, or one half-duplex medium.
#[derive(Default)]
struct Wire {
    flows: Vec<usize>,
    /// The goodput available on it.
    room: f64,
    /// Whether some flows use it in reverse, and whether some forward.
    ways: [bool; 2],
}

/// Returns the total goodput of all flows except those in the background, and the capacity of each wire that limits
/// some of them. `None` if it depends on how flows divide a wire: if a full wire is shared by part of the flows of
/// another full one, with the background, for part of the time, or by data both ways on a half-duplex medium.
pub(crate) fn total(loads: &[Load]) -> Option<(f64, Vec<f64>)> {
    let mut wires: BTreeMap<Hop, Wire> = BTreeMap::new();
    for (flow, load) in loads.iter().enumerate() {
        let mut rooms: BTreeMap<Hop, (f64, bool)> = BTreeMap::new();
        for &(hop, room, forward) in &load.wires {
            let least = rooms.get(&hop).map_or(room, |(other, _)| other.min(room));
            rooms.insert(hop, (least, forward));
        }
        for (hop, (room, forward)) in rooms {
            let wire = wires.entry(hop).or_default();
            wire.flows.push(flow);
            wire.room = wire.room.max(room);
            wire.ways[usize::from(forward)] = true;
        }
    }
    let mut wires: Vec<Wire> = wires.into_values().filter(|wire| wire.flows.len() > 1).collect();
    // The inner before the outer, of equals the narrower.
    wires.sort_by(|a, b| a.flows.len().cmp(&b.flows.len()).then(a.room.total_cmp(&b.room)));
    let mut groups: Vec<Group> =
        loads.iter().enumerate().map(|(flow, load)| Group { flows: vec![flow], bps: load.bps }).collect();
    let mut bounds = Vec::new();
    for Wire { flows, room, ways } in wires {
        let touched = |group: &Group| group.flows.iter().any(|flow| flows.contains(flow));
        let sum: f64 = groups.iter().filter(|g| touched(g)).map(|g| g.bps).sum();
        // A flow that fills a wire alone meets its room to the last digit.
        if sum <= room * 1.000_001 {
            continue;
        }
        let whole = groups.iter().filter(|g| touched(g)).all(|g| g.flows.iter().all(|f| flows.contains(f)));
        let pairs =
            || flows.iter().enumerate().flat_map(|(i, &a)| flows[i + 1..].iter().map(move |&b| (a, b)));
        if pairs().all(|(a, b)| !loads[a].overlaps(&loads[b])) {
            continue;
        }
        let apart = flows.iter().any(|&f| loads[f].counted != loads[flows[0]].counted);
        // Data both ways over one medium: how long each one's turns are depends on both.
        if ways == [true, true] || apart || !whole || pairs().any(|(a, b)| loads[a].span != loads[b].span) {
            return None;
        }
        groups.retain(|g| !touched(g));
        if loads[flows[0]].counted {
            bounds.push(room);
        }
        groups.push(Group { flows, bps: room });
    }
    let counted = |group: &&Group| group.flows.iter().all(|&flow| loads[flow].counted);
    Some((groups.iter().filter(counted).map(|g| g.bps).sum(), bounds))
}

/// Returns the effect of each hop on a flow of datagrams.
pub(crate) fn datagram_hops(
    flow: &CaseFlow,
    route: &Route<'_>,
    (payload, headers): (u64, u64),
) -> Vec<udp::Hop> {
    let offered_bps = flow.spec.offered_bps().unwrap_or(0.0);
    let offered = offered_bps / (8 * payload.max(1)) as f64 * flow.spec.duration.as_secs_f64();
    route.datagram_hops(payload, headers, offered as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Range<Nanos> = Nanos::ZERO..Nanos::secs(10);

    /// Returns a load of this many Mbit/s, over wires given by link number and Mbit/s.
    fn load(bps: f64, wires: &[(usize, f64)]) -> Load {
        let wires = wires.iter().map(|&(link, room)| (Hop { link, forward: true }, room, true)).collect();
        Load { bps, span: SPAN, counted: true, wires }
    }

    #[test]
    fn flows_apart_add_up_and_flows_together_share() {
        let apart = [load(10.0, &[(0, 10.0)]), load(5.0, &[(1, 20.0)])];
        assert_eq!(total(&apart), Some((15.0, vec![])));
        let together = [load(10.0, &[(0, 100.0), (1, 10.0)]), load(10.0, &[(2, 100.0), (1, 10.0)])];
        assert_eq!(total(&together), Some((10.0, vec![10.0])));
        let below = [load(4.0, &[(0, 10.0)]), load(5.0, &[(0, 10.0)])];
        assert_eq!(total(&below), Some((9.0, vec![])));
        assert_eq!(total(&[load(3.0, &[])]), Some((3.0, vec![])));
    }

    #[test]
    fn a_wire_within_another_bounds_first() {
        // Two flows share 4, and a third joins them on 10.
        let loads =
            [load(4.0, &[(0, 4.0), (1, 10.0)]), load(4.0, &[(0, 4.0), (1, 10.0)]), load(10.0, &[(1, 10.0)])];
        assert_eq!(total(&loads), Some((10.0, vec![4.0, 10.0])));
        let third_is_small = [loads[0].clone(), loads[1].clone(), load(3.0, &[(1, 10.0)])];
        assert_eq!(total(&third_is_small), Some((7.0, vec![4.0])));
        // The same flows over two wires: the narrower one limits.
        let twice = [load(9.0, &[(0, 9.0), (1, 5.0)]), load(9.0, &[(0, 9.0), (1, 5.0)])];
        assert_eq!(total(&twice), Some((5.0, vec![5.0])));
    }

    #[test]
    fn the_background_is_not_in_the_sum() {
        let mut loads = [load(10.0, &[(0, 10.0)]), load(7.0, &[(1, 10.0)])];
        loads[1].counted = false;
        assert_eq!(total(&loads), Some((10.0, vec![])));
        loads[1].wires = loads[0].wires.clone();
        assert_eq!(total(&loads), None, "it takes its part of the wire");
        loads[0].counted = false;
        assert_eq!(total(&loads), Some((0.0, vec![])));
    }

    #[test]
    fn both_ways_over_one_medium_is_not_known_where_it_is_full() {
        let mut loads = [load(8.0, &[(0, 8.0)]), load(8.0, &[(0, 8.0)])];
        assert_eq!(total(&loads), Some((8.0, vec![8.0])));
        loads[1].wires[0].2 = false;
        assert_eq!(total(&loads), None);
        for load in &mut loads {
            load.bps = 4.0;
        }
        assert_eq!(total(&loads), Some((8.0, vec![])));
    }

    #[test]
    fn what_depends_on_how_they_divide_is_not_known() {
        // A parking lot: the long flow shares each of two full wires with another flow.
        let loads = [load(10.0, &[(0, 10.0), (1, 10.0)]), load(10.0, &[(0, 10.0)]), load(10.0, &[(1, 10.0)])];
        assert_eq!(total(&loads), None);
        let mut late = [load(10.0, &[(0, 10.0)]), load(10.0, &[(0, 10.0)])];
        late[1].span = Nanos::secs(5)..Nanos::secs(15);
        assert_eq!(total(&late), None);
        late[1].span = Nanos::secs(10)..Nanos::secs(15);
        assert_eq!(total(&late), Some((20.0, vec![])), "one after the other");
    }
}
