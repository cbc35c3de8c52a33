//! Outstanding data of a direction, in samples and over time.

/// Outstanding data.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outstanding {
    /// End of the highest data sent.
    end: Option<u64>,
    /// Highest acknowledgement.
    acked: Option<u64>,
    pub max: u64,
    /// Smallest amount above zero.
    pub min: u64,
    sum: u128,
    count: u64,
    /// Integral up to the last change, bytes x microseconds.
    area: u128,
    changed_us: u64,
}

impl Outstanding {
    fn now(&self) -> u64 {
        self.end.zip(self.acked).map_or(0, |(end, acked)| end.saturating_sub(acked))
    }

    fn advance(&mut self, now_us: u64) {
        self.area += u128::from(self.now()) * u128::from(now_us.saturating_sub(self.changed_us));
        self.changed_us = self.changed_us.max(now_us);
    }

    /// Records that data up to `end` was sent.
    pub fn send(&mut self, now_us: u64, end: u64) {
        self.advance(now_us);
        self.end = Some(self.end.map_or(end, |known| known.max(end)));
    }

    /// Records that everything up to `number` was acknowledged.
    pub fn acknowledge(&mut self, now_us: u64, number: u64) {
        self.advance(now_us);
        self.acked = Some(self.acked.map_or(number, |known| known.max(number)));
    }

    /// Takes a sample for a packet whose data ends at `end`; before any acknowledgement, only the packet itself is known to be outstanding.
    pub fn sample(&mut self, end: u64, payload: u64) {
        let bytes = self.acked.map_or(payload, |acked| end.saturating_sub(acked));
        self.max = self.max.max(bytes);
        if bytes > 0 && (self.min == 0 || bytes < self.min) {
            self.min = bytes;
        }
        self.sum += u128::from(bytes);
        self.count += 1;
    }

    /// Returns the mean of the samples.
    pub fn mean(&self) -> u64 {
        self.sum.checked_div(u128::from(self.count)).unwrap_or(0) as u64
    }

    /// Returns the mean over the time of the connection, ending now; `None` if it took no time.
    pub fn mean_over_time(mut self, from_us: u64, to_us: u64) -> Option<u64> {
        self.advance(to_us);
        self.area.checked_div(u128::from(to_us.saturating_sub(from_us))).map(|bytes| bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_outstanding_counts_for_as_long_as_it_was() {
        let mut outstanding = Outstanding::default();
        outstanding.acknowledge(1_000_000, 5_000);
        for (at, end) in [(1_000_000, 5_500), (1_100_000, 6_000), (2_100_000, 7_000)] {
            outstanding.send(at, end);
            outstanding.sample(end, 500);
        }
        outstanding.acknowledge(2_200_000, 7_000);
        assert_eq!((outstanding.max, outstanding.min, outstanding.mean()), (2_000, 500, 1_166));
        // 500 bytes for 0.1 s, 1000 for 1 s and 2000 for 0.1 s, over 1.2 s and over 2.4 s.
        assert_eq!(outstanding.mean_over_time(1_000_000, 2_200_000), Some(1_041));
        assert_eq!(outstanding.mean_over_time(1_000_000, 3_400_000), Some(520));
        assert_eq!(outstanding.mean_over_time(5, 5), None);
    }
}
