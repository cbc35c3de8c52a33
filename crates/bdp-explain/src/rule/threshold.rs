//! Losses at a threshold: of a queue shorter than the bursts that arrive, or of a policer. The queue tells them apart.

use bdp_model::facts::{Facts, LossPicture};
use bdp_model::finding::fact::{self, Bps};
use bdp_model::finding::threshold::{AT_PEAK, QUEUE_NOISE};
use bdp_model::finding::{Action, Confidence, Evidence, Fact, Finding, Limit, Place, Quantity, Remedy};
use bdp_model::units::Nanos;

use crate::observed;
use crate::rule::reordering;

/// Fewer losses give no variation.
const EVENTS_MIN: usize = 3;
/// Losses at rates that vary by less occur at a threshold.
const AT_ONE_RATE: f64 = 0.16;
/// Segments lost at the end of slow start, and their share of those in flight, that show a threshold.
const OVERSHOT: (u64, f64) = (4, 0.2);
/// Segments of a later loss, and their share, if there are few losses: a loss at any rate costs a few segments.
const COST_AT_ONCE: (f64, f64) = (20.0, 0.1);
/// Smallest share that a model-based sender retransmits if what it adds when probing is dropped.
const PROBING_LOST: f64 = 0.005;
/// Steady goodput: lower / upper quartile.
const STEADY: f64 = 0.8;
/// Smallest visible queue: delay / minimum round trip, and delay; more than this many of the sender's own segments wait behind each
/// other at the highest rate.
const QUEUE_SEEN: (f64, Nanos, f64) = (0.02, Nanos::micros(300), 3.0);
/// Queue just before losses / minimum round trip from which it is not short.
pub const QUEUE_LONG: f64 = 0.25;
/// The ratio from which it is not short, whatever probes saw.
pub const QUEUE_ANYWAY: f64 = 0.5;
/// The ratio from which it is certainly not short.
const QUEUE_SURE: f64 = 0.35;
/// Fewest small probes, and smallest share, that a full queue drops like segments: a policer lets them pass.
const PROBES_LOST: (u64, f64) = (2, 0.005);
/// Segments of a loss with accumulated tokens, and their share of those in flight.
const COSTS_MANY: (f64, f64) = (4.0, 0.05);
/// Largest loss caused by a queue, for a sender that adds a segment per round trip.
const COSTS_LITTLE: (f64, f64) = (2.5, 0.03);
/// Largest share of the segments in flight at the end of slow start that a queue drops: half, as the window doubles in a round trip.
const OVERSHOT_QUEUE: f64 = 0.55;
/// Share above which it was a policer, which lacks tokens for whole round trips; between the two it may be either.
const OVERSHOT_POLICER: f64 = 0.65;
/// The share from which it may be either, if nothing else is known.
const OVERSHOT_EITHER: f64 = 0.45;
/// Fewest segments that make a share meaningful.
const OVERSHOT_MANY: u64 = 20;
/// The share beyond doubt: more than were in flight at once.
const OVERSHOT_ALL: f64 = 1.0;
/// A model-based sender that probes with a quarter more loses a fifth of the segments in flight to a full queue, and more to a policer, without a
/// queue to slow it.
const PROBED_LOST: f64 = 0.25;
/// Share of probes lost outside the data's own direction from which acknowledgements are lost.
const ACKNOWLEDGEMENTS_LOST: f64 = 0.1;
/// Largest round trip that is no longer than two of the kernel's bursts (`tcp_tso_autosize`).
const BURSTS: Nanos = Nanos::millis(2);
/// With fewer segments in flight, one more or less changes the rate too much.
const SEGMENTS_MIN: f64 = 8.0;

