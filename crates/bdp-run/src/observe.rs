//! What the judge of a case's fidelity is told: each loop, each flow and each link, on one clock.

use std::ops::Range;

use bdp_lab::LinkOutcome;
use bdp_lab::fidelity::{FlowSeen, Loop, Observation};
use bdp_model::record::RttReport;
use bdp_model::scenario::{CaseSpec, FlowSpec};
use bdp_model::units::Nanos;
use bdp_wire::control::{Received, Sent};

use crate::conduct::{Ends, PairProbed, configured_rtt, least_rtt};
use crate::passage::Crossed;
use crate::way::{Way, smallest};

/// All but the links themselves, and who had the processors.
pub(crate) fn seen(
    case: &CaseSpec,
    probed: &[PairProbed],
    flows: &[Ends],
    outcomes: &[LinkOutcome],
) -> Observation {
    let crossed = Crossed::of(outcomes);
    Observation {
        loops: probed.iter().filter_map(|pair| of_loop(case, pair, flows, &crossed)).collect(),
        flows: case.flows.iter().zip(flows).map(|(spec, ends)| of_flow(case, spec, ends, outcomes)).collect(),
        ..Default::default()
    }
}

fn of_loop(case: &CaseSpec, probed: &PairProbed, flows: &[Ends], crossed: &Crossed) -> Option<Loop> {
    let pair = &probed.pair;
    let way = Way::between(case, &pair.from, &pair.to)?;
    let RttReport { idle, loaded } = probed.rtt_ns();
    let spans = case.flows.iter().zip(flows).filter(|(flow, _)| pair.joins(flow));
    let counted = spans.filter_map(|(_, (received, _))| counted_span(received));
    let counted = counted.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
    Some(Loop {
        ends: format!("{} and {}", pair.from, pair.to),
        links: way.length(),
        rtt_configured: configured_rtt(case, pair)?,
        rtt_least: least_rtt(case, pair)?,
        rtt_loaded: loaded.map(|r| Nanos(r.p50)),
        rtt_idle: smallest(idle),
        idle: crossed.excess(&way, &probed.idle, 0..u64::MAX),
        loaded: counted.and_then(|span| crossed.excess(&way, &probed.loaded, span)),
    })
}

fn of_flow(case: &CaseSpec, spec: &FlowSpec, (received, sent): &Ends, outcomes: &[LinkOutcome]) -> FlowSeen {
    let busy = counted_span(received).and_then(|span| {
        let way = Way::of(case, spec)?;
        let busy = |hop: &bdp_model::scenario::route::Hop| {
            outcomes.get(hop.link)?.busy(usize::from(!hop.forward), span.start, span.end)
        };
        way.there.iter().filter_map(busy).reduce(f64::max)
    });
    FlowSeen { name: format!("{}->{}", spec.from, spec.to), busy, sent_of_asked: sent_of_asked(spec, sent) }
}

/// When a flow was counted, by the machine's monotonic clock.
fn counted_span(received: &Received) -> Option<Range<u64>> {
    let first = received.first_byte_at_ns?;
    Some(first + received.counted_from.at_ns..first + received.duration_ns)
}

/// What the sender of datagrams sent of what was asked of it.
fn sent_of_asked(spec: &FlowSpec, sent: &Sent) -> Option<f64> {
    let (udp, datagrams) = (spec.udp?, sent.datagrams.as_ref()?);
    let asked = udp.rate.as_bps() as f64 * f64::from(spec.streams);
    let bits = datagrams.sent as f64 * datagrams.payload_bytes as f64 * 8.0;
    (datagrams.duration_ns > 0).then(|| bits * 1e9 / datagrams.duration_ns as f64 / asked)
}
