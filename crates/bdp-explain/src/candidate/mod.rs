//! How probable it is that a limit is what holds back a transfer, for each limit that bdp knows. The rules say which one fits; how often they are right, and
//! which one it is where they are not, was learned from transfers whose truth is known: a multinomial logistic regression, which `benches/calibrate` fits.
//!
//! The odds of a limit are a constant of its own, plus what each term of the transfer weighs for it, plus what it weighs that a rule claims it.

mod terms;
#[rustfmt::skip]
mod weights;

use bdp_model::facts::{Facts, Waits};
use bdp_model::finding::{Action, Confidence, Fact, Finding, Likely, Limit, Place, Quantity, Remedy};

use crate::rule::{self, black_hole, part, unknown};

pub use terms::Term;
pub use weights::TERMS;

/// Shares of the time that are smaller have no candidates.
const WORTH_A_CANDIDATE: f64 = 0.1;

/// A limit is said from this probability on: more probable than not.
const SAID: f64 = 0.5;
/// What is less probable is no candidate, and of candidates there are so many at most.
const WORTH_A_WORD: f64 = 0.1;
const CANDIDATES: usize = 3;

/// What is said of a transfer, of what the rules say of it: the same, if that is more probable than not; else the limit that is; else that it is unknown, and
/// what it may be. Limits of which no counted transfer had any are said as the rules say them.
pub fn weighed(facts: &Facts, mut findings: Vec<Finding>) -> Vec<Finding> {
    let Some(first) = findings.first() else { return findings };
    if !weights::OF.iter().any(|of| of.limit == first.limit) {
        return findings;
    }
    let grounds = Grounds::of(facts, first);
    let likely = grounds.weigh();
    let said = likely.iter().find(|one| one.limit == first.limit).filter(|_| first.limit != Limit::Unknown);
    let first = match (said, likely.first()) {
        (Some(said), _) if said.probability >= SAID => first.clone(),
        (_, Some(most)) if most.probability >= SAID => match grounds.finding(facts, most.limit) {
            Some(other) => other,
            None => not_known(facts, &likely),
        },
        _ => not_known(facts, &likely),
    };
    let probability = likely.iter().find(|one| one.limit == first.limit).map(|one| one.probability);
    let beside = findings.drain(1..).filter(|beside| beside.limit != first.limit).collect::<Vec<_>>();
    std::iter::once(named(first, probability)).chain(beside).collect()
}

/// With the name of its probability. What a host's pause may have caused is no more than possible.
fn named(finding: Finding, probability: Option<f64>) -> Finding {
    if finding.limit == Limit::Unknown {
        return finding;
    }
    let sure = probability.and_then(confidence).unwrap_or(Confidence::Low);
    let most = match finding.observed(Fact::HostPaused) {
        Some(_) => Confidence::Low,
        None => Confidence::High,
    };
    Finding { confidence: sure.min(most), probability, ..finding }
}

/// That it is unknown, and what it may be, of what is a name for what took most of the time.
fn not_known(facts: &Facts, likely: &[Likely]) -> Finding {
    let waits = largest(facts);
    let may_be = |one: &&Likely| is_cause(one.limit, waits) && one.probability >= WORTH_A_WORD;
    let candidates = likely.iter().filter(may_be).take(CANDIDATES).copied().collect();
    Finding { candidates, ..unknown::judge(facts) }
}

/// What took most of the time.
fn largest(facts: &Facts) -> Waits {
    part::largest(facts).map_or(Waits::Unknown, |largest| largest.0)
}

/// Whether a limit may be the cause of what took most of the time.
fn is_cause(limit: Limit, waits: Waits) -> bool {
    limit != Limit::Unknown && (waits == Waits::Unknown || limit.names(waits))
}

/// A cause that a rule claims.
#[derive(Debug, Clone)]
pub struct Claim {
    /// What would be said.
    pub finding: Finding,
    /// The share of the time that it would explain.
    pub own_part: f64,
}

/// What is known of a transfer to weigh its candidates by.
#[derive(Debug, Clone)]
pub struct Grounds {
    /// What the rules claim; the first is what they say.
    pub claims: Vec<Claim>,
    /// What else was seen, each from 0 to 1.
    pub terms: Vec<Term>,
}