/// Claims a short queue, or a policer.
pub fn judge(facts: &Facts) -> Option<Finding> {
    if facts.busy_thread().is_some() {
        return None;
    }
    let picture = facts.loss_picture()?;
    // The end of slow start alone, with delays on the reverse path, says nothing about later times.
    if picture.settled == 0 && !facts.is_paced() && only_way_back_waits(facts) {
        return None;
    }
    if let Some(finding) = congestion(facts, &picture) {
        return Some(at_rate(facts).unwrap_or(finding));
    }
    let lost = facts.retransmitted_share()?;
    let least = facts.rtt_least()?;
    let in_flight = facts.stream_bps() * least.as_secs_f64() / 8.0 / facts.mss_bytes? as f64;
    if in_flight < SEGMENTS_MIN {
        return None;
    }
    if picture.settled == 0 && !facts.is_paced() && is_disturbed(facts) {
        return None;
    }
    let met = if facts.is_paced() { probing(facts, lost)? } else { going_by_losses(&picture)? };
    let bound = queue_bound(facts, least)?;
    let queue = most_queue(facts, &picture);
    let dropped = facts
        .probes_lost_there()
        .filter(|&(lost, of)| lost >= PROBES_LOST.0 && lost as f64 >= PROBES_LOST.1 * of as f64);
    let is_seen = dropped.is_some()
        || match facts.is_paced() {
            true if picture.settled > 0 => picture.lost_share <= PROBED_LOST,
            true => queue.0 as f64 >= bound,
            false => is_queue(&picture, seen_by(facts, &picture, bound), least)?,
        };
    let evidence = Evidence::time(fact::QueueBeforeLosses { least }, queue);
    // Several losses at one rate are a threshold; the size of a single one may be that, or a burst at a bad moment.
    let at_one_rate = met.iter().any(|e| e.fact == Fact::LossesAtOneRate) && picture.settled > EVENTS_MIN;
    let confidence = match at_one_rate && met.len() > 1 {
        true => Confidence::High,
        false => Confidence::Medium,
    };
    // A loss-based sender has a peak of its own only after some losses.
    let is_settled = picture.settled >= EVENTS_MIN || facts.sends_by_model();
    if is_seen
        && is_settled
        && let Some(finding) = at_rate(facts)
    {
        return Some(finding);
    }
    let finding = match is_seen {
        true => Finding::new(Limit::ShallowQueue, Place::path(), confidence)
            .evidence(met)
            .evidence([evidence])
            .evidence(dropped.map(|(lost, of)| {
                Evidence::share(fact::ProbesLost { before: None }, lost as f64 / of.max(1) as f64)
                    .at_least(PROBES_LOST.1)
                    .samples(lost, of)
            }))
            .remedy(Remedy::new(Action::DeepenQueue)),
        false => Finding::new(Limit::Policer, Place::path(), confidence)
            .evidence(met)
            .evidence([evidence])
            .remedy(Remedy::new(Action::ShapeToRate).value(Quantity::rate(facts.goodput_bps))),
    };
    Some(finding.evidence(observed::retransmitted(facts)))
}

/// The path's rate, for a sender at its peak though a queue drops what it adds: a longer queue would give it no more.
fn at_rate(facts: &Facts) -> Option<Finding> {
    let reached = observed::of_peak(facts, AT_PEAK)?;
    let steady = facts.steadiness().filter(|&steady| steady >= STEADY)?;
    let finding = Finding::new(Limit::PathRate, Place::path(), Confidence::Medium)
        .evidence([
            reached,
            Evidence::share(fact::Steady { goodput: Bps(facts.goodput_bps) }, steady).at_least(STEADY),
        ])
        .evidence(observed::retransmitted(facts))
        .remedy(Remedy::new(Action::AddCapacity))
        .missing(observed::nic_speed(facts));
    Some(finding)
}

