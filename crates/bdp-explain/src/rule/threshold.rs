//! Losses at a threshold: of a queue that is shorter than the bursts that come, or of a policer. What tells them apart is the queue.

use bdp_model::facts::{Facts, LossPicture};
use bdp_model::finding::{Action, Confidence, Evidence, Fact, Finding, Limit, Place, Quantity, Remedy};
use bdp_model::units::Nanos;

use crate::observed;

/// Fewer losses have no spread to go by.
const EVENTS_MIN: usize = 3;
/// Losses at rates that vary by less come at a threshold.
const AT_ONE_RATE: f64 = 0.16;
/// The end of slow start that lost so many segments, and such a share of those in flight, met a threshold.
const OVERSHOT: (u64, f64) = (8, 0.12);
/// What a sender that probes by a model retransmits at least where what it adds is dropped.
const PROBING_LOST: f64 = 0.005;
/// Steady goodput: lower / upper quartile.
const STEADY: f64 = 0.8;
/// A queue that is seen: its delay / the least round trip, and its delay, at the least.
const QUEUE_SEEN: (f64, Nanos) = (0.02, Nanos::micros(300));

/// Claims a short queue, or a policer.
pub fn judge(facts: &Facts) -> Option<Finding> {
    if facts.busy_thread().is_some() {
        return None;
    }
    let picture = facts.loss_picture()?;
    let lost = facts.counted(|s| s.retransmits)? as f64 / facts.delivered()? as f64;
    let met = if facts.is_paced() { probing(facts, lost)? } else { going_by_losses(&picture)? };
    let least = facts.rtt_least()?;
    let bound = (QUEUE_SEEN.0 * least.0 as f64).max(QUEUE_SEEN.1.0 as f64);
    let queue = most_queue(facts, &picture);
    let is_seen = queue.0 as f64 >= bound;
    let evidence = Evidence::time(Fact::QueueBeforeLosses, queue).with(Quantity::time(least));
    let confidence = match met.len() {
        0 | 1 => Confidence::Medium,
        _ => Confidence::High,
    };
    let finding = match is_seen {
        true => Finding::new(Limit::ShallowQueue, Place::path(), confidence)
            .evidence(met)
            .evidence([evidence.at_least(bound)])
            .remedy(Remedy::new(Action::DeepenQueue)),
        false => Finding::new(Limit::Policer, Place::path(), confidence)
            .evidence(met)
            .evidence([evidence.at_most(bound)])
            .remedy(Remedy::new(Action::ShapeToRate).value(Quantity::rate(facts.goodput_bps))),
    };
    Some(finding.evidence(observed::retransmitted(facts)))
}

/// Whether slow start ended by overshooting a threshold.
pub fn overshot(picture: &LossPicture) -> bool {
    picture.overshoot.is_some_and(|(segments, share)| segments >= OVERSHOT.0 && share >= OVERSHOT.1)
}

/// Of a sender that goes by losses: they come at one rate, or at the end of slow start in numbers.
fn going_by_losses(picture: &LossPicture) -> Option<Vec<Evidence>> {
    let at_one_rate = picture.settled >= EVENTS_MIN && picture.variation <= AT_ONE_RATE;
    let few = picture.settled < EVENTS_MIN;
    if !at_one_rate && !(overshot(picture) && few) {
        return None;
    }
    let mut met = Vec::new();
    if at_one_rate {
        met.push(
            Evidence::share(Fact::LossesAtOneRate, picture.variation)
                .at_most(AT_ONE_RATE)
                .with(Quantity::count(picture.settled as u64))
                .with(Quantity::rate(picture.rate_bps)),
        );
    }
    if let Some((segments, share)) = picture.overshoot.filter(|_| overshot(picture)) {
        met.push(
            Evidence::share(Fact::Overshoot, share).at_least(OVERSHOT.1).with(Quantity::count(segments)),
        );
    }
    Some(met)
}

/// Of a sender that probes by a model: its goodput is steady, and what it adds is dropped.
fn probing(facts: &Facts, lost: f64) -> Option<Vec<Evidence>> {
    let steady = facts.steadiness().filter(|&steady| steady >= STEADY)?;
    (lost >= PROBING_LOST).then(|| {
        vec![
            Evidence::share(Fact::Steady, steady).at_least(STEADY).with(Quantity::rate(facts.goodput_bps)),
            Evidence::share(Fact::RetransmittedShare, lost).at_least(PROBING_LOST),
        ]
    })
}

/// The most that a queue added: as probes saw it, or the sender just before losses.
fn most_queue(facts: &Facts, picture: &LossPicture) -> Nanos {
    let probes = facts.rtt_added_p95().unwrap_or_default();
    if facts.is_paced() { probes } else { probes.max(picture.queue) }
}
