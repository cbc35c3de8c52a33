//! A host that paused: what the pause may have caused is at most possible.
//!
//! A hypervisor that stops a machine, or a scheduler that runs others, delays probes, acknowledgements and reads. Rules may take that for an outage,
//! a queue or a burst of losses.

use bdp_model::facts::Facts;
use bdp_model::finding::fact;
use bdp_model::finding::{Confidence, Evidence, Fact, Finding, Limit};

/// Reach of a pause beyond itself: what waited meanwhile arrives at once.
const REACH: f64 = 2.0;
/// Pause / shorter level of a rate step from which the pause may have caused the step.
const OF_LEVEL: f64 = 0.1;
/// More losses than these are not from a single burst.
const LOSSES_MOST: usize = 2;

/// Lowers the confidence of a finding that a host's pause may have caused, and adds the pause as evidence.
pub fn temper(facts: &Facts, mut finding: Finding) -> Finding {
    let Some(pause) = facts.host_pause().filter(|pause| may_be_of(facts, &finding, pause.0 as f64)) else {
        return finding;
    };
    finding.confidence = Confidence::Low;
    finding.evidence([Evidence::time(fact::HostPaused, pause)])
}

fn may_be_of(facts: &Facts, finding: &Finding, pause_ns: f64) -> bool {
    let of = |fact| finding.observed(fact);
    let gap = of(Fact::Gap).is_some_and(|gap| gap.value <= REACH * pause_ns);
    let step = finding.figures().is_some_and(|fact::RateStep { at, .. }| {
        let at = at.0 as f64;
        pause_ns >= OF_LEVEL * at.min(facts.duration_ns as f64 - at)
    });
    // A single pause does not raise a median; the hosts' usual delay does.
    let usual = REACH * facts.hosts_took_p95().0 as f64;
    let delays = [Fact::QueueOneWay, Fact::QueueRoundTrip, Fact::QueueWayBack, Fact::QueueWayBackP95];
    let delay = delays.into_iter().filter_map(of).any(|queue| queue.value <= usual);
    let is_of_losses = matches!(finding.limit, Limit::CongestionLoss | Limit::ShallowQueue | Limit::Policer);
    let burst = is_of_losses && facts.loss_picture().is_some_and(|picture| picture.events <= LOSSES_MOST);
    gap || step || delay || burst
}
