//! The route of each probe through its links, and the part of its round trip that they do not explain.

use std::collections::HashMap;
use std::ops::Range;

use bdp_lab::fidelity::{Allowance, harm_at};
use bdp_lab::{Crossing, LinkOutcome};
use bdp_model::case::network::Hop;
use bdp_model::case::route::Route;
use bdp_model::record::Excess;
use bdp_wire::control::Probed;
use bdp_wire::probe::Probe;

/// Crossings of all probes, by link and direction.
pub(crate) struct Crossed {
    links: Vec<[HashMap<Probe, Crossing>; 2]>,
}

/// The parts of one round trip, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Passage {
    sent_late: u64,
    emulated: u64,
    late: u64,
    /// Time in the sending host until the driver read it, and from its release until the waiting thread ran.
    near: [u64; 2],
    far: u64,
    routers: u64,
}

impl Passage {
    /// Returns the time that it took beyond its links.
    fn beyond(&self) -> u64 {
        self.late + self.near.iter().sum::<u64>() + self.far + self.routers
    }
}

impl Crossed {
    pub(crate) fn of(outcomes: &[LinkOutcome]) -> Self {
        let by_probe = |crossings: &Vec<Crossing>| crossings.iter().map(|c| (c.probe, *c)).collect();
        Self { links: outcomes.iter().map(|outcome| outcome.crossings.each_ref().map(by_probe)).collect() }
    }

    /// Returns the time that answered probes of a probe flow took beyond their links, for probes due within a span of
    /// the monotonic clock; `None` if none was seen on its whole route, as for probes by connection.
    pub(crate) fn excess(
        &self,
        route: &Route<'_>,
        probed: &Probed,
        span: Range<u64>,
        allowance: &Allowance,
    ) -> Option<Excess> {
        let passages: Vec<Passage> = (0u64..)
            .zip(&probed.probes)
            .filter_map(|(number, probe)| {
                let (due_ns, sent_at_ns) = (probe.due_at_ns, probe.sent_at_ns);
                let passage = self.passage(route, Probe { number, sent_at_ns }, sent_at_ns + probe.rtt_ns?);
                let sent_late = sent_at_ns.saturating_sub(due_ns);
                span.contains(&due_ns).then_some(Passage { sent_late, ..passage? })
            })
            .collect();
        summary(&passages, allowance)
    }

    fn passage(&self, route: &Route<'_>, probe: Probe, answered_ns: u64) -> Option<Passage> {
        let seen = |hops: &[Hop]| -> Option<Vec<Crossing>> {
            hops.iter()
                .map(|hop| self.links.get(hop.link)?[usize::from(!hop.forward)].get(&probe).copied())
                .collect()
        };
        let (there, back) = (seen(&route.there)?, seen(&route.back)?);
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
        passage.near = [
            there.first()?.read_ns.saturating_sub(probe.sent_at_ns),
            answered_ns.saturating_sub(back.last()?.released_ns),
        ];
        Some(passage)
    }
}

fn summary(passages: &[Passage], allowance: &Allowance) -> Option<Excess> {
    let count = passages.len() as u64;
    if count == 0 {
        return None;
    }
    let mean = |part: fn(&Passage) -> u64| passages.iter().map(part).sum::<u64>() / count;
    let harm = |one: &dyn Fn(&Passage) -> f64| passages.iter().map(one).sum::<f64>() / count as f64;
    // The thread that waits for answers is not part of a flow's route, and a probe that a host sends late meets the
    // same pause in which the other host would have delayed an earlier one.
    let on_the_way = |p: &Passage| p.late + p.near[0] + p.far + p.routers;
    let harm = harm(&|p| harm_at(p.emulated, on_the_way(p), allowance.round_trip))
        .max(harm(&|p| harm_at(p.emulated, p.sent_late, allowance.sending)));
    let mut beyond: Vec<u64> = passages.iter().map(Passage::beyond).collect();
    beyond.sort_unstable();
    let percentile = |p: u64| beyond[((count * p).div_ceil(100).max(1) - 1) as usize];
    Some(Excess {
        probes: count,
        emulated_mean_ns: mean(|p| p.emulated),
        mean_ns: beyond.iter().sum::<u64>() / count,
        p50_ns: percentile(50),
        p95_ns: percentile(95),
        sent_late_ns: mean(|p| p.sent_late),
        harm,
        late_ns: mean(|p| p.late),
        near_ns: mean(|p| p.near.iter().sum()),
        far_ns: mean(|p| p.far),
        routers_ns: mean(|p| p.routers),
    })
}

