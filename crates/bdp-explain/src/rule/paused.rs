//! A host that paused: what its pause may have caused is no more than possible.
//!
//! A hypervisor that stops a machine, or a scheduler that has others run, delays probes, acknowledgements and reads. To a rule that looks like an outage, a queue or
//! the losses of a burst.

use bdp_model::facts::Facts;
use bdp_model::finding::fact;
use bdp_model::finding::{Confidence, Evidence, Fact, Finding, Limit};

/// A pause reaches this much further than itself: what waited meanwhile comes at once.
const REACH: f64 = 2.0;
/// Of a step of the rate, the pause / the shorter of the two levels, from which on it may be what makes one.
const OF_LEVEL: f64 = 0.1;
/// More losses than these are of no single burst.
const LOSSES_MOST: usize = 2;

/// Lowers how sure a finding is that a pause of a host may have caused, and names the pause.
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
    // A single pause makes no median longer: what hosts take as a rule does.
    let usual = REACH * facts.hosts_took_p95().0 as f64;
    let delays = [Fact::QueueOneWay, Fact::QueueRoundTrip, Fact::QueueWayBack, Fact::QueueWayBackP95];
    let delay = delays.into_iter().filter_map(of).any(|queue| queue.value <= usual);
    let is_of_losses = matches!(finding.limit, Limit::CongestionLoss | Limit::ShallowQueue | Limit::Policer);
    let burst = is_of_losses && facts.loss_picture().is_some_and(|picture| picture.events <= LOSSES_MOST);
    gap || step || delay || burst
}
