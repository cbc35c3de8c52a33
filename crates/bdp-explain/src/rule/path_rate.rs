//! A hop between the devices gives all that it can: a queue stands before it while the goodput is steady.

use bdp_model::facts::{Facts, Queue, Source, TimeState};
use bdp_model::finding::{Action, Confidence, Evidence, Fact, Finding, Limit, Place, Quantity, Remedy};
use bdp_model::threshold::{AT_PEAK, QUEUE_SHARE, WINDOW_FREE, WINDOW_FULL};

use crate::capacity;
use crate::observed;
use crate::rule::reordering;
use crate::setting::{Setting, name_of};

/// Steady goodput: lower / upper quartile.
const STEADY: f64 = 0.8;
/// The same beside a short queue.
const STEADIER: f64 = 0.85;
/// A goodput that is not so steady is the path's all the same where a queue stands for this part of the time.
const QUEUED_MOSTLY: f64 = 0.8;
/// A short queue / idle round trip.
const SHALLOW: f64 = 0.05;

/// Claims the limit where the load added a queue that stands on the data's own way, the goodput is steady and no thread was
/// the reason.
pub fn judge(facts: &Facts) -> Option<Finding> {
    claim(facts, facts.standing_queue()?, QUEUE_SHARE, STEADY)
}

/// Claims the same of a queue that is short beside the round trip, where neither window nor send buffer is the limit and the
/// goodput is steadier.
pub fn judge_shallow(facts: &Facts) -> Option<Finding> {
    let finding = claim(facts, facts.queue_of(SHALLOW)?, SHALLOW, STEADIER)?;
    let window_is_free = facts.window_use().is_none_or(|w| w.receive_full < WINDOW_FREE);
    (window_is_free || facts.queue_never_drains()).then_some(finding)
}

fn remedy(facts: &Facts) -> Remedy {
    // One window is asked for, and the other direction may need a larger one.
    let action = match facts.source {
        Source::Measured if facts.both_directions => Action::SmallerWindowOneWay,
        _ => Action::SmallerWindow,
    };
    Remedy::new(action).setting(name_of(facts, Setting::Window)).value(smaller(facts).map(Quantity::bytes))
}

/// The window that holds what the path carries without the queue, and a little more; `None` if that is no smaller than what was in flight.
fn smaller(facts: &Facts) -> Option<f64> {
    /// Above rate x round trip by this at the most, or by this part of the queue.
    const MORE: (f64, f64) = (0.1, 0.25);
    let needed = capacity::bytes_at(facts, facts.goodput_bps)?;
    let queue = facts.rtt_loaded()?.saturating_sub(facts.rtt_idle()?).as_secs_f64();
    let share = queue / facts.rtt_idle()?.as_secs_f64();
    (share > 0.0).then(|| needed * (1.0 + (MORE.1 * share).min(MORE.0)))
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
    // What a goodput that is not so steady has in its stead.
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
    let finding = Finding::new(Limit::PathRate, Place::path(), Confidence::Medium)
        .evidence([
            observed::queue(facts, queue, queue_share),
            match steady >= steady_from {
                true => Evidence::share(Fact::Steady, steady).at_least(steady_from),
                false => Evidence::share(Fact::Steady, steady),
            }
            .with(Quantity::rate(facts.goodput_bps)),
        ])
        .evidence(at_peak)
        .evidence(queued.map(|share| Evidence::share(Fact::QueuedMostly, share).at_least(QUEUED_MOSTLY)))
        .evidence(full.map(|w| {
            let evidence = Evidence::share(Fact::WindowFull, w.receive_full);
            evidence.at_least(WINDOW_FULL).share_of(w.samples)
        }))
        .evidence(observed::load_adds(facts))
        .remedy(remedy(facts))
        .missing(observed::nic_speed(facts));
    Some(finding)
}