#[cfg(test)]
mod tests {
    use bdp_model::case::CaseSpec;
    use bdp_model::units::Nanos;
    use bdp_scenario::Scenario;
    use bdp_wire::control::ProbeSample;

    use super::*;

    fn case() -> CaseSpec {
        let text = "title = 't'\n[hosts.r]\nrouter = true\n[[link]]\nbetween = ['a', 'r']\n\
                    [[link]]\nbetween = ['b', 'r']\n[flow]\nfrom = 'a'\nto = 'b'\n";
        Scenario::parse("t.toml", text).unwrap().plan(&Default::default()).unwrap().remove(0)
    }

    /// A probe through a router and back: each part of its time is attributed to where it was spent.
    #[test]
    fn a_round_trip_is_divided_among_those_who_took_it() {
        let case = case();
        let route = Route::of(&case, &case.flows[0]).unwrap();
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
        let sample = |sent_at_ns: u64, rtt_ns| ProbeSample {
            rtt_ns,
            ..ProbeSample::sent(sent_at_ns / 1_000 * 1_000, sent_at_ns)
        };
        // Due every microsecond from 1,000 on; the second comes 40 ns late and is not answered, the third was seen nowhere.
        let probes = vec![sample(1_000, Some(4_400)), sample(2_040, None), sample(3_000, Some(9_999))];
        let probed = Probed { probes, ..Default::default() };
        let allowance =
            Allowance { round_trip: Nanos(100), idle: Nanos(100), sending: Nanos(10), packets: Nanos::ZERO };
        let excess = crossed.excess(&route, &probed, 0..10_000, &allowance).unwrap();
        // 34 late, 10 until it was read, 200 in the other host, 57 in the router, less what is allowed.
        assert!((excess.harm - 201.0 / 4_100.0).abs() < 1e-9, "{}", excess.harm);
        assert_eq!(
            Excess { harm: 0.0, ..excess },
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
                ..Default::default()
            }
        );
        assert_eq!(crossed.excess(&route, &probed, 1_001..10_000, &allowance), None);
    }

    /// A host that stands still sends no probe meanwhile: the one that follows says so by how late it is.
    #[test]
    fn a_probe_that_is_sent_late_counts_from_when_it_was_due() {
        let text = "title = 't'\n[link]\nbetween = ['a', 'b']\ndelay = '1ms'\n[flow]\n";
        let case = Scenario::parse("t.toml", text).unwrap().plan(&Default::default()).unwrap().remove(0);
        let route = Route::of(&case, &case.flows[0]).unwrap();
        let mut links = [HashMap::new(), HashMap::new()];
        let mut probes = Vec::new();
        for number in 0..10u64 {
            // The fifth is 20 ms late. Each is on its way for 2 ms.
            let sent_at_ns = 50_000_000 * number + if number == 4 { 20_000_000 } else { 0 };
            let probe = Probe { number, sent_at_ns };
            let crossing = |at: u64| Crossing {
                probe,
                read_ns: at,
                due_ns: at + 1_000_000,
                released_ns: at + 1_000_000,
            };
            links[0].insert(probe, crossing(sent_at_ns));
            links[1].insert(probe, crossing(sent_at_ns + 1_000_000));
            let sent = ProbeSample::sent(50_000_000 * number, sent_at_ns);
            probes.push(ProbeSample { rtt_ns: Some(2_000_000), ..sent });
        }
        let crossed = Crossed { links: vec![links] };
        let allowance = Allowance {
            round_trip: Nanos::micros(150),
            idle: Nanos::micros(200),
            sending: Nanos::micros(100),
            packets: Nanos::ZERO,
        };
        let probed = Probed { probes, ..Default::default() };
        let excess = crossed.excess(&route, &probed, 0..u64::MAX, &allowance).unwrap();
        assert_eq!((excess.probes, excess.mean_ns, excess.sent_late_ns), (10, 0, 2_000_000));
        // One tenth of the time at a stand.
        assert!((excess.harm - 0.1).abs() < 1e-9, "{}", excess.harm);
    }
}
