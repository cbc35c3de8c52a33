//! Losses at any rate that keep the congestion window small while no queue stands.
//!
//! A loss-based sender always satisfies its own response function, whatever the cause of the losses. What differs is the rate at
//! which they occur: a threshold, of a policer or a queue, is met at about the same rate each time, and overshot by far at the end of slow start;
//! losses independent of the load occur at any rate, one or a few segments at a time (`benches/explain` has the figures behind the bounds).

use bdp_model::facts::{Facts, LossPicture, SettledLosses};
use bdp_model::finding::fact::{self, Bps, Share};
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Remedy};
use bdp_model::path::{cubic, mathis};

use crate::observed;
use crate::rule::threshold::{self, QUEUE_ANYWAY, QUEUE_LONG};

/// Fewer losses give no variation.
const EVENTS_MIN: usize = 4;
/// Losses at rates that vary by more than this are independent of the load.
const AT_ANY_RATE: f64 = 0.2;
/// Bounds if slow start ended by a loss of so few segments, and such a share of those in flight: a threshold is overshot by more.
const ENDED_BY: (u64, f64, f64) = (2, 0.1, 0.12);
/// Losses after slow start that outweigh its end, which may have met a queue.
const SETTLED: usize = 8;
/// Largest round trip of probes added by load (95th percentile) / minimum round trip.
const PROBES_QUEUE: f64 = 0.1;
/// A loss of this many segments met a threshold with accumulated tokens.
const MANY: f64 = 8.0;
/// Goodput / peak from which such a loss did too: losses at any rate leave a sender well below its peak.
const NEAR_PEAK: f64 = 0.8;

/// Claims losses that come at any rate.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let picture = facts.loss_picture().filter(|_| !facts.is_paced())?;
    let least = facts.rtt_least()?;
    // A small window lengthens its own round trip by delayed acknowledgements; parallel probes see only queues.
    let is_queued = picture.queue.as_secs_f64() > QUEUE_LONG * least.as_secs_f64()
        && (picture.queue.as_secs_f64() > QUEUE_ANYWAY * least.as_secs_f64()
            || facts
                .rtt_added_p95()
                .is_none_or(|added| added.as_secs_f64() > PROBES_QUEUE * least.as_secs_f64()));
    let near_peak = facts.of_peak().is_some_and(|reached| reached >= NEAR_PEAK);
    let by_chance =
        picture.overshoot.is_some_and(|(segments, share)| segments <= ENDED_BY.0 && share <= ENDED_BY.1);
    let varies = if by_chance { ENDED_BY.2 } else { AT_ANY_RATE };
    if picture.settled < EVENTS_MIN
        || picture.variation < varies
        || picture.settled < SETTLED && threshold::overshot(&picture)
        || threshold::costs_many(&picture) && (picture.lost_each >= MANY || near_peak)
        || is_queued
    {
        return None;
    }
    let settled = facts.settled_losses().filter(|settled| settled.share > 0.0)?;
    let queue = Evidence::time(fact::QueueBeforeLosses { least }, picture.queue);
    let finding = Finding::new(Limit::RandomLoss, Place::path(), confidence(&picture))
        .evidence([
            Evidence::share(fact::RetransmittedShare, settled.share),
            Evidence::share(fact::LossesAtAnyRate { losses: picture.settled as u64 }, picture.variation)
                .at_least(varies)
                .named(&facts.congestion_control),
        ])
        .evidence(observed::lost_each(&picture))
        .evidence([match picture.queue.as_secs_f64() <= QUEUE_LONG * least.as_secs_f64() {
            true => queue.at_most(QUEUE_LONG * least.0 as f64),
            false => queue,
        }])
        .evidence(model(facts, settled))
        .remedy(Remedy::new(Action::FindErrors));
    Some(finding)
}

/// Ten losses at rates that differ by a quarter are not from a threshold.
fn confidence(picture: &LossPicture) -> Confidence {
    match () {
        // Slow start met a threshold all the same.
        () if threshold::overshot(picture) => Confidence::Medium,
        () if picture.settled >= 10 && picture.variation >= 0.25 => Confidence::High,
        () if picture.settled >= 6 => Confidence::Medium,
        () => Confidence::Low,
    }
}

/// Rate by the congestion control's response function for such losses. Its probability counts window reductions, however many segments were
/// lost at a time (Mathis et al., section 2: a congestion signal), and excludes slow start, which precedes the steady state.
fn model(facts: &Facts, settled: SettledLosses) -> Option<Evidence> {
    let (mss, rtt) = facts.mss_bytes.zip(facts.rtt_loaded())?;
    if settled.reductions == 0 || settled.delivered == 0 {
        return None;
    }
    let signals = (settled.reductions as f64 / settled.delivered as f64).min(1.0);
    let (loss, goodput) = (Share(signals), Bps(facts.goodput_bps));
    let of_all = |bps: f64| f64::from(facts.streams()) * bps;
    match facts.congestion_control.as_str() {
        "reno" => {
            let bps = mathis::rate_bps(mss, rtt, signals, mathis::C_INDEPENDENT);
            Some(Evidence::rate(fact::MathisRate { loss, goodput }, of_all(bps)))
        }
        "cubic" => {
            let bps = cubic::independent_rate_bps(mss, rtt, signals);
            Some(Evidence::rate(fact::CubicRate { loss, goodput }, of_all(bps)))
        }
        _ => None,
    }
}
