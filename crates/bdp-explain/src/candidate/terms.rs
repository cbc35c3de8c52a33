//! Observations of a transfer besides the rules' claims, each as a number from 0 to 1.

use bdp_model::facts::{Facts, TimeSpent, TimeState, Waits};
use bdp_model::units::Nanos;

use crate::observed;
use crate::rule::reordering;

/// A term: its name and its value.
pub type Term = (&'static str, f64);

/// The terms of a transfer, from where its time went and the number of other causes that the rules claim.
pub fn of(facts: &Facts, parts: &[(Waits, f64)], others: usize) -> Vec<Term> {
    let spent = facts.time_counted();
    let of = |is_one: &dyn Fn(TimeState) -> bool| spent.as_ref().map_or(0.0, |spent| spent.share_of(is_one));
    let mut shares: Vec<f64> = parts.iter().map(|part| part.1).collect();
    shares.sort_by(|a, b| b.total_cmp(a));
    let least = facts.rtt_least().map_or(1.0, |least| least.as_secs_f64().max(1e-6));
    let round_trips = facts.duration_ns as f64 / 1e9 / least;
    let picture = facts.loss_picture();
    let of_round_trip =
        |added: Option<Nanos>| added.map_or(0.0, |added| (added.as_secs_f64() / least).min(1.0));
    let is = |known: bool| f64::from(u8::from(known));
    vec![
        ("largest_part", shares.first().copied().unwrap_or(0.0)),
        ("second_part", shares.get(1).copied().unwrap_or(0.0)),
        ("other_claims", (others as f64 / 5.0).min(1.0)),
        ("path", of(&|state| state.waits() == Waits::Path)),
        ("full_path", of(&|state| state == TimeState::FullPath)),
        ("probing", of(&|state| state == TimeState::Probing)),
        ("congestion_avoidance", of(&|state| state == TimeState::CongestionAvoidance)),
        ("repairs", spent.as_ref().map_or(0.0, TimeSpent::repairs)),
        ("timeouts", of(&|state| state == TimeState::Timeout)),
        ("slow_start", of(&|state| state == TimeState::SlowStart)),
        ("windows", of(&|state| matches!(state.waits(), Waits::ReceiveWindow | Waits::SendBuffer))),
        ("programs", of(&|state| matches!(state.waits(), Waits::Writer | Waits::Reader))),
        ("not_known", of(&|state| state == TimeState::Unknown)),
        ("retransmitted", log(facts.retransmitted_share().unwrap_or(0.0) * 1e4, 4.0)),
        ("round_trips", log(round_trips, 4.0)),
        ("in_flight", log(facts.stream_bps() * least / 8.0 / facts.mss_bytes.unwrap_or(1448) as f64, 4.0)),
        ("rtt", log(least * 1e4, 4.0)),
        ("several_streams", is(facts.streams() > 1)),
        ("by_model", is(facts.is_paced())),
        ("steady", facts.steadiness().unwrap_or(0.0)),
        ("of_peak", facts.of_peak().unwrap_or(0.0).min(1.0)),
        ("standing_queue", of_round_trip(facts.standing_queue().map(|queue| queue.added))),
        ("queue_never_drains", is(facts.queue_never_drains())),
        ("added_p95", of_round_trip(facts.rtt_added_p95())),
        ("own_way", of_round_trip(facts.own_way_added())),
        ("way_back", of_round_trip(facts.way_back_added())),
        ("lost_back", facts.probes_lost_back().unwrap_or(0.0).min(1.0)),
        ("lost_there", facts.probes_lost_own_way().unwrap_or(0.0).min(1.0)),
        ("overtaken", is(reordering::often_counted(facts).is_some())),
        ("held_back", is(observed::held_back(facts))),
        ("rate_step", is(facts.rate_step().is_some())),
        ("rtt_step", is(facts.rtt_step().is_some())),
        ("gap", is(facts.longest_gap().is_some())),
        ("losses", log(picture.as_ref().map_or(0.0, |p| p.settled as f64), 3.0)),
        ("losses_vary", picture.as_ref().filter(|p| p.settled > 2).map_or(0.0, |p| p.variation.min(1.0))),
        ("lost_each", log(picture.as_ref().map_or(0.0, |p| p.lost_each), 3.0)),
        ("lost_share", picture.as_ref().map_or(0.0, |p| p.lost_share.min(1.0))),
        ("queue_before_losses", of_round_trip(picture.as_ref().map(|p| p.queue))),
        ("overshoot", picture.as_ref().and_then(|p| p.overshoot).map_or(0.0, |(_, share)| share.min(1.0))),
        ("experiments", is(!facts.experiments.is_empty())),
    ]
}

/// A logarithmic scale from 0, limited to 1 at this many decades.
fn log(value: f64, decades: f64) -> f64 {
    ((1.0 + value.max(0.0)).log10() / decades).min(1.0)
}
