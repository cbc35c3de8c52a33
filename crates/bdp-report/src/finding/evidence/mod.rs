//! Facts in words, a file for each group of kinds.

mod datagrams;
mod losses;
mod path;
mod rates;
mod sockets;
mod time;
mod windows;

use bdp_model::finding::{Evidence, Fact, Finding, Observed, Unit};
use bdp_model::units::Nanos;

use super::quantity::{self, percent, rate, size};

pub(super) use windows::{in_flight, of_each};

/// What was observed, and the finding that rests on it.
struct Seen<'a> {
    finding: &'a Finding,
    evidence: &'a Evidence,
    value: f64,
}

/// A fact as a sentence without its full stop.
pub(super) fn text(finding: &Finding, evidence: &Evidence) -> String {
    let seen = &Seen { finding, evidence, value: evidence.value };
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
        // Another version, or somebody, stored fewer numbers than the sentence has.
        None => format!("{} is {}", evidence.fact.name(), seen.number()),
    }
}

/// How a fact goes on in the line of the one before it, where the two belong together.
pub(super) fn joined(finding: &Finding, before: Fact, evidence: &Evidence) -> Option<String> {
    let seen = Seen { finding, evidence, value: evidence.value };
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

impl Seen<'_> {
    fn share(&self) -> String {
        percent(self.value)
    }

    fn time(&self) -> String {
        quantity::time(nanos(self.value))
    }

    /// The value, in its unit.
    fn number(&self) -> String {
        match self.evidence.unit {
            Unit::Bytes => size(self.value),
            Unit::Ns => self.time(),
            Unit::Bps => rate(self.value),
            Unit::Share => self.share(),
            Unit::Count | Unit::Flag => format!("{:.0}", self.value),
        }
    }

    /// The host that the fact is of, or the one that the finding is about.
    fn host(&self) -> &str {
        let host = self.evidence.host.as_deref().or(self.finding.place.name.as_deref());
        host.unwrap_or("the host")
    }

    fn name(&self) -> &str {
        self.evidence.name.as_deref().unwrap_or("unknown")
    }

    /// Things of which some meet the fact: `9 of 10 probes`.
    fn samples(&self, things: &str) -> String {
        match self.evidence.samples {
            Some(samples) => format!("{} of {} {things}", samples.met, samples.of),
            None => things.to_owned(),
        }
    }
}

/// How much of a rate was reached; no share is more than all.
pub(super) fn reached(share: f64, of_it: &str) -> String {
    /// Less above all of it is the noise of two figures.
    const NOISE: f64 = 0.005;
    match share - 1.0 {
        more if more <= 0.0 => format!("{} {of_it}reached", percent(share)),
        more if more <= NOISE => format!("all {of_it}reached"),
        more => format!("all {of_it}reached and {} more", percent(more)),
    }
}

/// Nanoseconds as they were; findings come from files too.
pub(super) fn nanos(value: f64) -> Nanos {
    Nanos(value.max(0.0) as u64)
}
