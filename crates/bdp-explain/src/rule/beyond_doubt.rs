//! Whether anything else could hold back a transfer besides its finding, which is then not beyond doubt.

use bdp_model::facts::{Facts, TimeState, Waits};
use bdp_model::finding::{Confidence, Finding, Limit};

use crate::rule::reordering;

/// Retransmitted / delivered segments: fewer losses cost a window, a program or a buffer little.
const LOST: f64 = 0.01;
/// Share of the time spent in loss recovery.
const REPAIRS: f64 = 0.1;
/// Share of the time that a program, a window or a buffer takes, besides the path.
const OF_HOSTS: f64 = 0.1;
/// Share of probes lost on the reverse path under load: acknowledgements are lost too.
const LOST_BACK: f64 = 0.1;

/// Lowers a high confidence if there is doubt.
pub fn temper(facts: &Facts, finding: Finding) -> Finding {
    let doubt = match finding.limit {
        // These are certain regardless: a rate that is kept or reached, options that are gone, packets that vanish.
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

/// Whether segments or acknowledgements are lost, in addition to a program, a window or a buffer.
fn losses_beside(facts: &Facts) -> bool {
    facts.retransmitted_share().is_some_and(|share| share >= LOST)
        || facts.time_counted().is_some_and(|spent| spent.repairs() >= REPAIRS)
        || facts.probes_lost_back().is_some_and(|share| share >= LOST_BACK)
}

/// Whether, in addition to losses, hosts hold back the sender, segments are reordered, or acknowledgements are lost.
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
