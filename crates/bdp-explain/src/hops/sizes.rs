//! Packet sizes that pass, routers' messages about those that do not, and the hop after which they vanish silently.

use super::extent;
use bdp_model::probes::hops::{AnswerKind, BlackHole, Hop, HopProbe, MtuVerdict, Phase, ToldMtu, Unjudged};

/// Probes of a size without an answer after which it counts as lost (RFC 8899, section 5.1.2).
const TRIES: usize = bdp_model::probes::mtu_search::MAX_PROBES as usize;

/// Judges the sizes, and enters the result of each hop.
pub(super) fn judge(hops: &mut [Hop], probes: &[HopProbe], asked: bool) -> MtuVerdict {
    let unknown = |why| MtuVerdict { unknown: Some(why), ..MtuVerdict::default() };
    let sizes: Vec<&HopProbe> = probes.iter().filter(|p| p.phase == Phase::Sizes).collect();
    if !asked {
        return unknown(Unjudged::NotAsked);
    }
    let came = |hop: u8| sizes.iter().filter(move |p| p.hop >= hop && p.is_answered()).map(|p| p.bytes).max();
    let Some(far) = sizes.iter().filter(|p| p.is_answered()).map(|p| p.hop).max() else {
        return unknown(Unjudged::TooFewAnswers);
    };
    for hop in hops.iter_mut() {
        hop.mtu_bytes = came(hop.number);
    }
    let bytes = came(far).unwrap_or(0);
    let mut told = Vec::new();
    for probe in &sizes {
        let Some((AnswerKind::TooLong(mtu_bytes), Some(address))) =
            probe.answer.map(|answer| (answer.kind, answer.from))
        else {
            continue;
        };
        let by = |hop: &&Hop| hop.number <= probe.hop && hop.addresses.iter().any(|a| a.address == address);
        let said = ToldMtu { hop: hops.iter().find(by).map(|hop| hop.number), address, mtu_bytes };
        if !told.contains(&said) {
            told.push(said);
        }
    }
    told.sort_by_key(|said| (said.hop, std::cmp::Reverse(said.mtu_bytes)));
    // Longer packets than reached the farthest hop, without any message about them.
    let is_told = |size: u32| {
        let refused = |p: &&&HopProbe| matches!(p.answer.map(|a| a.kind), Some(AnswerKind::TooLong(_)));
        sizes.iter().filter(refused).any(|p| p.bytes <= size)
    };
    let silent = |size: u32| sizes.iter().filter(move |p| p.hop == far && p.bytes == size).count() >= TRIES;
    let mut vanished: Vec<u32> =
        sizes.iter().map(|p| p.bytes).filter(|&b| b > bytes && silent(b) && !is_told(b)).collect();
    vanished.sort_unstable();
    let black_hole = vanished.first().and_then(|&vanishes_bytes| {
        let after = hops.iter().rev().find(|hop| hop.mtu_bytes.is_some_and(|longest| longest > bytes));
        let after = after.map_or(0, |hop| hop.number);
        let before = hops.iter().map(|hop| hop.number).find(|&n| n > after && came_itself(&sizes, n))?;
        Some(BlackHole { after, before, passes_bytes: bytes, vanishes_bytes })
    });
    let whole = extent::destination(probes) == Some(far);
    MtuVerdict { bytes: Some(bytes), whole, told, black_hole, unknown: None }
}

/// Whether a hop answered a probe of a size.
fn came_itself(sizes: &[&HopProbe], hop: u8) -> bool {
    sizes.iter().any(|p| p.hop == hop && p.is_answered())
}

#[cfg(test)]
mod tests {
    use super::super::samples::{Samples, address, ms};
    use super::*;

    fn samples(hops: u8) -> Samples {
        let mut samples = Samples::of_hops(hops);
        samples.idle(5, |_, _| Some(ms(1)));
        for hop in 1..=hops {
            let kind = if hop == hops { AnswerKind::Arrived } else { AnswerKind::Exceeded };
            samples.size(hop, 44, Some(kind), hop);
        }
        samples
    }

    #[test]
    fn what_comes_to_the_end_is_the_mtu_of_the_path() {
        let mut samples = samples(4);
        samples.size(4, 1500, Some(AnswerKind::Arrived), 4);
        let mtu = samples.report(false).mtu;
        let expected = MtuVerdict { bytes: Some(1500), whole: true, ..MtuVerdict::default() };
        assert_eq!(mtu, expected);
    }

    #[test]
    fn a_router_that_says_what_its_link_carries_is_named() {
        let mut samples = samples(4);
        for hop in 3..=4 {
            samples.size(hop, 1500, Some(AnswerKind::TooLong(1400)), 2);
        }
        samples.size(2, 1500, Some(AnswerKind::Exceeded), 2);
        samples.size(4, 1400, Some(AnswerKind::Arrived), 4);
        let report = samples.report(false);
        assert_eq!(report.mtu.told, [ToldMtu { hop: Some(2), address: address(2), mtu_bytes: 1400 }]);
        assert_eq!((report.mtu.bytes, report.mtu.black_hole), (Some(1400), None));
        let reached: Vec<_> = report.hops.iter().map(|hop| hop.mtu_bytes.unwrap()).collect();
        assert_eq!(reached, [1500, 1500, 1400, 1400]);
    }

    #[test]
    fn sizes_that_vanish_behind_a_hop_are_a_black_hole_there() {
        let mut samples = samples(5);
        samples.size(2, 1500, Some(AnswerKind::Exceeded), 2);
        for hop in 3..=5 {
            for _ in 0..3 {
                samples.size(hop, 1500, None, 0);
            }
        }
        samples.size(5, 1400, Some(AnswerKind::Arrived), 5);
        for _ in 0..3 {
            samples.size(5, 1401, None, 0);
        }
        let mtu = samples.report(false).mtu;
        let hole = BlackHole { after: 2, before: 3, passes_bytes: 1400, vanishes_bytes: 1401 };
        assert_eq!((mtu.bytes, mtu.black_hole), (Some(1400), Some(hole)));
    }

    #[test]
    fn a_size_that_was_tried_once_is_no_black_hole() {
        let mut samples = samples(3);
        samples.size(2, 1500, Some(AnswerKind::Exceeded), 2);
        samples.size(3, 1500, None, 0);
        assert_eq!(samples.report(false).mtu.black_hole, None);
    }
}
