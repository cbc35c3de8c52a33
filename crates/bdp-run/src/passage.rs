//! The way of each probe through its links, and what its round trip took beyond what they made of it.

use std::collections::HashMap;

use bdp_lab::{Crossing, LinkOutcome};
use bdp_model::record::Excess;
use bdp_model::scenario::route::Hop;
use bdp_wire::control::Probed;
use bdp_wire::probe::Probe;

use crate::way::Way;

/// Crossings of all probes, by link and direction.
pub(crate) struct Crossed {
    links: Vec<[HashMap<Probe, Crossing>; 2]>,
}

/// What became of one round trip, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Passage {
    emulated: u64,
    late: u64,
    near: u64,
    far: u64,
    routers: u64,
}

impl Crossed {
    pub(crate) fn of(outcomes: &[LinkOutcome]) -> Self {
        let by_probe = |crossings: &Vec<Crossing>| crossings.iter().map(|c| (c.probe, *c)).collect();
        Self { links: outcomes.iter().map(|outcome| outcome.crossings.each_ref().map(by_probe)).collect() }
    }

    /// What the answered probes of a flow of probes took beyond their links, of those sent within a span of the monotonic
    /// clock; `None` where not one was seen on all of its way, as no connection is.
    pub(crate) fn excess(&self, way: &Way<'_>, probed: &Probed, span: std::ops::Range<u64>) -> Option<Excess> {
        let passages: Vec<Passage> = (0u64..)
            .zip(&probed.probes)
            .filter(|(_, probe)| span.contains(&probe.sent_at_ns))
            .filter_map(|(number, probe)| {
                let sent_at_ns = probe.sent_at_ns;
                self.passage(way, Probe { number, sent_at_ns }, sent_at_ns + probe.rtt_ns?)
            })
            .collect();
        summary(&passages)
    }

    fn passage(&self, way: &Way<'_>, probe: Probe, answered_ns: u64) -> Option<Passage> {
        let seen = |hops: &[Hop]| -> Option<Vec<Crossing>> {
            hops.iter().map(|hop| self.links.get(hop.link)?[usize::from(!hop.forward)].get(&probe).copied()).collect()
        };
        let (there, back) = (seen(&way.there)?, seen(&way.back)?);
        let mut passage = Passage::default();
        for crossing in there.iter().chain(&back) {
            passage.emulated += crossing.due_ns.saturating_sub(crossing.read_ns);
            passage.late += crossing.released_ns.saturating_sub(crossing.due_ns);
        }
        for hops in [&there, &back] {
            passage.routers +=
                hops.windows(2).map(|pair| pair[1].read_ns.saturating_sub(pair[0].released_ns)).sum::<u64>();
        }
        passage.far = back.first()?.read_ns.saturating_sub(there.last()?.released_ns);
        passage.near = there.first()?.read_ns.saturating_sub(probe.sent_at_ns)
            + answered_ns.saturating_sub(back.last()?.released_ns);
        Some(passage)
    }
}

fn summary(passages: &[Passage]) -> Option<Excess> {
    let count = passages.len() as u64;
    if count == 0 {
        return None;
    }
    let mean = |part: fn(&Passage) -> u64| passages.iter().map(part).sum::<u64>() / count;
    let mut beyond: Vec<u64> = passages.iter().map(|p| p.late + p.near + p.far + p.routers).collect();
    beyond.sort_unstable();
    let percentile = |p: u64| beyond[((count * p).div_ceil(100).max(1) - 1) as usize];
    Some(Excess {
        probes: count,
        emulated_mean_ns: mean(|p| p.emulated),
        mean_ns: beyond.iter().sum::<u64>() / count,
        p50_ns: percentile(50),
        p95_ns: percentile(95),
        late_ns: mean(|p| p.late),
        near_ns: mean(|p| p.near),
        far_ns: mean(|p| p.far),
        routers_ns: mean(|p| p.routers),
    })
}

#[cfg(test)]
mod tests {
    use bdp_model::scenario::{CaseSpec, Scenario};
    use bdp_wire::control::ProbeSample;

    use super::*;

    fn case() -> CaseSpec {
        let text = "title = 't'\n[host.a]\n[host.r]\nrouter = true\n[host.b]\n[[link]]\nbetween = ['a', 'r']\n\
                    [[link]]\nbetween = ['b', 'r']\n[flow]\nfrom = 'a'\nto = 'b'\n";
        Scenario::parse("t.toml", text).unwrap().plan(&Default::default()).unwrap().remove(0)
    }

    /// A probe through a router and back: each part of its time is put where it was spent.
    #[test]
    fn a_round_trip_is_divided_among_those_who_took_it() {
        let case = case();
        let way = Way::of(&case, &case.flows[0]).unwrap();
        let probe = Probe { number: 0, sent_at_ns: 1_000 };
        let crossing = |read_ns, due_ns, released_ns| Crossing { probe, read_ns, due_ns, released_ns };
        let one = |c: Crossing| HashMap::from([(probe, c)]);
        // a -> r forward on link 0; r -> b is the reverse of link 1; back the other way.
        let crossed = Crossed {
            links: vec![
                [one(crossing(1_010, 2_010, 2_013)), one(crossing(4_300, 5_300, 5_301))],
                [one(crossing(3_250, 4_250, 4_250)), one(crossing(2_020, 3_020, 3_050))],
            ],
        };
        let probed = Probed {
            probes: vec![
                ProbeSample { sent_at_ns: 1_000, rtt_ns: Some(4_400) },
                ProbeSample { sent_at_ns: 2_000, rtt_ns: None },
                ProbeSample { sent_at_ns: 3_000, rtt_ns: Some(9_999) },
            ],
        };
        let excess = crossed.excess(&way, &probed, 0..10_000).unwrap();
        assert_eq!(
            excess,
            Excess {
                probes: 1,
                emulated_mean_ns: 4_000,
                mean_ns: 400,
                p50_ns: 400,
                p95_ns: 400,
                late_ns: 3 + 30 + 1,
                near_ns: 10 + 99,
                far_ns: 200,
                routers_ns: 7 + 50,
            }
        );
        assert_eq!(crossed.excess(&way, &probed, 1_001..10_000), None);
    }
}
