//! How much of a flow's goodput the emulation cost.
//!
//! A flow limited by its window, or by losses, sends a fixed amount in each round trip. So any round-trip time
//! beyond its links is goodput lost, in proportion. It is estimated twice, and the larger counts:
//!
//! - by **packets**: how long the flow's own packets lay unread and how late they were released, on average. By
//!   Little's law (Operations Research 9, 1961) the mean over packets counts.
//! - by **probes**: the time each took beyond its links until it was read, in the answering host and on a driver,
//!   or how late it was sent. By the same law x / R of the goodput is lost while round trips take x more than R;
//!   and all of it, not more, while a host stands still for longer than a round trip. Probes are evenly spaced in
//!   time, so the mean of their x / R, each at most 1, is the estimate.
//!
//! A flow that keeps a link busy loses nothing by a longer round trip: the queue before the link covers the wait.
//! So the harm is at most the share of the time in which its busiest link was idle.

use bdp_model::record::breach::{Delayed, HarmSeen, Place};
use bdp_model::record::{Excess, FlowFidelity};
use bdp_model::units::Nanos;

use super::observation::{FlowSeen, Observation};

/// Share of a flow's goodput lost at a moment at which a probe took `beyond_ns` beyond its links' `emulated_ns`, of which `allowed` is no harm.
pub fn harm_at(emulated_ns: u64, beyond_ns: u64, allowed: Nanos) -> f64 {
    let usual = emulated_ns + beyond_ns.min(allowed.as_ns());
    let beyond = beyond_ns.saturating_sub(allowed.as_ns());
    (beyond as f64 / usual.max(1) as f64).min(1.0)
}

/// Estimates the harm for a flow.
pub(super) fn of(flow: &FlowSeen, seen: &Observation) -> FlowFidelity {
    let probed = seen.loops.get(flow.on_loop).and_then(|l| l.loaded);
    let harm_by_probes = probed.map(|excess| excess.harm);
    let harm_by_packets = by_packets(flow, seen, probed);
    let room = flow.busy.map_or(1.0, |busy| 1.0 - busy);
    let harm = match flow.datagrams {
        // An unresponsive sender loses nothing by a longer round trip.
        Some(datagrams) => datagrams.edges,
        None => harm_by_packets.max(harm_by_probes.unwrap_or(0.0)).min(room),
    };
    FlowFidelity {
        name: flow.name.clone(),
        busy: flow.busy,
        harm,
        harm_by_probes,
        harm_by_packets,
        sent_of_asked: flow.datagrams.map(|d| d.sent_of_asked),
    }
}

fn by_packets(flow: &FlowSeen, seen: &Observation, probed: Option<Excess>) -> f64 {
    let Some(on_loop) = seen.loops.get(flow.on_loop) else { return 0.0 };
    let allowance = on_loop.allowance();
    let (unread, late) = delays(flow, seen);
    let beyond = (unread + late).saturating_sub(allowance.packets.as_ns());
    let emulated = probed.map_or(on_loop.rtt_configured.as_ns(), |excess| excess.emulated_mean_ns);
    let usual = emulated + allowance.round_trip.as_ns();
    beyond as f64 / (usual + beyond).max(1) as f64
}

/// Mean time unread and mean lateness of a flow's packets, summed over all directions that they cross.
fn delays(flow: &FlowSeen, seen: &Observation) -> (u64, u64) {
    let ways = flow.way.iter().filter_map(|&i| seen.directions.get(i));
    ways.fold((0, 0), |(unread, late), d| (unread + d.unread_ns.mean, late + d.release_lateness_ns.mean))
}

/// The evidence of the harm, the extra round-trip time, and its location: the largest parts first.
pub(super) fn explain(
    flow: &FlowSeen,
    report: &FlowFidelity,
    seen: &Observation,
) -> (HarmSeen, u64, Vec<Delayed>) {
    if flow.datagrams.is_some() {
        return (HarmSeen::Edges, 0, Vec::new());
    }
    let on_loop = seen.loops.get(flow.on_loop);
    let probed = on_loop.and_then(|l| l.loaded);
    let (unread, late) = delays(flow, seen);
    let host = |name: &str| Place::Host(name.to_owned());
    let (mut parts, seen_by, whole) = match probed.filter(|p| p.harm >= report.harm_by_packets) {
        Some(p) => {
            let (near, far) =
                on_loop.map_or(("near", "far"), |l| l.ends.split_once(" and ").unwrap_or(("near", "far")));
            let parts = vec![
                (p.sent_late_ns, Place::Sender),
                (p.near_ns, host(near)),
                (p.far_ns, host(far)),
                (p.routers_ns, Place::Routers),
                (p.late_ns, Place::Release),
            ];
            (parts, HarmSeen::Probes, p.mean_ns + p.sent_late_ns)
        }
        None => (vec![(unread, Place::Emulator), (late, Place::Release)], HarmSeen::Packets, unread + late),
    };
    parts.sort_by_key(|&(ns, _)| std::cmp::Reverse(ns));
    let largest = parts.into_iter().take(2).filter(|&(ns, _)| ns * 10 >= whole);
    (seen_by, whole, largest.map(|(ns, place)| Delayed { place, ns }).collect())
}
