//! The order in which a sweep's points are measured: random within blocks. Drift during the sweep (of the machine, its
//! neighbours, the path) then adds noise to a curve; in ascending order it would change the curve's shape.

use crate::statistics::random::SplitMix64;

/// Sorts items by block and shuffles each block with a seed (Fisher-Yates with
/// SplitMix64). If the repetition is the block, every block has each point once.
pub fn shuffle_in_blocks<T>(items: &mut [T], block: impl Fn(&T) -> u32, seed: u64) {
    items.sort_by_key(&block);
    let mut random = SplitMix64(seed);
    for members in items.chunk_by_mut(|a, b| block(a) == block(b)) {
        for i in (1..members.len()).rev() {
            members.swap(i, random.below(i + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twelve points, four repetitions side by side, as a plan has them.
    fn shuffled(seed: u64) -> Vec<(u32, u32)> {
        let mut turns: Vec<(u32, u32)> =
            (0..12).flat_map(|point| (1..=4).map(move |repetition| (point, repetition))).collect();
        shuffle_in_blocks(&mut turns, |turn| turn.1, seed);
        turns
    }

    #[test]
    fn each_block_has_every_point_once_in_an_order_of_its_own() {
        let turns = shuffled(7);
        let blocks: Vec<&[(u32, u32)]> = turns.chunks(12).collect();
        for (block, repetition) in blocks.iter().zip(1..) {
            assert!(block.iter().all(|turn| turn.1 == repetition), "{block:?}");
            let mut points: Vec<u32> = block.iter().map(|turn| turn.0).collect();
            assert!(!points.is_sorted(), "{block:?}");
            points.sort_unstable();
            assert_eq!(points, (0..12).collect::<Vec<_>>());
        }
        let order = |block: &[(u32, u32)]| block.iter().map(|turn| turn.0).collect::<Vec<_>>();
        assert_ne!(order(blocks[0]), order(blocks[1]));
    }

    #[test]
    fn the_seed_repeats_the_order() {
        assert_eq!(shuffled(7), shuffled(7));
        assert_ne!(shuffled(7), shuffled(8));
        shuffle_in_blocks(&mut [] as &mut [u32], |_| 1, 1);
    }
}
