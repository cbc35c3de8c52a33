//! How probable what is said is, and what is said where the rules' answer is less probable than another.

use bdp_explain::candidate::{self, Grounds};
use bdp_explain::{explain, unweighed};
use bdp_model::facts::Facts;
use bdp_model::finding::{Confidence, Finding, Limit, Place};
use bdp_model::measurement::Ceiling;

use crate::rules::shape::{lost, plain, retransmit};

/// Losses at any rate on a path that nothing else holds back.
fn lossy() -> Facts {
    let mut facts = plain();
    retransmit(&mut facts, 300);
    facts.loss_episodes = (0..40).map(|i| lost(2 * i, [20, 44, 31, 60][i as usize % 4])).collect();
    facts
}

#[test]
fn terms_are_those_that_were_fitted() {
    let first = Finding::new(Limit::RandomLoss, Place::path(), Confidence::Medium);
    let grounds = Grounds::of(&lossy(), &first);
    let names: Vec<_> = grounds.terms.iter().map(|term| term.0).collect();
    assert_eq!(names, candidate::TERMS, "benches/calibrate --rows fits them");
    assert!(grounds.terms.iter().all(|term| (0.0..=1.0).contains(&term.1)), "{:?}", grounds.terms);
}

#[test]
fn probabilities_add_up_and_their_names_have_bounds() {
    let first = Finding::new(Limit::RandomLoss, Place::path(), Confidence::Medium);
    let likely = Grounds::of(&lossy(), &first).weigh();
    let sum: f64 = likely.iter().map(|one| one.probability).sum();
    assert!((sum - 1.0).abs() < 0.02, "{sum}");
    assert!(likely.is_sorted_by(|a, b| a.probability >= b.probability));
    let names = [0.95, 0.949, 0.8, 0.799, 0.5, 0.499].map(candidate::confidence);
    use Confidence::{High, Low, Medium};
    assert_eq!(names, [Some(High), Some(Medium), Some(Medium), Some(Low), Some(Low), None]);
}

#[test]
fn finding_has_the_probability_of_its_limit_and_its_name() {
    let facts = lossy();
    let first = explain(&facts).swap_remove(0);
    let likely = candidate_of(&facts, first.limit);
    assert_eq!(first.probability, Some(likely));
    assert!(likely >= 0.5 && candidate::confidence(likely) == Some(first.confidence), "{first:#?}");
    assert!(first.candidates.is_empty());
}

#[test]
fn what_is_less_probable_than_not_is_unknown_with_what_it_may_be() {
    // Nothing was seen but what is in flight.
    let first = explain(&plain()).swap_remove(0);
    assert_eq!((first.limit, first.probability), (Limit::Unknown, None));
    let candidates = &first.candidates;
    assert!((1..=3).contains(&candidates.len()), "{candidates:?}");
    assert!(candidates.is_sorted_by(|a, b| a.probability >= b.probability), "{candidates:?}");
    assert!(candidates.iter().all(|one| one.limit != Limit::Unknown && one.probability < 0.5));
}

#[test]
fn limit_that_no_counted_transfer_had_is_said_as_the_rules_say_it() {
    let facts = through_a_full_nic();
    let by_rules = unweighed(&facts);
    assert_eq!(by_rules[0].limit, Limit::Ceiling);
    assert_eq!(explain(&facts), by_rules);
    assert_eq!(by_rules[0].probability, None);
}

/// All that the network card carries.
fn through_a_full_nic() -> Facts {
    let mut facts = plain();
    facts.ceiling = Some(Ceiling { goodput_bps: facts.goodput_bps, by: "the near NIC".to_owned() });
    facts
}

fn candidate_of(facts: &Facts, limit: Limit) -> f64 {
    let likely = bdp_explain::grounds(facts).unwrap().weigh();
    likely.iter().find(|one| one.limit == limit).unwrap().probability
}
