//! The facts of a lab flow.

use super::{End, Facts, OneWay, ProbesLost, Source};
use crate::case::route::Route;
use crate::case::segment::{header_bytes, planned_mss};
use crate::case::{CaseFlow, CaseSpec};
use crate::measurement::{Ceiling, Direction, HostFacts};
use crate::probes::one_way::{EachWay, EachWayReport};
use crate::probes::{PairProbes, ProbeSeries};
use crate::record::{FlowRecord, Record};
use crate::units::format_bps;

impl Facts {
    /// Returns the facts of a flow of a case; `None` if there is no flow of that index.
    pub fn emulated(record: &Record, index: usize) -> Option<Self> {
        let (flow, planned) = (record.flows.get(index)?, record.case.flows.get(index)?);
        Some(Self {
            source: Source::Emulated,
            asked: planned.spec.clone(),
            sender: end(record, &flow.from).sending(flow),
            receiver: end(record, &flow.to).receiving(flow),
            bytes: flow.received_bytes,
            transfer: flow.transfer.clone(),
            one_way: one_way(record, flow),
            probes: probes(record, flow),
            probes_lost: probes_lost(record, flow),
            ceiling: ceiling(&record.case, planned, flow).filter(|_| !record.ceiling_unknown),
            both_directions: meets_data(&record.case, index),
            ..Self::default()
        })
    }
}

/// One-way delays of the probes between a flow's hosts; `None` if no echo recorded arrival times.
fn one_way(record: &Record, flow: &FlowRecord) -> Option<OneWay> {
    let pair = pair_of(record, flow)?;
    let loaded = EachWay::of_probes(probes(record, flow)?.counted())?;
    let ways =
        EachWayReport { idle: EachWay::of_probes(&pair.idle.points), loaded: Some(loaded), skew: None };
    Some(OneWay::of(ways, data_direction(pair, flow)))
}

fn probes_lost(record: &Record, flow: &FlowRecord) -> Option<ProbesLost> {
    ProbesLost::of(&probes(record, flow)?, data_direction(pair_of(record, flow)?, flow))
}

/// The direction of the data, as seen by the host that sends the probes.
fn data_direction(pair: &PairProbes, flow: &FlowRecord) -> Direction {
    if pair.from == flow.from { Direction::To } else { Direction::From }
}

fn pair_of<'a>(record: &'a Record, flow: &FlowRecord) -> Option<&'a PairProbes> {
    let joins = |pair: &&PairProbes| {
        (&pair.from, &pair.to) == (&flow.from, &flow.to) || (&pair.from, &pair.to) == (&flow.to, &flow.from)
    };
    record.probes.iter().find(joins)
}

/// The probes between a flow's hosts while it ran, on its own clock.
fn probes(record: &Record, flow: &FlowRecord) -> Option<ProbeSeries> {
    let pair = pair_of(record, flow)?;
    let [start, omit, end] = [flow.start_ns, flow.omit_ns, flow.duration_ns].map(|ns| ns as i64);
    Some(ProbeSeries { counted_ns: Some((omit, end)), ..pair.loaded.since(start, 0..end) })
}

/// A lab host, as reported by its agent. Each flow has its own thread at either end.
fn end(record: &Record, name: &str) -> End {
    let environment = &record.environment;
    let sysctls = environment.sysctls.get(name).cloned().unwrap_or_default();
    // All hosts are on one machine; in a guest nothing takes time.
    let by_real_clock = |share: f64| record.case.clock.is_real().then_some(share);
    let host = HostFacts {
        name: name.to_owned(),
        bdp: environment.bdp.clone(),
        system: "Linux".to_owned(),
        kernel: environment.kernel.clone(),
        arch: environment.arch.clone(),
        cpus: environment.cpus,
        sysctls,
        cpu_busy: by_real_clock(record.fidelity.host_cpu_busy),
        cpu_steal: by_real_clock(record.fidelity.host_cpu_steal),
        counters: record.counters.get(name).cloned(),
        ..HostFacts::default()
    };
    End { name: name.to_owned(), host, threads: Some(1), ..End::default() }
}

/// The payload rate of the narrowest link on the flow's route, or of the narrowest policer for datagrams; `None` if none has a rate, or if a
/// link changes over time.
fn ceiling(case: &CaseSpec, planned: &CaseFlow, flow: &FlowRecord) -> Option<Ceiling> {
    let route = Route::of(case, planned).filter(|route| !route.changes())?;
    let mss = flow.mss_bytes.unwrap_or_else(|| planned_mss(case, planned));
    // Datagrams are not acknowledged, so they have a half-duplex medium to themselves.
    let rooms = match planned.spec.udp {
        Some(_) => route.one_way_rooms(mss, header_bytes(case, planned)),
        // A policer's effect on TCP is a separate finding, as on a real path.
        None => route.rooms(mss, header_bytes(case, planned)).filter(|&(_, _, by)| by != "policer").collect(),
    };
    let (hop, goodput_bps, by) = rooms.into_iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let direction = hop.direction(&case.links);
    let (what, rate) = match direction.policer.filter(|_| by == "policer") {
        Some(policer) => ("policer", Some(policer.rate)),
        None => ("link", direction.rate),
    };
    let rate = rate.map_or_else(String::new, |rate| format!(", {}", format_bps(rate.as_bps() as f64)));
    Some(Ceiling { goodput_bps, by: format!("the {what} {}{rate}", route.name(hop)) })
}

/// Whether another flow uses a link of this flow's data in the opposite direction at the same time.
fn meets_data(case: &CaseSpec, index: usize) -> bool {
    let own = &case.flows[index];
    let overlaps = |other: &CaseFlow| {
        let (own, other) = (own.span(), other.span());
        own.start < other.end && other.start < own.end
    };
    let Some(route) = Route::of(case, own) else { return false };
    case.flows.iter().enumerate().filter(|&(i, other)| i != index && overlaps(other)).any(|(_, other)| {
        Route::of(case, other)
            .is_some_and(|other| other.there.iter().any(|hop| route.there.contains(&hop.back())))
    })
}
