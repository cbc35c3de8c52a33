//! A medium that carries one direction at a time: acknowledgements wait for data, and data for acknowledgements.

use bdp_model::facts::Facts;
use bdp_model::finding::fact::{self, Bps};
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Remedy};
use bdp_model::units::Nanos;

use super::reverse_path;

/// What load adds to the way of the data at least, and to the way of the acknowledgements, which fill no queue of their own: they wait for
/// the data's turn.
const ADDED: (Nanos, Nanos) = (Nanos::millis(1), Nanos::micros(400));
/// The same / the time that a full segment takes at the goodput: an acknowledgement waits for part of one at the least.
const OF_SEGMENT: f64 = 0.2;
/// What it adds to the way back / to the way there, at the most: more, and that way has a queue of its own.
const BACK: f64 = 1.5;
/// Probes lost under load: a way back that is full loses more.
const LOST: f64 = 0.1;

/// Claims a half-duplex medium, where data one way adds delay to both.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let (own, back) = facts.own_way_added().zip(facts.way_back_added())?;
    let lost =
        facts.probes_lost_back().or(facts.probes_lost_shares().map(|(_, loaded)| loaded)).unwrap_or(0.0);
    let segment_ns = facts.mss_bytes.unwrap_or(0) as f64 * 8e9 / facts.goodput_bps.max(1.0);
    if facts.both_directions
        || own < ADDED.0
        || back < ADDED.1
        || (back.0 as f64) < OF_SEGMENT * segment_ns
        || back.0 as f64 > BACK * own.0 as f64
        || lost >= LOST
        || facts.probes_fill_a_way()
        || reverse_path::queued(facts).is_some()
    {
        return None;
    }
    // Who waits for less than a segment waited for the one that was on its way: turns cost little beside that, and something else may limit.
    let turns = back > ADDED.0 && back.0 as f64 >= segment_ns;
    let confidence = if turns { Confidence::High } else { Confidence::Medium };
    let finding = Finding::new(Limit::HalfDuplex, Place::path(), confidence)
        .evidence([
            Evidence::time(fact::QueueOneWay { idle: None }, own).at_least(ADDED.0.0 as f64),
            Evidence::time(fact::QueueWayBack { there: Some(own) }, back)
                .at_least(ADDED.1.0 as f64)
                .at_most(BACK * own.0 as f64),
        ])
        .evidence(
            facts
                .steadiness()
                .map(|steady| Evidence::share(fact::Steady { goodput: Bps(facts.goodput_bps) }, steady)),
        )
        .remedy(Remedy::new(Action::FixDuplex));
    Some(finding)
}
