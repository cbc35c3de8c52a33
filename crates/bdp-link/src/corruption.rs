//! Corruption: inverts one bit behind the IP header, so that the checksum there is wrong.

use bdp_model::units::Probability;

use crate::end::End;
use crate::packet::Packet;
use crate::random::Draws;

/// The corruption of one direction. Two draws per packet: whether, and which bit.
#[derive(Debug, Clone)]
pub(crate) struct Corruption {
    probability: Probability,
    draws: Draws,
}

/// The inverted bit: a 64-bit fraction of all bits behind the IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BitChoice(u64);

impl Corruption {
    /// Returns `None` if nothing is ever corrupted.
    pub(crate) fn new(probability: Probability, seed: u64, from: End) -> Option<Self> {
        (probability.fraction() > 0.0)
            .then(|| Self { probability, draws: Draws::new(seed, from, b"corr", 2) })
    }

    pub(crate) fn decide(&mut self, index: u64) -> Option<BitChoice> {
        self.draws.falls(index, 0, self.probability).then(|| BitChoice(self.draws.draw(index, 1)))
    }
}

/// Inverts one bit behind the IP header, or for IPv6 behind the extension headers that can be skipped, which have
/// no checksum. `false` if it is no IP packet or nothing follows.
///
/// A partial checksum is completed first: completed later it would cover the damage.
pub(crate) fn invert(packet: &mut Packet, choice: BitChoice) -> bool {
    packet.complete_checksum();
    let Some(payload) = packet.payload() else { return false };
    let bits = payload.len() as u128 * 8;
    // Below the number of bits, and for all but astronomic numbers even to within 2^-44 of a bit.
    let bit = ((u128::from(choice.0) * bits) >> 64) as usize;
    let Some(byte) = packet.data.get_mut(payload.start + bit / 8).filter(|_| bits > 0) else { return false };
    *byte ^= 0x80 >> (bit % 8);
    true
}
