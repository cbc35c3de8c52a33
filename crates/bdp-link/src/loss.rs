//! Loss on the way to the queue, decided by a packet's index alone.

use bdp_model::link::Loss;
use bdp_model::units::Probability;

use crate::end::End;
use crate::random::Draws;

/// The loss of one direction.
#[derive(Debug, Clone)]
pub(crate) enum LossModel {
    None,
    /// One draw a packet.
    Independent {
        probability: Probability,
        draws: Draws,
    },
    Periodic(u64),
    GilbertElliott(Box<GilbertElliott>),
    /// Ascending.
    List(Vec<u64>),
}

impl LossModel {
    pub(crate) fn new(loss: &Loss, seed: u64, from: End) -> Self {
        match loss {
            Loss::None | Loss::Periodic(0) => Self::None,
            Loss::Independent(probability) => {
                Self::Independent { probability: *probability, draws: Draws::new(seed, from, b"loss", 1) }
            }
            Loss::Periodic(period) => Self::Periodic(*period),
            &Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                let draws = Draws::new(seed, from, b"gilb", 2);
                let model = GilbertElliott { to_bad, to_good, loss_good, loss_bad, bad: false, draws };
                Self::GilbertElliott(Box::new(model))
            }
            Loss::List(indices) => {
                let mut indices = indices.clone();
                indices.sort_unstable();
                Self::List(indices)
            }
        }
    }

    /// Whether packet `index` is lost. To be asked of every packet, in order: Gilbert-Elliott has a memory.
    pub(crate) fn loses(&mut self, index: u64) -> bool {
        match self {
            Self::None => false,
            Self::Independent { probability, draws } => draws.falls(index, 0, *probability),
            Self::Periodic(period) => index % *period == *period - 1,
            Self::GilbertElliott(model) => model.loses(index),
            Self::List(indices) => indices.binary_search(&index).is_ok(),
        }
    }
}

/// Two states with a loss probability each (Gilbert 1960, Elliott 1963). Two draws a packet: the first decides
/// whether the state is left before the packet, the second whether the packet is lost in the state it then finds.
#[derive(Debug, Clone)]
pub(crate) struct GilbertElliott {
    to_bad: Probability,
    to_good: Probability,
    loss_good: Probability,
    loss_bad: Probability,
    bad: bool,
    draws: Draws,
}

impl GilbertElliott {
    fn loses(&mut self, index: u64) -> bool {
        let leave = if self.bad { self.to_good } else { self.to_bad };
        self.bad ^= self.draws.falls(index, 0, leave);
        self.draws.falls(index, 1, if self.bad { self.loss_bad } else { self.loss_good })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{stream, unit_interval};
    use rand_core::Rng;

    fn fraction(p: f64) -> Probability {
        Probability::new(p).expect("a fraction")
    }

    fn independent(p: f64) -> Loss {
        Loss::Independent(fraction(p))
    }

    fn lost(loss: Loss, seed: u64, from: End, packets: usize) -> Vec<usize> {
        let mut model = LossModel::new(&loss, seed, from);
        (0..packets).filter(|k| model.loses(*k as u64)).collect()
    }

    #[test]
    fn draw_k_belongs_to_packet_k() {
        let mut model = LossModel::new(&independent(0.3), 42, End::B);
        for k in 0..1000u64 {
            // Straight to the two 32-bit words of draw k, without drawing the ones before.
            let mut stream = stream(42, End::B, b"loss");
            stream.set_word_pos(2 * u128::from(k));
            assert_eq!(model.loses(k), unit_interval(stream.next_u64()) < 0.3, "packet {k}");
        }
    }

    #[test]
    fn a_seed_means_the_same_for_ever() {
        // Stored records rely on these. If this fails, what seeds mean has changed. Computed apart, with ChaCha as
        // in RFC 8439 section 2.3, but 8 rounds, a 64-bit block counter and a 64-bit nonce of zero.
        assert_eq!(lost(independent(0.05), 1, End::A, 200), PINNED_FORWARD);
        assert_eq!(lost(independent(0.05), 1, End::B, 200), PINNED_REVERSE);
    }

    const PINNED_FORWARD: &[usize] = &[4, 35, 55, 69, 146, 167];
    const PINNED_REVERSE: &[usize] = &[55, 57, 105, 126, 155, 167, 191];

    #[test]
    fn gilbert_elliott_steps_on_the_first_draw_and_loses_on_the_second() {
        let loss = Loss::GilbertElliott {
            to_bad: fraction(0.1),
            to_good: fraction(0.3),
            loss_good: fraction(0.05),
            loss_bad: fraction(0.8),
        };
        let mut draws = stream(5, End::A, b"gilb");
        let mut bad = false;
        let expected: Vec<usize> = (0..5_000)
            .filter(|_| {
                let [step, loss] = [draws.next_u64(), draws.next_u64()].map(unit_interval);
                bad = if bad { step >= 0.3 } else { step < 0.1 };
                loss < if bad { 0.8 } else { 0.05 }
            })
            .collect();
        assert!(expected.len() > 500);
        assert_eq!(lost(loss.clone(), 5, End::A, 5_000), expected);
        // Computed apart, as the pins above.
        assert_eq!(lost(loss, 1, End::A, 150), PINNED_BURSTS);
    }

    const PINNED_BURSTS: &[usize] = &[
        14, 20, 28, 29, 30, 31, 37, 49, 50, 51, 56, 59, 68, 78, 79, 84, 88, 89, 91, 92, 93, 94, 115, 116,
        117, 118, 124,
    ];

    #[test]
    fn more_loss_loses_the_same_packets_and_more() {
        let few = lost(independent(0.01), 9, End::A, 20_000);
        let many = lost(independent(0.1), 9, End::A, 20_000);
        assert!(!few.is_empty() && few.len() < many.len());
        assert!(few.iter().all(|k| many.binary_search(k).is_ok()));
    }

    #[test]
    fn periodic_is_exact() {
        assert_eq!(lost(Loss::Periodic(4), 0, End::A, 13), [3, 7, 11]);
        assert_eq!(lost(Loss::Periodic(1), 0, End::A, 3), [0, 1, 2]);
        assert!(lost(Loss::Periodic(0), 0, End::A, 100).is_empty());
        assert!(lost(Loss::Periodic(u64::MAX), 0, End::A, 100).is_empty());
    }

    #[test]
    fn a_list_is_exact_in_whatever_order_it_was_written() {
        assert_eq!(lost(Loss::List(vec![17, 0, 3]), 0, End::A, 100), [0, 3, 17]);
        assert!(lost(Loss::List(Vec::new()), 0, End::A, 100).is_empty());
    }
}
