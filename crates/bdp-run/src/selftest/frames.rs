//! Frames to offer, and their fate by number.

use std::ops::RangeInclusive;

use bdp_lab::frame_train::{CarriedTrain, Frame, SMALLEST_FRAME};

/// The longest frame.
pub(super) const LONGEST: u32 = 1500;
/// Any length.
pub(super) const ANY: RangeInclusive<u32> = SMALLEST_FRAME..=LONGEST;

/// Reproducible random numbers (SplitMix64).
pub(super) struct Draws(pub(super) u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let values = range.end() - range.start() + 1;
        range.start() + ((u128::from(self.next()) * u128::from(values)) >> 64) as u64
    }
}

/// Returns frames of random lengths at random intervals, `mean_gap_ns` on average.
pub(super) fn scattered(
    count: usize,
    mean_gap_ns: u64,
    lengths: RangeInclusive<u32>,
    seed: u64,
) -> Vec<Frame> {
    let mut draws = Draws(seed);
    let mut at_ns = 0;
    (0..count)
        .map(|_| {
            at_ns += draws.within(1..=2 * mean_gap_ns);
            let lengths = u64::from(*lengths.start())..=u64::from(*lengths.end());
            Frame { at_ns, ip_bytes: draws.within(lengths) as u32, ..Frame::default() }
        })
        .collect()
}

/// Returns short frames in bursts of twenty.
pub(super) fn bunches(count: usize, gap_ns: u64) -> Vec<Frame> {
    (0..count as u64).map(|i| Frame { at_ns: i / 20 * gap_ns, ip_bytes: 100, ..Frame::default() }).collect()
}

/// Returns the gap at which frames of any length use this percentage of a rate.
pub(super) fn gap_ns(rate_bps: u64, overhead_bytes: u32, percent: u64) -> u64 {
    let bits = u64::from((SMALLEST_FRAME + LONGEST) / 2 + overhead_bytes) * 8;
    bits * 1_000_000_000 / rate_bps * 100 / percent
}

/// Returns when each frame first arrived; `None` for lost frames.
pub(super) fn first(carried: &CarriedTrain) -> Vec<Option<u64>> {
    let mut came = vec![None; carried.sent_ns.len()];
    for &(number, at) in &carried.came {
        if let Some(came) = came.get_mut(number as usize) {
            came.get_or_insert(at);
        }
    }
    came
}

/// Returns the delay of each frame that arrived.
pub(super) fn transits(carried: &CarriedTrain) -> Vec<u64> {
    let came = first(carried).into_iter().zip(&carried.sent_ns);
    came.filter_map(|(came, &sent)| Some(came?.saturating_sub(sent))).collect()
}

/// Returns the numbers of the lost frames.
pub(super) fn missing(carried: &CarriedTrain) -> Vec<u64> {
    let came = first(carried).into_iter().zip(0..);
    came.filter_map(|(came, number)| came.is_none().then_some(number)).collect()
}

/// Returns how many frames were overtaken by a later one.
pub(super) fn overtaken(carried: &CarriedTrain) -> usize {
    let mut latest = None;
    let mut overtaken = 0;
    for &(number, _) in &carried.came {
        overtaken += usize::from(latest.is_some_and(|latest| number < latest));
        latest = latest.max(Some(number));
    }
    overtaken
}

/// Returns the lengths of runs of consecutive numbers.
pub(super) fn runs(numbers: &[u64]) -> Vec<u64> {
    let mut runs = Vec::new();
    let mut before = None;
    for &number in numbers {
        match runs.last_mut() {
            Some(run) if before == number.checked_sub(1) => *run += 1,
            _ => runs.push(1),
        }
        before = Some(number);
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_is_told_by_number() {
        let carried = CarriedTrain {
            sent_ns: vec![0, 10, 20, 30],
            came: vec![(0, 5), (3, 36), (1, 40), (1, 41)],
            ..CarriedTrain::default()
        };
        assert_eq!(first(&carried), [Some(5), Some(40), None, Some(36)]);
        assert_eq!(transits(&carried), [5, 30, 6]);
        assert_eq!(missing(&carried), [2]);
        assert_eq!(overtaken(&carried), 2);
        assert_eq!(runs(&[0, 1, 2, 5, 7, 8]), [3, 1, 2]);
        assert_eq!(runs(&[]), [0; 0]);
    }

    #[test]
    fn scattered_frames_keep_to_their_ranges() {
        let frames = scattered(1000, 500, 100..=200, 7);
        assert!(frames.iter().all(|f| (100..=200).contains(&f.ip_bytes)));
        assert!(frames.windows(2).all(|w| w[0].at_ns < w[1].at_ns));
        let mean = frames.last().unwrap().at_ns / 1000;
        assert!((470..530).contains(&mean), "{mean}");
    }
}
