//! Whether anything else is seen that could hold back a transfer, beside what is said to limit it: then that is not beyond doubt.

use bdp_model::facts::{Facts, TimeState, Waits};
use bdp_model::finding::{Confidence, Finding, Limit};

use crate::rule::reordering;

/// Retransmitted segments, of those delivered: what is lost costs a window, a program or a buffer little below.
const LOST: f64 = 0.01;
/// Share of the time that repairs take.
const REPAIRS: f64 = 0.1;
/// Share of the time that a program, a window or a buffer takes beside what the path does.
const OF_HOSTS: f64 = 0.1;
/// Probes lost under load on the way back: acknowledgements are lost as well.
const LOST_BACK: f64 = 0.1;

/// Lowers what is said beyond doubt where there is some.
pub fn temper(facts: &Facts, finding: Finding) -> Finding {
    let doubt = match finding.limit {
        // What is as it is whatever else there may be: a rate that is kept or reached, options that are gone, packets that vanish.
        Limit::Ceiling | Limit::AskedRate | Limit::MtuBlackHole | Limit::Cpu | Limit::HostDrops => false,
        Limit::RandomLoss | Limit::Policer | Limit::ShallowQueue => others_beside_losses(facts),
        Limit::EcnMarks | Limit::HalfDuplex | Limit::ReversePath => hosts(facts) >= OF_HOSTS,
        _ => losses_beside(facts),
    };
    match finding.confidence {
        Confidence::High if doubt => Finding { confidence: Confidence::Medium, ..finding },
        _ => finding,
    }
}

/// Whether segments are lost, or acknowledgements, beside a program, a window or a buffer.
fn losses_beside(facts: &Facts) -> bool {
    facts.retransmitted_share().is_some_and(|share| share >= LOST)
        || facts.time_counted().is_some_and(|spent| spent.repairs() >= REPAIRS)
        || facts.probes_lost_back().is_some_and(|share| share >= LOST_BACK)
}

/// Whether hosts hold back the sender for a part of the time, segments overtake each other, or acknowledgements are lost, beside losses.
fn others_beside_losses(facts: &Facts) -> bool {
    hosts(facts) >= OF_HOSTS
        || reordering::often_counted(facts).is_some()
        || facts.probes_lost_back().is_some_and(|share| share >= LOST_BACK)
}

/// Share of the time that programs, windows and buffers take.
fn hosts(facts: &Facts) -> f64 {
    let is_hosts = |state: TimeState| {
        matches!(state.waits(), Waits::Writer | Waits::Reader | Waits::ReceiveWindow | Waits::SendBuffer)
    };
    facts.time_counted().map_or(0.0, |spent| spent.share_of(is_hosts))
}
