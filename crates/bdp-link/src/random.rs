//! Random draws: a stream for each impairment and direction, derived from the link's seed, keyed by packet.

use bdp_model::units::Probability;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::end::End;

/// The draws of one impairment in one direction: a fixed number of 64-bit numbers for each packet, used or not.
///
/// Draw `n` of packet `k` is number `k x per_packet + n` of the stream under every configuration and in every
/// order of queries, so one packet's draws never depend on another's fate.
#[derive(Debug, Clone)]
pub(crate) struct Draws {
    /// Boxed, so that a disabled impairment takes no room where packets pass.
    stream: Box<ChaCha8Rng>,
    per_packet: u64,
    /// Index of the stream's next number.
    next: u64,
}

/// Numbers that are cheaper skipped one by one than jumped: a jump recomputes four blocks of eight.
const PASSED_OVER: u64 = 32;

impl Draws {
    pub(crate) fn new(seed: u64, from: End, impairment: &[u8; 4], per_packet: u64) -> Self {
        Self { stream: Box::new(stream(seed, from, impairment)), per_packet, next: 0 }
    }

    /// Returns draw `n` of packet `index`, for `n` below the draws per packet.
    pub(crate) fn draw(&mut self, index: u64, n: u64) -> u64 {
        let wanted = index.wrapping_mul(self.per_packet).wrapping_add(n);
        match wanted.checked_sub(self.next) {
            Some(gap) if gap <= PASSED_OVER => {
                for _ in 0..gap {
                    self.stream.next_u64();
                }
            }
            // A number is two of the stream's 32-bit words.
            _ => self.stream.set_word_pos(2 * u128::from(wanted)),
        }
        self.next = wanted.wrapping_add(1);
        self.stream.next_u64()
    }

    /// Whether draw `n` of packet `index` falls into `probability`.
    pub(crate) fn falls(&mut self, index: u64, n: u64, probability: Probability) -> bool {
        unit_interval(self.draw(index, n)) < probability.fraction()
    }
}

/// Key of the direction that begins at `from`, for one-time draws.
pub(crate) fn key(seed: u64, from: End, purpose: &[u8; 4]) -> u64 {
    stream(seed, from, purpose).next_u64()
}

/// The upper 53 bits as a fraction in 0..1, each a multiple of 2^-53, so that probability 1 always falls and 0 never.
pub(crate) fn unit_interval(draw: u64) -> f64 {
    (draw >> 11) as f64 / (1u64 << 53) as f64
}

/// The stream of an impairment in the direction that begins at `from`.
///
/// ChaCha8 under a key that spells out what the stream is for: the seed (8 bytes, little endian), `bdp-link`, the
/// end, and the impairment's name. Different keys give independent streams. Records hold only the seed, so this
/// layout is part of what they mean: changing it changes every emulated loss.
pub(crate) fn stream(seed: u64, from: End, impairment: &[u8; 4]) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(b"bdp-link");
    key[16] = match from {
        End::A => b'A',
        End::B => b'B',
    };
    key[17..21].copy_from_slice(impairment);
    ChaCha8Rng::from_seed(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_is_the_same_in_every_order_of_asking() {
        let mut in_order = Draws::new(7, End::B, b"test", 3);
        let all: Vec<u64> = (0..600).map(|i| in_order.draw(i / 3, i % 3)).collect();
        let mut plain = stream(7, End::B, b"test");
        assert!(all.iter().all(|draw| *draw == plain.next_u64()));
        let mut jumping = Draws::new(7, End::B, b"test", 3);
        for step in [1, 7, 31, 32, 33, 34, 100, 599] {
            for i in (0..600u64).map(|i| i * step % 600) {
                assert_eq!(jumping.draw(i / 3, i % 3), all[i as usize], "number {i}, step {step}");
            }
        }
        jumping.draw(u64::MAX, 2);
    }

    #[test]
    fn certain_and_impossible() {
        let mut draws = Draws::new(3, End::A, b"test", 1);
        let [never, always] = [0.0, 1.0].map(|p| Probability::new(p).expect("a fraction"));
        assert!((0..10_000).all(|k| draws.falls(k, 0, always)));
        assert!(!(0..10_000).any(|k| draws.falls(k, 0, never)));
        assert!(unit_interval(u64::MAX) < 1.0);
    }
}
