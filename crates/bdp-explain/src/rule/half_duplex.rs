//! A medium that carries one direction at a time: acknowledgements wait for data, and data for acknowledgements.

use bdp_model::facts::Facts;
use bdp_model::finding::fact::{self, Bps};
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Remedy};
use bdp_model::units::Nanos;

use super::reverse_path;

/// Smallest delay added to the data, and to the acknowledgements, which fill no queue of their own: they wait for
/// the data's turn.
const ADDED: (Nanos, Nanos) = (Nanos::millis(1), Nanos::micros(400));
/// Smallest delay added / time of a full segment at the goodput: an acknowledgement waits for at least part of a segment.
const OF_SEGMENT: f64 = 0.2;
/// Largest delay added to the reverse path / to the forward path: above it the reverse path has a queue of its own.
const BACK: f64 = 1.5;
/// Share of probes lost under load: a full reverse path loses more.
const LOST: f64 = 0.1;

/// Claims a half-duplex medium if data in one direction adds delay to both.
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
    // A wait shorter than a segment was for the one being sent: turns cost little then, and something else may be the limit.
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
