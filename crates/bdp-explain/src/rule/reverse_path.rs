//! The way of the acknowledgements, which loses or delays them, so that data waits for them.

use bdp_model::facts::Facts;
use bdp_model::finding::{Action, Confidence, Evidence, Fact, Finding, Limit, Place, Quantity, Remedy};
use bdp_model::threshold::{QUEUE_NOISE, QUEUE_SHARE};

/// Probes that are lost under load.
const LOST: f64 = 0.1;
/// Segments lost / probes lost: what is lost on the data's own way, both lose.
const DATA_LOST: f64 = 0.34;
/// What load adds to the data's own way / to the way back, at the most.
const OWN_WAY: f64 = 0.5;

/// Claims the way back: probes are lost that segments are not, or load adds delay to that way alone.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let idle_rtt = facts.rtt_idle()?;
    let noise = QUEUE_NOISE.0.max((QUEUE_SHARE * idle_rtt.0 as f64) as u64);
    let own = facts.own_way_added();
    // A queue on the data's own way is there because the bottleneck there is full, however acknowledgements fare.
    if own.is_some_and(|own| {
        own.0 >= noise && facts.way_back_added().is_none_or(|back| own.0 as f64 > OWN_WAY * back.0 as f64)
    }) {
        return None;
    }
    let lost = facts.probes_lost().filter(|&(_, loaded)| loaded >= LOST);
    let lost = lost.zip(facts.retransmitted_share()).filter(|&((_, loaded), data)| data < DATA_LOST * loaded);
    let delayed = facts.way_back_added().filter(|back| back.0 >= noise);
    if facts.both_directions || lost.is_none() && delayed.is_none() {
        return None;
    }
    let confidence = if lost.is_some() && delayed.is_some() { Confidence::High } else { Confidence::Medium };
    let finding = Finding::new(Limit::ReversePath, Place::way_back(), confidence)
        .evidence(delayed.map(|back| {
            let evidence = Evidence::time(Fact::QueueWayBack, back).at_least(noise as f64);
            match own {
                Some(own) => evidence.with(Quantity::time(own)),
                None => evidence,
            }
        }))
        .evidence(lost.into_iter().flat_map(|((idle, loaded), data)| {
            [
                Evidence::share(Fact::ProbesLost, loaded).at_least(LOST).with(Quantity::share(idle)),
                Evidence::share(Fact::RetransmittedShare, data).at_most(DATA_LOST * loaded),
            ]
        }))
        .remedy(Remedy::new(Action::FixWayBack).host(&facts.sender.name));
    Some(finding)
}
