//! Facts in words, one file per group.

mod datagrams;
mod losses;
mod path;
mod rates;
mod seen;
mod sockets;
mod time;
mod windows;

use bdp_model::finding::{Evidence, Fact, Finding, Observed};

use seen::Seen;

pub(super) use seen::{nanos, reached};
pub(super) use windows::{in_flight, of_each, streams};

/// Returns a fact as a sentence without its full stop.
pub(super) fn text(finding: &Finding, evidence: &Evidence) -> String {
    let seen = &Seen::of(finding, evidence);
    match evidence.observed() {
        Some(Observed::Windows(fact)) => windows::of_window(seen, fact),
        Some(Observed::Settings(fact)) => windows::of_setting(seen, fact),
        Some(Observed::Rates(fact)) => rates::of_rate(seen, fact),
        Some(Observed::Queues(fact)) => rates::of_queue(seen, fact),
        Some(Observed::Losses(fact)) => losses::of_loss(seen, fact),
        Some(Observed::Changes(fact)) => path::of_change(seen, fact),
        Some(Observed::Time(fact)) => time::of_time(seen, fact),
        Some(Observed::Path(fact)) => path::of_path(seen, fact),
        Some(Observed::Gaps(fact)) => path::of_gap(seen, fact),
        Some(Observed::Beginning(fact)) => time::of_beginning(seen, fact),
        Some(Observed::Processors(fact)) => time::of_processor(seen, fact),
        Some(Observed::Datagrams(fact)) => datagrams::of_datagrams(seen, fact),
        Some(Observed::Sockets(fact)) => sockets::of_socket(seen, fact),
        Some(Observed::Experiments(fact)) => sockets::of_experiment(seen, fact),
        // A document from another version may have fewer numbers than the sentence needs.
        None => format!("{} is {}", evidence.fact.name(), seen.number()),
    }
}

/// Returns a fact as a continuation of the previous one's line, if the two belong together.
pub(super) fn joined(finding: &Finding, before: Fact, evidence: &Evidence) -> Option<String> {
    let seen = Seen::of(finding, evidence);
    Some(match (before, evidence.fact) {
        (Fact::OfWindowRate, Fact::WindowFull) => format!(", window full {} of the time", seen.share()),
        (Fact::WindowShrunk, Fact::WindowFull) => format!(", and full {} of the time", seen.share()),
        (Fact::OfFlightRate, Fact::KernelCountsSendBuffer) => {
            format!(", send buffer full {} of the time", seen.share())
        }
        (Fact::ScalingUsed, Fact::ScalingUsed) => format!(
            ", {} does not: a middlebox removed the window scale option from one segment of the handshake (RFC 7323, \
             section 2.2)",
            seen.host()
        ),
        (Fact::Retransmitted, Fact::NeedlessRetransmits) if evidence.value > 0.0 => {
            format!("; {:.0} needlessly, {}", evidence.value, losses::HAD_ALREADY)
        }
        (Fact::Retransmitted, Fact::NeedlessRetransmits) => "; none needlessly (DSACK)".to_owned(),
        (Fact::RetransmittedShare, Fact::NoQueue) => format!(", and {}", text(finding, evidence)),
        (Fact::Gap, Fact::GapShare) => format!(", {} of the time", seen.share()),
        (Fact::RateHeld, Fact::LostAsAllowed) => format!(": {}", text(finding, evidence)),
        _ => return None,
    })
}
