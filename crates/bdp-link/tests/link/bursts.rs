//! Gilbert-Elliott loss against its theory: how much is lost, and in how long bursts.

use bdp_link::{DropCause, End, Link, Verdict};
use bdp_model::link::{DirectionConfig, Loss};
use bdp_model::units::{Nanos, Probability};

use crate::{numbered, symmetric};

const PACKETS: u64 = 400_000;

fn gilbert_elliott([to_bad, to_good, loss_good, loss_bad]: [f64; 4]) -> Loss {
    let [to_bad, to_good, loss_good, loss_bad] =
        [to_bad, to_good, loss_good, loss_bad].map(|p| Probability::new(p).expect("a fraction"));
    Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad }
}

fn lost(loss: Loss, seed: u64) -> Vec<bool> {
    let mut link = Link::new(&symmetric(DirectionConfig { loss, ..DirectionConfig::default() }), seed);
    (0..PACKETS)
        .map(|n| {
            while link.pop(Nanos(n)).is_some() {}
            link.enqueue(End::A, numbered(n, 8), Nanos(n)) == Verdict::dropped(DropCause::Loss)
        })
        .collect()
}

#[test]
fn as_much_is_lost_as_both_states_lose() {
    for parameters in
        [[0.01, 0.25, 0.0, 1.0], [0.002, 0.05, 0.001, 0.6], [0.5, 0.1, 0.1, 0.3], [0.3, 0.9, 0.0, 1.0]]
    {
        let [to_bad, to_good, loss_good, loss_bad] = parameters;
        let loss = gilbert_elliott(parameters);
        let bad = to_bad / (to_bad + to_good);
        let expected = bad * loss_bad + (1.0 - bad) * loss_good;
        assert!((loss.probability() - expected).abs() < 1e-12);
        // Neighbours are alike: the state is forgotten by 1 - to_bad - to_good a packet, and so is the covariance of two
        // losses. Summed over all distances it widens the variance of a binomial count.
        let memory = 1.0 - to_bad - to_good;
        let covariance = (loss_bad - loss_good).powi(2) * bad * (1.0 - bad) * memory / (1.0 - memory);
        let variance = PACKETS as f64 * (expected * (1.0 - expected) + 2.0 * covariance);
        assert!(
            (loss.deviation(PACKETS) / variance.sqrt() - 1.0).abs() < 0.01,
            "{}",
            loss.deviation(PACKETS)
        );
        for seed in 1..=3 {
            let count = lost(loss.clone(), seed).into_iter().filter(|lost| *lost).count() as f64;
            let off = (count - PACKETS as f64 * expected).abs();
            assert!(
                off <= 5.0 * variance.sqrt(),
                "{parameters:?}: {count}, off by {off}, sd {}",
                variance.sqrt()
            );
        }
    }
}

#[test]
fn bursts_are_as_long_as_the_bad_state_lasts() {
    for (to_bad, to_good) in [(0.01, 0.25), (0.001, 0.1), (0.2, 0.5), (0.05, 1.0)] {
        for seed in 1..=3 {
            let lost = lost(gilbert_elliott([to_bad, to_good, 0.0, 1.0]), seed);
            let runs: Vec<(bool, usize)> =
                lost.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
            // Geometric: a state left with probability q lasts 1/q packets, with a deviation of sqrt(1 - q) / q.
            for (state, leave) in [(true, to_good), (false, to_bad)] {
                let lengths: Vec<usize> = runs.iter().filter(|(s, _)| *s == state).map(|(_, n)| *n).collect();
                let mean = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
                // The last run is cut off, which shifts the mean by no more than its share.
                let bound = 5.0 * (1.0f64 - leave).sqrt() / leave / (lengths.len() as f64).sqrt()
                    + 1.0 / lengths.len() as f64;
                assert!(
                    (mean - 1.0 / leave).abs() <= bound,
                    "{to_bad}, {to_good}, seed {seed}, lost {state}: {mean} of {}, bound {bound}",
                    lengths.len()
                );
            }
        }
    }
}

/// The mean alone would not tell a geometric distribution from bursts that all are equally long.
#[test]
fn lengths_of_bursts_are_geometric() {
    for (to_bad, to_good) in [(0.01, 0.25), (0.02, 0.1), (0.2, 0.5)] {
        let lost = lost(gilbert_elliott([to_bad, to_good, 0.0, 1.0]), 5);
        let bursts: Vec<usize> = lost.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[_]>::len).collect();
        let count = bursts.len() as f64;
        let share = |length: i32| to_good * (1.0 - to_good).powi(length - 1);
        for length in (1..).take_while(|length| count * share(*length) >= 20.0) {
            let seen = bursts.iter().filter(|burst| **burst == length as usize).count() as f64;
            let (expected, p) = (count * share(length), share(length));
            let bound = 5.0 * (expected * (1.0 - p)).sqrt();
            assert!(
                (seen - expected).abs() <= bound,
                "{to_good}: {seen} bursts of {length} in {count}, expected {expected}, bound {bound}"
            );
        }
    }
}

/// Without memory the two states are one binomial, which ties the model to the simpler one.
#[test]
fn without_memory_bursts_are_those_of_independent_loss() {
    let lost = lost(gilbert_elliott([0.1, 0.9, 0.0, 1.0]), 4);
    let pairs = lost.windows(2).filter(|w| w[0] && w[1]).count() as f64;
    let expected = (PACKETS - 1) as f64 * 0.01;
    assert!((pairs - expected).abs() <= 5.0 * (expected * 1.2).sqrt(), "{pairs}, expected {expected}");
}

#[test]
fn the_states_at_the_edge_are_certain() {
    assert!(lost(gilbert_elliott([1.0, 0.0, 0.0, 1.0]), 1).into_iter().all(|lost| lost));
    assert!(!lost(gilbert_elliott([0.0, 1.0, 0.0, 1.0]), 1).into_iter().any(|lost| lost));
    let alternating = lost(gilbert_elliott([1.0, 1.0, 0.0, 1.0]), 1);
    assert!(alternating.iter().enumerate().all(|(n, lost)| *lost == (n % 2 == 0)));
}
