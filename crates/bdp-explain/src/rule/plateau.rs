//! A full bottleneck without a standing queue: the sender keeps to the path's rate, by its model as BBR does, or loss-based with a
//! queue that is short or marks.

use bdp_model::facts::Facts;
use bdp_model::finding::fact::{self, Bps};
use bdp_model::finding::threshold::AT_PEAK;
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Remedy};

use crate::observed;
use crate::rule::reordering;

/// Goodput / highest delivery rate in a round trip, for a sender that probes all the time.
const PROBED: f64 = 0.85;
/// Steady goodput: lower / upper quartile.
const STEADY: f64 = 0.8;
/// Largest share that a probing sender retransmits: above it, something drops what it adds.
const LOST: f64 = 0.005;

/// Bounds without losses: the goodput is flat while the congestion window still grows, with a queue of this share of the minimum round trip.
const FLAT: (f64, f64, f64) = (0.98, 0.98, 0.015);

/// Whether more segments in flight add delay and no goodput.
fn flat(facts: &Facts, steady: f64) -> bool {
    let queue = facts.own_way_added().zip(facts.rtt_least());
    steady >= FLAT.0
        && facts.of_peak().is_some_and(|reached| reached >= FLAT.1)
        && queue.is_some_and(|(queue, least)| queue.0 as f64 >= FLAT.2 * least.0 as f64)
}

/// Claims the path's rate.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let probes = facts.sends_by_model();
    let least = if probes { PROBED } else { AT_PEAK };
    let reached = observed::of_peak(facts, least)?;
    let steady = facts.steadiness().filter(|&steady| steady >= STEADY)?;
    // Reordered segments are retransmitted, but not lost.
    let overtaken = reordering::seen(facts).is_some() || reordering::often_counted(facts).is_some();
    let lost = if overtaken { 0.0 } else { facts.retransmitted_share()? };
    // A loss-based sender grows until it meets a loss: without a queue it has not reached the rate, or something else holds it back.
    if observed::held_back(facts)
        || facts.busy_thread().is_some()
        || probes && lost > LOST
        || !probes && !flat(facts, steady)
    {
        return None;
    }
    let finding = Finding::new(Limit::PathRate, Place::path(), Confidence::Medium)
        .evidence([
            reached,
            Evidence::share(fact::Steady { goodput: Bps(facts.goodput_bps) }, steady).at_least(STEADY),
        ])
        .remedy(Remedy::new(Action::AddCapacity))
        .missing(observed::nic_speed(facts));
    Some(finding)
}
