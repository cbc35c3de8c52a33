//! Where the code point or ECN of a packet changes, by the headers that routers quote.
//!
//! A router quotes a packet as it arrived where the hop limit is checked: changes on its ingress appear in its own quote, changes
//! on its egress in that of the next hop.

use std::collections::BTreeMap;

use bdp_model::probes::hops::{Hop, HopProbe, MarkChange, MarkVerdict, Marks, Unjudged};

/// ECN code points (RFC 3168).
const NOT_CAPABLE: u8 = 0;
const CONGESTION: u8 = 3;

/// Judges the marks, and enters the result of each hop.
pub(super) fn judge(hops: &mut [Hop], probes: &[HopProbe], octet: u8, quotes: bool) -> MarkVerdict {
    let sent = Marks::of(octet);
    let mut verdict = MarkVerdict { sent, ..MarkVerdict::default() };
    if !quotes {
        verdict.unknown = Some(Unjudged::Privilege);
        return verdict;
    }
    let (mut before, mut last) = (sent, 0);
    for hop in hops.iter_mut() {
        let mut seen: BTreeMap<Marks, u64> = BTreeMap::new();
        let of_hop = probes.iter().filter(|p| p.hop == hop.number && p.is_answered());
        for marks in of_hop.filter_map(|p| p.answer?.marks) {
            // A queue that marks some packets does not change the marks that they were sent with.
            let marked = marks.ecn == CONGESTION && before.ecn != NOT_CAPABLE;
            hop.congestion_marked += u64::from(marked);
            let ecn = if marked { before.ecn } else { marks.ecn };
            *seen.entry(Marks { ecn, ..marks }).or_default() += 1;
        }
        let Some((&most, _)) = seen.iter().max_by_key(|(_, count)| **count) else { continue };
        hop.marks = Some(most);
        if most != before {
            verdict.changes.push(MarkChange { after: last, hop: hop.number, from: before, to: most });
        }
        (before, last) = (most, hop.number);
    }
    verdict.seen_until = (last > 0).then_some(last);
    verdict.unknown = (last == 0).then_some(Unjudged::TooFewAnswers);
    verdict
}

#[cfg(test)]
mod tests {
    use super::super::samples::{Samples, ms};
    use super::*;

    const EF_CAPABLE: Marks = Marks { dscp: 46, ecn: 2 };

    fn samples() -> Samples {
        let mut samples = Samples::of_hops(5);
        samples.request.dscp = Some(EF_CAPABLE.dscp);
        samples.request.ecn = true;
        samples.idle(10, |_, _| Some(ms(1)));
        samples
    }

    #[test]
    fn a_code_point_that_is_changed_behind_a_hop_is_named_there() {
        let mut samples = samples();
        let changed = Marks { dscp: 0, ecn: 2 };
        // The destination quotes nothing of an echo.
        samples.quote(|hop, _| (hop < 5).then_some(if hop < 3 { EF_CAPABLE } else { changed }));
        let report = samples.report(false);
        let change = MarkChange { after: 2, hop: 3, from: EF_CAPABLE, to: changed };
        assert_eq!(report.marks.changes, [change]);
        assert_eq!((report.marks.seen_until, report.marks.unknown), (Some(4), None));
    }

    #[test]
    fn congestion_marks_are_counted_and_no_change() {
        let mut samples = samples();
        samples.quote(|hop, n| {
            Some(if hop >= 3 && n % 2 == 0 { Marks { ecn: CONGESTION, ..EF_CAPABLE } } else { EF_CAPABLE })
        });
        let report = samples.report(false);
        assert_eq!(report.marks.changes, []);
        assert_eq!(report.hops[0].congestion_marked, 0);
        assert_eq!(report.hops[3].congestion_marked, 5);
    }

    #[test]
    fn ecn_that_is_cleared_is_a_change() {
        let mut samples = samples();
        samples.quote(|hop, _| Some(if hop >= 4 { Marks { ecn: 0, ..EF_CAPABLE } } else { EF_CAPABLE }));
        let changes = samples.report(false).marks.changes;
        assert_eq!(changes.iter().map(|c| (c.after, c.hop, c.to.ecn)).collect::<Vec<_>>(), [(3, 4, 0)]);
    }

    #[test]
    fn without_quotes_nothing_is_said() {
        let mut samples = samples();
        samples.quote(|_, _| None);
        assert_eq!(samples.report(false).marks.unknown, Some(Unjudged::TooFewAnswers));
    }
}
