//! A medium that carries one direction at a time: acknowledgements wait for data, and data for acknowledgements.

use bdp_model::facts::Facts;
use bdp_model::finding::{Action, Confidence, Evidence, Fact, Finding, Limit, Place, Quantity, Remedy};
use bdp_model::units::Nanos;

/// What load adds to either way at least, where data goes one way alone.
const ADDED: Nanos = Nanos::millis(1);
/// What it adds to the way back / to the way there: acknowledgements fill no queue of their own, they wait for the data's turn.
const BOTH: (f64, f64) = (0.08, 1.5);
/// Probes lost under load: a way back that is full loses more.
const LOST: f64 = 0.1;

/// Claims a half-duplex medium, where data one way adds delay to both.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let (own, back) = facts.own_way_added().zip(facts.way_back_added())?;
    let lost = facts.probes_lost().map_or(0.0, |(_, loaded)| loaded);
    let ratio = back.as_secs_f64() / own.as_secs_f64().max(1e-9);
    if facts.both_directions
        || own < ADDED
        || back < ADDED
        || !(BOTH.0..=BOTH.1).contains(&ratio)
        || lost >= LOST
    {
        return None;
    }
    let steady = facts.steadiness()?;
    let finding = Finding::new(Limit::HalfDuplex, Place::path(), Confidence::Medium)
        .evidence([
            Evidence::time(Fact::QueueOneWay, own).at_least(ADDED.0 as f64),
            Evidence::time(Fact::QueueWayBack, back)
                .at_least((BOTH.0 * own.0 as f64).max(ADDED.0 as f64))
                .at_most(BOTH.1 * own.0 as f64),
            Evidence::share(Fact::Steady, steady).with(Quantity::rate(facts.goodput_bps)),
        ])
        .remedy(Remedy::new(Action::FixDuplex));
    Some(finding)
}
