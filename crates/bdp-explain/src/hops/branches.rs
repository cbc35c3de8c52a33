//! The branches of each hop, with the confidence that there are no more.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bdp_model::probes::hops::{Branching, Hop, HopProbe, Phase, missed};

/// Changes of a flow's address from which they are not a change of the route.
const SWITCHES: usize = 3;

/// Judges the hops that flows were sent to.
pub(super) fn judge(hops: &[Hop], probes: &[HopProbe]) -> Vec<Branching> {
    hops.iter().filter_map(|hop| of_hop(hop.number, probes)).collect()
}

fn of_hop(hop: u8, probes: &[HopProbe]) -> Option<Branching> {
    let from = |p: &HopProbe| p.rtt_ns().and(p.answer).and_then(|answer| answer.from);
    let mut flows: BTreeMap<u16, BTreeSet<IpAddr>> = BTreeMap::new();
    for probe in probes.iter().filter(|p| p.phase == Phase::Branches && p.hop == hop) {
        if let Some(from) = from(probe) {
            flows.entry(probe.flow).or_default().insert(from);
        }
    }
    if flows.is_empty() {
        return None;
    }
    let branches = flows.values().flatten().collect::<BTreeSet<_>>().len() as u32;
    let one_flow: Vec<IpAddr> = probes
        .iter()
        .filter(|p| p.hop == hop && p.flow == 0 && matches!(p.phase, Phase::Idle | Phase::Loaded))
        .filter_map(from)
        .collect();
    let switches = one_flow.windows(2).filter(|pair| pair[0] != pair[1]).count();
    Some(Branching {
        hop,
        branches,
        flows: flows.len() as u32,
        confidence: 1.0 - missed(branches, flows.len() as u32),
        per_packet: switches >= SWITCHES,
    })
}

#[cfg(test)]
mod tests {
    use super::super::samples::{Samples, address, ms};

    #[test]
    fn flows_that_come_to_two_addresses_are_two_branches() {
        let mut samples = Samples::of_hops(3);
        samples.idle(5, |_, _| Some(ms(1)));
        for flow in 0..11 {
            samples.flow(2, flow, address(if flow % 3 == 0 { 2 } else { 20 }));
        }
        for flow in 0..6 {
            samples.flow(1, flow, address(1));
        }
        let branches = samples.report(false).branches;
        let [one, two] = &branches[..] else { panic!("{branches:?}") };
        assert_eq!((one.hop, one.branches, one.flows), (1, 1, 6));
        assert_eq!((two.hop, two.branches, two.flows), (2, 2, 11));
        assert!(branches.iter().all(|b| b.confidence >= 0.95 && !b.per_packet), "{branches:?}");
    }

    #[test]
    fn a_flow_whose_packets_alternate_is_split_packet_by_packet() {
        let mut samples = Samples::of_hops(2);
        samples.idle(8, |_, _| Some(ms(1)));
        for probe in samples.probes.iter_mut().filter(|p| p.hop == 1) {
            let turn = probe.sent_ns / samples.interval_ns;
            if let Some(answer) = &mut probe.answer {
                answer.from = Some(address(if turn.is_multiple_of(2) { 1 } else { 10 }));
            }
        }
        samples.flow(1, 0, address(1));
        samples.flow(1, 1, address(10));
        assert!(samples.report(false).branches[0].per_packet);
    }
}
