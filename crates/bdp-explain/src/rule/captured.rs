//! A captured sender that neither the path nor the receiver holds back: a congestion window would grow until something is lost or a
//! queue stands, but the data in flight does not.

use bdp_model::facts::{Facts, Source, TimeSpent, TimeState, Waits};
use bdp_model::finding::fact::{self, Bps, Bytes};
use bdp_model::finding::threshold::{SAMPLES_MIN, WINDOW_FREE};
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Lack, Limit, Missing, Place, Remedy};
use bdp_model::tuning::setting::Setting;
use bdp_model::units::Nanos;

use crate::observed;

/// Steady goodput: lower / upper quartile.
const STEADY: f64 = 0.9;
/// Without a queue, the 95th percentile of the round trip is at most this share, and this time, above the minimum.
const FLOOR: (f64, Nanos) = (0.05, Nanos::millis(1));
/// Range of goodput / (in flight / round trip) in which the data in flight explains the goodput.
const FLIGHT_EXPLAINS: std::ops::RangeInclusive<f64> = 0.8..=1.25;
/// A shorter transfer, in round trips, has not finished growing.
const ROUND_TRIPS: u64 = 20;

/// Whether a capture was taken at the sender: elsewhere, what its program did is unknown.
fn is_at_sender(facts: &Facts) -> bool {
    facts.sent.iter().any(|s| s.app_limited.is_some())
}

/// Lowers the confidence of a capture's finding: by one level if it was not taken at the sender, or if a program is blamed whose buffer may
/// be the limit (docs/captures.md shows how often each level is right).
pub fn temper(facts: &Facts, mut finding: Finding) -> Finding {
    // A program that writes evenly looks like a host that limits its rate.
    let is_of_program = matches!(finding.limit, Limit::SlowWriter | Limit::AskedRate);
    let is_blurred = !is_at_sender(facts) || is_of_program;
    if facts.source == Source::Captured && is_blurred {
        finding.confidence = match finding.confidence {
            Confidence::High => Confidence::Medium,
            Confidence::Medium | Confidence::Low => Confidence::Low,
        };
    }
    finding
}

/// Claims the send buffer: the data in flight is constant, is acknowledged within the minimum round trip, and nothing is lost.
pub fn judge(facts: &Facts) -> Option<Finding> {
    if facts.source != Source::Captured || facts.counted(|s| s.retransmits)? > 0 {
        return None;
    }
    // Away from the sender, a program that writes steadily looks the same.
    if !is_at_sender(facts) {
        return None;
    }
    let least = facts.rtt_least()?;
    let above = Nanos(facts.rtt_ns.loaded?.answers().p95?).saturating_sub(least);
    let bound = (FLOOR.0 * least.0 as f64).max(FLOOR.1.0 as f64);
    let counted_ns = facts.duration_ns.saturating_sub(facts.omit_ns);
    let is_past_slow_start = facts.sent.iter().any(|s| s.ssthresh.is_some());
    if above.0 as f64 > bound || !is_past_slow_start || counted_ns < ROUND_TRIPS.saturating_mul(least.0) {
        return None;
    }
    let window =
        facts.window_use().filter(|w| w.samples >= SAMPLES_MIN as u64 && w.receive_full < WINDOW_FREE)?;
    let carried = facts.rate_bps(window.in_flight_bytes)?;
    let reached = facts.stream_bps() / carried;
    let steady = facts.steadiness().filter(|&steady| steady >= STEADY)?;
    if !FLIGHT_EXPLAINS.contains(&reached) {
        return None;
    }
    let name = &facts.sender.name;
    let finding = Finding::new(Limit::SendBuffer, Place::sender(name), Confidence::Low)
        .evidence([
            Evidence::share(
                fact::OfFlightRate {
                    in_flight: Bytes(window.in_flight_bytes),
                    round_trip: facts.rtt_loaded()?,
                    carries: Bps(carried),
                    streams: None,
                },
                reached,
            )
            .at_least(*FLIGHT_EXPLAINS.start())
            .at_most(*FLIGHT_EXPLAINS.end()),
            Evidence::time(fact::RoundTripAboveLeast { round_trip: least + above, least }, above)
                .at_most(bound),
            Evidence::share(fact::Steady { goodput: Bps(facts.goodput_bps) }, steady).at_least(STEADY),
        ])
        .remedy(Remedy::new(Action::RaiseMaximum).setting(Setting::TcpWmem).host(name))
        .missing([Missing::new(Lack::SenderFigures).host(name)]);
    Some(finding)
}

/// Where the time went in a capture; an end that reports itself has more data.
fn of_capture(facts: &Facts) -> Option<TimeSpent> {
    facts.time_spent().filter(|_| facts.source == Source::Captured)
}

/// The last losses were slow start's: since then the path carries its full rate, with a standing queue or at the rate that the sender's model found.
pub fn full_since_the_start(facts: &Facts) -> Option<Finding> {
    const FULL: f64 = 0.5;
    let share =
        of_capture(facts)?.share_of(|state| matches!(state, TimeState::FullPath | TimeState::Probing));
    let settled = facts.loss_picture().map_or(0, |picture| picture.settled);
    let queued = Evidence::share(fact::QueuedMostly, share).at_least(FULL);
    (settled == 0 && share >= FULL).then(|| full(facts, queued, Confidence::Medium))
}

/// A queue stands nearly all the time that the path takes: occasional losses are its overflow.
pub fn full_mostly(facts: &Facts) -> Option<Finding> {
    const NEARLY: f64 = 0.75;
    let spent = of_capture(facts)?;
    let share = spent.share(TimeState::FullPath);
    let of_path = spent.share_of(|state| state.waits() == Waits::Path);
    let queued = Evidence::share(fact::QueuedMostly, share);
    (share > 0.0 && share >= NEARLY * of_path).then(|| full(facts, queued, Confidence::Medium))
}

/// A queue stood, or something was lost, and no more is known.
pub fn plain_path(facts: &Facts) -> Option<Finding> {
    let spent = of_capture(facts)?;
    let share = spent.share(TimeState::FullPath);
    if share < spent.share_of(|state| state.waits() == Waits::Path) - share {
        return losses(facts);
    }
    Some(full(facts, Evidence::share(fact::QueuedMostly, share), Confidence::Low))
}

/// The path is full, by the time in which a queue stood.
fn full(facts: &Facts, queued: Evidence, confidence: Confidence) -> Finding {
    Finding::new(Limit::PathRate, Place::path(), confidence)
        .evidence([queued])
        .evidence(observed::retransmitted(facts))
}

/// Losses with an unknown cause.
fn losses(facts: &Facts) -> Option<Finding> {
    let again = observed::retransmitted(facts)?;
    let spent = facts.time_spent()?;
    let repaired = spent.repairs();
    let queued = facts.loss_picture().zip(facts.rtt_least()).is_some_and(|(picture, least)| {
        picture.queue.0.max(picture.overshoot_queue.0) as f64 >= 0.25 * least.0 as f64
    });
    let limit = if queued { Limit::CongestionLoss } else { Limit::RandomLoss };
    let finding = Finding::new(limit, Place::path(), Confidence::Low)
        .evidence([again, Evidence::share(fact::Repairing, repaired)])
        .remedy(Remedy::new(if queued { Action::AddCapacity } else { Action::FindErrors }));
    Some(finding)
}
