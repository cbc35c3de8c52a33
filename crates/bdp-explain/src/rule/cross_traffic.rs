//! A full path that carries other traffic. A bottleneck filled by one flow alone gives it a constant rate; if its queue stands and the goodput
//! still changes, other traffic takes the rest, or the link's rate changes, as with radio.

use bdp_model::facts::Facts;
use bdp_model::finding::fact::{self, Bps};
use bdp_model::finding::threshold::{QUEUE_NOISE, QUEUE_SHARE};
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Remedy};
use bdp_model::units::Nanos;

use crate::observed;
use crate::rule::reordering;

/// Largest lower / upper quartile of an unsteady goodput.
const UNSTEADY: f64 = 0.93;
/// The ratio below which the flow's own losses are as likely: a queue that drained would show less of the time.
const STEADY_LEAST: f64 = 0.6;
/// Share of the probes under load that met a queue, and their smallest number.
const MET_QUEUE: (f64, usize) = (0.95, 20);
/// Largest goodput / highest delivery rate: a flow close to its peak lacks nothing.
const OF_PEAK: f64 = 0.97;
/// Largest spread of idle probes / queue: more is jitter.
const IDLE_SPREAD: f64 = 0.05;

/// Share of the time in recovery from which the flow's own losses make data arrive in bursts.
const REPAIRS: f64 = 0.2;

/// Claims other traffic if a queue stands nearly all the time and the goodput changes.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let queue = facts.standing_queue()?;
    let steady = facts.steadiness().filter(|steady| (STEADY_LEAST..=UNSTEADY).contains(steady))?;
    let of_peak = observed::beside_peak(facts).filter(|evidence| evidence.value <= OF_PEAK)?;
    let (met, of) = facts.probes_that_waited(QUEUE_NOISE)?;
    let idle = facts.rtt_ns.idle.filter(|rtt| rtt.received > 0)?;
    let spread = idle.answers().p95.unwrap_or(idle.max).saturating_sub(idle.min) as f64;
    if of < MET_QUEUE.1
        || (met as f64) < MET_QUEUE.0 * of as f64
        || spread > IDLE_SPREAD * queue.added.0 as f64
        || facts.both_directions
        || way_back_waits(facts, queue.added)
        || facts.busy_thread().is_some()
        || reordering::seen(facts).is_some()
        || observed::held_back(facts)
        || facts.time_counted().is_some_and(|spent| spent.repairs() >= REPAIRS)
    {
        return None;
    }
    let finding = Finding::new(Limit::CrossTraffic, Place::path(), Confidence::Medium)
        .evidence([
            observed::queue(facts, queue, QUEUE_SHARE),
            Evidence::share(fact::ProbesQueued, met as f64 / of as f64)
                .at_least(MET_QUEUE.0)
                .samples(met as u64, of as u64),
            Evidence::share(fact::Steady { goodput: Bps(facts.goodput_bps) }, steady).at_most(UNSTEADY),
            of_peak.at_most(OF_PEAK),
        ])
        .remedy(Remedy::new(Action::FindTraffic));
    Some(finding)
}

/// Whether acknowledgements waited as long as data at times: the reverse path may then cause the changes.
fn way_back_waits(facts: &Facts, queue: Nanos) -> bool {
    let back = facts.one_way.and_then(|ways| ways.back_idle.zip(ways.back_loaded));
    let added = back.map(|(idle, loaded)| loaded.p95.unwrap_or(loaded.max).saturating_sub(idle.p50));
    added.is_some_and(|added| added >= i64::try_from(queue.as_ns()).unwrap_or(i64::MAX) / 2)
}