/// Whether a loss-based sender's losses are caused by a queue, with the queue seen; `None` if they may be caused by either.
fn is_queue(picture: &LossPicture, seen_by: usize, least: Nanos) -> Option<bool> {
    let is_seen = seen_by > 0;
    let many = overshot_many(picture);
    let share = lost_at_once(picture);
    let costly = picture.lost_each >= COSTS_MANY.0 && picture.lost_share >= COSTS_MANY.1;
    if share <= OVERSHOT_ALL && picture.settled > 0 && is_seen && costs_little(picture) {
        return Some(true);
    }
    // A policer has no queue; a queue that everything sees at several losses outweighs how slow start ended.
    if picture.settled >= EVENTS_MIN && seen_by == 2 {
        return (!costly).then_some(true);
    }
    // The kernel sends a millisecond's data at once: with a shorter round trip that is the window, and a burst's loss shows nothing.
    if least < BURSTS {
        return None;
    }
    if share > OVERSHOT_ALL || many && share > OVERSHOT_POLICER {
        return Some(false);
    }
    match picture.settled {
        // A few segments of a single loss are a large share of a young window.
        0 if !many && share > OVERSHOT_EITHER => None,
        0 if share > OVERSHOT_EITHER && share <= OVERSHOT_POLICER => None,
        0 => Some(share <= OVERSHOT_EITHER),
        // A queue drops at most the excess over its rate while slow start doubles; a policer whose tokens run out later drops more.
        settled if settled < EVENTS_MIN => Some(share <= OVERSHOT_QUEUE && (is_seen || !costly)),
        _ if costly && is_seen => None,
        _ => Some(!costly && is_seen),
    }
}

/// Whether losses after slow start cost no more than a window adds that grows by a segment per round trip: a policer has passed more than that by the
/// time its tokens are gone.
fn costs_little(picture: &LossPicture) -> bool {
    picture.lost_each <= COSTS_LITTLE.0 && picture.lost_share <= COSTS_LITTLE.1
}

/// Largest share of the segments in flight lost at once: at the end of slow start or, if that lost none, later.
fn lost_at_once(picture: &LossPicture) -> f64 {
    let later = if picture.settled < EVENTS_MIN { picture.lost_share } else { 0.0 };
    picture.overshoot.map_or(later, |(_, share)| share)
}

/// Losses at a queue that was long before them: an ordinary full queue.
fn congestion(facts: &Facts, picture: &LossPicture) -> Option<Finding> {
    // Segments held back on the path wait as in a queue.
    let few = picture.settled < EVENTS_MIN;
    if observed::held_back(facts) || few && reordering::seen(facts).is_some() {
        return None;
    }
    let least = facts.rtt_least()?;
    let settled = picture.settled >= EVENTS_MIN;
    let queue = if settled { picture.queue } else { picture.queue.max(picture.overshoot_queue) };
    // Small windows lengthen their own round trips; if only slow start met the queue, its losses identify a policer.
    let probes = facts.rtt_added_p95().map_or(1.0, |added| added.as_secs_f64() / least.as_secs_f64());
    let share = queue.as_secs_f64() / least.as_secs_f64();
    let at_once = lost_at_once(picture);
    // An ordinary queue drops half of a doubling window, however long it is.
    let many = overshot_many(picture);
    let by_policer = at_once > OVERSHOT_QUEUE && share < QUEUE_SURE
        || !facts.is_paced()
            && (at_once > OVERSHOT_ALL || many && at_once > OVERSHOT_POLICER && share < QUEUE_ANYWAY);
    let by_others = match settled {
        true => probes < QUEUE_LONG / 2.0 && share < QUEUE_ANYWAY,
        false => by_policer,
    };
    if by_others {
        return None;
    }
    let bound = (QUEUE_LONG * least.0 as f64).max(QUEUE_NOISE.0 as f64);
    (queue.0 as f64 >= bound).then(|| {
        Finding::new(Limit::CongestionLoss, Place::path(), Confidence::Medium)
            .evidence([Evidence::time(fact::QueueBeforeLosses { least }, queue).at_least(bound)])
            .evidence(observed::retransmitted(facts))
            .remedy(Remedy::new(Action::AddCapacity))
    })
}

/// Whether the end of slow start is no evidence of where packets were dropped: reordering triggers recovery long before a loss, and after
/// lost acknowledgements the next one releases a burst.
fn is_disturbed(facts: &Facts) -> bool {
    let lost = facts.probes_lost_shares().map_or(0.0, |(idle, loaded)| idle.max(loaded));
    let on_the_way_back = lost - facts.probes_lost_own_way().unwrap_or(0.0);
    reordering::often_counted(facts).is_some() || on_the_way_back >= ACKNOWLEDGEMENTS_LOST
}

