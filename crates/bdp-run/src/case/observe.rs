//! Input for the judge of a case's fidelity: each loop, each flow and each link, on one clock.

use bdp_lab::LinkOutcome;
use bdp_lab::fidelity::{Bounds, DatagramsSeen, FlowSeen, Loop, Observation};
use bdp_model::case::network::Hop;
use bdp_model::case::route::Route;
use bdp_model::case::{CaseFlow, CaseSpec};
use bdp_model::units::Nanos;
use bdp_wire::control::{Probed, Received, Sent};

use crate::case::pair::{Ends, Pair};
use crate::case::passage::Crossed;
use crate::case::probing::{PairProbed, configured_rtt, least_rtt};

/// Returns the mean number of segments that a flow sent per round trip; 0 if their size is unknown.
fn segments_per_round_trip(received: &Received, sent: &Sent, route: &Route<'_>) -> f64 {
    let bytes_per_ns = received.counted_bytes() as f64 / received.counted_ns().max(1) as f64;
    sent.mss.map_or(0.0, |mss| bytes_per_ns * route.delay().as_ns() as f64 / mss.max(1) as f64)
}

/// Collects everything except who had the processors. The links' directions are in the order of the links, the
/// forward one of each first.
pub(crate) fn seen(
    case: &CaseSpec,
    probed: &[PairProbed],
    flows: &[Ends],
    outcomes: &[LinkOutcome],
) -> Observation {
    let crossed = Crossed::of(outcomes);
    let mut seen = Observation {
        loops: probed.iter().filter_map(|pair| of_loop(case, pair, flows, &crossed)).collect(),
        // A transfer is too short to be judged alone; the probes between its hosts are judged.
        flows: case
            .flows
            .iter()
            .zip(flows)
            .filter(|(spec, _)| spec.transfer.is_none())
            .filter_map(|(spec, ends)| of_flow(case, spec, ends, probed, outcomes))
            .collect(),
        ..Default::default()
    };
    for outcome in outcomes {
        seen.lateness.merge(&outcome.lateness);
        seen.directions.extend(outcome.directions.iter().cloned());
        seen.faults.extend(outcome.fault.clone());
        seen.slept |= outcome.slept;
    }
    seen
}

/// Whether the median idle round trip of a pair is within bounds; for links with jitter, or without answers, this is
/// left to the judge.
pub(crate) fn idle_is_plausible(case: &CaseSpec, pair: &Pair, probed: &Probed) -> bool {
    let Some(route) = Route::between(case, &pair.from, &pair.to).filter(|route| !route.jitters()) else {
        return true;
    };
    let (Some((_, median)), Some(configured)) = (least_and_median(probed), configured_rtt(case, pair)) else {
        return true;
    };
    let one = Loop { links: route.length(), rtt_configured: configured, ..Default::default() };
    median <= configured + one.idle_bound(&Bounds::default())
}

fn least_and_median(probed: &Probed) -> Option<(Nanos, Nanos)> {
    let mut idle: Vec<u64> = probed.round_trips_ns().collect();
    idle.sort_unstable();
    idle.first().map(|&least| (Nanos(least), Nanos(idle[(idle.len() - 1) / 2])))
}

fn of_loop(case: &CaseSpec, probed: &PairProbed, flows: &[Ends], crossed: &Crossed) -> Option<Loop> {
    let pair = &probed.pair;
    let route = Route::between(case, &pair.from, &pair.to)?;
    let counted = case
        .flows
        .iter()
        .zip(flows)
        .filter(|(flow, _)| pair.joins(flow))
        .filter_map(|(_, (received, _))| received.counted_within())
        .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
    let rtt_configured = configured_rtt(case, pair)?;
    let seen = Loop {
        ends: format!("{} and {}", pair.from, pair.to),
        links: route.length(),
        rtt_configured,
        rtt_least: least_rtt(case, pair)?,
        jitter: route.jitters(),
        rtt_idle: least_and_median(&probed.idle),
        probed_idle: probed.idle.sent() > 0,
        ..Default::default()
    };
    let allowance = seen.allowance();
    let excess = |probes, span| crossed.excess(&route, probes, span, &allowance);
    Some(Loop {
        idle: excess(&probed.idle, 0..u64::MAX),
        loaded: counted.and_then(|span| excess(&probed.loaded, span)),
        ..seen
    })
}

fn of_flow(
    case: &CaseSpec,
    flow: &CaseFlow,
    (received, sent): &Ends,
    probed: &[PairProbed],
    outcomes: &[LinkOutcome],
) -> Option<FlowSeen> {
    let route = Route::of(case, flow)?;
    let on_loop = probed.iter().position(|PairProbed { pair, .. }| Pair::joins(pair, flow))?;
    let span = received.counted_within();
    let direction = |hop: &Hop| usize::from(!hop.forward);
    let busy = span.as_ref().and_then(|span| {
        let busy = |hop: &Hop| outcomes.get(hop.link)?.busy(direction(hop), span.start, span.end);
        route.there.iter().filter_map(busy).reduce(f64::max)
    });
    let edges = span.map(|span| {
        let worst = |at: u64| {
            let of_hop = |hop: &Hop| Some(outcomes.get(hop.link)?.worst_at(direction(hop), at).as_ns());
            route.there.iter().filter_map(of_hop).max().unwrap_or(0)
        };
        worst(span.start).max(worst(span.end)) as f64 / (span.end - span.start).max(1) as f64
    });
    let datagrams = flow.spec.offered_bps().zip(sent.datagrams.as_ref()).map(|(asked, datagrams)| {
        let bits = datagrams.sent as f64 * datagrams.payload_bytes as f64 * 8.0;
        let sent_bps = bits * 1e9 / datagrams.duration_ns.max(1) as f64;
        let sent_of_asked = sent_bps / asked;
        DatagramsSeen {
            sent_of_asked,
            one: sent_of_asked / datagrams.sent.max(1) as f64,
            edges: edges.unwrap_or(0.0),
        }
    });
    Some(FlowSeen {
        name: format!("{}->{}", flow.from, flow.to),
        on_loop,
        way: route.there.iter().chain(&route.back).map(|hop| 2 * hop.link + direction(hop)).collect(),
        busy,
        segments: segments_per_round_trip(received, sent, &route),
        datagrams,
    })
}
