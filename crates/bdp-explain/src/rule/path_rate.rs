//! A full bottleneck between the devices: a queue stands before it while the goodput is steady.

use bdp_model::facts::{Facts, Queue, Source, TimeState};
use bdp_model::finding::fact::{self, Bps};
use bdp_model::finding::threshold::{AT_PEAK, QUEUE_SHARE, WINDOW_FREE, WINDOW_FULL};
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Quantity, Remedy};
use bdp_model::probes::ProbePoint;
use bdp_model::units::Nanos;

use crate::capacity;
use crate::observed;
use crate::rule::reordering;
use crate::setting::{TestSetting, name_of};

/// Steady goodput: lower / upper quartile.
const STEADY: f64 = 0.8;
/// Smallest lower / upper quartile with a short queue.
const STEADIER: f64 = 0.85;
/// A less steady goodput is still the path's if a queue stands for this share of the time.
const QUEUED_MOSTLY: f64 = 0.8;
/// A short queue / idle round trip.
const SHALLOW: f64 = 0.05;

/// Claims the limit if load added a standing queue in the data's own direction, the goodput is steady and no thread is
/// the cause.
pub fn judge(facts: &Facts) -> Option<Finding> {
    claim(facts, facts.standing_queue()?, QUEUE_SHARE, STEADY)
}

/// Claims the limit with a queue that is short compared with the round trip, if neither window nor send buffer is the limit and the
/// goodput is steadier.
pub fn judge_shallow(facts: &Facts) -> Option<Finding> {
    let finding = claim(facts, facts.queue_of(SHALLOW)?, SHALLOW, STEADIER)?;
    let window_is_free = facts.window_use().is_none_or(|w| w.receive_full < WINDOW_FREE);
    (window_is_free || facts.queue_never_drains()).then_some(finding)
}

/// A window that keeps the goodput and empties the queue, if one is known; otherwise only a faster bottleneck helps.
fn remedy(facts: &Facts) -> Remedy {
    let Some(bytes) = smaller(facts).filter(|_| is_level(facts)) else {
        return Remedy::new(Action::AddCapacity);
    };
    // One window is requested for both directions, and the other may need a larger one.
    let action = match facts.source {
        Source::Measured if facts.both_directions => Action::SmallerWindowOneWay,
        _ => Action::SmallerWindow,
    };
    Remedy::new(action).setting(name_of(facts, TestSetting::Window)).value(Quantity::bytes(bytes))
}

/// The data in flight that the path needs without the queue, with its own longest round trips and room for delayed acknowledgements; `None` if that
/// leaves more than half of the queue.
fn smaller(facts: &Facts) -> Option<f64> {
    /// Headroom over rate x round trip, and in segments.
    const ROOM: (f64, f64) = (1.1, 4.0);
    let (idle, loaded) = (facts.rtt_idle()?, facts.rtt_loaded()?);
    let longest =
        facts.rtt_ns.idle.and_then(|rtt| rtt.answers().p95).map_or(idle, |p95| idle.max(Nanos(p95)));
    let carried =
        |rtt: Nanos| capacity::bytes_at(facts, facts.goodput_bps).map(|b| b * rtt.0 as f64 / idle.0 as f64);
    let window = ROOM.0 * carried(longest)? + ROOM.1 * facts.mss_bytes? as f64;
    let queue = carried(loaded)? - carried(idle)?;
    (window - carried(idle)? <= queue / 2.0).then_some(window)
}

/// Whether the minimum round trip under load is constant: otherwise the path may have become longer, and what filled it before no longer does.
fn is_level(facts: &Facts) -> bool {
    /// Largest difference / minimum.
    const DIFFER: f64 = 0.25;
    let Some(series) = &facts.probes else { return true };
    let trips: Vec<u64> = series.counted().filter_map(ProbePoint::rtt_ns).collect();
    let (first, last) = trips.split_at(trips.len() / 2);
    let Some((first, last)) = first.iter().min().zip(last.iter().min()) else { return true };
    (first.abs_diff(*last) as f64) <= DIFFER * (*first).min(*last) as f64
}

fn claim(facts: &Facts, queue: Queue, queue_share: f64, steady_from: f64) -> Option<Finding> {
    if facts.busy_thread().is_some() {
        return None;
    }
    let steady = facts.steadiness()?;
    // Segments that are held back look like a queue.
    if reordering::hinders(facts) {
        return None;
    }
    // What a less steady goodput must show instead.
    let (at_peak, queued) = match steady >= steady_from {
        true => (None, None),
        false => {
            let queued = facts.time_spent().map(|spent| spent.share(TimeState::FullPath));
            (observed::of_peak(facts, AT_PEAK), queued.filter(|&share| share >= QUEUED_MOSTLY))
        }
    };
    if steady < steady_from && at_peak.is_none() && queued.is_none() {
        return None;
    }
    let full = facts.window_use().filter(|w| w.receive_full >= WINDOW_FULL);
    let steadiness = Evidence::share(fact::Steady { goodput: Bps(facts.goodput_bps) }, steady);
    let finding = Finding::new(Limit::PathRate, Place::path(), Confidence::Medium)
        .evidence([
            observed::queue(facts, queue, queue_share),
            match steady >= steady_from {
                true => steadiness.at_least(steady_from),
                false => steadiness,
            },
        ])
        .evidence(at_peak)
        .evidence(queued.map(|share| Evidence::share(fact::QueuedMostly, share).at_least(QUEUED_MOSTLY)))
        .evidence(full.map(|w| {
            let evidence = Evidence::share(fact::WindowFull::ALONE, w.receive_full);
            evidence.at_least(WINDOW_FULL).share_of(w.samples)
        }))
        .evidence(observed::load_adds(facts))
        .remedy(remedy(facts))
        .missing(observed::nic_speed(facts));
    Some(finding)
}