/// Whether load adds delay to the reverse path, and none to the data's own direction.
fn only_way_back_waits(facts: &Facts) -> bool {
    let waits = |added: Option<Nanos>| added.is_some_and(|added| added >= QUEUE_NOISE);
    waits(facts.way_back_added()) && !waits(facts.own_way_added())
}

/// Whether slow start ended by overshooting a threshold.
pub fn overshot(picture: &LossPicture) -> bool {
    picture.overshoot.is_some_and(|(segments, share)| segments >= OVERSHOT.0 && share >= OVERSHOT.1)
}

/// Whether it cost enough segments to judge by their share.
fn overshot_many(picture: &LossPicture) -> bool {
    picture.overshoot.is_some_and(|(segments, _)| segments >= OVERSHOT_MANY)
}

/// Whether each loss after slow start costs many segments.
pub fn costs_many(picture: &LossPicture) -> bool {
    picture.settled >= EVENTS_MIN && picture.lost_each >= COSTS_MANY.0 && picture.lost_share >= COSTS_MANY.1
}

fn queue_bound(facts: &Facts, least: Nanos) -> Option<f64> {
    let own =
        QUEUE_SEEN.2 * facts.mss_bytes? as f64 * 8e9 / facts.delivery_peak_bps().unwrap_or(f64::INFINITY);
    Some((QUEUE_SEEN.0 * least.0 as f64).max(QUEUE_SEEN.1.0 as f64).max(own))
}

/// For a loss-based sender: losses occur at one rate, or in numbers at the end of slow start.
fn going_by_losses(picture: &LossPicture) -> Option<Vec<Evidence>> {
    let at_one_rate = picture.settled >= EVENTS_MIN && picture.variation <= AT_ONE_RATE;
    let few = picture.settled < EVENTS_MIN;
    let at_once = few && picture.lost_each >= COST_AT_ONCE.0 && picture.lost_share >= COST_AT_ONCE.1;
    let costly = costs_many(picture) || at_once;
    if !(at_one_rate || costly || overshot(picture) && few) {
        return None;
    }
    let mut met = Vec::new();
    if at_one_rate {
        met.push(
            Evidence::share(
                fact::LossesAtOneRate { losses: picture.settled as u64, rate: Bps(picture.rate_bps) },
                picture.variation,
            )
            .at_most(AT_ONE_RATE),
        );
    }
    if costly {
        met.extend(observed::lost_each(picture));
    }
    if let Some((segments, share)) = picture.overshoot.filter(|_| overshot(picture)) {
        met.push(Evidence::share(fact::Overshoot { segments }, share).at_least(OVERSHOT.1));
    }
    Some(met)
}

/// For a model-based sender: its goodput is steady, and what it adds is dropped.
fn probing(facts: &Facts, lost: f64) -> Option<Vec<Evidence>> {
    let steady = facts.steadiness().filter(|&steady| steady >= STEADY)?;
    (lost >= PROBING_LOST).then(|| {
        vec![
            Evidence::share(fact::Steady { goodput: Bps(facts.goodput_bps) }, steady).at_least(STEADY),
            Evidence::share(fact::RetransmittedShare, lost).at_least(PROBING_LOST),
        ]
    })
}

/// How many of the two, probes and the sender just before losses, saw a queue of at least `bound` nanoseconds.
fn seen_by(facts: &Facts, picture: &LossPicture, bound: f64) -> usize {
    let probes = facts.rtt_added_p95().unwrap_or_default();
    [probes, picture.queue].into_iter().filter(|queue| queue.0 as f64 >= bound).count()
}

/// The most delay that a queue added, as seen by probes, or by the sender just before losses.
fn most_queue(facts: &Facts, picture: &LossPicture) -> Nanos {
    let probes = facts.rtt_added_p95().unwrap_or_default();
    if facts.is_paced() { probes } else { probes.max(picture.queue) }
}
