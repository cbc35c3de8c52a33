//! A small generator of uniform numbers from a seed, for example for the order of cases.

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014), figure 17.
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// Returns 64 uniform bits.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number in 0..n, n above 0: the high half of a product; the bias is below 2^-40 for n below 2^24.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_is_the_published_one() {
        // First outputs for seed 1234567 of the authors' reference implementation.
        let mut random = SplitMix64(1_234_567);
        assert_eq!([random.next(), random.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }
}