impl Grounds {
    /// Of a transfer of which the rules say this first.
    pub fn of(facts: &Facts, first: &Finding) -> Self {
        let parts = match facts.time_counted() {
            Some(spent) => spent.parts(),
            None => vec![(Waits::Unknown, 1.0)],
        };
        let large = parts.iter().filter(|part| part.1 >= WORTH_A_CANDIDATE);
        let of_parts = large.clone().flat_map(|(waits, _)| rule::causes(facts, *waits));
        let plain = large.map(|&(waits, share)| part::plain(facts, waits, share));
        let mut findings = vec![first.clone()];
        for claim in black_hole::judge(facts).into_iter().chain(of_parts).chain(plain) {
            if claim.limit != Limit::Unknown && findings.iter().all(|other| other.limit != claim.limit) {
                findings.push(claim);
            }
        }
        let own_part = |limit: Limit| {
            let own = parts.iter().filter(|part| limit.names(part.0)).map(|part| part.1);
            own.sum::<f64>().min(1.0)
        };
        let terms = terms::of(facts, &parts, findings.len() - 1);
        let claims = findings.into_iter().map(|finding| Claim { own_part: own_part(finding.limit), finding });
        Self { claims: claims.collect(), terms }
    }

    /// What is said of a limit that is not what the rules say: as a rule claims it, or by what was seen. `None` if it is no name of what took the time.
    fn finding(&self, facts: &Facts, limit: Limit) -> Option<Finding> {
        if !is_cause(limit, largest(facts)) {
            return None;
        }
        let claimed = self.claims.iter().find(|claim| claim.finding.limit == limit);
        claimed.map(|claim| claim.finding.clone()).or_else(|| unclaimed(facts, limit))
    }

    /// How probable each limit is, the most probable first.
    pub fn weigh(&self) -> Vec<Likely> {
        let mut odds: Vec<(Limit, f64)> =
            weights::OF.iter().map(|of| (of.limit, self.odds(of.limit, of))).collect();
        let most = odds.iter().map(|odds| odds.1).fold(f64::NEG_INFINITY, f64::max);
        odds.iter_mut().for_each(|odds| odds.1 = (odds.1 - most).exp());
        let sum: f64 = odds.iter().map(|odds| odds.1).sum();
        let mut all: Vec<Likely> = odds
            .into_iter()
            .map(|(limit, odds)| Likely { limit, probability: (odds / sum * 1e3).round() / 1e3 })
            .collect();
        all.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        all
    }

    /// The logarithm of its odds.
    fn odds(&self, limit: Limit, of: &weights::Of) -> f64 {
        let seen: f64 = self.terms.iter().zip(of.terms).map(|(term, weight)| term.1 * weight).sum();
        let claimed = self.claims.iter().position(|claim| claim.finding.limit == limit).map_or(0.0, |at| {
            let Claim { finding, own_part } = &self.claims[at];
            let strength = strength(finding.confidence);
            let [said, claimed, sure, own, said_surely] = weights::CLAIMED;
            let first = if at == 0 { said + said_surely * strength + of.said } else { 0.0 };
            first + claimed + sure * strength + own * own_part
        });
        of.constant + seen + claimed
    }
}

/// What is said of a limit of the path that no rule claims.
fn unclaimed(facts: &Facts, limit: Limit) -> Option<Finding> {
    let remedy = Remedy::new(match limit {
        Limit::PathRate | Limit::CongestionLoss => Action::AddCapacity,
        Limit::ShallowQueue => Action::DeepenQueue,
        Limit::RandomLoss => Action::FindErrors,
        Limit::Policer => Action::ShapeToRate,
        Limit::CrossTraffic => Action::FindTraffic,
        Limit::Reordering => Action::FindSpreading,
        Limit::ReversePath => Action::FixWayBack,
        Limit::PathChanged => Action::FindOutage,
        _ => return None,
    });
    let remedy = match limit {
        Limit::Policer => remedy.value(Quantity::rate(facts.goodput_bps)),
        _ => remedy,
    };
    Some(
        Finding::new(limit, Place::path(), Confidence::Low)
            .evidence(unknown::judge(facts).evidence)
            .remedy(remedy),
    )
}

/// The name of a probability; `None` of one that is too small to say anything.
pub fn confidence(probability: f64) -> Option<Confidence> {
    match probability {
        p if p >= 0.95 => Some(Confidence::High),
        p if p >= 0.8 => Some(Confidence::Medium),
        p if p >= 0.5 => Some(Confidence::Low),
        _ => None,
    }
}

/// How sure a rule is, as a number.
const fn strength(confidence: Confidence) -> f64 {
    match confidence {
        Confidence::Low => 0.0,
        Confidence::Medium => 0.5,
        Confidence::High => 1.0,
    }
}
