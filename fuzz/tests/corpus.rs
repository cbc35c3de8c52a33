//! Every input that is kept, and a bounded number made of each target's, by seeds that stay the same.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bdp_fuzz::mutator::Mutator;
use bdp_fuzz::{corpus, targets};

/// Inputs of one target.
const MUTATED: usize = 5_000;

#[test]
fn what_is_kept_holds_and_so_does_what_is_made_of_it() {
    let mut failed = Vec::new();
    for target in targets() {
        let inputs = corpus::inputs(target).unwrap();
        assert!(!inputs.is_empty(), "{} has nothing to begin with", target.name);
        let mut mutator = Mutator::new(5201);
        let mutated = (0..MUTATED).map(|_| mutator.mutate(&inputs));
        let all = inputs.iter().cloned().chain(mutated);
        for input in all {
            if catch_unwind(AssertUnwindSafe(|| (target.run)(&input))).is_err() {
                let path = corpus::keep(target, "panic-", &input).unwrap();
                failed.push(format!("{}: {}", target.name, path.display()));
                break;
            }
        }
    }
    assert!(failed.is_empty(), "kept:\n{}", failed.join("\n"));
}

/// A mutator that changed nothing, or a target that read nothing, would find nothing.
#[test]
fn inputs_differ_and_some_are_still_read() {
    for target in targets() {
        let inputs = corpus::inputs(target).unwrap();
        let mut mutator = Mutator::new(1);
        let made: std::collections::BTreeSet<_> = (0..500).map(|_| mutator.mutate(&inputs)).collect();
        assert!(made.len() > 200, "{}: {} of 500 differ", target.name, made.len());
    }
}

#[test]
fn a_panic_would_be_seen() {
    let held =
        catch_unwind(|| (bdp_fuzz::Target { name: "x", run: |_| panic!("so"), seeds: Vec::new }.run)(b""));
    assert!(held.is_err());
}
