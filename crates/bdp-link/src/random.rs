//! Random streams: one for each impairment and direction, derived from the link's seed.

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

use crate::End;

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
