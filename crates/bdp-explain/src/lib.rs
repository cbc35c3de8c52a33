//! From what is known of a transfer to what limits it. Nothing here measures: facts go in, findings come out.
//!
//! Each rule is one file under `rule` and either claims the limit, with its evidence, or does not; [`explain`] asks
//! them in an order in which an earlier answer makes the later ones meaningless. What no rule claims is unknown, and
//! said to be. [`hops`] does the same for the probes of a path.
#![forbid(unsafe_code)]

mod ceiling;
pub mod hops;
mod next;
mod observed;
pub mod plan;
mod rule;
mod setting;
pub mod stream;
pub mod twin;

use bdp_model::facts::{Facts, Source, Waits};
use bdp_model::finding::{Confidence, Fact, Finding, Limit};

pub use ceiling::ceiling;
pub use rule::watched_account::outage_over;

/// What limits a transfer, be it of a measurement or of the lab: the first finding. Further ones stand beside it.
pub fn explain(facts: &Facts) -> Vec<Finding> {
    let findings = of(facts);
    debug_assert!(agree(facts, &findings), "{findings:#?} beside {:#?}", facts.time_counted());
    findings
}

fn of(facts: &Facts) -> Vec<Finding> {
    if let Some(finding) = rule::datagrams::judge(facts) {
        return vec![finding];
    }
    if facts.through_tunnel {
        return vec![rule::unknown::through_tunnel()];
    }
    match &facts.conversation {
        Some(conversation) if facts.source == Source::Watched => {
            rule::watched_account::explain(facts, conversation)
        }
        Some(conversation) => rule::conversation::explain(facts, conversation),
        None => rule::transfer::explain(facts),
    }
}

/// Whether what is said to limit a transfer is what most of its time went to. Those whose time is not known, and datagrams, have nothing to agree with.
fn agree(facts: &Facts, findings: &[Finding]) -> bool {
    let waits = rule::part::largest(facts).map(|largest| largest.0);
    let Some((waits, first)) = waits.zip(findings.first()) else { return true };
    // A connection that is left open: nothing at all is most of its time.
    let is_left_open = first.observed(Fact::LeftOpen).is_some();
    // A program that pauses, where nobody knows the cause of what took most.
    let pauses =
        matches!(first.limit, Limit::SlowWriter | Limit::SlowReader) && first.confidence == Confidence::Low;
    is_left_open || pauses || waits == Waits::Unknown || rule::part::names(first.limit, waits)
}
