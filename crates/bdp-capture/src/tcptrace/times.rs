//! Statistics of measured times: count, extremes, mean and standard deviation.

/// Statistics of times in microseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    pub count: u64,
    min: u64,
    max: u64,
    sum: u128,
    squares: u128,
}

impl Times {
    pub fn add(&mut self, us: u64) {
        self.min = if self.count == 0 { us } else { self.min.min(us) };
        self.max = self.max.max(us);
        self.count += 1;
        self.sum += u128::from(us);
        self.squares = self.squares.saturating_add(u128::from(us) * u128::from(us));
    }

    /// Returns the minimum, milliseconds.
    pub fn min(&self) -> f64 {
        self.min as f64 / 1e3
    }

    /// Returns the maximum, milliseconds.
    pub fn max(&self) -> f64 {
        self.max as f64 / 1e3
    }

    /// Returns the mean, milliseconds.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 / 1e3 }
    }

    /// Returns the standard deviation of the sample, milliseconds; 0 for fewer than two.
    pub fn deviation(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        // In integers, because the two terms are large compared with their difference.
        let count = u128::from(self.count);
        let all = self.squares.saturating_mul(count).saturating_sub(self.sum.saturating_mul(self.sum));
        (all as f64 / count as f64 / (count - 1) as f64).sqrt() / 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_time_counts_as_the_least_even_if_it_is_nothing() {
        let mut times = Times::default();
        [2_000, 0, 4_000].into_iter().for_each(|us| times.add(us));
        assert_eq!((times.count, times.min(), times.max(), times.mean()), (3, 0.0, 4.0, 2.0));
        assert_eq!(times.deviation(), 2.0);
    }

    #[test]
    fn long_times_that_differ_little_keep_their_deviation() {
        let mut times = Times::default();
        (0..1_000_000_u64).for_each(|i| times.add(3_600_000_000 + i % 2));
        assert!((times.deviation() - 0.000_5).abs() < 1e-9, "{}", times.deviation());
        assert_eq!(Times::default().mean(), 0.0);
    }
}
