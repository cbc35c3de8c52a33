//! Explains what limits a transfer. Nothing here measures: facts go in, findings come out.
//!
//! Each rule is one file under `rule` and either claims the limit, with its evidence, or does not; [`explain`] tries
//! them in an order in which an earlier answer makes later ones meaningless. If no rule claims the limit, it is reported as
//! unknown. [`hops`] does this for the probes of a path.
#![forbid(unsafe_code)]

mod buffer;
pub mod candidate;
mod capacity;
mod ceiling;
pub mod experiment;
pub mod hops;
mod next;
mod observed;
pub mod plan;
mod remedies;
mod rule;
mod scaling;
mod setting;
pub mod stream;
pub mod twin;

use bdp_model::facts::{Facts, Source, Waits};
use bdp_model::finding::{Fact, Finding, Limit};

pub use ceiling::ceiling;
pub use rule::watched_account::outage_over;

/// Returns what limits a transfer (the first finding), and further findings that apply as well.
pub fn explain(facts: &Facts) -> Vec<Finding> {
    let findings = match is_weighed(facts) {
        true => candidate::weighed(facts, by_rules(facts)),
        false => by_rules(facts),
    };
    let findings = checked(facts, findings);
    debug_assert!(agree(facts, &findings), "{findings:#?} beside {:#?}", facts.time_counted());
    findings
}

/// Returns the findings of the rules, before they are weighed by how often the rules are right.
pub fn unweighed(facts: &Facts) -> Vec<Finding> {
    checked(facts, by_rules(facts))
}

/// Returns the basis for weighing a transfer's candidates; `None` if they are not weighed.
pub fn grounds(facts: &Facts) -> Option<candidate::Grounds> {
    let findings = is_weighed(facts).then(|| by_rules(facts))?;
    Some(candidate::Grounds::of(facts, findings.first()?))
}

/// Keeps only the remedies and evidence that are valid.
fn checked(facts: &Facts, findings: Vec<Finding>) -> Vec<Finding> {
    findings.into_iter().map(|finding| finite(remedies::check(facts, finding))).collect()
}

/// Whether the weights were fitted to transfers of this kind: bulk TCP data, seen from its ends, with enough samples to know its time.
fn is_weighed(facts: &Facts) -> bool {
    let is_bulk = facts.udp.is_none() && !facts.through_tunnel && facts.conversation.is_none();
    is_bulk && rule::part::largest(facts).is_some()
}

fn by_rules(facts: &Facts) -> Vec<Finding> {
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
        None => rule::experiment::decide(facts, rule::transfer::explain(facts)),
    }
}

/// Removes values that are not numbers: a ratio to zero, such as to a socket that never had bytes in flight, is not evidence.
fn finite(mut finding: Finding) -> Finding {
    let is_number = |value: f64| value.is_finite();
    finding.evidence.retain(|evidence| evidence.numbers().all(is_number));
    finding.next =
        finding.next.filter(|next| is_number(next.goodput_bps) && next.needed_bytes.is_none_or(is_number));
    if let Some(remedy) = &mut finding.remedy {
        remedy.value = remedy.value.filter(|&value| is_number(value));
    }
    finding
}

/// Whether the findings agree with where most of the time went. If that is unknown, and for datagrams, there is nothing to compare.
fn agree(facts: &Facts, findings: &[Finding]) -> bool {
    let waits = rule::part::largest(facts).map(|largest| largest.0);
    let Some((waits, first)) = waits.zip(findings.first()) else { return true };
    // A connection left open: it was idle for most of its time.
    let is_left_open = first.observed(Fact::LeftOpen).is_some();
    // A program that pauses, if the cause of the largest part is unknown.
    let pauses = matches!(first.limit, Limit::SlowWriter | Limit::SlowReader)
        && facts.time_counted().is_some_and(|spent| {
            spent.parts().iter().any(|part| first.limit.names(part.0) && part.1 >= rule::part::PAUSES)
        });
    is_left_open || pauses || waits == Waits::Unknown || first.limit.names(waits)
}

#[cfg(test)]
mod tests {
    use bdp_model::finding::fact::{self, Bytes};
    use bdp_model::finding::{Action, Confidence, Evidence, Limit, Next, Place, Quantity, Remedy};

    use super::*;

    #[test]
    fn a_ratio_to_nothing_is_no_evidence() {
        let inf = f64::INFINITY;
        let finding = Finding::new(Limit::SendBuffer, Place::path(), Confidence::Low)
            .evidence([
                Evidence::share(fact::QueuedMostly, inf),
                Evidence::share(fact::BufferPayload { buffer: Bytes(f64::NAN) }, 0.5),
                Evidence::share(fact::Starved, 0.7),
            ])
            .next(Next { limit: Limit::PathRate, goodput_bps: inf, needed_bytes: None })
            .remedy(Remedy::new(Action::RaiseMaximum).value(Quantity::bytes(f64::NAN)));
        let kept = finite(finding);
        assert_eq!(kept.evidence, [Evidence::share(fact::Starved, 0.7)]);
        assert_eq!((kept.next, kept.remedy.unwrap().value), (None, None));
    }
}
