//! The probability that a limit is what holds back a transfer, for each known limit. The rules say which one fits; how often they are right, and
//! which limit applies if they are not, was learned from transfers with a known limit: a multinomial logistic regression, fitted by
//! `benches/calibrate`.
//!
//! The log-odds of a limit are its own constant, plus the weight of each term of the transfer, plus the weight of a rule's claim.

mod terms;
#[rustfmt::skip]
mod weights;

use bdp_model::facts::{Facts, Waits};
use bdp_model::finding::{Action, Confidence, Fact, Finding, Likely, Limit, Place, Quantity, Remedy};

use crate::rule::{self, black_hole, part, unknown};

pub use terms::Term;
pub use weights::TERMS;

/// Smaller shares of the time have no candidates.
const WORTH_A_CANDIDATE: f64 = 0.1;

/// A limit is named from this probability on: more probable than not.
const SAID: f64 = 0.5;
/// Smallest probability of a candidate, and the largest number of candidates.
const WORTH_A_WORD: f64 = 0.1;
const CANDIDATES: usize = 3;

/// Weighs the findings of the rules: they are kept if more probable than not; otherwise the limit that is, or unknown with its
/// candidates. Limits that no calibration transfer had are reported as the rules find them.
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

/// Adds the confidence of the probability. What a host's pause may have caused is at most possible.
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

/// Returns an unknown limit, with candidates that explain what took most of the time.
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

/// Whether a limit may cause what took most of the time.
fn is_cause(limit: Limit, waits: Waits) -> bool {
    limit != Limit::Unknown && (waits == Waits::Unknown || limit.names(waits))
}

/// A limit that a rule claims.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The rule's finding.
    pub finding: Finding,
    /// The share of the time that it would explain.
    pub own_part: f64,
}

/// The basis for weighing the candidates of a transfer.
#[derive(Debug, Clone)]
pub struct Grounds {
    /// The claims of the rules; the first is their result.
    pub claims: Vec<Claim>,
    /// Other observations, each from 0 to 1.
    pub terms: Vec<Term>,
}

impl Grounds {
    /// Collects the grounds of a transfer with this first finding of the rules.
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

    /// The finding for a limit other than the rules' result: a rule's claim, or made from observations. `None` if the limit does not explain the
    /// time.
    fn finding(&self, facts: &Facts, limit: Limit) -> Option<Finding> {
        if !is_cause(limit, largest(facts)) {
            return None;
        }
        let claimed = self.claims.iter().find(|claim| claim.finding.limit == limit);
        claimed.map(|claim| claim.finding.clone()).or_else(|| unclaimed(facts, limit))
    }

    /// The probability of each limit, most probable first.
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

    /// The log-odds of a limit.
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

/// A finding for a limit of the path that no rule claims.
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

/// The confidence of a probability; `None` if it is too small for any.
pub fn confidence(probability: f64) -> Option<Confidence> {
    match probability {
        p if p >= 0.95 => Some(Confidence::High),
        p if p >= 0.8 => Some(Confidence::Medium),
        p if p >= 0.5 => Some(Confidence::Low),
        _ => None,
    }
}

/// A rule's confidence as a number.
const fn strength(confidence: Confidence) -> f64 {
    match confidence {
        Confidence::Low => 0.0,
        Confidence::Medium => 0.5,
        Confidence::High => 1.0,
    }
}
