//! A policer with accumulated tokens: everything passes until they are used up, then only its rate. To a receiver it looks like a path that became
//! slower.

use bdp_model::facts::Facts;
use bdp_model::finding::fact::{self, Bps, Count};
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Quantity, Remedy};
use bdp_model::units::Nanos;

use crate::observed;

/// Largest rate after / rate before.
const RATE: f64 = 0.7;
/// Smallest distance of the two levels / deviation of the values.
const APART: f64 = 6.0;
/// Fewest losses since then.
const LOSSES: usize = 3;
/// Share of the idle round trip below which there is no queue.
const NO_QUEUE: f64 = 0.01;

/// Claims a policer if the rate falls, losses begin, and the earlier queue is gone: a link that became slower empties its queue more slowly.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let step = facts
        .rate_step()
        .filter(|step| step.before > 0.0 && step.after <= RATE * step.before && step.clearness >= APART)?;
    let idle = facts.rtt_idle()?.0 as f64;
    let (before, after) = facts.round_trips_around(step.at)?;
    let lost = facts.loss_episodes.iter().filter(|e| e.at_ns >= step.at.as_ns() && e.retransmits > 0).count();
    if lost < LOSSES || after > (1.0 + NO_QUEUE) * idle || before < (1.0 + 2.0 * NO_QUEUE) * idle {
        return None;
    }
    let finding = Finding::new(Limit::Policer, Place::path(), Confidence::Medium)
        .evidence([
            Evidence::share(
                fact::RateStep {
                    before: Bps(step.before),
                    after: Bps(step.after),
                    at: step.at,
                    clearness: Count(step.clearness),
                },
                step.ratio(),
            )
            .at_most(RATE),
            Evidence::time(
                fact::QueueBeforeLosses { least: Nanos(idle as u64) },
                Nanos((after - idle).max(0.0) as u64),
            )
            .at_most(NO_QUEUE * idle),
        ])
        .evidence(observed::retransmitted(facts))
        .remedy(Remedy::new(Action::ShapeToRate).value(Quantity::rate(step.after)));
    Some(finding)
}
